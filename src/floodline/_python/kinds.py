"""Which classes are containers, and of which kind, by their names."""

from __future__ import annotations

import ast
from typing import Literal

# lookup: a map that inserts on reading; stack: an ExitStack; bounded: created with a limit
Kind = Literal["map", "list", "set", "lookup", "stack", "bounded", "weak"]

MAPS = {"dict", "OrderedDict", "Counter", "Dict", "UserDict", "MutableMapping", "ChainMap"}
LISTS = {"list", "deque", "List", "UserList", "Deque", "MutableSequence"}
SETS = {"set", "Set", "MutableSet"}
LOOKUPS = {"defaultdict", "DefaultDict"}  # maps that insert on reading
WEAK = {"WeakKeyDictionary", "WeakValueDictionary", "WeakSet"}
STACKS = {"ExitStack", "AsyncExitStack"}
# nothing instantiates these; a framework's class of the same name is something else
ONLY_TYPES = {"Dict", "List", "Set", "Deque", "MutableMapping", "MutableSequence", "MutableSet"}
# verify treats an instance of a class derived from one of these as a container
BASES = (MAPS | LISTS | SETS) - ONLY_TYPES - {"Counter", "ChainMap"}
KINDS: dict[str, Kind] = {
    **dict.fromkeys(MAPS, "map"),
    **dict.fromkeys(LISTS, "list"),
    **dict.fromkeys(SETS, "set"),
    **dict.fromkeys(LOOKUPS, "lookup"),
    **dict.fromkeys(WEAK, "weak"),
    **dict.fromkeys(STACKS, "stack"),
}
_DISPLAYS: dict[type, Kind] = {
    ast.Dict: "map",
    ast.DictComp: "map",
    ast.List: "list",
    ast.ListComp: "list",
    ast.Set: "set",
    ast.SetComp: "set",
}


def kind_of_class(name: str) -> Kind | None:
    """Return the kind of container that a class of this name is."""
    return KINDS.get(name)


def kind_of_display(node: ast.expr | None) -> Kind | None:
    """Return the kind of container that `[...]` or `{...}` creates."""
    return _DISPLAYS.get(type(node))
