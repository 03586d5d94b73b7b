"""What is cut is in the archive before it is dropped."""

from __future__ import annotations

import json

import pytest

from event_loops import events_of
from floodline.errors import ArchiveFailed, ConfigError
from floodline.history import Archive, Conversation, check
from floodline.stores._sqlite.archive import SQLiteArchive
from floodline.telemetry import recent
from history_messages import OpenAI

openai = OpenAI()


class Flaky:
    """An archive that can be told to fail."""

    def __init__(self):
        self.kept: list = []
        self.error: BaseException | None = None
        self.calls = 0

    def __call__(self, messages):
        self.calls += 1
        if self.error is not None:
            raise self.error
        self.kept += messages


def numbers(messages):
    return [int(m["content"]) for m in messages]


def test_archive_and_stored_are_everything_in_order():
    archive = Flaky()
    conversation = Conversation(max_messages=5, archive=archive)
    for i in range(50):
        conversation.append(openai.user(f"{i}"))
        assert numbers([*archive.kept, *conversation]) == list(range(i + 1))
    assert conversation.stats().archived == 45
    assert archive.calls == 45


def test_messages_stay_while_the_archive_refuses_and_go_when_it_is_mended():
    archive = Flaky()
    conversation = Conversation(max_messages=5, archive=archive, name="refused")
    archive.error = OSError("disk full")
    for i in range(9):
        conversation.append(openai.user(f"{i}"))
    stats = conversation.stats()
    assert (stats.items, stats.archive_failures, stats.archived) == (9, 4, 0)
    events = [e for e in recent() if e.kind == "archive_failed" and e.source == "refused"]
    assert [e.fields["times"] for e in events] == [1, 2, 4]
    assert events[0].fields["error"] == "OSError: disk full"
    assert check(conversation) == []
    archive.error = None
    conversation.append(openai.user("9"))
    assert numbers([*archive.kept, *conversation]) == list(range(10))
    assert len(conversation) == 5
    assert conversation.stats().archive_failures == 0


def test_at_twice_the_bound_an_append_is_refused_and_nothing_is_lost():
    archive = Flaky()
    archive.error = OSError("disk full")
    conversation = Conversation(max_messages=5, archive=archive)
    for i in range(10):
        conversation.append(openai.user(f"{i}"))
    for _ in range(3):
        with pytest.raises(ArchiveFailed, match="holds 10 messages, twice its bound"):
            conversation.append(openai.user("too much"))
    assert numbers(conversation) == list(range(10))
    archive.error = None
    conversation.append(openai.user("10"))
    assert numbers([*archive.kept, *conversation]) == list(range(11))


def test_an_interrupt_in_the_archive_loses_nothing():
    archive = Flaky()
    conversation = Conversation([openai.user("0")], max_messages=1, archive=archive)
    archive.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        conversation.append(openai.user("1"))
    assert numbers(conversation) == [0, 1]
    archive.error = None
    conversation.append(openai.user("2"))
    assert numbers([*archive.kept, *conversation]) == [0, 1, 2]


def test_what_goes_straight_to_the_archive_waits_for_it_too():
    archive = Flaky()
    archive.error = OSError("disk full")
    conversation = Conversation([openai.user("hi")], max_messages=5, archive=archive)
    late = openai.results("late", ["gone"])[0]
    assert conversation.append(late) is False
    assert conversation.stats().archive_waiting == 1
    data = json.loads(json.dumps(conversation.__floodline_dump__()))
    again = Conversation.__floodline_load__(data)
    assert again == conversation
    archive.error = None
    again.configure(archive=archive)
    again.append(openai.user("more"))
    assert archive.kept == [late]
    assert again.stats().archive_waiting == 0


def test_owed_messages_count_for_the_push_back():
    archive = Flaky()
    archive.error = OSError("disk full")
    conversation = Conversation([openai.user("hi")], max_messages=2, archive=archive)
    for _ in range(3):
        conversation.extend(openai.results("late", ["gone"]))
    with pytest.raises(ArchiveFailed):
        conversation.extend(openai.results("late", ["gone"]))
    assert conversation.stats().archive_waiting == 3


def test_a_loaded_conversation_lets_nothing_go_before_it_has_its_archive_again():
    archive = Flaky()
    conversation = Conversation(max_messages=4, archive=archive, archive_id="alice")
    for i in range(8):
        conversation.append(openai.user(f"{i}"))
    again = Conversation.__floodline_load__(conversation.__floodline_dump__())
    assert again == conversation
    assert again.archive_id == "alice"
    for i in range(8, 12):
        again.append(openai.user(f"{i}"))
    assert len(again) == 8
    with pytest.raises(ArchiveFailed, match="fix the archive"):
        again.append(openai.user("12"))
    again.configure(archive=archive)
    again.append(openai.user("12"))
    assert numbers([*archive.kept, *again]) == list(range(13))


