"""The Conversations API: what is appended is kept exactly, found again, and never doubled."""

from __future__ import annotations

import asyncio
import json

import pytest

from floodline import AsyncSessions, Sessions
from floodline._service._log import rows
from floodline.errors import StoreUnavailable
from floodline.history import check
from floodline.stores import MemoryStore
from service_items import text


@pytest.mark.parametrize("kind", [AsyncSessions, Sessions])
def test_a_conversation_from_its_first_item_to_its_end(make, kind):
    ask = make(kind)
    chat = ask.new(text("one"), metadata={"topic": "demo"})
    assert ask.append(chat, text("two"), text("three")).status_code == 200
    assert ask.texts(chat) == ["one", "two", "three"]
    found = ask("GET", f"/v1/conversations/{chat}").json()
    assert found["metadata"] == {"topic": "demo"}
    assert found["object"] == "conversation"
    changed = ask("POST", f"/v1/conversations/{chat}", json={"metadata": {"topic": "other"}})
    assert changed.json() == found | {"metadata": {"topic": "other"}}
    gone = ask("DELETE", f"/v1/conversations/{chat}")
    assert gone.json() == {"id": chat, "deleted": True, "object": "conversation.deleted"}
    for method, path in [("GET", ""), ("DELETE", ""), ("GET", "/items"), ("GET", "/items/x")]:
        assert ask(method, f"/v1/conversations/{chat}{path}").status_code == 404
    assert ask.append(chat, text("late")).status_code == 404
    assert ask.sessions._store.stats().log_rows == 0


def test_pages_go_both_ways_and_meet_at_after(ask):
    chat = ask.new(*(text(str(n), f"m{n}") for n in range(20)))
    assert ask.append(chat, *(text(str(n), f"m{n}") for n in range(20, 30))).status_code == 200
    newest = ask.items(chat)
    assert [item["id"] for item in newest["data"]] == [f"m{n}" for n in range(29, 9, -1)]
    assert (newest["first_id"], newest["last_id"], newest["has_more"]) == ("m29", "m10", True)
    older = ask.items(chat, after="m10")
    assert [item["id"] for item in older["data"]] == [f"m{n}" for n in range(9, -1, -1)]
    assert older["has_more"] is False
    assert [item["id"] for item in ask.items(chat, order="asc", limit=2, after="m3")["data"]] == [
        "m4",
        "m5",
    ]
    assert ask("GET", f"/v1/conversations/{chat}/items?after=nothing").status_code == 404
    assert ask.items(ask.new()) == {
        "object": "list",
        "data": [],
        "first_id": "",
        "last_id": "",
        "has_more": False,
    }


def test_a_page_of_large_items_ends_early_and_goes_on(ask, monkeypatch):
    monkeypatch.setattr(rows, "PAGE_BYTES", 1000)
    monkeypatch.setattr(rows, "FIRST_READ", 2)
    chat = ask.new(*(text("x" * 400, f"m{n}") for n in range(5)))
    seen, after = [], {}
    while True:
        page = ask.items(chat, order="asc", **after)
        seen += [item["id"] for item in page["data"]]
        after = {"after": page["last_id"]}
        if not page["has_more"]:
            break
    assert seen == [f"m{n}" for n in range(5)]


def test_trimming_and_shortening_never_show_in_the_log(make):
    ask = make(max_history=4)
    long = "word " * 100_000
    chat = ask.new(text(long, "long"))
    for n in range(10):
        ask.append(chat, text(f"question {n}"), text(f"answer {n}", role="assistant"))
    assert len(ask.items(chat, limit=100)["data"]) == 21
    first = ask("GET", f"/v1/conversations/{chat}/items/long").json()
    assert first["content"] == [{"type": "input_text", "text": long}]
    window = ask("GET", f"/v1/floodline/conversations/{chat}/window").json()
    assert len(window["messages"]) == 4
    assert window["tokens"] > 0


def test_a_known_id_is_the_same_item_and_other_content_a_lasting_conflict(ask):
    chat = ask.new()
    first = ask.append(chat, text("one", "a")).json()
    assert (
        ask.append(chat, text("one", "a"), text("two", "b")).json()["data"][0] == first["data"][0]
    )
    assert ask.texts(chat) == ["one", "two"]
    for items in ([text("other", "a")], [text("x", "c"), text("y", "c")]):
        refused = ask.append(chat, *items)
        assert refused.status_code == 409
        assert refused.headers["x-should-retry"] == "false"
        assert refused.json()["error"]["code"] == "item_conflict"
    assert ask.texts(chat) == ["one", "two"]


