"""Sessions with archives that move through every kind of store, and come back as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from floodline import Conversation, Sessions
from floodline.stores import MemoryStore, SQLiteStore
from floodline.stores._copying import copy_sessions, digest_of


def open_chat(id: str) -> Conversation:
    return Conversation(max_messages=3, archive="session", archive_id=id)


def talk(store: Any, first: int) -> None:
    """Go on with each chat, and see that nothing of it is missing."""
    with Sessions(open_chat, store=store, name="chats") as sessions:
        for one in ("alice", "bob", "ä\x00"):
            with sessions.use(one) as chat:
                for n in range(first, first + 7):
                    chat.append({"role": "user", "content": f"{n}"})
            with sessions.use(one) as chat:
                found = [int(message["content"]) for message in [*chat.archived(), *chat]]
                assert found == list(range(first + 7))


def test_a_store_is_copied_from_kind_to_kind(redis: Any, postgres: Any, tmp_path: Path) -> None:
    kinds = [MemoryStore, redis, postgres, lambda: SQLiteStore(tmp_path / "s.db")]
    source: Any = SQLiteStore(tmp_path / "first.db")
    for turn, kind in enumerate(kinds):
        talk(source, 7 * turn)
        target = kind()
        assert {one.outcome for one in copy_sessions(source, target)} == {"copied"}
        assert {one.outcome for one in copy_sessions(source, target)} == {"same"}
        for one in source.ids("chats"):
            digests = {
                digest_of(store, "chats", one, store.load("chats", one))
                for store in (source, target)
            }
            assert len(digests) == 1
        source.close()
        source = target
    talk(source, 7 * len(kinds))
    source.close()
