"""The connections of this process around a fork: closed before it, reopened on both sides."""

from __future__ import annotations

import os
import weakref
from _thread import get_ident
from typing import Protocol

_FORK_PATIENCE = 10.0


class Connected(Protocol):
    """Whoever has a connection."""

    def suspend(self, patience: float) -> bool:
        """Close what is open until `resume`; False if it stays open."""
        ...

    def resume(self) -> None:
        """End what `suspend` began, in the process that called it."""
        ...

    def start_anew(self, *, inherited: bool) -> None:
        """Forget in a forked child what belongs to its parent."""
        ...


# SQLite keeps the locks of a process in its memory: a child that inherits an open connection
# believes it holds its parent's locks, and each may delete what the other still writes. So all
# connections are closed around a fork, and both processes open their own when they need one.
writers: weakref.WeakSet[Connected] = weakref.WeakSet()
_suspended: dict[int, list[Connected]] = {}


def _before_fork() -> None:
    _suspended[get_ident()] = [w for w in list(writers) if w.suspend(_FORK_PATIENCE)]


def _after_fork_in_parent() -> None:
    for writer in _suspended.pop(get_ident(), ()):
        writer.resume()


def _after_fork_in_child() -> None:
    suspended = _suspended.pop(get_ident(), [])
    _suspended.clear()
    for writer in list(writers):
        writer.start_anew(inherited=writer not in suspended)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