def test_without_an_id_or_a_key_a_repeated_append_is_a_second_one(ask):
    chat = ask.new()
    ask.append(chat, text("again"))
    ask.append(chat, text("again"))
    assert ask.texts(chat) == ["again", "again"]


def test_a_key_makes_a_repeated_append_the_same_one(ask):
    chat = ask.new()
    key = {"headers": {"idempotency-key": "k1"}}
    first = ask.append(chat, text("one"), text("two"), **key)
    assert ask.append(chat, text("one"), text("two"), **key).json() == first.json()
    assert ask.texts(chat) == ["one", "two"]
    refused = ask.append(chat, text("three"), **key)
    assert (refused.status_code, refused.headers["x-should-retry"]) == (409, "false")
    assert refused.json()["error"]["code"] == "idempotency_key_reused"
    ask("DELETE", f"/v1/conversations/{chat}/items/{first.json()['first_id']}")
    assert len(ask.append(chat, text("one"), text("two"), **key).json()["data"]) == 1
    assert ask.append(chat, text("x"), headers={"idempotency-key": "k" * 600}).status_code == 400


def test_the_keys_of_a_conversation_are_bounded(ask, monkeypatch):
    monkeypatch.setattr(rows, "MAX_KEYS", 3)
    chat = ask.new()
    for n in range(6):
        ask.append(chat, text(str(n)), headers={"idempotency-key": f"k{n}"})
    assert ask.sessions._store.count_rows("test", chat, rows.KEYS) == 3
    ask.append(chat, text("5"), headers={"idempotency-key": "k5"})
    assert len(ask.texts(chat)) == 6


def test_a_key_makes_a_repeated_creation_the_same_one(ask):
    def create(**body):
        return ask("POST", "/v1/conversations", json=body, headers={"idempotency-key": "c1"})

    first = create(items=[text("one")])
    assert create(items=[text("one")]).json() == first.json()
    assert ask.texts(first.json()["id"]) == ["one"]
    assert create(items=[text("two")]).status_code == 409


def test_a_full_conversation_refuses_and_drops_nothing(make):
    ask = make(max_items=3)
    chat = ask.new(text("1", "a"), text("2"))
    refused = ask.append(chat, text("3"), text("4"))
    assert refused.status_code == 413
    assert refused.json()["error"]["code"] == "too_many_items"
    assert ask.append(chat, text("3"), text("1", "a")).status_code == 200
    assert ask.append(chat, text("1", "a")).status_code == 200
    assert ask.texts(chat) == ["1", "2", "3"]
    ask("DELETE", f"/v1/conversations/{chat}/items/a")
    assert ask.append(chat, text("4")).status_code == 200


def test_two_workers_see_each_others_items_in_counts_and_windows(make):
    one, two = make(max_items=4), make(max_items=4)
    chat = one.new(text("a", "a"), text("b", "b"))
    for ask, words in ((two, "c"), (one, "d")):
        assert ask.append(chat, text(words, words)).status_code == 200
    for ask in (one, two):
        assert ask.append(chat, text("e", "e")).status_code == 413
        assert window_of(ask, chat) == ["a", "b", "c", "d"]
    assert two("DELETE", f"/v1/conversations/{chat}/items/a").status_code == 200
    assert window_of(one, chat) == ["b", "c", "d"]
    assert one.append(chat, text("e", "e")).status_code == 200
    assert window_of(two, chat) == ["b", "c", "d", "e"]


def window_of(ask, chat):
    answer = ask("GET", f"/v1/floodline/conversations/{chat}/window")
    return [message["id"] for message in answer.json()["messages"]]


def test_a_window_of_a_held_conversation_waits_for_what_is_saved(make, monkeypatch):
    monkeypatch.setattr("floodline._service._log.conversations.BUSY_WAIT", 0.01)
    ask = make()
    chat = ask.new(text("a", "a"))

    async def look_while_held():
        async with ask.sessions.use(chat) as state:
            state.append(text("b", "b"))
            asked = ask._client.get(f"/v1/floodline/conversations/{chat}/window")
            return await asyncio.create_task(asked)

    assert ask.wait(look_while_held()).status_code == 409
    assert window_of(ask, chat) == ["a", "b"]


def test_a_deleted_id_may_be_appended_again(make):
    ask = make(max_history=2)
    chat = ask.new(*(text(words, words) for words in "abc"))
    for item in "ac":  # one has left the window, one has not
        assert ask("DELETE", f"/v1/conversations/{chat}/items/{item}").status_code == 200
        assert ask.append(chat, text("again", item)).status_code == 200
        assert window_of(ask, chat)[-1] == item


