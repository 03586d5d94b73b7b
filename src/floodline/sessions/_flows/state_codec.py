"""The codec of a table's states: of a given type, or one learned from the factory's states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from floodline.errors import CodecError, ConfigError
from floodline.stores._encoding.codec import PLAIN_TYPES, Codec, find_parts
from floodline.stores._encoding.envelope import LEARNED, PLAIN
from floodline.stores._encoding.state_type import infer_state_type, tells_state_type

_CONVERSATION = frozenset(
    {
        *("format", "name", "bounds", "summary_policy", "archive_id", "archive_owed", "ledger"),
        *("counters", "left", "ids", "family", "correction", "seq"),
    }
)


class StateCodec:
    """Encodes and decodes the states of one `Sessions`.

    The type is given by `state_type=`, a class as factory or its return annotation. Otherwise it is
    that of the first state that the factory returns, and `Conversation` records are recognised.
    A state that could not be saved is refused when it is created, before it is used.
    """

    __slots__ = ("_chats", "_codec", "_kind", "_open", "_proved")

    def __init__(self, state_type: Any, factory: Callable[..., Any]) -> None:
        self._open = state_type is None and not tells_state_type(factory)
        self._codec = Codec(infer_state_type(factory) if state_type is None else state_type)
        self._chats: Codec | None = None
        self._kind: type | None = None
        self._proved = False

    def encode(self, state: Any) -> bytes:
        """See `Codec.encode`."""
        return self._of(state).encode(state)

    def check(self, state: Any, payload: bytes) -> None:
        """See `Codec.check`."""
        self._of(state).check(state, payload)

    def mark(self, state: Any) -> int:
        """Return the codec for the envelope: it says if only the factory gives the type."""
        learned = self._kind is not None and type(state) is self._kind
        return LEARNED if learned and not self._is_chat(type(state)) else PLAIN

    def needs_sample(self, codec: int) -> bool:
        """Return True if a record can be read only after the factory has shown its type."""
        return codec == LEARNED and self._open and self._kind is None

    def learn(self, state: Any) -> None:
        """Note a state that the factory created; raise `CodecError` if it could not be saved."""
        kind = type(state)
        if self._open and kind not in PLAIN_TYPES:
            self._learn(kind)
        elif self._kind is not None:
            raise self._another(kind)
        if not self._proved and kind not in PLAIN_TYPES:
            self.check(state, self.encode(state))
            self._proved = True

    def parts(self, state: Any) -> list[Any]:
        """Return the state, or what is in it, that has rows for the logs of its session."""
        if hasattr(type(state), "__floodline_rows__"):
            return [state]
        plain = self._of(state).state_type is None
        return [] if plain else find_parts(self.encode, state)

    def decode(self, payload: bytes) -> Any:
        """See `Codec.decode`."""
        data = self._codec.decode(payload)
        if not self._open or type(data) is not dict or not data.keys() >= _CONVERSATION:
            return data
        from floodline.history import Conversation

        if self._chats is None:
            self._chats = Codec(Conversation)
        return self._chats.decode(payload)

    def _learn(self, kind: type) -> None:
        if self._kind is not None:
            if kind is not self._kind:
                raise self._another(kind)
            return
        try:
            codec = Codec(kind)
        except ConfigError as error:
            raise CodecError(f"the factory returned a {kind.__qualname__}: {error}") from error
        self._codec, self._kind = codec, kind

    def _another(self, kind: type) -> CodecError:
        first = "" if self._kind is None else self._kind.__qualname__
        return CodecError(
            f"the factory returned a {kind.__qualname__}, but the first state was a {first}; "
            "return one type, or give state_type= (a union will do)"
        )

    def _of(self, state: Any) -> Codec:
        return (
            self._chats if self._chats is not None and self._is_chat(type(state)) else self._codec
        )

    @staticmethod
    def _is_chat(kind: type) -> bool:
        return kind.__module__.startswith("floodline.history.") and kind.__name__ == "Conversation"
