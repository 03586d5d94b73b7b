"""Finds the row of a session, and says that it is missing only if two trees of the file agree.

The number of a row is a hash of its name and id, so the tree of the table finds it without the
unique index, which is the second tree. A row that is found needs no more; "not found" is believed
only if the index does not have the id either. One damaged page makes one of the two trees
forget a session, and the other shows it: `StoreCorrupt`, where 0.1 created an empty session.

If two keys share a hash, the later one is at the next of its places, and is found by the index.
Rows that 0.1 wrote have small numbers; they are found by the index too, and moved to their places
a few at a time. Until then a row that the index does not have is searched for among them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from floodline.errors import StoreCorrupt

FIRST = 2**62  # places are above, the numbers of 0.1 below
_PLACES = 4
_SCANNED = 20_000  # rows of 0.1 that a search may scan
_LISTED = """
SELECT row FROM sessions INDEXED BY sqlite_autoindex_sessions_1 WHERE name = ? AND id = ?
"""
_OLD = "SELECT row, name, id FROM sessions WHERE row > ? AND row < ? ORDER BY row LIMIT ?"
_SCAN = "SELECT 1 FROM sessions NOT INDEXED WHERE row < ? AND name = ? AND id = ? LIMIT 1"
_KEY = "SELECT name, id FROM sessions WHERE row = ?"
# what both trees say about a key, and about its place
_BOTH = f"""
SELECT 1, row, NULL, NULL FROM ({_LISTED.strip()})
UNION ALL SELECT 2, row, name, id FROM sessions NOT INDEXED WHERE row = ?
"""


@lru_cache(maxsize=64)  # a use asks for the same one three times; filling must not look like a leak
def place_of(name: str, id: str, turn: int = 0) -> int:
    """Return the row number of a key, or the next one to try if others have those before."""
    head = f"{turn}:{len(name)}:".encode()
    digest = blake2b(head + name.encode() + id.encode(), digest_size=8).digest()
    return FIRST | (int.from_bytes(digest, "big") & (FIRST - 1))


class Places:
    """Finds rows of `sessions` on one connection; `damage` is what an inspection has found."""

    __slots__ = ("_after", "_execute", "_path", "damage", "old")

    def __init__(self, execute: Callable[..., sqlite3.Cursor], path: str) -> None:
        self._execute, self._path = execute, path
        self._after = 0
        self.damage = ""
        self.old = self._execute(_OLD, (-1, FIRST, 1)).fetchone() is not None

    def find_listed(self, sql: str, name: str, id: str, *before: Any) -> Any:
        """Return what `sql` asks of a row that is not in its place; None can be believed."""
        place = place_of(name, id)
        said = self._execute(_BOTH, (name, id, place)).fetchall()
        listed = [answer[1:2] for answer in said if answer[0] == 1]
        if not listed:
            self._believe(name, id, place, said[0][2:] if said else None)
            return None
        row = listed[0][0]
        if len(listed) > 1 or row == place:
            raise self.corrupt(f"its table and its index disagree about session {id!r}")
        found = self._execute(sql, (*before, row, name, id)).fetchone()
        if found is None:
            raise self.corrupt(f"its index has session {id!r}, but its table does not")
        return found

    def figure(self, name: str) -> int:
        """Return a figure of the whole file; one that was damaged might give a fence again."""
        row = self._execute(f"SELECT {name} FROM meta").fetchone()
        if row is None or type(row[0]) is not int or row[0] < 0:
            raise self.corrupt(f"its {name} is not a number that was ever written")
        value: int = row[0]
        return value

    @property
    def sound(self) -> bool:
        """True if a row that neither tree has is certainly not stored."""
        return not (self.damage or self.old)

    def _believe(self, name: str, id: str, place: int, there: Any) -> None:
        """Raise unless it is certain that a session is not stored; `there` is in its place."""
        if there is not None and not _is_at_home(place, there[0], there[1]):
            raise self.corrupt(f"another row is in the place of session {id!r}")
        if self.damage:
            raise self.corrupt(f"{self.damage}, so session {id!r} may only seem to be missing")
        if self.old and self._scan(name, id):
            raise self.corrupt(f"its table has session {id!r}, but its index does not")

    def _scan(self, name: str, id: str) -> bool:
        (rows,) = self._execute("SELECT ifnull(sum(count), 0) FROM totals").fetchone()
        if rows > _SCANNED:
            return False
        return self._execute(_SCAN, (FIRST, name, id)).fetchone() is not None

    def free_place(self, name: str, id: str) -> int:
        """Return a free place for a row that was not found."""
        for turn in range(_PLACES):
            place = place_of(name, id, turn)
            if self._execute(_KEY, (place,)).fetchone() is None:
                return place
        raise self.corrupt(f"every place of session {id!r} is taken")

    def move_old(self, limit: int) -> None:
        """Move rows of 0.1 to their places; one that cannot be read stays where it is."""
        found = self._execute(_OLD, (self._after, FIRST, limit)).fetchall()
        for row, name, one in found:
            self._after = row
            if type(name) is str and type(one) is str:
                place = self.free_place(name, one)
                self._execute("UPDATE sessions SET row = ? WHERE row = ?", (place, row))
        self.old = len(found) == limit

    def inspect(self, after: int, limit: int) -> int | None:
        """Compare both trees over the next rows of the table; None at the end."""
        rows = self._execute(_OLD, (after, 2**63 - 1, limit)).fetchall()
        for row, name, one in rows:
            if self._execute(_LISTED, (name, one)).fetchall() != [(row,)]:
                self.damage = f"its index does not have row {row}"
        return rows[-1][0] if len(rows) == limit else None

    def inspect_index(self, after: tuple[str, str], limit: int) -> tuple[str, str] | None:
        """Compare both trees over the next entries of the index; None at the end."""
        sql = """
            SELECT name, id, row FROM sessions INDEXED BY sqlite_autoindex_sessions_1
            WHERE name > ? OR (name = ? AND id > ?) ORDER BY name, id LIMIT ?"""
        terms = (after[0], *after, limit)
        entries = self._execute(sql, terms).fetchall()
        for name, one, row in entries:
            if self._execute(_KEY, (row,)).fetchone() != (name, one):
                self.damage = f"its table does not have row {row}"
        return (entries[-1][0], entries[-1][1]) if len(entries) == limit else None

    def corrupt(self, what: str) -> StoreCorrupt:
        """Return the error for trees that contradict each other."""
        return StoreCorrupt(
            f"{self._path!r} is damaged: {what}; nothing was written. Restore a copy of the file, "
            f"or recover it with `sqlite3 {self._path} .recover`"
        )


def _is_at_home(place: int, name: Any, id: Any) -> bool:
    """Return True if a row is where its own key belongs."""
    if type(name) is not str or type(id) is not str:
        return False
    return any(place_of(name, id, turn) == place for turn in range(_PLACES))
