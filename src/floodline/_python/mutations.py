"""Which methods make which kinds of containers grow or shrink: one table, and sets built from it.

The sets answer `name in SET` quickly, because the scan asks for every call of a program.
"""

from __future__ import annotations

from enum import Enum, Flag, auto
from typing import NamedTuple


class Effect(Enum):
    """What a method does to the number of items."""

    GROWS = auto()
    SHRINKS = auto()


class Kind(Flag):
    """Containers that have a method of that name; a stack is an `ExitStack`."""

    LIST = auto()
    DEQUE = auto()
    SET = auto()
    MAP = auto()
    STACK = auto()
    QUEUE = auto()


class Takes(Enum):
    """How many items a removal takes, and what chooses them."""

    NAMED = auto()  # the one that the caller names: others stay, however many there are
    ANY = auto()  # one that the container chooses
    ALL = auto()
    SEVERAL = auto()


class Method(NamedTuple):
    """What is known about a method from its name alone."""

    name: str
    effect: Effect
    kinds: Kind
    takes: Takes | None = None


_SEQUENCE = Kind.LIST | Kind.DEQUE
_KEYED = Kind.SET | Kind.MAP
_EVERY = _SEQUENCE | _KEYED

METHODS = (
    *(Method(name, Effect.GROWS, _SEQUENCE) for name in ("append", "extend", "insert")),
    *(Method(name, Effect.GROWS, Kind.DEQUE) for name in ("appendleft", "extendleft")),
    *(
        Method(name, Effect.GROWS, Kind.STACK)
        for name in (
            *("push", "enter_context", "enter_async_context", "callback"),
            *("push_async_exit", "push_async_callback"),
        )
    ),
    Method("add", Effect.GROWS, Kind.SET),
    Method("update", Effect.GROWS, _KEYED),
    *(Method(name, Effect.GROWS, Kind.MAP) for name in ("setdefault", "__setitem__", "subtract")),
    *(Method(name, Effect.GROWS, Kind.QUEUE) for name in ("put", "put_nowait")),
    Method("pop", Effect.SHRINKS, _EVERY, Takes.NAMED),
    Method("__delitem__", Effect.SHRINKS, _SEQUENCE | Kind.MAP, Takes.NAMED),
    Method("remove", Effect.SHRINKS, _SEQUENCE | Kind.SET, Takes.NAMED),
    Method("discard", Effect.SHRINKS, Kind.SET, Takes.NAMED),
    Method("popitem", Effect.SHRINKS, Kind.MAP, Takes.ANY),
    Method("popleft", Effect.SHRINKS, Kind.DEQUE, Takes.ANY),
    Method("clear", Effect.SHRINKS, _EVERY, Takes.ALL),
    *(
        Method(f"{name}_update", Effect.SHRINKS, Kind.SET, Takes.SEVERAL)
        for name in ("difference", "intersection", "symmetric_difference")
    ),
    *(Method(name, Effect.SHRINKS, Kind.STACK, Takes.ALL) for name in ("pop_all", "aclose")),
    Method("get_nowait", Effect.SHRINKS, Kind.QUEUE, Takes.ANY),
)
DELETES = "del"  # the statement, among the names of methods
HEAP_GROWS = frozenset(("heappush", "insort"))  # functions that are given the list
HEAP_SHRINKS = frozenset(("heappop",))


def methods(
    effect: Effect, kinds: Kind = ~Kind.QUEUE, takes: tuple[Takes, ...] = ()
) -> frozenset[str]:
    """Return the names of the methods with that effect on one of the kinds.

    Queues are left out unless they are asked for: they have a limit of their own, and other code
    is meant to take out what is put in.
    """
    return frozenset(
        method.name
        for method in METHODS
        if method.effect is effect and method.kinds & kinds and (not takes or method.takes in takes)
    )


GROWS_BY_KEY = methods(Effect.GROWS, _KEYED)  # the same key again adds nothing
GROWS_BY_ITEM = methods(Effect.GROWS) - GROWS_BY_KEY
ONLY_OF_A_STACK = methods(Effect.GROWS, Kind.STACK)  # nothing else in the library has these
SHRINKS = methods(Effect.SHRINKS)
GROWS_ANYTHING = methods(Effect.GROWS, ~Kind(0))
SHRINKS_ANYTHING = methods(Effect.SHRINKS, ~Kind(0))
TAKES_NAMED = methods(Effect.SHRINKS, takes=(Takes.NAMED,)) | {DELETES}
TAKES_NAMED_OF_MAP = methods(Effect.SHRINKS, Kind.MAP, (Takes.NAMED,)) | {DELETES}
TAKES_UNNAMED = methods(Effect.SHRINKS, _EVERY, (Takes.ANY, Takes.ALL))
NOT_OF_A_MAP = SHRINKS - methods(Effect.SHRINKS, Kind.MAP)
