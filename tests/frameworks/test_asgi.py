"""Sessions in ASGI apps: who holds what until when, and what clients are told."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any

import httpx
import pytest
import uvicorn
from fastapi import BackgroundTasks, FastAPI, WebSocket
from fastapi.responses import StreamingResponse

from floodline import AsyncSessions, Conversation, Sessions
from floodline.errors import ConfigError, SessionError, StoreUnavailable
from floodline.history import INTERRUPTED, check
from floodline.stores import MemoryStore
from floodline.web.asgi import (
    HoldSessions,
    Session,
    SessionMiddleware,
    error_handlers,
    hold,
    lifespan,
    turn,
)

Call = Callable[..., Awaitable[Any]]


class Failing(MemoryStore):
    """A store that refuses saves while `down`."""

    down = False

    def _ask(self, what: str, /, *args: Any) -> Any:
        if self.down and what == "save":
            raise StoreUnavailable("the disk is full")
        return super()._ask(what, *args)


class Client:
    """Calls an app as a server does; `sent` is what it would have written to the socket."""

    def __init__(self, app: Any, path: str = "/", headers: dict[str, str] | None = None) -> None:
        self.app = app
        self.sent: list[dict[str, Any]] = []
        self.arrived = asyncio.Event()
        self.inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.inbox.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        raw = [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()]
        self.scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "method": "GET",
            "path": path, "raw_path": path.encode(), "query_string": b"", "headers": raw,
            "http_version": "1.1", "scheme": "http", "root_path": "",
        }  # fmt: skip
        self.left = False

    async def run(self) -> None:
        await self.app(self.scope, self.receive, self.send)

    async def receive(self) -> dict[str, Any]:
        return await self.inbox.get()

    async def send(self, event: dict[str, Any]) -> None:
        self.sent.append(event)
        self.arrived.set()

    def leave(self) -> None:
        self.inbox.put_nowait({"type": "http.disconnect"})

    async def until_sent(self, count: int) -> None:
        while len(self.sent) < count:
            self.arrived.clear()
            await self.arrived.wait()

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {k.decode(): v.decode() for k, v in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(e.get("body", b"") for e in self.sent[1:])


async def get(app: Any, path: str = "/", **headers: str) -> Client:
    client = Client(app, path, {k.replace("_", "-"): v for k, v in headers.items()})
    await client.run()
    return client


def chat_app(sessions: AsyncSessions[Any], go: asyncio.Event | None = None) -> FastAPI:
    app = FastAPI(lifespan=lifespan(sessions))
    app.add_middleware(HoldSessions)
    chat_of = Session(sessions, header="X-Session")

    @app.get("/say")
    async def say(chat: Annotated[Conversation, chat_of]) -> dict[str, int]:
        chat.append({"role": "user", "content": "hello"})
        return {"messages": len(chat)}

    @app.get("/stream")
    async def stream(chat: Annotated[Conversation, chat_of]) -> StreamingResponse:
        chat.append({"role": "user", "content": "hello"})

        async def pieces() -> AsyncIterator[str]:
            async with turn(chat) as reply:
                for piece in ("one ", "two ", "three"):
                    reply.write(piece)
                    yield piece
                    if go is not None:
                        await go.wait()

        return StreamingResponse(pieces(), media_type="text/event-stream")

    @app.get("/later")
    async def later(chat: Annotated[Conversation, chat_of], tasks: BackgroundTasks) -> str:
        tasks.add_task(lambda: chat.append({"role": "user", "content": "late"}))
        return "ok"

    @app.get("/close")
    async def close(chat: Annotated[Conversation, chat_of]) -> str:
        await sessions.close("a")
        return "closed"

    @app.get("/large")
    async def large(chat: Annotated[Conversation, chat_of]) -> str:
        block = {"type": "image_url", "image_url": {"url": "https://example.org/picture"}}
        chat.append({"role": "user", "content": [block] * 40_000})
        return "never"

    @app.get("/other")
    async def other(chat: Annotated[Conversation, chat_of]) -> str:
        raise LookupError("a bug of the app")

    return app


def make(store: Any = None, **options: Any) -> AsyncSessions[Conversation]:
    return AsyncSessions(Conversation, store=MemoryStore() if store is None else store, **options)


async def stored(store: MemoryStore, id: str = "a") -> Conversation:
    """Return what another process would load."""
    async with AsyncSessions(Conversation, store=store) as others, others.use(id) as chat:
        return chat


def run(body: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(body(), 60))  # type: ignore[arg-type]


def test_a_request_uses_the_session_that_its_header_names() -> None:
    async def body() -> None:
        store = MemoryStore()
        async with make(store) as sessions:
            app = chat_app(sessions)
            assert json.loads((await get(app, "/say", x_session="a")).body) == {"messages": 1}
            assert json.loads((await get(app, "/say", x_session="a")).body) == {"messages": 2}
            assert json.loads((await get(app, "/say", x_session="b")).body) == {"messages": 1}
            assert sessions.stats().held == 0
            assert len(await stored(store)) == 2

    run(body)


@pytest.mark.parametrize(
    ("options", "path", "headers", "status", "code"),
    [
        ({}, "/say", {}, 400, "session_id_missing"),
        ({}, "/say", {"x_session": "x" * 513}, 400, "session_id_missing"),
        ({"max_sessions": 1, "wait": 0}, "/say", {"x_session": "b"}, 503, "sessions_full"),
        ({"busy_wait": 0}, "/say", {"x_session": "a"}, 409, "session_busy"),
        ({}, "/large", {"x_session": "b"}, 413, "too_large"),
    ],
)
def test_errors_have_a_status_and_say_nothing_of_the_inside(
    options: dict[str, Any], path: str, headers: dict[str, str], status: int, code: str
) -> None:
    async def body() -> None:
        async with make(**options) as sessions, sessions.use("a"):
            client = await asyncio.create_task(get(chat_app(sessions), path, **headers))
            assert client.status == status
            assert json.loads(client.body)["error"]["type"] == code
            assert ("retry-after" in client.headers) == (status in (409, 503))
            assert b"test_asgi" not in client.body

    run(body)


def test_unknown_sessions_are_not_found_without_create() -> None:
    async def body() -> None:
        async with make() as sessions:
            app = FastAPI()
            app.add_middleware(HoldSessions)

            @app.get("/{key}")
            async def show(
                chat: Annotated[Conversation, Session(sessions, path="key", create=False)],
            ) -> int:
                return len(chat)

            assert (await get(app, "/a")).status == 404
            async with sessions.use("a"):
                pass
            assert (await get(app, "/a")).status == 200

    run(body)


def test_an_error_of_the_app_is_not_ours_to_answer() -> None:
    async def body() -> None:
        async with make() as sessions:
            client = Client(chat_app(sessions), "/other", {"x-session": "a"})
            with pytest.raises(LookupError):
                await client.run()
            assert client.status == 500
            assert sessions.stats().held == 0

    run(body)


def test_a_stream_holds_its_session_to_its_end() -> None:
    async def body() -> None:
        store, go = MemoryStore(), asyncio.Event()
        async with make(store) as sessions:
            client = Client(chat_app(sessions, go), "/stream", {"x-session": "a"})
            task = asyncio.create_task(client.run())
            await client.until_sent(2)
            assert sessions.stats().held == 1
            row = await asyncio.to_thread(store.load, "sessions", "a")
            assert row is not None  # the user's message is safe before the stream begins
            go.set()
            await task
            assert client.body == b"one two three"
            assert sessions.stats().held == 0
        kept = await stored(store)
        assert [m["content"] for m in kept] == ["hello", "one two three"]
        assert INTERRUPTED not in kept[-1]

    run(body)


def test_a_client_that_goes_away_releases_at_once_and_keeps_what_it_got() -> None:
    async def body() -> None:
        store = MemoryStore()
        async with make(store) as sessions:
            client = Client(chat_app(sessions, asyncio.Event()), "/stream", {"x-session": "a"})
            task = asyncio.create_task(client.run())
            await client.until_sent(2)
            client.leave()
            await task
            assert sessions.stats().held == 0
        kept = await stored(store)
        assert kept[-1] == {"role": "assistant", "content": "one ", INTERRUPTED: True}
        assert INTERRUPTED not in kept.window()[-1]
        kept.append({"role": "user", "content": "again"})
        assert not check(kept.window())

    run(body)


def test_a_stream_that_fails_keeps_what_was_streamed() -> None:
    async def body() -> None:
        async with make() as sessions:
            app = FastAPI()
            app.add_middleware(HoldSessions)

            @app.get("/")
            async def stream(
                chat: Annotated[Conversation, Session(sessions, cookie="sid")],
            ) -> StreamingResponse:
                chat.append({"role": "user", "content": "hello"})

                async def pieces() -> AsyncIterator[str]:
                    async with turn(chat) as reply:
                        reply.write({"content": "half"})
                        reply.write({"tool_calls": [{"index": 0, "id": "c", "function": {}}]})
                        yield "half"
                        raise LookupError("the model is gone")

                return StreamingResponse(pieces())

            with pytest.raises(LookupError):
                await get(app, cookie="other=1; sid=a")
            chat = sessions.peek("a")
            assert chat is not None
            assert chat[-1] == {"role": "assistant", "content": "half", INTERRUPTED: True}

    run(body)


def test_a_session_that_cannot_be_saved_is_not_answered_with_200() -> None:
    async def body() -> None:
        store = Failing()
        async with make(store) as sessions:
            store.down = True
            client = await get(chat_app(sessions), "/say", x_session="a")
            assert client.status == 503
            assert json.loads(client.body)["error"]["type"] == "save_failed"
            store.down = False
            await sessions.sweep()
        assert len(await stored(store)) == 1  # it was retried: nothing is lost

    run(body)


def test_background_tasks_still_hold_the_session() -> None:
    async def body() -> None:
        store = MemoryStore()
        async with make(store) as sessions:
            assert (await get(chat_app(sessions), "/later", x_session="a")).status == 200
        assert (await stored(store))[-1]["content"] == "late"

    run(body)


def test_a_handler_may_close_its_own_session() -> None:
    async def body() -> None:
        store = MemoryStore()
        async with make(store) as sessions:
            assert (await get(chat_app(sessions), "/close", x_session="a")).status == 200
            assert store.count("sessions") == 0

    run(body)


def test_any_asgi_app_finds_the_state_in_its_scope() -> None:
    async def plain(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        state = scope.get("floodline.session")
        if state is not None:
            state["calls"] = state.get("calls", 0) + 1
        length = len(text := json.dumps(state).encode())
        headers = [(b"content-length", str(length).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    async def body() -> None:
        async with AsyncSessions(dict) as sessions:
            app = SessionMiddleware(plain, sessions, header="x-session")
            await app({"type": "lifespan"}, None, None)  # type: ignore[arg-type]
            assert (await get(app)).body == b"null"
            await get(app, x_session="a")
            assert (await get(app, x_session="a")).body == b'{"calls": 2}'
            strict = SessionMiddleware(
                HoldSessions(plain), sessions, id=_nobody, required=True, create=False
            )
            assert (await get(strict)).status == 400
            by_cookie = SessionMiddleware(plain, sessions, cookie="sid", create=False)
            assert (await get(by_cookie, cookie="sid=zz")).status == 404

    run(body)


async def _nobody(_connection: Any) -> None:
    return None


def test_a_plain_stream_is_cancelled_when_the_client_goes_away() -> None:
    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b".", "more_body": True})
            await asyncio.sleep(0)

    async def body() -> None:
        async with AsyncSessions(dict) as sessions:
            client = Client(
                SessionMiddleware(endless, sessions, header="x-session"), headers={"x-session": "a"}
            )
            task = asyncio.create_task(client.run())
            await client.until_sent(3)
            client.leave()
            await task  # the cancellation was ours: nobody hears of it
            assert sessions.stats().held == 0

    run(body)


def test_an_app_that_listens_itself_hears_the_body_and_the_end() -> None:
    heard: list[str] = []
    read = asyncio.Event()

    async def listens(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(0)
        while True:
            event = await receive()
            heard.append(event["type"])
            read.set()
            if event["type"] == "http.disconnect":
                heard.append((await receive())["type"])
                break
        await send({"type": "http.response.body", "body": b""})

    async def body() -> None:
        async with AsyncSessions(dict) as sessions:
            client = Client(
                SessionMiddleware(listens, sessions, header="x-session"), headers={"x-session": "a"}
            )
            task = asyncio.create_task(client.run())
            await read.wait()
            client.leave()
            await task
        assert heard == ["http.request", "http.disconnect", "http.disconnect"]

    run(body)


def test_a_cancelled_server_task_stays_cancelled() -> None:
    async def body() -> None:
        async with make() as sessions:
            client = Client(chat_app(sessions, asyncio.Event()), "/stream", {"x-session": "a"})
            task = asyncio.create_task(client.run())
            await client.until_sent(2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert sessions.stats().held == 0

    run(body)


def test_a_dependency_without_the_middleware_says_what_to_add() -> None:
    async def body() -> None:
        async with make() as sessions:
            with pytest.raises(ConfigError, match="add_middleware"):
                await hold({"type": "http"}, sessions.use("a"))

    run(body)


def test_bad_arguments_are_refused() -> None:
    sessions = make()
    with pytest.raises(ConfigError, match="2 sources"):
        Session(sessions, header="a", cookie="b")
    with pytest.raises(ConfigError, match="0 sources"):
        SessionMiddleware(HoldSessions, sessions)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="cannot be called"):
        Session(sessions, id="a")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="must be an AsyncSessions"):
        Session(Sessions(dict), header="a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="give that"):
        turn({})  # type: ignore[arg-type]


def test_error_handlers_for_apps_that_hold_by_themselves() -> None:
    async def body() -> None:
        async with make() as sessions:
            app = FastAPI(exception_handlers=error_handlers())

            @app.get("/")
            async def show() -> int:
                async with sessions.use("a", create=False) as chat:
                    return len(chat)

            assert (await get(app)).status == 404

    run(body)


def test_the_lifespan_saves_and_shuts_down_around_the_apps_own() -> None:
    async def body() -> None:
        store, seen = MemoryStore(), []
        sessions = make(store, durability="park")

        @asynccontextmanager
        async def own(app: Any) -> AsyncIterator[dict[str, int]]:
            seen.append("up")
            yield {"answer": 42}
            seen.append(store.count("sessions"))

        async with lifespan(sessions, inner=own)(None) as state:
            assert state == {"answer": 42}
            async with sessions.use("a") as chat:
                chat.append({"role": "user", "content": "hello"})
        assert seen == ["up", 0]
        assert store.count("sessions") == 1

    run(body)


def test_a_turn_collects_tool_calls_from_deltas() -> None:
    async def body() -> None:
        chat = Conversation([{"role": "user", "content": "weather?"}])
        async with turn(chat) as reply:
            reply.write({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "weather"}}]})
            reply.write({"tool_calls": [{"index": 0, "function": {"arguments": '{"c":'}}]})
            reply.write({"tool_calls": [{"index": 0, "function": {"arguments": '"Oslo"}'}}]})
        function = {"name": "weather", "arguments": '{"c":"Oslo"}'}
        call = {"id": "c1", "type": "function", "function": function}
        assert chat[-1] == {"role": "assistant", "content": None, "tool_calls": [call]}
        with pytest.raises(SessionError, match="over"):
            reply.write("too late")

    run(body)


def test_a_turn_answers_in_the_shape_of_the_conversation() -> None:
    async def body() -> None:
        chat = Conversation([{"role": "user", "parts": [{"text": "hi"}]}])
        async with turn(chat) as reply:
            reply.write("hello")
            with pytest.raises(TypeError, match="int cannot be written"):
                reply.write(3)  # type: ignore[arg-type]
            assert reply.text == "hello"
        assert chat[-1] == {"role": "model", "parts": [{"text": "hello"}]}
        async with turn(chat):
            pass
        assert len(chat) == 2  # nothing was written, so nothing was said

    run(body)


def test_a_turn_outside_a_request_saves_by_the_hold_that_it_is_given() -> None:
    async def body() -> None:
        store = MemoryStore()
        async with make(store) as sessions, (held := sessions.use("a")) as chat:
            chat.append({"role": "user", "content": "hello"})
            async with turn(chat, hold=held):
                assert store.count("sessions") == 1

    run(body)


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Run a real server on a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def test_a_real_server_releases_when_the_socket_closes_and_serves_websockets() -> None:
    store = MemoryStore()
    sessions = make(store)
    left = threading.Event()
    app = FastAPI(lifespan=lifespan(sessions))
    app.add_middleware(HoldSessions)
    chat_of = Session(sessions, header="x-session")

    @app.get("/stream")
    async def stream(chat: Annotated[Conversation, chat_of]) -> StreamingResponse:
        chat.append({"role": "user", "content": "hello"})

        async def pieces() -> AsyncIterator[str]:
            try:
                async with turn(chat) as reply:
                    while True:
                        reply.write(".")
                        yield "." * 1000
                        await asyncio.sleep(0.001)
            finally:
                left.set()

        return StreamingResponse(pieces())

    @app.websocket("/ws")
    async def talk(socket: WebSocket, chat: Annotated[Conversation, chat_of]) -> None:
        await socket.accept()
        await socket.send_text(str(len(chat)))

    with serving(app) as address:
        url = f"http://{address}/stream"
        with httpx.stream("GET", url, headers={"x-session": "a"}) as answer:
            next(answer.iter_bytes())
        assert left.wait(30)
        # the same id at once: the first request has let go
        with httpx.stream("GET", url, headers={"x-session": "a"}, timeout=30) as answer:
            assert answer.status_code == 200
    kept = asyncio.run(stored(store))
    assert [message.get(INTERRUPTED) for message in kept] == [None, True, None, True]
