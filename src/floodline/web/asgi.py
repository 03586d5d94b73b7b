"""Sessions in an ASGI app: a lifespan, a dependency, middleware, and turns that are streamed.

    sessions = AsyncSessions(Conversation, store="sqlite:///chat.db")
    app = FastAPI(lifespan=lifespan(sessions))
    app.add_middleware(HoldSessions)

    Chat = Annotated[Conversation, Session(sessions, header="x-session")]

Nothing here imports a framework until it is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from inspect import isawaitable
from typing import Any, TypeVar

from floodline._units import Duration
from floodline.errors import ConfigError, SessionIdMissing
from floodline.sessions import AsyncSessions, AsyncUse
from floodline.web._asgi.held_request import SCOPE_KEY, HeldRequest
from floodline.web._asgi.hold_middleware import App, HoldSessions, Receive, Scope, Send
from floodline.web._asgi.http_errors import ANSWERED, Answer, answer_for
from floodline.web._asgi.turn import Turn, turn

__all__ = [
    "Answer",
    "HoldSessions",
    "Session",
    "SessionMiddleware",
    "Turn",
    "answer_for",
    "error_handlers",
    "hold",
    "lifespan",
    "turn",
]

S = TypeVar("S")
FindId = Callable[[Any], "str | Awaitable[str | None] | None"]

MAX_ID = 512  # characters: ids come from clients, and each is kept in memory and in the store
STATE_KEY = "floodline.session"


def lifespan(
    *sessions: AsyncSessions[Any],
    inner: Callable[[Any], AbstractAsyncContextManager[Any]] | None = None,
    grace: Duration = "10 s",
) -> Callable[[Any], AbstractAsyncContextManager[Any]]:
    """Return a lifespan that shuts the sessions down, saved, after the app; `inner` is your own."""

    @asynccontextmanager
    async def live(app: Any) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            for one in sessions:
                stack.push_async_callback(one.shutdown, grace=grace)
            yield None if inner is None else await stack.enter_async_context(inner(app))

    return live


async def hold(connection: Any, use: AsyncUse[S]) -> S:
    """Enter a use that lasts until the true end of a request or websocket; return its state.

    `connection` is a Starlette request or websocket, or an ASGI scope. Needs `HoldSessions`.
    """
    scope = getattr(connection, "scope", connection)
    held: HeldRequest | None = scope.get(SCOPE_KEY)
    if held is None:
        raise ConfigError(
            "this app does not release sessions at the end of a response; "
            "add the middleware: app.add_middleware(floodline.web.asgi.HoldSessions)"
        )
    return await held.enter(use)


def Session(  # noqa: N802 - it stands where FastAPI's users expect a marker such as Header()
    sessions: AsyncSessions[S],
    *,
    header: str | None = None,
    cookie: str | None = None,
    path: str | None = None,
    id: FindId | None = None,
    create: bool = True,
    shared: bool = False,
    wait: Duration | None = None,
) -> Any:
    """Return a FastAPI dependency: the state of the session that the request names.

    Exactly one of `header`, `cookie`, `path` (a path parameter) and `id` (a function of the
    connection, which may be async) says where the id is. The rest is as for `AsyncSessions.use`.
    """
    from fastapi import Depends
    from starlette.requests import HTTPConnection

    find = _finder(header, cookie, path, id)
    _check_sessions(sessions)

    async def held(connection: HTTPConnection) -> S:
        key = await _id_from(connection, find)
        return await hold(connection, sessions.use(key, create=create, shared=shared, wait=wait))

    held.__annotations__ = {"connection": HTTPConnection}  # FastAPI reads it; ours is a string
    return Depends(held)


class SessionMiddleware:
    """For any ASGI app: the state of each request's session is `scope["floodline.session"]`.

    Requests without an id pass through without one, unless `required`. It releases as
    `HoldSessions` does, and answers the same errors.
    """

    def __init__(
        self,
        app: App,
        sessions: AsyncSessions[Any],
        *,
        header: str | None = None,
        cookie: str | None = None,
        id: FindId | None = None,
        create: bool = True,
        required: bool = False,
        wait: Duration | None = None,
    ) -> None:
        _check_sessions(sessions)
        self._app, self._sessions = app, sessions
        self._find = _finder(header, cookie, None, id)
        self._create, self._required, self._wait = create, required, wait
        self._holding = HoldSessions(self._enter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        await self._holding(scope, receive, send)

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            try:
                key = await _id_from(_Connection(scope), self._find)
            except SessionIdMissing:
                if self._required:
                    raise
            else:
                use = self._sessions.use(key, create=self._create, wait=self._wait)
                scope[STATE_KEY] = await hold(scope, use)
        await self._app(scope, receive, send)


def error_handlers() -> dict[Any, Callable[[Any, Any], Awaitable[Any]]]:
    """Return handlers for `FastAPI(exception_handlers=…)`, for apps without `HoldSessions`."""
    from starlette.responses import Response

    async def handle(_request: Any, error: Exception) -> Response:
        answer = answer_for(error)
        assert answer is not None
        return Response(answer.body, answer.status, answer.headers)

    return dict.fromkeys(ANSWERED, handle)


class _Connection:
    """The little of a connection that finding an id takes, without a framework."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.headers: dict[str, str] = {}
        for name, value in scope.get("headers", ()):
            self.headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
        self.path_params: dict[str, Any] = scope.get("path_params", {})

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies by name."""
        pairs = (part.partition("=") for part in self.headers.get("cookie", "").split(";"))
        return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


def _finder(
    header: str | None, cookie: str | None, path: str | None, id: FindId | None
) -> Callable[[Any], tuple[Any, str]]:
    given = [source for source in (header, cookie, path, id) if source is not None]
    if len(given) != 1:
        raise ConfigError(
            f"{len(given)} sources for the session id; give exactly one of header=, cookie=, "
            "path= and id="
        )
    if header is not None:
        name = header.lower()
        return lambda connection: (connection.headers.get(name), f"send the header {name}")
    if cookie is not None:
        return lambda connection: (connection.cookies.get(cookie), f"send the cookie {cookie}")
    if path is not None:
        return lambda connection: (
            connection.path_params.get(path),
            f"declare {{{path}}} in the path of the route",
        )
    if not callable(id):
        raise ConfigError(f"id={id!r} cannot be called; give a function of the connection")
    return lambda connection: (id(connection), "the function id= found none")


async def _id_from(connection: Any, find: Callable[[Any], tuple[Any, str]]) -> str:
    found, otherwise = find(connection)
    if isawaitable(found):
        found = await found
    if not found:
        raise SessionIdMissing(f"the request names no session; {otherwise}")
    key = str(found)
    if len(key) > MAX_ID:
        raise SessionIdMissing(f"a session id of {len(key)} characters; the limit is {MAX_ID}")
    return key


def _check_sessions(sessions: object) -> None:
    if not isinstance(sessions, AsyncSessions):
        raise ConfigError(
            f"sessions={sessions!r} must be an AsyncSessions: requests are handled on an event "
            "loop, which Sessions would block"
        )
