"""Names that mean the same to every reader of facts: harmless calls, locks, constructors."""

from __future__ import annotations

import re
from functools import lru_cache

from floodline.scan._facts.references import MANY

# methods that create an instance
MAKERS = {"__init__", "__new__", "__post_init__", "__set_name__", "__setstate__"}
# constructors of what threads and tasks wait on
LOCKS = {"Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition", "Event"}
# what a table of methods is, as if it were a call that gets them
LISTED = "{}"
# what puts a function into an attribute of another object, as if it were a call that gets it
ASSIGNED = "="
# what runs a function again and again, as if a decorator with an interval were a call that gets it
PERIODIC = "every"
# what tells at which interval: `every(seconds=5)`
UNITS = {
    "second", "seconds", "minute", "minutes", "hour", "hours", "days", "weeks", "interval",
}  # fmt: skip
# calls that keep none of their arguments
HARMLESS = {
    "len", "list", "tuple", "set", "dict", "sorted", "sum", "any", "all", "iter", "enumerate",
    "min", "max", "isinstance", "bool", "frozenset", "map", "filter", "zip", "repr", "str", "join",
    "dumps", "print", "deepcopy", "copy", "reversed", "id", "type", "get", "hasattr", "getattr",
    "debug", "info", "warning", "error", "append", "add", "extend", "update", "gather", "wait",
    "cast", "choice", "sample", "Lock", "next", "format", "items", "keys", "values", "dump",
    "chain", "islice", "Counter", "groupby", "deque", "product", "zip_longest", "accumulate",
    LISTED, ASSIGNED,
}  # fmt: skip
_SUBSCRIBING = re.compile(
    r"^(on|once|off|subscribe|connect|listen|register|bind|hook|attach|route|watch|observe|"
    r"on_\w+|add_\w*(listener|handler|callback|hook|observer|route|event)\w*)$"
)
subscribes = lru_cache(MANY)(_SUBSCRIBING.match)  # asked for the same names again and again
# a listener is added by one word and removed by its opposite
OPPOSITES = {
    "on": ("off", "remove_listener"), "subscribe": ("unsubscribe",), "connect": ("disconnect",),
    "register": ("unregister", "deregister"), "attach": ("detach",),
    "observe": ("unobserve",), "watch": ("unwatch",), "listen": ("unlisten",),
    "hook": ("unhook",),
}  # fmt: skip
ADDS = re.compile(r"^add_(\w*(?:listener|handler|callback|hook|observer)\w*)$")
ONE_SHOT = {"add_done_callback", "add_signal_handler"}


def opposites_of(name: str) -> tuple[str, ...]:
    """Return the names that undo adding a listener, `()` if the name adds none."""
    added = ADDS.match(name) if name[:4] == "add_" else None
    if added and name not in ONE_SHOT:
        return (f"remove_{added[1]}", f"discard_{added[1]}", f"delete_{added[1]}")
    return OPPOSITES.get(name, ())
