"""Reading and writing sessions of the Agent Development Kit, and the state that they share."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from floodline.adapters._adk.events import EVENTS, chosen_events, pack
from floodline.adapters._extras import missing
from floodline.adapters._holding import delete, hold, ids
from floodline.adapters._leased_values import LeasedValues, Value
from floodline.adapters._store_flows import Flow, ask
from floodline.adapters._upkeep import Upkeep
from floodline.errors import SessionConflict
from floodline.stores import Append, Grant, NewRow, Row, seal, unseal

try:
    from google.adk.errors import StaleSessionError
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events import Event, EventActions
    from google.adk.sessions import State
    from google.adk.sessions.base_session_service import GetSessionConfig
except ImportError as error:
    raise missing("Google's Agent Development Kit", "adk", error) from error

# what is stored now, and its version unless others have changed it since
Written = Callable[["Stored", int | None], None]


class Place(NamedTuple):
    """Where a session is."""

    app: str
    user: str
    session: str

    @property
    def id(self) -> str:
        """The id in the store; quoted, so that no part can be mistaken for another."""
        return "/".join(quote(part, safe="") for part in self)

    @property
    def user_key(self) -> str:
        """The key of the state that the sessions of the user share."""
        return self.id.rpartition("/")[0]

    @property
    def app_key(self) -> str:
        """The key of the state that the sessions of the app share."""
        return quote(self.app, safe="")


class Stored(msgspec.Struct, frozen=True):
    """The envelope of a session: the date of its last event, and its own state as JSON."""

    updated: float
    state: str


class Parts(NamedTuple):
    """A state, or a change of it, by who shares it; what is temporary is in none."""

    app: dict[str, Any]
    user: dict[str, Any]
    own: dict[str, Any]


class Found(NamedTuple):
    """A session as it was read: all of its state, and the version that it was read at."""

    place: Place
    updated: float
    version: int
    state: dict[str, Any]
    events: list[Row]


_read = msgspec.msgpack.Decoder(Stored).decode


class Sessions:
    """The flows of the sessions under one name."""

    def __init__(
        self, name: str, keep: int | None, upkeep: Upkeep, users: LeasedValues, apps: LeasedValues
    ) -> None:
        self._name, self._keep, self._upkeep = name, keep, upkeep
        self._users, self._apps = users, apps

    def create(self, place: Place, state: dict[str, Any], now: float) -> Flow[Found]:
        """Begin a session; `AlreadyExistsError` if there is one."""
        parts = _split(state)

        def work(grant: Grant) -> Flow[Found]:
            if grant.version:
                raise AlreadyExistsError(f"Session with id {place.session} already exists.")
            shared = yield from self._share(place, parts)
            version = yield from self._save(place, grant, Stored(now, _dump(parts.own)), [])
            return Found(place, now, version, parts.own | shared, [])

        found = yield from hold(self._name, place.id, work)
        yield from self._upkeep.wrote()
        return found

    def get(
        self, place: Place, config: GetSessionConfig | None, most: int | None
    ) -> Flow[Found | None]:
        """Return a session with the events that are asked for."""
        # first the version and then the events, so that one that misses an event is stale
        record = yield from ask("load", self._name, place.id)
        if record is None:
            return None
        stored = _read(unseal(record.envelope))
        rows = yield from chosen_events(self._name, place.id, config, most)
        shared = yield from self._share(place, _split({}))
        return Found(place, stored.updated, record.version, _load(stored.state) | shared, rows)

    def load_all(self, app: str, user: str | None) -> Flow[list[Found]]:
        """Return the sessions of an app or of one user, without events, the last changed last."""
        whose = Place(app, user or "", "")
        prefix = f"{whose.app_key}/" if user is None else f"{whose.user_key}/"
        found: list[Found] = []
        for stored in (yield from ids(self._name, prefix)):
            place = Place(*(unquote(part) for part in stored.split("/")))
            one = yield from self.get(place, GetSessionConfig(num_recent_events=0), 0)
            found += [] if one is None else [one]
        return sorted(found, key=lambda one: (one.updated, one.place))

    def delete(self, place: Place) -> Flow[bool]:
        """Delete a session with its events; what it shared stays."""
        return (yield from delete(self._name, place.id))

    def user_state(self, app: str, user: str) -> Flow[dict[str, Any]]:
        """Return what the sessions of a user share, without the prefix."""
        return _of((yield from self._users.get(Place(app, user, "").user_key)))

    def append(
        self, place: Place, event: Event, is_stale: Callable[[Stored, int], bool], written: Written
    ) -> Flow[None]:
        """Append an event and apply its change of state; `written` hears of it before the caller.

        An equal event is not appended twice.
        """
        row = pack(event)
        parts = _split(event.actions.state_delta)

        def work(grant: Grant) -> Flow[None]:
            if not grant.version:
                raise SessionNotFoundError(f"Session {place.session} not found.")
            stored = _read(unseal(grant.envelope or b""))
            taken = yield from ask("get_rows", self._name, place.id, EVENTS, [event.id])
            key = event.id if event.id not in taken else f"{event.id} {uuid.uuid4().hex}"
            if key != event.id and taken[event.id].data == row:
                yield from ask("release", self._name, place.id, grant.fence)
                newest = yield from ask(
                    "rows", self._name, place.id, EVENTS, limit=1, newest_first=True
                )
                written(stored, grant.version if newest[0].key == event.id else None)
                return
            if is_stale(stored, grant.version):
                raise StaleSessionError(
                    f"session {place.session!r} was changed since it was read; get it again and "
                    "repeat the turn. Nothing was written"
                )
            # shared state first: if this process is killed now, the event can be sent again
            yield from self._share(place, parts)
            new = Stored(event.timestamp, _dump(_load(stored.state) | parts.own))
            written(new, (yield from self._save(place, grant, new, [NewRow(key, row)])))

        try:
            yield from hold(self._name, place.id, work)
        except SessionConflict as error:
            raise StaleSessionError(str(error)) from error
        yield from self._upkeep.wrote()

    def _share(self, place: Place, parts: Parts) -> Flow[dict[str, Any]]:
        """Change what sessions share, and return all of it with its prefixes."""
        app = yield from _merge(self._apps, place.app_key, parts.app)
        user = yield from _merge(self._users, place.user_key, parts.user)
        shared = {State.APP_PREFIX + key: value for key, value in app.items()}
        return shared | {State.USER_PREFIX + key: value for key, value in user.items()}

    def _save(self, place: Place, grant: Grant, new: Stored, rows: list[NewRow]) -> Flow[int]:
        append = Append(EVENTS, rows, max_rows=self._keep, when_full="drop")
        version: int = yield from ask(
            "save",
            self._name,
            place.id,
            seal(msgspec.msgpack.encode(new), version=grant.version + 1),
            fence=grant.fence,
            version=grant.version,
            write_id=uuid.uuid4().hex,
            release=True,
            rows=[append] if rows else [],
        )
        return version


def _merge(values: LeasedValues, key: str, delta: dict[str, Any]) -> Flow[dict[str, Any]]:
    if not delta:
        return _of((yield from values.get(key)))
    old = yield from values.change(key, lambda old: Value(_dump(_of(old) | delta)))
    return _of(old) | delta


def _of(value: Value | None) -> dict[str, Any]:
    return {} if value is None else _load(value.data)


def _split(state: dict[str, Any]) -> Parts:
    """Return a state as ADK itself writes it to JSON, by who shares it."""
    parts = Parts({}, {}, {})
    if not state:
        return parts
    plain = EventActions(state_delta=state).model_dump(mode="json")["state_delta"]
    for key, value in plain.items():
        if key.startswith(State.APP_PREFIX):
            parts.app[key.removeprefix(State.APP_PREFIX)] = value
        elif key.startswith(State.USER_PREFIX):
            parts.user[key.removeprefix(State.USER_PREFIX)] = value
        elif not key.startswith(State.TEMP_PREFIX):
            parts.own[key] = value
    return parts


def _dump(state: dict[str, Any]) -> str:
    return json.dumps(state, ensure_ascii=False, separators=(",", ":"))


def _load(text: str) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(text)
    return state