def test_one_may_go_on_without_the_archive():
    conversation = Conversation(max_messages=2, archive=Flaky(), archive_id="alice")
    again = Conversation.__floodline_load__(conversation.__floodline_dump__())
    again.configure(archive=None)
    for i in range(9):
        again.append(openai.user(f"{i}"))
    assert len(again) == 2
    assert again.archive_id == "alice"


def test_clear_archives_first_or_not_at_all():
    archive = Flaky()
    conversation = Conversation([openai.system("x")], archive=archive)
    conversation.extend([openai.user("1"), *openai.calls("2", ["a"]), openai.user("3")])
    archive.error = OSError("disk full")
    with pytest.raises(ArchiveFailed, match="nothing was cleared"):
        conversation.clear()
    assert len(conversation) == 5
    archive.error = None
    conversation.clear()
    assert [m["content"] for m in archive.kept] == ["x", "1", "2", "3"]
    assert conversation.stats().archived == 4


def test_only_plain_callables_and_archives_will_do():
    async def later(messages): ...

    for wrong in (5, "archive.db", later):
        with pytest.raises(ConfigError, match="plain callable"):
            Conversation(archive=wrong)
    conversation = Conversation(
        archive=lambda messages: later(messages), max_messages=1, name="later"
    )
    conversation.extend([openai.user("1"), openai.user("2")])
    assert conversation.stats().archive_failures == 1
    assert "coroutine" in events_of("archive_failed", "later")[-1].fields["error"]
    with pytest.raises(ConfigError, match="cannot be read back"):
        conversation.archived()
    with pytest.raises(ConfigError, match="cannot be read back"):
        Conversation().archived()


def test_the_sqlite_archive_pages_back_through_all_that_was_ever_said(tmp_path):
    with SQLiteArchive(tmp_path / "agent.db") as archive:
        assert isinstance(archive, Archive)
        conversation = Conversation(max_messages=6, archive=archive, archive_id="alice")
        for i in range(100):
            conversation.append(openai.user(f"{i}"))
        assert numbers([*conversation.archived(), *conversation]) == list(range(100))
        assert conversation.archived("alice") == conversation.archived()
        seen: list = []
        page = conversation.archived(limit=30)
        while page:
            seen = [*page, *seen]
            page = conversation.archived(before=page.before, limit=30)
        assert numbers(seen) == list(range(94))
        other = Conversation(archive=archive)
        assert other.archived() == []
        assert other.archived("alice", limit=1) == [openai.user("93")]
        assert other.archive_id not in (None, "alice")


def test_the_archive_keeps_the_order_of_what_was_said_however_it_arrives(tmp_path):
    with SQLiteArchive(tmp_path / "agent.db") as archive:
        conversation = Conversation(max_messages=4, max_message_bytes=500, archive=archive)
        long = openai.user("long " * 500)
        first = openai.calls("in flight", ["slow"])[0]
        said = [openai.user("go"), long, first]
        conversation.extend(said)
        for i in range(5):
            step = [*openai.calls(f"{i}", [f"c{i}"]), *openai.results(f"{i}", [f"c{i}"])]
            said += step
            conversation.extend(step)
        slow = openai.results("at last", ["slow"])[0]
        conversation.extend([slow, openai.user("next"), openai.user("last")])
        conversation.clear()
        archived = conversation.archived()
        assert archived == [*said, slow, openai.user("next"), openai.user("last")]


def test_a_crash_before_the_save_archives_nothing_twice(tmp_path):
    with SQLiteArchive(tmp_path / "agent.db") as archive:
        conversation = Conversation(max_messages=3, archive=archive, archive_id="alice")
        conversation.extend([openai.user(f"{i}") for i in range(3)])
        saved = conversation.__floodline_dump__()
        conversation.extend([openai.user("3"), openai.user("4")])
        for text in ("3", "other"):
            again = Conversation.__floodline_load__(saved)
            again.configure(archive=archive)
            again.extend([openai.user(text), openai.user("4"), openai.user("5"), openai.user("6")])
        contents = [m["content"] for m in conversation.archived()]
        assert contents == ["0", "1", "2", "3", "other"]
        assert [m["content"] for m in conversation.archived(limit=1)] == ["3", "other"]
