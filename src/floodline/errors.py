"""Every error that floodline raises.

FloodlineError
├── ConfigError (ValueError)             a setting or argument cannot work
│   └── Unweighable (TypeError)          `max_bytes` without `weigh`, and no str or bytes
├── TooLarge (ValueError)                one item alone is above the bound
├── BatchFull (BufferError)              the sink fails and the batch is at its hard limit
├── BatchClosed (ValueError)             used after `close()`
├── CreationCycle (RuntimeError)         a factory waits for the value that it is making
├── StageTooLarge (MemoryError)          a stage grew above its hard limit
├── ServeFailed (OSError)                the dashboard cannot listen there: the port is taken
├── SessionError
│   ├── SessionNotFound (KeyError)       neither live nor stored, and `create=False`
│   ├── SessionClosed                    closed meanwhile, or a short time ago
│   ├── SessionsFull (TimeoutError)      no room, all in use
│   ├── SessionBusy (TimeoutError)       somebody held the id for longer than the patience
│   ├── ReentrantUse (RuntimeError)      the holder asked for what it holds
│   ├── HoldDeadlock (RuntimeError)      holders wait for each other
│   ├── WouldBlockLoop (RuntimeError)    a blocking wait on a thread that runs an event loop
│   ├── WrongLoop (RuntimeError)         `AsyncSessions` used from a second event loop
│   ├── SaveFailed                       the store did not take the state; it stays in memory
│   └── SessionConflict                  somebody else wrote in between; the bytes are kept
├── StoreError
│   ├── StoreUnavailable (OSError)       locked, full, read-only, unreachable; try again
│   ├── StoreCorrupt                     the file is no database, or a damaged one
│   ├── StoreTooNew                      written by a later floodline
│   ├── StoreClosed (ValueError)         used after `close()`
│   ├── UnreadableRecord (ValueError)    one record is damaged; its bytes are in quarantine
│   └── CodecError (TypeError)           the state cannot be encoded, or came back different
└── HistoryError
    ├── MalformedMessage (ValueError)    a message that no provider defines so, with its place
    ├── PinsTooLarge (ValueError)        what must stay is alone above the bound
    └── ArchiveFailed (OSError)          nothing can leave, and the history is at twice its bound
"""

from __future__ import annotations


class FloodlineError(Exception):
    """The root of all errors that floodline raises."""


class ConfigError(FloodlineError, ValueError):
    """A setting or argument that cannot work; says the value, the limit and what to do."""


class Unweighable(ConfigError, TypeError):
    """A value that is neither str nor bytes, in a container that has `max_bytes` but no `weigh`."""


class TooLarge(FloodlineError, ValueError):
    """One item alone weighs more than the whole bound; nothing was evicted for it."""


class BatchFull(FloodlineError, BufferError):
    """The sink keeps failing and the batch has reached its hard limit; the item was not taken."""


class BatchClosed(FloodlineError, ValueError):
    """The batch was used after it had been closed; the item was not taken."""


class CreationCycle(FloodlineError, RuntimeError):
    """A factory asked, directly or over others, for the value that it is making."""


class StageTooLarge(FloodlineError, MemoryError):
    """A stage grew by more memory than its hard limit allows."""


class ServeFailed(FloodlineError, OSError):
    """The dashboard cannot listen where it was told to, mostly because the port is taken."""


class SessionError(FloodlineError):
    """The root of what can go wrong with a session."""


class SessionNotFound(SessionError, KeyError):
    """No session of this id is live or stored, and the caller asked not to create one."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class SessionClosed(SessionError):
    """The session was closed while waited for or held, or is still under its tombstone."""


class SessionsFull(SessionError, TimeoutError):
    """All places are in use; `retry_after` is a guess in seconds."""

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class SessionBusy(SessionError, TimeoutError):
    """Another holder kept the session for longer than the patience."""


class ReentrantUse(SessionError, RuntimeError):
    """The holder of a session asked for the same session again."""


class HoldDeadlock(SessionError, RuntimeError):
    """Waiting would close a ring of holders that wait for each other."""


class WouldBlockLoop(SessionError, RuntimeError):
    """A blocking wait on a thread that runs an event loop; use `AsyncSessions` there."""


class WrongLoop(SessionError, RuntimeError):
    """An `AsyncSessions` with live sessions was used from a second event loop."""


class SaveFailed(SessionError):
    """The store did not take the state. It stays live and dirty, and is tried again."""


class SessionConflict(SessionError):
    """Somebody else wrote the session meanwhile. The refused bytes are kept in `conflicts`."""


class StoreError(FloodlineError):
    """The root of what can go wrong with a store."""


class StoreUnavailable(StoreError, OSError):
    """The store cannot work now (locked, full, read-only); nothing was written, try again."""


class StoreCorrupt(StoreError):
    """The file is not a store of ours, or is damaged; it was left as it is."""


class StoreTooNew(StoreError):
    """The file was written by a later floodline than this one; it was left as it is."""


class StoreClosed(StoreError, ValueError):
    """The store was used after it had been closed."""


class UnreadableRecord(StoreError, ValueError):
    """One record is damaged. Its bytes are in quarantine; it is never replaced by an empty one."""


class CodecError(StoreError, TypeError):
    """The state cannot be encoded, or came back different; the message ends in the place."""


class HistoryError(FloodlineError):
    """The root of what can go wrong with a conversation history."""


class MalformedMessage(HistoryError, ValueError):
    """A message that is not as its provider defines it; the message ends in the place."""

    def __init__(self, why: str, *, place: str = "$") -> None:
        super().__init__(why)  # alone, so that a copy or a pickled one is made from it again
        self.why = why
        self.place = place

    def __str__(self) -> str:
        return f"{self.why}: {self.place}"


class PinsTooLarge(HistoryError, ValueError):
    """System and pinned messages alone are above the bound."""


class ArchiveFailed(HistoryError, OSError):
    """The archive refuses what must leave, and the history stands at twice its bound."""
