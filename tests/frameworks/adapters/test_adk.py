"""Sessions of Google's Agent Development Kit in the stores of floodline, with its own runner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="the extra frameworks is not installed")

from google.adk.agents import LlmAgent
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

from floodline.adapters._adk.events import EVENTS
from floodline.adapters._upkeep import LOOK_EVERY
from floodline.adapters.adk import FloodlineSessionService
from floodline.errors import ConfigError
from floodline.stores import MemoryStore, SQLiteStore

ALICE = {"app_name": "shop", "user_id": "alice"}


def text(words: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part.from_text(text=words)])


def said(session: Session | None) -> list[str]:
    events = session.events if session else []
    return [event.content.parts[0].text or "" for event in events if event.content]


def event(words: str, author: str = "user", **delta: Any) -> Event:
    actions = EventActions(state_delta={key.replace("__", ":"): delta[key] for key in delta})
    return Event(author=author, content=text(words), actions=actions)


class Parrot(BaseLlm):
    """Calls the tool if asked to, then says how many contents it was given."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse]:
        last = llm_request.contents[-1].parts[-1]
        if last.text and "tool" in last.text:
            part = types.Part.from_function_call(name="look", args={"what": "it"})
        else:
            part = types.Part.from_text(text=f"seen {len(llm_request.contents)}")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def look(what: str, tool_context: Any) -> dict[str, str]:
    tool_context.state["user:looked"] = what
    tool_context.state["app:looks"] = tool_context.state.get("app:looks", 0) + 1
    tool_context.state["temp:draft"] = "gone soon"
    return {"saw": what}


def a_runner(service: FloodlineSessionService) -> Runner:
    agent = LlmAgent(name="parrot", model=Parrot(model="parrot"), tools=[look], output_key="last")
    return Runner(app_name="shop", agent=agent, session_service=service, auto_create_session=True)


async def turn(runner: Runner, user: str, session: str, words: str) -> list[Event]:
    asked = {"user_id": user, "session_id": session, "new_message": text(words)}
    return [one async for one in runner.run_async(**asked)]


STORES = ["memory", "sqlite", "redis", pytest.param("postgres", marks=pytest.mark.long)]