def test_a_creation_that_is_refused_leaves_nothing(make, store):
    ask = make(max_items=1)
    refused = ask("POST", "/v1/conversations", json={"items": [text("1"), text("2")]})
    assert refused.status_code == 413
    assert store.count("test") == 0


def test_deleting_an_item_keeps_the_window_valid(ask):
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "id": "call"}
    result = {"type": "function_call_output", "call_id": "c", "output": "42", "id": "result"}
    chat = ask.new(text("why", "q"), call, result, text("so", "a", "assistant"))
    kept = ask("DELETE", f"/v1/conversations/{chat}/items/call")
    assert kept.json()["object"] == "conversation"
    assert [item["id"] for item in ask.items(chat, order="asc")["data"]] == ["q", "result", "a"]
    window = ask("GET", f"/v1/floodline/conversations/{chat}/window").json()["messages"]
    assert [message["id"] for message in window] == ["q", "a"]
    assert ask("DELETE", f"/v1/conversations/{chat}/items/call").status_code == 404


@pytest.mark.parametrize("provider", ["openai", "responses", "anthropic", "gemini"])
def test_a_window_can_be_had_in_the_shape_of_every_provider(ask, provider):
    calls = [
        {"type": "function_call", "call_id": each, "name": "f", "arguments": arguments}
        for each, arguments in (("a", '{"x": 1}'), ("b", "not JSON"))
    ]
    parts = [{"type": "input_text", "text": "2"}]
    chat = ask.new(
        text("be brief", role="system"),
        text("why"),
        {"type": "reasoning", "summary": []},
        *calls,
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "function_call_output", "call_id": "b", "output": parts},
        text("so", role="assistant"),
        {"role": "user", "content": [{"type": "input_file", "file_id": "f"}]},
        text("more"),
    )
    path = f"/v1/floodline/conversations/{chat}/window"
    found = ask("GET", path, params={"provider": provider}).json()
    assert check(found["messages"], provider) == []
    assert len(found["messages"]) >= 7
    system = [*found["system"], *found["messages"]]
    assert sum("be brief" in json.dumps(message) for message in system) == 1
    assert "more" in json.dumps(found["messages"][-1])


def test_messages_of_another_shape_stay_as_they_are(make):
    for provider, message in [
        ("openai", {"role": "user", "content": "x"}),
        ("anthropic", {"role": "user", "content": [{"type": "text", "text": "x"}]}),
        ("gemini", {"role": "user", "parts": [{"text": "x"}]}),
    ]:
        ask = make(Sessions, sessions={"name": provider})
        with ask.sessions.use("c") as held:
            held.append(message)
        path = f"/v1/floodline/conversations/c/window?provider={provider}"
        assert ask("GET", path).json()["messages"] == [message]


def test_an_item_that_no_model_accepts_is_listed_and_not_in_the_window(ask):
    chat = ask.new(text("one"), text("hm", role="critic"), text("two"))
    assert ask.texts(chat) == ["one", "hm", "two"]
    path = f"/v1/floodline/conversations/{chat}/window"
    assert len(ask("GET", path).json()["messages"]) == 2
    critic = ask.items(chat)["data"][1]["id"]
    assert ask("DELETE", f"/v1/conversations/{chat}/items/{critic}").status_code == 200
    assert ask.texts(chat) == ["one", "two"]


@pytest.mark.parametrize("first", [text("one"), text("hm", role="critic")])
def test_system_messages_above_the_window_are_refused_as_a_whole(make, first):
    ask = make(max_history=5)
    chat = ask.new(text("before"))
    refused = ask.append(chat, first, *(text(str(n), role="system") for n in range(9)))
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
    assert ask.texts(chat) == ["before"]
    window = ask("GET", f"/v1/floodline/conversations/{chat}/window").json()
    assert len(window["messages"]) == 1


def test_an_id_that_no_store_can_write_is_not_found(ask):
    for path in ("/v1/conversations/%ED%A0%80", "/v1/conversations/%ED%A0%80/items"):
        assert ask("GET", path).status_code == 404


def test_what_a_failed_save_left_behind_is_not_appended_twice(make):
    class Flaky(MemoryStore):
        failing = False

        def save(self, *args, **options):
            if self.failing:
                raise StoreUnavailable("down")
            return super().save(*args, **options)

    store = Flaky()
    ask = make(Sessions, sessions={"store": store})
    chat = ask.new()
    store.failing = True
    key = {"headers": {"idempotency-key": "k"}}
    failed = ask.append(chat, text("one", "a"), **key)
    assert (failed.status_code, failed.headers["retry-after"]) == (503, "1")
    store.failing = False
    assert ask.append(chat, text("one", "a"), **key).status_code == 200
    assert ask.texts(chat) == ["one"]


