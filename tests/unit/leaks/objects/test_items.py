from __future__ import annotations

from collections import deque

import pytest

from floodline.leaks._objects import items as items_module
from floodline.leaks._objects.items import edges, part, some


@pytest.mark.parametrize("made", [dict, list, tuple, set, frozenset, deque])
def test_parts_of_containers_are_taken_in_their_order(made):
    items = [(n,) for n in range(10)]
    held = dict(enumerate(items)) if made is dict else made(items)
    ordered = made not in (set, frozenset)
    assert len(part(held, made, 2, 5)) == 3
    assert not ordered or part(held, made, 2, 5) == items[2:5]
    both = edges(held, made, 2)
    expected = items[:2] + (items[-2:] if made in (list, tuple) else items[-2:][::-1])
    assert sorted(both) == sorted(expected) if ordered else len(both) == 4
    assert len(some(held, made, 10, 10)) == 10
    assert len(some(held, made, 10, 4)) == 4
    assert part(3, None, 0, 5) == []


def test_a_container_that_changes_meanwhile_is_tried_again_and_then_left(monkeypatch):
    tries = []

    def changing(*_, **__):
        tries.append(1)
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr(items_module, "islice", changing)
    assert part({1: 2}, dict, 0, 1) == []
    assert len(tries) == 3
    assert edges({1: 2}, dict, 1) == []
    assert len(tries) == 9
