"""Views on a map that touch nothing, so that iterating does not make every entry recent."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, ValuesView
from typing import Any, Protocol

from floodline.bounded._entry import Entry, K, V


class Peeked(Protocol[K, V]):
    """A map as its views see it."""

    def _living(self) -> Iterator[Entry[K, V]]: ...

    def _peek(self, key: Any) -> Entry[K, V] | None: ...


class Values(ValuesView[V]):
    """The values that have not expired."""

    _mapping: Peeked[Any, V]

    def __iter__(self) -> Iterator[V]:
        return (entry.value for entry in self._mapping._living())

    def __reversed__(self) -> Iterator[V]:
        return iter(list(self)[::-1])

    def __contains__(self, value: object) -> bool:
        return any(own is value or own == value for own in self)


class Items(ItemsView[K, V]):
    """The items that have not expired."""

    _mapping: Peeked[K, V]

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return ((entry.key, entry.value) for entry in self._mapping._living())

    def __reversed__(self) -> Iterator[tuple[K, V]]:
        return iter(list(self)[::-1])

    def __contains__(self, item: object) -> bool:
        if not isinstance(item, tuple) or len(item) != 2:
            return False
        entry = self._mapping._peek(item[0])
        return entry is not None and (entry.value is item[1] or entry.value == item[1])
