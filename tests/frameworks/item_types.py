"""Write the item types of the Conversations API as JSON Schema, from the models of `openai`.

python tests/frameworks/item_types.py > src/floodline/_service/_items/types.json
"""

from __future__ import annotations

import json
import sys
from typing import Any

from openai.types.conversations import ConversationItem
from pydantic import TypeAdapter

LEFT_OUT = ("title", "description", "default")


def schema() -> dict[str, Any]:
    """Return the union of all item types, without the prose."""
    plain: dict[str, Any] = _without_prose(TypeAdapter(ConversationItem).json_schema())
    return plain


def _without_prose(value: Any, *, names: bool = False) -> Any:
    if isinstance(value, list):
        return [_without_prose(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_prose(each, names=key in ("properties", "$defs") and not names)
        for key, each in value.items()
        if names or key not in LEFT_OUT
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(), separators=(",", ":"), sort_keys=True) + "\n")