def test_a_session_of_the_users_own_code_is_a_conversation_too(make):
    ask = make(Sessions)
    with ask.sessions.use("alice@example.com") as held:
        held.append({"role": "user", "content": "from Python"})
    path = "/v1/conversations/alice@example.com"
    assert ask("GET", path).json()["created_at"] == 0
    assert ask.append("alice@example.com", text("from HTTP")).status_code == 200
    assert ask.texts("alice@example.com") == ["from HTTP"]
    window = ask("GET", "/v1/floodline/conversations/alice@example.com/window").json()
    assert len(window["messages"]) == 2


def test_a_state_that_is_no_conversation_is_said_to_be_one(make, store):
    ask = make(Sessions)
    with Sessions(dict, store=store, name="test") as other, other.use("d") as state:
        state["x"] = 1
    assert ask.append("d", text("x")).status_code == 500


def test_items_are_saved_under_durability_park_as_well(make):
    for kind in (AsyncSessions, Sessions):
        ask = make(kind, sessions={"durability": "park", "name": kind.__name__})
        chat = ask.new(text("one"))
        assert ask.texts(chat) == ["one"]
        assert ask("DELETE", f"/v1/conversations/{chat}").status_code == 200
        assert ask("GET", f"/v1/conversations/{chat}").status_code == 404


def test_an_item_is_known_in_whatever_order_it_is_written(ask):
    chat = ask.new(text("one", "a"))
    again = {"content": "one", "role": "user", "id": "a", "type": None}
    assert ask.append(chat, again).status_code == 200
    assert ask.append(chat, {**again, "content": "two"}).status_code == 409
    assert ask.texts(chat) == ["one"]


def test_a_conversation_that_cannot_be_read_can_be_deleted(make, store):
    ask = make()
    chat = ask.new(text("one"))
    ask.wait(ask.sessions.park(chat))
    grant = store.acquire("test", chat, "vandal", lease=10)
    terms = {"fence": grant.fence, "version": grant.version, "write_id": "w", "release": True}
    store.save("test", chat, b"not an envelope", **terms)
    assert ask.append(chat, text("two")).status_code == 500
    assert ask("DELETE", f"/v1/conversations/{chat}").status_code == 200
    assert ask("GET", f"/v1/conversations/{chat}").status_code == 404


def test_metadata_is_limited(ask):
    chat = ask.new()
    for metadata in (
        {str(n): "x" for n in range(17)},
        {"x" * 65: "y"},
        {"x": "y" * 513},
        {"x": 1},
        ["x"],
    ):
        for path in ("/v1/conversations", f"/v1/conversations/{chat}"):
            refused = ask("POST", path, json={"metadata": metadata})
            assert refused.status_code == 400
            assert refused.json()["error"]["param"].startswith("metadata")
    assert ask("POST", f"/v1/conversations/{chat}", json={}).status_code == 400
    assert (
        ask("POST", f"/v1/conversations/{chat}", json={"metadata": None}).json()["metadata"] == {}
    )


def test_a_busy_conversation_is_a_conflict_that_may_be_retried(make, monkeypatch):
    monkeypatch.setattr("floodline._service._log.conversations.BUSY_WAIT", 0.01)
    ask = make(Sessions)
    chat = ask.new()
    with ask.sessions.use(chat):
        refused = [ask.append(chat, text("x")), ask("DELETE", f"/v1/conversations/{chat}")]
    for answer in refused:
        assert (answer.status_code, answer.headers["x-should-retry"]) == (409, "true")
        assert answer.headers["retry-after"] == "1"
        assert answer.json()["error"]["code"] == "conversation_busy"
    assert ask.texts(chat) == []


def test_a_full_table_is_unavailable(make, monkeypatch):
    monkeypatch.setattr("floodline._service._log.conversations.BUSY_WAIT", 0.01)
    ask = make(Sessions, sessions={"max_sessions": 1})
    with ask.sessions.use("holds the only place"):
        refused = ask("POST", "/v1/conversations", json={})
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1


def test_errors_have_the_shape_that_clients_parse(ask):
    refused = ask("GET", "/v1/conversations/nothing")
    assert json.loads(refused.text) == {
        "error": {
            "message": "There is no such conversation.",
            "type": "invalid_request_error",
            "param": None,
            "code": "not_found",
        }
    }
    assert refused.headers["x-request-id"].startswith("req_")
