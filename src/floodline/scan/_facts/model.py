"""The facts of one source file, in terms that fit any language; syntax trees are not kept."""

from __future__ import annotations

from typing import Literal, NamedTuple

from floodline._python.kinds import Kind
from floodline.scan._facts.calls import Argument, Callee, Kept
from floodline.scan._facts.circumstances import Arms, Guard, Marks, Repeats
from floodline.scan._facts.origins import Origin
from floodline.scan._facts.records import Struct
from floodline.scan._facts.references import Base, Reference

# insert: by reading, in order to change what is inside
Verb = Literal["grow", "shrink", "replace", "lookup", "insert"]
# what is put in; made: where it is put in; key: made of its key
Stored = Literal[
    "task", "lock", "future", "waiter", "weakref", "self", "made", "key", "sum", "other",
]  # fmt: skip
Risk = Literal["return", "raise", "await", "yield", "call"]
REWRITTEN = "rewritten"
RENEWS = "[]=[]"  # puts something empty in the place of what is inside
Sign = Literal[
    "by_name", "cache", "capped", "classvar", "client", "close", "finalize", "flip", "fresh",
    "gives", "handle", "handler", "label", "listener", "queue", "raise", "refused", "set",
    "singleton", "timer", "ttl", "waits",
]  # fmt: skip


class At(Struct, frozen=True, gc=False):
    """A place in a file: line from 1, columns from 1, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


FILLED = "items"  # created with something in it


class Container(Struct, frozen=True, gc=False):
    """A container: where it is created and what kind it is."""

    ref: Reference
    kind: Kind
    at: At
    function: str  # "" is the module, "Class:" the body of a class
    fills: str  # what a map that inserts on reading fills in; the class of a weak one; `FILLED`


class Change(Struct, frozen=True, gc=False):
    """Something grows, shrinks or is replaced."""

    ref: Reference
    depth: int  # 0: the container itself, 1: a value inside it
    verb: Verb
    op: str
    key: Origin
    key_text: str
    value: Stored
    source: Origin  # where it comes from, if it is something else and has no key
    at: At
    function: str
    marks: Marks


class Call(Struct, frozen=True, gc=False):
    """A call, with what it passes on."""

    function: str
    callee: Callee
    line: int
    repeats: Repeats
    arguments: tuple[Argument, ...]
    keywords: tuple[tuple[str, Argument], ...]
    kept: Kept
    over: str = ""  # the class of the object that its loop iterates over
    arms: Arms = ()  # the arms of choices between constants that it is in, and what is empty
    guard: Guard = ""  # it may not run, or run after an error
    again: bool = False  # already noted where it is made: here its result goes somewhere else


class Limit(Struct, frozen=True, gc=False):
    """A comparison of a container's size with a number, and whether its branch acts."""

    ref: Reference
    depth: int
    at: At
    function: str
    acts: bool


class Pair(Struct, frozen=True, gc=False):
    """An entry is added, something may fail, the entry is removed: all in one function."""

    ref: Reference
    depth: int
    added: At
    risk_line: int
    risk: Risk
    removed_line: int
    function: str
    key: Origin
    op: str


class Function(Struct, frozen=True, gc=False):
    """A function or method, with what its decorators and signature say."""

    name: str  # qualified in the module: Class.method, outer.<locals>.inner
    owner: str  # its class, or ""
    line: int
    parameters: tuple[str, ...]
    annotations: tuple[str, ...]
    decorators: tuple[str, ...]
    returns_inner: bool
    waits: bool = False  # it is a coroutine
    returns: str = ""  # the class that its annotation names


class Class(Struct, frozen=True, gc=False):
    """A class with its bases and the types of its attributes."""

    name: str
    bases: tuple[str, ...]
    line: int
    attributes: tuple[tuple[str, Base], ...]  # what they are made of
    decorators: tuple[str, ...]


class Alias(Struct, frozen=True, gc=False):
    """Two references that mean one container."""

    ref: Reference
    other: Reference
    function: str


class Mark(Struct, frozen=True, gc=False):
    """What a single rule looks for: a cache decorator, an added handler, a raised error."""

    kind: Sign
    name: str
    at: At
    function: str
    detail: str = ""
    ref: Reference | None = None  # the container that it is about
    callee: Callee | None = None  # the call that it is about
    origin: Origin | None = None  # the origin of the value that it is about


class FileFacts(NamedTuple):
    """All facts of one file."""

    path: str
    module: str
    lines: int
    containers: tuple[Container, ...]
    changes: tuple[Change, ...]
    calls: tuple[Call, ...]
    limits: tuple[Limit, ...]
    pairs: tuple[Pair, ...]
    functions: tuple[Function, ...]
    classes: tuple[Class, ...]
    aliases: tuple[Alias, ...]
    marks: tuple[Mark, ...]
    imports: tuple[tuple[str, str], ...]  # local name, dotted target
    counters: tuple[Reference, ...]  # what is incremented
    slices: tuple[tuple[Reference, str, int], ...]  # function and line: a part is read
    escapes: tuple[tuple[Reference, str], ...]  # function: passed to unknown code
    globals: tuple[tuple[str, Base], ...]  # module names and what creates their values
    newer: str = ""  # the version of Python that read it, or `REWRITTEN`: it has newer syntax