@pytest.mark.parametrize("kind", STORES)
def test_a_runner_goes_on_where_another_worker_stopped(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    local = {"memory": MemoryStore, "sqlite": lambda: SQLiteStore(tmp_path / "adk.db")}
    begin: Any = local.get(kind) or request.getfixturevalue(kind)

    async def body() -> None:
        place = begin()
        first, second = FloodlineSessionService(place), FloodlineSessionService(place)
        await turn(a_runner(first), "alice", "s1", "use the tool")
        session = await second.get_session(**ALICE, session_id="s1")
        assert session is not None
        assert session.state == {"last": "seen 3", "user:looked": "it", "app:looks": 1}
        assert [one.author for one in session.events] == ["user", "parrot", "parrot", "parrot"]
        await turn(a_runner(second), "alice", "s1", "and now?")
        session = await first.get_session(**ALICE, session_id=" s1 ")
        assert said(session)[-1] == "seen 5"
        other = await first.create_session(app_name="shop", user_id="bob")
        assert other.state == {"app:looks": 1}
        assert await first.get_user_state(**ALICE) == {"looked": "it"}
        assert await first.get_user_state(app_name="shop", user_id="bob") == {}
        place.close()

    asyncio.run(body())


def test_state_belongs_to_the_session_the_user_or_the_app() -> None:
    async def body() -> None:
        place = MemoryStore()
        service = FloodlineSessionService(place)
        state = {"own": 1, "user:name": "A", "app:price": 2.5, "temp:x": "never", "big": 2**80}
        one = await service.create_session(**ALICE, state=state, session_id="a/b")
        assert one.state == {"own": 1, "user:name": "A", "app:price": 2.5, "big": 2**80}
        two = await service.create_session(**ALICE)
        await service.append_event(two, event("hi", app__price=3, temp__y=1, own=None))
        assert two.state["temp:y"] == 1  # for the rest of this run
        stored = await service.get_session(**ALICE, session_id=two.id)
        assert stored is not None
        assert stored.state == {"own": None, "user:name": "A", "app:price": 3}
        assert stored.events[0].actions.state_delta == {"app:price": 3, "own": None}
        assert "never" not in str(vars(place))
        listed = (await service.list_sessions(**ALICE)).sessions
        assert [(one.id, one.state["app:price"], one.events) for one in listed] == [
            ("a/b", 3, []),
            (two.id, 3, []),
        ]
        await service.create_session(app_name="shop", user_id="bob", session_id="a/b")
        await service.create_session(app_name="shop2", user_id="alice", session_id="a/b")
        every = (await service.list_sessions(app_name="shop")).sessions
        assert [one.user_id for one in every] == ["alice", "alice", "bob"]
        await service.delete_session(**ALICE, session_id="a/b")
        await service.delete_session(**ALICE, session_id="a/b")
        assert await service.get_session(**ALICE, session_id="a/b") is None
        assert await service.get_user_state(**ALICE) == {"name": "A"}
        with pytest.raises(AlreadyExistsError, match=two.id):
            await service.create_session(**ALICE, session_id=two.id)

    asyncio.run(body())


def test_a_write_to_what_others_changed_is_refused() -> None:
    async def body() -> None:
        service = FloodlineSessionService()
        mine = await service.create_session(**ALICE, session_id="s")
        theirs = await service.get_session(**ALICE, session_id="s")
        by_hand = Session(id="s", app_name="shop", user_id="alice")
        assert theirs is not None
        await service.append_event(mine, event("first", user__n=1))
        with pytest.raises(StaleSessionError, match="get it again"):
            await service.append_event(theirs, event("late", user__n=2))
        with pytest.raises(StaleSessionError):
            await service.append_event(by_hand, event("late"))
        assert await service.get_user_state(**ALICE) == {"n": 1}
        again = await service.get_session(**ALICE, session_id="s")
        assert said(again) == ["first"] == said(mine)
        by_hand.last_update_time = mine.last_update_time
        await service.append_event(by_hand, event("second"))
        await service.append_event(by_hand, event("third"))
        assert said(await service.get_session(**ALICE, session_id="s"))[1:] == ["second", "third"]
        await service.delete_session(**ALICE, session_id="s")
        with pytest.raises(SessionNotFoundError, match="s not found"):
            await service.append_event(by_hand, event("too late"))

    asyncio.run(body())


def test_an_event_is_appended_once_and_its_namesake_is_another() -> None:
    async def body() -> None:
        service = FloodlineSessionService()
        session = await service.create_session(**ALICE, session_id="s")
        before = await service.get_session(**ALICE, session_id="s")
        assert before is not None
        one = event("one")
        await service.append_event(session, one)
        await service.append_event(session, one)  # delivered again
        await service.append_event(before, one.model_copy(deep=True))  # by who knew no answer
        await service.append_event(before, Event(id=one.id, author="bot", content=text("two")))
        assert said(before) == ["one", "two"]
        with pytest.raises(StaleSessionError):
            await service.append_event(session, event("three"))
        await service.append_event(session, one)  # late, and it makes nothing newer than it is
        with pytest.raises(StaleSessionError):
            await service.append_event(session, event("three"))
        stored = await service.get_session(**ALICE, session_id="s")
        assert said(stored) == ["one", "two"]
        partial = Event(author="bot", content=text("tw"), partial=True)
        assert await service.append_event(before, partial) is partial
        assert len(before.events) == 2

    asyncio.run(body())


def test_events_are_chosen_as_they_are_asked_for() -> None:
    async def body() -> None:
        place = MemoryStore()
        service = FloodlineSessionService(place, max_events=4)
        session = await service.create_session(**ALICE, session_id="s")
        for number in range(3):
            for author, words in (("user", "ask"), ("bot", "answer"), ("bot", "more")):
                one = event(f"{words} {number}", author)
                one.timestamp = session.last_update_time + 10
                await service.append_event(session, one)
        stamps = [one.timestamp for one in session.events]

        async def read(**terms: Any) -> list[str]:
            config = GetSessionConfig(**terms) if terms else None
            return said(await service.get_session(**ALICE, session_id="s", config=config))

        assert await read() == ["ask 2", "answer 2", "more 2"]
        assert await read(num_recent_events=0) == []
        assert await read(num_recent_events=2) == ["answer 2", "more 2"]
        assert await read(num_recent_events=99) == said(session)
        assert await read(after_timestamp=stamps[6]) == ["ask 2", "answer 2", "more 2"]
        assert await read(after_timestamp=stamps[6], num_recent_events=1) == ["more 2"]
        assert await read(after_timestamp=0.0) == said(session)
        whole = FloodlineSessionService(place, max_events=None)
        assert said(await whole.get_session(**ALICE, session_id="s")) == said(session)
        read_back = await whole.get_session(**ALICE, session_id="s")
        assert read_back is not None
        assert read_back.events == session.events

    asyncio.run(body())


def test_what_memory_keeps_is_bounded() -> None:
    async def body() -> None:
        place = MemoryStore()
        limits = {"keep": 8, "max_sessions": 3, "max_users": 3}
        service = FloodlineSessionService(place, **limits)
        session = await service.create_session(**ALICE, session_id="s")
        for number in range(20):
            await service.append_event(session, event(f"turn {number}", count=number))
        assert place.count_rows("adk", "shop/alice/s", EVENTS) == 8
        stored = await service.get_session(**ALICE, session_id="s")
        assert stored is not None
        assert stored.state == {"count": 19}
        for number in range(30):
            state = {"user:n": number}
            await service.create_session(app_name="shop", user_id=f"u{number}", state=state)
        assert len(place.ids("adk")) <= 3 + LOOK_EVERY
        assert len(place.ids("adk:user")) <= 3 + LOOK_EVERY
        for wrong in ("keep", "max_sessions", "max_users", "max_events"):
            with pytest.raises(ConfigError, match=wrong):
                FloodlineSessionService(**{wrong: 0})

    asyncio.run(body())


def test_branches_of_one_run_and_a_cancelled_write_leave_a_session_that_goes_on() -> None:
    async def body() -> None:
        async with FloodlineSessionService() as service:
            session = await service.create_session(**ALICE, session_id="s")
            events = [event(f"branch {number}", app__n=number) for number in range(8)]
            await asyncio.gather(*(service.append_event(session, one) for one in events))
            cut = asyncio.ensure_future(service.append_event(session, event("cut")))
            await asyncio.sleep(0)
            cut.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cut
            await service.append_event(session, event("last"))
            stored = await service.get_session(**ALICE, session_id="s")
            assert said(stored) == said(session)
            assert sorted(said(stored)[:8]) == [f"branch {number}" for number in range(8)]
            assert said(stored)[8:] == ["cut", "last"]

    asyncio.run(body())


def test_two_workers_with_a_loop_each_lose_nothing_of_each_other(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'adk.db'}"
    place = {**ALICE, "session_id": "s"}

    async def begin() -> None:
        async with FloodlineSessionService(url) as service:
            await service.create_session(**place, state={"count": 0})

    async def work(worker: str) -> None:
        async with FloodlineSessionService(url) as service:
            done = 0
            while done < 5:
                session = await service.get_session(**place)
                assert session is not None
                shared = {f"user__{worker}{done}": 1, f"app__{worker}{done}": 1}
                one = event("x", "bot", count=session.state["count"] + 1, **shared)
                with suppress(StaleSessionError):
                    await service.append_event(session, one)
                    done += 1

    async def end() -> Session | None:
        async with FloodlineSessionService(url) as service:
            return await service.get_session(**place)

    asyncio.run(begin())
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda worker: asyncio.run(work(worker)), "xy"))
    session = asyncio.run(end())
    assert session is not None
    assert session.state["count"] == len(session.events) == 10
    assert len([key for key in session.state if key.startswith(("app:", "user:"))]) == 20
