from __future__ import annotations

import gc
import weakref

from floodline.leaks._live.readings import listed_objects
from floodline.leaks._live.readings.listed_objects import count, listing


class Node:
    pass


def test_all_objects_are_counted_and_none_is_kept():
    nodes = [Node() for _ in range(2000)]
    refs = [weakref.ref(node) for node in nodes]
    before = count()
    gc.disable()  # a cycle would keep them until the next collection
    try:
        nodes.clear()
        assert all(ref() is None for ref in refs)
        assert before - count() >= 1900
    finally:
        gc.enable()


def test_the_list_is_empty_afterwards():
    nodes = [Node() for _ in range(2000)]
    found, emptied = listing()
    one = next(found)
    assert len(one) > len(nodes)
    assert list(emptied) == []
    assert one == []


def test_a_list_that_is_longer_than_all_pieces_is_emptied_too(monkeypatch):
    monkeypatch.setattr(listed_objects, "PIECES", 1)
    monkeypatch.setattr(listed_objects, "PIECE", slice(-64, None))
    found, emptied = listing()
    one = next(found)
    assert list(emptied) == []
    assert one == []
