"""Copies of a conversation are conversations: they go on by themselves, and lose nothing."""

import copy
import pickle
from itertools import count

import pytest

from floodline import Conversation, Sessions
from floodline.history import extractive_summary
from floodline.stores import MemoryStore, SQLiteArchive


def pickled(value):
    return pickle.loads(pickle.dumps(value))


def user(text):
    return {"role": "user", "content": text}


COPIES = pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, pickled])


@COPIES
def test_a_copy_of_an_empty_conversation_takes_messages(make):
    original = Conversation(max_messages=3)
    twin = make(original)
    assert twin == original
    for n in range(5):
        assert twin.append(user(f"message {n}"))
    assert [m["content"] for m in twin.window()] == ["message 2", "message 3", "message 4"]
    assert twin[0]["content"] == "message 2"
    assert list(original) == []


@COPIES
def test_a_copy_of_a_full_conversation_is_equal_and_goes_on_alone(make):
    original = Conversation(max_messages=4)
    original.append({"role": "system", "content": "be kind"})
    original.append(user("pinned"), pin=True)
    for n in range(5):
        original.append({**user(f"message {n}"), "id": f"m{n}"})
    twin = make(original)
    assert twin == original
    assert not twin.append({**user("again"), "id": "m4"})
    twin.append(user("more"))
    assert [m["content"] for m in original][-1] == "message 4"
    assert [m["content"] for m in twin] == ["be kind", "pinned", "message 4", "more"]
    original.append(user("other"))
    assert [m["content"] for m in twin][-1] == "more"


def test_a_copy_shares_the_dicts_and_a_deep_copy_does_not():
    original = Conversation([user("a")])
    assert copy.copy(original)[0] is original[0]
    deep = copy.deepcopy(original)
    deep[0]["content"] = "b"
    assert original[0]["content"] == "a"


def test_a_copy_inside_other_data_is_copied_once():
    chat = Conversation([user("a")])
    one, two = copy.deepcopy([chat, chat])
    assert one is two


@COPIES
def test_a_call_in_flight_is_in_flight_in_the_copy(make):
    original = Conversation([user("go")])
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    original.append({"role": "assistant", "content": None, "tool_calls": [call]})
    twin = make(original)
    assert twin.append({"role": "tool", "tool_call_id": "c1", "content": "done"})
    assert original.stats().in_flight == 1
    assert twin.stats().in_flight == 0


def ten(_message):
    return 10


@COPIES
def test_what_is_attached_stays_attached(make):
    original = Conversation(count_tokens=ten, summarise=extractive_summary)
    twin = make(original)
    twin.append(user("a much longer text than ten tokens" * 10))
    assert twin.tokens == 10
    assert twin._keeper.summariser.call is extractive_summary
    assert twin._keeper.summariser is not original._keeper.summariser


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_a_copy_keeps_the_archive_and_its_pages(make, tmp_path):
    with_archive = SQLiteArchive(tmp_path / "archive.db")
    original = Conversation(max_messages=2, archive=with_archive)
    original.extend([user(str(n)) for n in range(4)])
    twin = make(original)
    twin.append(user("4"))
    assert [m["content"] for m in twin.archived()] == ["0", "1", "2"]
    with_archive.close()


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_copies_of_a_template_archive_under_ids_of_their_own(make, tmp_path):
    with_archive = SQLiteArchive(tmp_path / "archive.db")
    template = Conversation(max_messages=1, archive=with_archive)
    one, two = make(template), make(template)
    one.extend([user("mine"), user("now")])
    assert [m["content"] for m in one.archived()] == ["mine"]
    assert list(two.archived()) == []
    named = Conversation(archive=with_archive, archive_id="alice")
    assert make(named).archive_id == "alice"
    with_archive.close()


def test_an_archive_that_was_changed_before_use_leaves_a_template(tmp_path):
    template = Conversation(archive=print)
    template.configure(archive=repr)
    assert copy.copy(template).archive_id != copy.copy(template).archive_id


def test_a_pickle_says_that_an_archive_cannot_come_along(tmp_path):
    with_archive = SQLiteArchive(tmp_path / "archive.db")
    with pytest.raises(TypeError):
        pickle.dumps(Conversation(archive=with_archive))
    with_archive.close()


@COPIES
def test_a_loaded_conversation_without_its_archive_still_waits_for_it(make):
    original = Conversation([user("a"), user("b")], max_messages=2, archive=print)
    loaded = Conversation.__floodline_load__(original.__floodline_dump__())
    twin = make(loaded)
    twin.append(user("c"))
    assert len(twin) == 3
    assert twin == make(twin)


class Labelled(Conversation):
    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.labels = []


@COPIES
def test_a_subclass_keeps_its_class_and_its_attributes(make):
    original = Labelled([user("a")])
    original.labels.append("urgent")
    twin = make(original)
    assert type(twin) is Labelled
    assert twin.labels == ["urgent"]
    assert (twin.labels is original.labels) == (make is copy.copy)


def test_the_clock_and_the_correction_come_along():
    ticks = count()
    original = Conversation([user("a"), user("b")], clock=lambda: float(next(ticks)))
    original.observe_usage(prompt_tokens=40)
    original.window(max_tokens=15)
    twin = copy.deepcopy(original)
    assert twin._keeper.clock is original._keeper.clock
    assert twin.tokens == original.tokens
    twin.observe_usage(prompt_tokens=40)
    original.observe_usage(prompt_tokens=40)
    assert twin.stats() == original.stats()


@COPIES
def test_sessions_made_from_a_template_keep_what_was_acknowledged(make):
    template = Conversation(max_messages=20)
    with Sessions(lambda: make(template), store=MemoryStore(), state_type=Conversation) as sessions:
        with sessions.use("a") as chat:
            chat.append(user("my order is 4711"))
        sessions.park("a")
        with sessions.use("a") as chat:
            assert [m["content"] for m in chat] == ["my order is 4711"]
