"""examples/session_worker/served.py: the worker whose sessions are in the service."""

from __future__ import annotations

import pytest

from example_systems import load


@pytest.fixture
def worker(make):
    ask = make(max_history=20)

    def call(method, path, body=None, key=None):
        headers = {"idempotency-key": key} if key else {}
        answer = ask(method, path, json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return load("session_worker", "served").SessionWorker(call)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini"])
def test_three_providers_share_a_conversation(worker, provider):
    assert worker.ask("alice", "how high is it?", "openai") == "You said 4 words."
    assert worker.ask("alice", "and now", provider) == "You said 2 words."
    assert [message["role"] for message in worker.sent("alice")] == ["user", "assistant"] * 2


def test_the_window_is_bounded_and_a_completed_session_is_not_lost(worker):
    for n in range(15):
        worker.ask("alice", f"message {n}")
    worker.complete("alice")
    sent = worker.sent("alice")
    assert len(sent) <= 20
    assert sent[-2]["content"] == "message 14"


def test_a_deleted_session_starts_anew(worker):
    worker.ask("alice", "hello")
    worker.delete("alice")
    worker.delete("alice")
    assert worker.sent("alice") == []
