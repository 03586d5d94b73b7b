"""The store in memory and the one in a file answer alike, whatever is asked in whatever order."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from floodline.errors import SessionError, StoreError
from floodline.stores import Append, Grant, MemoryStore, NewRow, SQLiteStore

names = st.sampled_from(["chat", "plan"])
ids = st.sampled_from(["a", "b", "c"])
owners = st.sampled_from(["me", "you"])
recent = st.integers(0, 3)
contents = st.binary(max_size=8)
logs = st.sampled_from(["events", "items"])
keys = st.sampled_from(["a", "b", "ä", "z", "\x00"])
numbers = st.none() | st.integers(0, 6)
new_rows = st.builds(NewRow, keys, st.sampled_from([b"", b"1", b"22"]), numbers)
caps = st.none() | st.integers(2, 4)
appends = st.lists(
    st.builds(
        Append,
        logs,
        st.lists(new_rows, max_size=4),
        max_rows=caps,
        max_bytes=caps,
        when_full=st.sampled_from(["refuse", "drop"]),
        when_taken=st.sampled_from(["refuse", "keep", "replace"]),
    ),
    max_size=2,
)
places = st.none() | keys | st.integers(0, 7)


class Agreement(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 10_000.0
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "s.db"
        self.memory = MemoryStore(clock=lambda: self.now, wall=lambda: self.now)
        self.file = self.open()
        self.fences: list[int] = []
        self.writes = 0

    def open(self) -> SQLiteStore:
        return SQLiteStore(self.path, clock=lambda: self.now, wall=lambda: self.now)

    def both(self, ask: Callable[[Any], Any]) -> Any:
        answers = []
        for store in (self.memory, self.file):
            try:
                answers.append(ask(store))
            except (SessionError, StoreError) as refused:
                answers.append((type(refused), str(refused)))
        assert answers[0] == answers[1]
        return answers[0]

    def fence(self, back: int) -> int:
        return self.fences[-1 - back] if len(self.fences) > back else 0

    @rule(seconds=st.sampled_from([1, 10, 20, 700]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule(name=names, id=ids, owner=owners, known=st.none() | st.integers(0, 5))
    def acquire(self, name: str, id: str, owner: str, known: int | None) -> None:
        granted = self.both(lambda s: s.acquire(name, id, owner, lease=15.0, known=known))
        if isinstance(granted, Grant):
            self.fences.append(granted.fence)

    @rule(name=names, id=ids, owner=owners, content=contents, release=st.booleans())
    def acquire_and_save(
        self, name: str, id: str, owner: str, content: bytes, release: bool
    ) -> None:
        granted = self.both(lambda s: s.acquire(name, id, owner, lease=15.0))
        if isinstance(granted, Grant):
            self.fences.append(granted.fence)
            self.writes += 1
            terms = {"version": granted.version, "write_id": f"w{self.writes}", "release": release}
            self.both(lambda s: s.save(name, id, content, fence=granted.fence, **terms))

    @rule(
        name=names,
        id=ids,
        content=contents,
        back=recent,
        version=st.integers(0, 5),
        write_back=recent,
        release=st.booleans(),
    )
    def save_anyhow(
        self,
        name: str,
        id: str,
        content: bytes,
        back: int,
        version: int,
        write_back: int,
        release: bool,
    ) -> None:
        write_id, fence = f"w{self.writes - write_back}", self.fence(back)
        terms = {"version": version, "write_id": write_id, "release": release}
        self.both(lambda s: s.save(name, id, content, fence=fence, **terms))

    @rule(name=names, id=ids, owner=owners, back=recent)
    def renew(self, name: str, id: str, owner: str, back: int) -> None:
        fences = {id: self.fence(back)}
        self.both(lambda s: s.renew(name, owner, fences, lease=15.0))

    @rule(name=names, id=ids, back=recent)
    def release(self, name: str, id: str, back: int) -> None:
        self.both(lambda s: s.release(name, id, self.fence(back)))

    @rule(name=names, id=ids, back=recent)
    def delete(self, name: str, id: str, back: int) -> None:
        self.both(lambda s: s.delete(name, id, fence=self.fence(back)))

    @rule(name=names, unused=st.sampled_from([0, 15, 600]), limit=st.integers(1, 3))
    def purge_all(self, name: str, unused: int, limit: int) -> None:
        gone: list[set[str]] = [set(), set()]
        for store, found in zip((self.memory, self.file), gone, strict=True):
            while slice_ := store.purge(name, unused=unused, limit=limit):
                assert len(slice_) <= limit
                found.update(slice_)
        assert gone[0] == gone[1]

    @rule(name=names, id=ids, content=contents)
    def quarantine(self, name: str, id: str, content: bytes) -> None:
        self.both(lambda s: s.quarantine(name, id, content, "why"))

    @rule()
    def reopen_the_file(self) -> None:
        self.file.close()
        self.file = self.open()

    @rule()
    def the_same_is_stored(self) -> None:
        for name in ("chat", "plan"):
            self.both(lambda s: s.ids(name))  # noqa: B023 - asked at once
            self.both(lambda s: s.count(name))  # noqa: B023 - asked at once
            for id in "abc":  # noqa: A001 - the word of the interface
                self.both(lambda s: s.load(name, id))  # noqa: B023 - asked at once
                self.both(lambda s: s.written(name, id, f"w{self.writes}"))  # noqa: B023 - at once
        self.both(lambda s: [(k.id, k.envelope) for k in s.conflicts()])
        self.both(lambda s: [(k.id, k.envelope) for k in s.quarantined()])
        self.both(lambda s: (s.stats().rows, s.stats().row_bytes, s.stats().conflicts))

    def teardown(self) -> None:
        self.the_same_is_stored()
        self.file.close()
        self.memory.close()
        self.directory.cleanup()


class RowAgreement(Agreement):
    """The same for row logs, on top of everything else that may happen to their sessions."""

    @rule(name=names, id=ids, rows=appends, back=st.none() | recent, create=st.booleans())
    def append(
        self, name: str, id: str, rows: list[Append], back: int | None, create: bool
    ) -> None:
        fence = None if back is None else self.fence(back)
        self.both(lambda s: s.append_rows(name, id, rows, fence=fence, create=create))

    @rule(name=names, id=ids, rows=appends, stale=st.booleans(), release=st.booleans())
    def save_with_rows(
        self, name: str, id: str, rows: list[Append], stale: bool, release: bool
    ) -> None:
        granted = self.both(lambda s: s.acquire(name, id, "me", lease=15.0))
        if isinstance(granted, Grant):
            self.fences.append(granted.fence)
            self.writes += 1
            terms = {"version": granted.version + stale, "write_id": f"w{self.writes}"}
            terms |= {"release": release, "rows": rows}
            self.both(lambda s: s.save(name, id, b"state", fence=granted.fence, **terms))

    @rule(
        name=names,
        id=ids,
        log=logs,
        after=places,
        before=places,
        limit=st.integers(1, 4),
        newest_first=st.booleans(),
    )
    def page(self, name: str, id: str, log: str, **options: Any) -> None:
        self.both(lambda s: s.rows(name, id, log, **options))

    @rule(name=names, id=ids, log=st.none() | logs, some=st.none() | st.lists(keys, max_size=2))
    def delete_rows(self, name: str, id: str, log: str | None, some: list[str] | None) -> None:
        chosen = some if log is not None else None
        self.both(lambda s: s.delete_rows(name, id, log, keys=chosen))

    @rule()
    def the_same_rows_are_stored(self) -> None:
        self.both(lambda s: s.names())
        self.both(lambda s: (s.stats().log_rows, s.stats().log_bytes))
        for name in ("chat", "plan"):
            for id in "abc":  # noqa: A001 - the word of the interface
                self.both(lambda s: s.logs(name, id))  # noqa: B023 - asked at once
                self.both(lambda s: s.count_rows(name, id))  # noqa: B023 - asked at once
                for log in ("events", "items"):
                    rows = self.both(lambda s: s.rows(name, id, log))  # noqa: B023 - at once
                    some = [row.key for row in rows]
                    self.both(lambda s: s.get_rows(name, id, log, some))  # noqa: B023 - at once

    def teardown(self) -> None:
        self.the_same_rows_are_stored()
        super().teardown()


test_the_two_stores_agree = Agreement.TestCase
test_the_two_stores_agree.settings = settings(
    max_examples=20, stateful_step_count=25, deadline=None
)
test_the_two_stores_agree_about_rows = RowAgreement.TestCase
test_the_two_stores_agree_about_rows.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None
)
