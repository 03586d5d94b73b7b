"""Corners of histories that a first user meets."""

import pickle
from pathlib import Path

import pytest

from floodline import Conversation
from floodline.errors import ConfigError, MalformedMessage, PinsTooLarge, StoreClosed
from floodline.history import check
from floodline.stores import MemoryStore, SQLiteStore


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_system_message_above_max_bytes_is_an_error_and_is_not_shortened(role):
    chat = Conversation(max_bytes=1000)
    with pytest.raises(PinsTooLarge, match="and the bounds are 50, None, 1000"):
        chat.append({"role": role, "content": "x" * 5000})
    assert len(chat) == 0


def test_a_pin_above_max_bytes_is_an_error_and_is_not_shortened():
    chat = Conversation(max_bytes=1000)
    with pytest.raises(PinsTooLarge):
        chat.append({"role": "user", "content": "x" * 5000}, pin=True)
    assert chat.append({"role": "user", "content": "x" * 5000})  # unpinned it is shortened
    assert chat.bytes <= 1000


def test_a_system_message_above_max_message_bytes_is_shortened():
    chat = Conversation(max_message_bytes=1000)
    chat.append({"role": "system", "content": "x" * 5000})
    assert chat.bytes <= 1000


def test_a_system_message_of_openai_is_no_problem_among_messages_of_gemini():
    system = {"role": "system", "content": "be brief"}
    chat = Conversation([system, {"role": "user", "parts": [{"text": "hello"}]}])
    assert check(chat.messages, provider="gemini") == []
    assert chat.window() == chat.messages[1:]
    assert chat.system() == [system]


@pytest.mark.parametrize("name", ["count_tokens", "summarise", "clock"])
def test_what_cannot_be_called_is_refused_by_name(name):
    with pytest.raises(ConfigError, match=f"{name}=3 cannot be called; give a function that"):
        Conversation(**{name: 3})


@pytest.mark.parametrize("id", ["", 3])
def test_an_archive_id_that_is_no_text_is_refused(id):
    with pytest.raises(ConfigError, match=r"archive_id=.* must be a non-empty string, or None"):
        Conversation(archive_id=id)


def test_a_malformed_message_is_told_the_same_by_another_process():
    error = pickle.loads(pickle.dumps(MalformedMessage("id is missing", place="$[3].id")))
    assert str(error) == "id is missing: $[3].id"
    assert (error.why, error.place) == ("id is missing", "$[3].id")


def test_the_window_for_anthropic_has_results_before_text_however_they_came():
    calls = [{"type": "tool_use", "id": key, "name": "f", "input": {}} for key in "ab"]
    one, two = ({"type": "tool_result", "tool_use_id": key, "content": "1"} for key in "ab")
    text = {"type": "text", "text": "and hurry"}
    chat = Conversation(
        [{"role": "user", "content": "go"}, {"role": "assistant", "content": calls}]
    )
    chat.append({"role": "user", "content": [text, one]})
    chat.append({"role": "user", "content": [two]})
    window = chat.window()
    assert window[-1]["content"] == [one, two, text]
    assert check(window, provider="anthropic", in_flight=False) == []
    assert chat[2]["content"] == [text, one]  # what is stored stays as it came


def test_a_sqlite_store_may_be_the_archive_and_closes_it(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "agent.db") as store:
        chat = Conversation(max_messages=2, archive=store)
        for n in range(6):
            chat.append({"role": "user", "content": f"{n}"})
        said = [message["content"] for message in [*chat.archived(), *chat]]
        assert said == ["0", "1", "2", "3", "4", "5"]
        archive = store.archive
    with pytest.raises(StoreClosed):
        archive.conversations()


def test_a_store_without_an_archive_is_refused_with_what_can_be_given() -> None:
    with pytest.raises(ConfigError, match="SQLiteStore"):
        Conversation(archive=MemoryStore())
