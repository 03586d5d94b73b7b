"""Per-session maps that are cleared together, on every way out of the session.

All maps of one scope share one dict by session id, so that clearing a session is one `pop`, which
cannot happen halfway or twice.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from floodline import telemetry
from floodline._interruptible_lock import Guard
from floodline._units import parse_count
from floodline.errors import ConfigError
from floodline.telemetry import Reason, Stats

V = TypeVar("V")
OnLeave = Callable[[str, V, Reason], object]
_inherited: list[object] = []  # floodline: bounded[what one fork inherits]


@dataclass(slots=True, frozen=True, kw_only=True)
class ScopeStats(Stats):
    """`items` counts values, `sessions` ids with at least one, `strays` those never opened."""

    maps: int
    sessions: int
    strays: int


class SessionScope:
    """Owns any number of maps by session id: `locks = scope.map("locks")`.

    Given to `Sessions(scope=…)`, it forgets all values of a session when that leaves. Values under
    an id that no session has opened (a late event) stay until `max_strays` such ids have come
    after it. Without `Sessions`, call `leave(id)` yourself.
    """

    def __init__(self, *, max_strays: int = 1000, name: str = "scope") -> None:
        self._max_strays = parse_count(max_strays, "max_strays")
        self._name = name
        self._hooks: dict[str, OnLeave[Any] | None] = {}
        self._left: Counter[str] = Counter()
        self._hook_errors = 0
        self._start_empty()
        telemetry.register(self)

    def _after_fork(self) -> None:
        # not freed: that would run the `__del__` of what belongs to the parent
        _inherited.append((self._values, self._guard))
        self._start_empty()

    def _start_empty(self) -> None:
        self._guard = Guard()
        self._values: dict[str, dict[str, Any]] = {}
        self._open: set[str] = set()
        self._strays: OrderedDict[str, None] = OrderedDict()

    def map(self, name: str, *, on_leave: OnLeave[V] | None = None) -> SessionMap[V]:
        """Return a new map; `on_leave(id, value, reason)` is called for each value that leaves."""
        if name in self._hooks:
            raise ConfigError(f"the scope already has a map {name!r}; keep and share that one")
        self._hooks[name] = on_leave  # floodline: bounded[one for each map that a program names]
        return SessionMap(self, name)

    def opened(self, id: str) -> None:
        """Note that a session is live, so that its values stay as long as it does."""
        self._guard.run(partial(self._note_open, id))

    def leave(self, id: str, reason: Reason = Reason.closed) -> None:
        """Forget all values of a session, and call the hooks of its maps."""
        self._guard.run(partial(self._forget, id, reason))

    def stats(self) -> ScopeStats:
        """Return the current figures."""
        values = list(self._values.values())
        return ScopeStats(
            kind="scope",
            name=self._name,
            items=sum(map(len, values)),
            left=dict(self._left),
            hook_errors=self._hook_errors,
            maps=len(self._hooks),
            sessions=len(values),
            strays=len(self._strays),
        )

    def _note_open(self, id: str) -> None:
        self._open.add(id)
        self._strays.pop(id, None)

    def _forget(self, id: str, reason: Reason) -> None:
        self._open.discard(id)
        self._strays.pop(id, None)
        for name, value in self._values.pop(id, {}).items():
            self._gone(id, name, value, reason)

    def _gone(self, id: str, name: str, value: Any, reason: Reason) -> None:
        """Schedule the hook, and free the value, once the lock is free."""
        self._left[reason] += 1
        self._guard.late.append(partial(self._call_hook, self._hooks[name], id, value, reason))

    def _call_hook(self, hook: OnLeave[Any] | None, id: str, value: Any, reason: Reason) -> None:
        try:
            if hook is not None:
                hook(id, value, reason)
        except Exception as error:
            self._hook_errors += 1
            telemetry.emit(
                "hook_error", self._name, hook="on_leave", id=id, error=telemetry.describe(error)
            )

    def _set(self, id: str, name: str, value: Any) -> None:
        values = self._values.setdefault(id, {})
        if name in values:
            self._gone(id, name, values[name], Reason.replaced)
        values[name] = value
        if id not in self._open:
            self._strays[id] = None
            self._strays.move_to_end(id)
            if len(self._strays) > self._max_strays:
                self._forget(next(iter(self._strays)), Reason.count)

    def _delete(self, id: str, name: str) -> None:
        values = self._values.get(id, {})
        if name in values:
            self._gone(id, name, values.pop(name), Reason.closed)
        if not values:
            self._values.pop(id, None)
            self._strays.pop(id, None)


class SessionMap(MutableMapping[str, V]):
    """One map of a scope, by session id; iteration uses a copy of the ids."""

    def __init__(self, scope: SessionScope, name: str) -> None:
        self._scope, self._name = scope, name

    def __getitem__(self, id: str) -> V:
        value: V = self._scope._values[id][self._name]
        return value

    def __setitem__(self, id: str, value: V) -> None:
        scope = self._scope
        scope._guard.run(partial(scope._set, id, self._name, value))

    def __delitem__(self, id: str) -> None:
        self[id]
        scope = self._scope
        scope._guard.run(partial(scope._delete, id, self._name))

    def __iter__(self) -> Iterator[str]:
        return iter([key for key, v in list(self._scope._values.items()) if self._name in v])

    def __len__(self) -> int:
        return sum(self._name in values for values in list(self._scope._values.values()))
