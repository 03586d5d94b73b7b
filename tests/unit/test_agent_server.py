"""What the example server answers when its sessions refuse; the rest is in the Robot suite."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import httpx
import pytest

from floodline import AsyncSessions
from floodline.errors import SaveFailed

SOURCE = Path(__file__).parents[2] / "examples" / "agent_server.py"


@pytest.fixture(scope="module")
def server():
    spec = importlib.util.spec_from_file_location("agent_server", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ask(server, held, path, **limits):
    """Post a message while another one holds the session `held`."""

    async def main():
        async with AsyncSessions(**limits) as chats:
            app = server.build(chats)
            app.state.chats = chats
            http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")
            async with http, chats.use(held):
                return await asyncio.create_task(http.post(path, json={"text": "hello"}))

    return asyncio.run(main())


def test_a_full_house_is_503_with_a_time_to_come_back(server):
    answer = ask(server, "alice", "/chat/bob", max_sessions=1, when_full="reject")
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.json()["error"]


def test_a_busy_session_is_409(server):
    answer = ask(server, "alice", "/chat/alice", busy_wait=0)
    assert answer.status_code == 409
    assert "alice" in answer.json()["error"]


def test_a_save_that_failed_is_503(server):
    answer = asyncio.run(server.failed(None, SaveFailed("the disk is full")))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")


def test_the_same_words_in_the_same_turn_get_the_same_answer(server):
    assert server.reply_to("how deep is the Rhine", 3) == server.reply_to(
        "how deep is the Rhine", 3
    )
