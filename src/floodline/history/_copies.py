"""Copies of a conversation: `copy`, `deepcopy` and `pickle` give an independent one.

Data is copied as it is saved. What is attached (archive, summariser, counter, clock) is shared by
copies, because a file or a function cannot be duplicated; a pickle includes it if pickle can, and
raises if not.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from floodline.history._keeper import Keeper


class Copied(Protocol):
    """A conversation as this module sees it."""

    _keeper: Keeper
    _window_tokens: int

    @property
    def configure(self) -> Callable[..., Any]:
        """See `Conversation.configure`."""
        ...

    def _dump(self) -> dict[str, Any]: ...

    @classmethod
    def __floodline_load__(cls, data: dict[str, Any]) -> Any: ...


C = TypeVar("C", bound=Copied)


def attached(keeper: Keeper) -> dict[str, Any]:
    """Return the arguments of `configure` that attach the same things again."""
    found: dict[str, Any] = {"count_tokens": keeper.count}
    if keeper.outbox is not None and keeper.outbox.archive is not None:
        found["archive"] = keeper.outbox.archive
    if keeper.summariser is not None:
        found["summarise"] = keeper.summariser.call
    return found


def duplicate(original: C, memo: dict[int, Any] | None = None) -> C:
    """Return a conversation of the same class, data and attachments; with `memo` a deep one.

    The archive knows a conversation by its id. One that is still empty, with an id that floodline
    chose, is a template: its copies archive under ids of their own.
    """
    keeper, data, own = original._keeper, original._dump(), getattr(original, "__dict__", {})
    if memo is not None:
        data, own = copy.deepcopy((data, own), memo)
    if keeper.outbox is not None and keeper.outbox.chose_id and keeper.seq == 0:
        data["archive_id"] = None
    return rebuild(
        type(original), data, attached(keeper), keeper.clock, original._window_tokens, own
    )


def rebuild(
    kind: type[C],
    data: dict[str, Any],
    attachments: dict[str, Any],
    clock: Any,
    window_tokens: int,
    own: dict[str, Any],
) -> C:
    """Create a conversation from its dump, its attachments and what a subclass added."""
    made: C = kind.__floodline_load__(data)
    made._keeper.clock, made._window_tokens = clock, window_tokens
    made.configure(**attachments)
    if own:
        made.__dict__.update(own)
    return made
