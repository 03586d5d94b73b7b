"""An adapter whose framework is not installed says what to install."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

ADAPTERS = {  # what each imports first, and the extra
    "langgraph": ("langchain_core", "langgraph"),
    "openai_agents": ("agents", "openai-agents"),
    "mcp": ("mcp", "mcp"),
    "aiogram": ("aiogram", "aiogram"),
    "litestar": ("litestar", "litestar"),
    "llama_index": ("llama_index", "llama-index"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
    "adk": ("google.adk", "adk"),
    "agent_framework": ("agent_framework", "agent-framework"),
}


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_error_names_the_extra(adapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, extra = ADAPTERS[adapter]
    for module in [one for one in sys.modules if one.startswith("floodline.adapters.")]:
        monkeypatch.delitem(sys.modules, module)
    for module in [package, *(one for one in sys.modules if one.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install 'floodline\[{extra}\]'"):
        import_module(f"floodline.adapters.{adapter}")
