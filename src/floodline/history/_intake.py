"""A message on its way in: read, measured, shortened if need be; nothing is stored yet."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from floodline._units import format_size
from floodline.errors import MalformedMessage, TooLarge
from floodline.history._bounds import Bounds
from floodline.history._formats.shapes import Kind, Message, Reading, read
from floodline.history._formats.shorten import shorten, weigh
from floodline.history._tokens import CountTokens, count_with, estimate

REMEMBERED_IDS = 256


class Incoming(NamedTuple):
    """What is to be stored; `original` is the message as it came if it had to be shortened."""

    message: Message
    reading: Reading
    size: int
    tokens: int
    original: Message | None


def receive(
    message: object, place: str, bounds: Bounds, count: CountTokens, *, pin: bool = False
) -> Incoming:
    """Read, measure and count one message, once; raise before anything is changed.

    A user's message always stays, so one that cannot be shortened to `max_bytes` is `TooLarge`.
    System messages and pins are not shortened to `max_bytes`: above it they raise an error.
    """
    reading = read(message, place)
    assert isinstance(message, dict)  # `read` has made sure
    size = weigh(message, place)
    fixed = pin or reading.kind is Kind.system
    original, limit = None, bounds.max_message_bytes if fixed else bounds.one_message
    if limit is not None and size > limit:
        shorter, size = shorten(message, limit, place)
        if shorter is not message:
            original, message = message, shorter
        most = None if fixed or reading.kind is not Kind.user else bounds.max_bytes
        if most is not None and size > most:
            raise TooLarge(
                f"{place} takes {format_size(size)} even with its texts shortened, and max_bytes "
                f"is {format_size(most)}; raise it, or split the message"
            )
    if count is not estimate:
        return Incoming(message, reading, size, count_with(count, message), original)
    try:
        return Incoming(message, reading, size, estimate(message), original)
    except (TypeError, ValueError) as error:
        raise MalformedMessage(f"this is not JSON ({error})", place=place) from error


class SeenIds:
    """Message ids, including the last few hundred that left; the oldest are forgotten."""

    __slots__ = ("_ids",)

    def __init__(self, ids: list[str | int] | None = None) -> None:
        # not a dict: its front is slow to reach after many deletions there
        self._ids: OrderedDict[str | int, None] = OrderedDict.fromkeys(ids or ())

    def seen(self, id: str | int) -> bool:
        """Return True if a message with this id is known, and note that it came again."""
        if id not in self._ids:
            return False
        self._ids.move_to_end(id)
        return True

    def add(self, id: str | int, stored: int) -> None:
        """Remember an id; keep as many as there are messages `stored`, and a few hundred more."""
        self._ids[id] = None
        while len(self._ids) > 2 * stored + REMEMBERED_IDS:
            self._ids.popitem(last=False)

    def forget(self, id: str | int) -> None:
        """Forget an id whose message was taken back."""
        self._ids.pop(id, None)

    def as_list(self) -> list[str | int]:
        """Return the ids, oldest first."""
        return list(self._ids)


def id_of(message: object) -> str | int | None:
    """Return the message's own id, if it has a usable one."""
    own = message.get("id") if isinstance(message, dict) else None
    return own if isinstance(own, (str, int)) and own != "" and type(own) is not bool else None
