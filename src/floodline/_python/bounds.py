"""The bound that a container or a cache is created with: `deque(maxlen=9)`, `lru_cache(128)`."""

from __future__ import annotations

import ast
from typing import NamedTuple

from floodline._python.at_limit import AtLimit
from floodline._python.names import last_name
from floodline._python.numbers import is_none

LIBRARY_WORDS = ("maxlen", "maxsize")  # as the standard library calls a limit
COUNT_WORDS = (*LIBRARY_WORDS, "max_items")
# the usual names of a limit that a container is created with
LIMIT_WORDS = frozenset(
    (
        *COUNT_WORDS,
        *("max_size", "max_entries", "max_bytes", "capacity", "max_sessions"),
        *("ttl", "idle", "max_age"),
    )
)
QUEUES = frozenset(("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue", "JoinableQueue"))
CACHES = frozenset(("lru_cache", "cache", "alru_cache"))
SESSIONS = frozenset(("Sessions", "AsyncSessions"))
LRU_DEFAULT = 128
_GIVEN_FIRST = QUEUES | {"LRUCache", "BoundedMap", "BoundedLog"}


class CacheSize(NamedTuple):
    """What a decorator says about the size of its cache; `given` is None for the default."""

    is_bounded: bool
    given: ast.expr | None


def bound_argument(node: ast.Call) -> ast.expr | None:
    """Return the expression of the bound that a container is created with, None if none."""
    name = last_name(node.func)
    words = ("max_sessions",) if name in SESSIONS else COUNT_WORDS
    given = next((k.value for k in node.keywords if k.arg in words), None)
    if given is None and name == "deque" and len(node.args) > 1:
        given = node.args[1]
    if given is None and name in _GIVEN_FIRST and node.args:
        given = node.args[0]
    return None if is_none(given) else given


def is_endless_queue(node: ast.Call) -> bool:
    """Return True if a call creates an unbounded queue; a size of 0 is no bound."""
    if last_name(node.func) not in QUEUES or any(k.arg is None for k in node.keywords):
        return False  # `**options` may have a size
    given = bound_argument(node)
    return given is None or (isinstance(given, ast.Constant) and not given.value)


def at_bound(node: ast.Call) -> frozenset[AtLimit]:
    """Return what a container does at its bound, as far as its class is known."""
    name = last_name(node.func)
    order = next((k.value for k in node.keywords if k.arg == "order"), None)
    if name in ("deque", "BoundedLog"):
        return frozenset({AtLimit.FIRST})
    used = {"LRUCache", "lru_cache", *SESSIONS}
    if name in used or (name == "BoundedMap" and order is None):
        return frozenset({AtLimit.FIRST, AtLimit.RENEWED})
    if name == "BoundedMap" and isinstance(order, ast.Constant):
        kept = {AtLimit.RENEWED} if order.value == "lru" else set()
        return frozenset({AtLimit.FIRST, *kept})
    if name == "Batch":
        return frozenset({AtLimit.ALL})
    return frozenset({AtLimit.BLOCK if name.endswith("Queue") else AtLimit.SOME})


def cache_size(decorator: ast.expr) -> CacheSize | None:
    """Return the size that a decorator gives a function's cache, None if it is not a cache."""
    call = decorator if isinstance(decorator, ast.Call) else None
    name = last_name(call.func if call else decorator)
    if name not in CACHES:
        return None
    given = None
    if call is not None:
        by_name = (k.value for k in call.keywords if k.arg == "maxsize")
        given = call.args[0] if call.args else next(by_name, None)
    return CacheSize(name != "cache" and not is_none(given), given)
