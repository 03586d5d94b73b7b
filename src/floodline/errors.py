"""Every error that floodline raises.

FloodlineError
├── ConfigError (ValueError)             a setting or argument cannot work
│   └── Unweighable (TypeError)          `max_bytes` without `weigh` for other than str and bytes
├── TooLarge (ValueError)                a single item exceeds the whole bound
├── BatchFull (BufferError)              the sink fails and the batch is at its hard limit
├── BatchClosed (ValueError)             used after `close()`
├── CreationCycle (RuntimeError)         a factory waits for the value it is creating
├── StageTooLarge (MemoryError)          a stage grew above its hard limit
├── ServeFailed (OSError)                the dashboard cannot listen: the port is taken
├── ChaosError (RuntimeError)            a soak with the profile chaos lets a hook fail
├── SessionError
│   ├── SessionNotFound (KeyError)       neither live nor stored, and `create=False`
│   ├── SessionIdMissing (ValueError)    a request does not say which session it wants
│   ├── SessionClosed                    closed while waited for, while held, or recently
│   ├── SessionsFull (TimeoutError)      no room: every live session is in use
│   ├── SessionBusy (TimeoutError)       another caller held the id for too long
│   ├── ReentrantUse (RuntimeError)      the holder asked for the same session again
│   ├── HoldDeadlock (RuntimeError)      holders wait for each other
│   ├── WouldBlockLoop (RuntimeError)    a blocking wait on a thread with a running event loop
│   ├── WrongLoop (RuntimeError)         `AsyncSessions` used from a second event loop
│   ├── SaveFailed                       the store did not accept the state; it stays in memory
│   └── SessionConflict                  another process wrote first; the refused bytes are kept
├── StoreError
│   ├── StoreUnavailable (OSError)       locked, full, read-only, unreachable; try again
│   ├── StoreCorrupt                     the file is damaged, or not a floodline store
│   ├── StoreTooNew                      written by a newer version of floodline
│   ├── StoreClosed (ValueError)         used after `close()`
│   ├── RowConflict (ValueError)         a row log has other bytes under this key
│   ├── RowNotFound (KeyError)           a row log has no row of this key to page from
│   ├── LogFull (BufferError)            a row log is at its cap, which refuses
│   ├── UnreadableRecord (ValueError)    one record cannot be read; its bytes are in quarantine
│   │   └── DamagedRecord                its bytes are damaged; also a `StoreCorrupt`
│   └── CodecError (TypeError)           the state cannot be encoded, or came back different
└── HistoryError
    ├── MalformedMessage (ValueError)    a message that its provider would reject, with its place
    ├── PinsTooLarge (ValueError)        pinned and system messages alone exceed the bound
    └── ArchiveFailed (OSError)          the archive fails, and the history is at twice its bound
"""

from __future__ import annotations


class FloodlineError(Exception):
    """The root of all errors that floodline raises."""


class ConfigError(FloodlineError, ValueError):
    """A setting or argument that cannot work; the message names value, limit and next step."""


class Unweighable(ConfigError, TypeError):
    """A container has `max_bytes` but no `weigh`, and the value is neither str nor bytes."""


class TooLarge(FloodlineError, ValueError):
    """A single item weighs more than the whole bound; nothing was evicted for it."""


class BatchFull(FloodlineError, BufferError):
    """The sink keeps failing and the batch is at its hard limit; the item was not accepted."""


class BatchClosed(FloodlineError, ValueError):
    """The batch was used after it had been closed; the item was not accepted."""


class CreationCycle(FloodlineError, RuntimeError):
    """A factory asked, directly or through others, for the value it is creating."""


class StageTooLarge(FloodlineError, MemoryError):
    """A stage grew by more memory than its hard limit allows."""


class ChaosError(FloodlineError, RuntimeError):
    """Raised by `chaos_point()` in a soak with the profile chaos."""


class ServeFailed(FloodlineError, OSError):
    """The dashboard cannot listen at the given address, usually because the port is taken."""


class SessionError(FloodlineError):
    """The root of what can go wrong with a session."""


class SessionNotFound(SessionError, KeyError):
    """No session of this id is live or stored, and the caller asked not to create one."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class SessionIdMissing(SessionError, ValueError):
    """A request does not name its session, or names it by more than 512 characters."""


class SessionClosed(SessionError):
    """The session was closed while waited for or held, or its tombstone has not expired."""


class SessionsFull(SessionError, TimeoutError):
    """Every live session is in use; `retry_after` is an estimate in seconds."""

    def __init__(self, message: str, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class SessionBusy(SessionError, TimeoutError):
    """Another caller held the session for longer than this one was willing to wait."""


class ReentrantUse(SessionError, RuntimeError):
    """The holder of a session asked for the same session again."""


class HoldDeadlock(SessionError, RuntimeError):
    """Waiting would complete a cycle of holders that wait for each other."""


class WouldBlockLoop(SessionError, RuntimeError):
    """A blocking wait on a thread with a running event loop; use `AsyncSessions` there."""


class WrongLoop(SessionError, RuntimeError):
    """An `AsyncSessions` with live sessions was used from a second event loop."""


class SaveFailed(SessionError):
    """The store did not accept the state. The session stays live and the save is retried."""


class SessionConflict(SessionError):
    """Another process wrote the session first. The refused bytes are kept in `conflicts`."""


class StoreError(FloodlineError):
    """The root of what can go wrong with a store."""


class StoreUnavailable(StoreError, OSError):
    """The store is not usable now (locked, full, read-only); nothing was written, try again."""


class StoreCorrupt(StoreError):
    """The file is damaged or not a floodline store; it was left as it is."""


class StoreTooNew(StoreError):
    """The file was written by a newer version of floodline; it was left as it is."""


class StoreClosed(StoreError, ValueError):
    """The store was used after it had been closed."""


class RowConflict(StoreError, ValueError):
    """A row log already has other bytes under this key; nothing was written."""


class RowNotFound(StoreError, KeyError):
    """A row log has no row of the key that a page should begin or end at."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class LogFull(StoreError, BufferError):
    """A row log is at its cap, and its caller asked to refuse then; nothing was written."""


class UnreadableRecord(StoreError, ValueError):
    """One record is damaged. Its bytes are in quarantine; it is never replaced by an empty one."""


class DamagedRecord(UnreadableRecord, StoreCorrupt):
    """The bytes of one record are not those that were written; they are in quarantine."""


class CodecError(StoreError, TypeError):
    """The state cannot be encoded, or came back different; the message ends with the place."""


class HistoryError(FloodlineError):
    """The root of what can go wrong with a conversation history."""


class MalformedMessage(HistoryError, ValueError):
    """A message that its provider would reject; the error text ends with the place."""

    def __init__(self, why: str, *, place: str = "$") -> None:
        super().__init__(why)  # only `why`, so that copies and pickles can be rebuilt from args
        self.why = why
        self.place = place

    def __str__(self) -> str:
        return f"{self.why}: {self.place}"


class PinsTooLarge(HistoryError, ValueError):
    """System and pinned messages alone exceed the bound."""


class ArchiveFailed(HistoryError, OSError):
    """The archive refuses what must leave, and the history has reached twice its bound."""
