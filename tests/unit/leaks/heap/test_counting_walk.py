"""The walk of samples counts what the plain walk counts."""

from __future__ import annotations

from collections import OrderedDict, deque
from functools import lru_cache

from floodline.leaks._heap.counting_walk import CountingWalk
from floodline.leaks._heap.roots import survey
from floodline.leaks._heap.slots import Slots
from floodline.leaks._heap.walk import MAX_NAMES, Walk
from soak_programs import HOSTILE, MANY, module, narrow


def figures(walk: Walk) -> dict[str, tuple[int, int, int, int]]:
    columns = zip(walk.count, walk.length, walk.text, walk.bytes, strict=True)
    return {walk.slots.key(at): row for at, row in enumerate(columns) if any(row)}


def both(slots: Slots) -> tuple[dict, dict]:
    survey(slots)  # reading `__dict__` creates it
    plain = Walk(slots)
    survey(slots, walk=plain)
    counting = CountingWalk(slots)
    survey(slots, walk=counting)
    assert plain.objects == counting.objects
    return figures(plain), figures(counting)


class Named:
    def __init__(self, **names: object) -> None:
        self.__dict__.update(names)


class Slotted:
    __slots__ = ("never", "rows")

    def __init__(self) -> None:
        self.rows = [[1], []]


class Rows(list[object]):
    pass


class Text(str):
    pass


@lru_cache(maxsize=8)
def cached(key: int) -> list[int]:
    return [key]


def test_every_slot_has_the_same_figures(tmp_path, monkeypatch):
    made = module("many", MANY, tmp_path, monkeypatch)
    hostile = module("hostile", HOSTILE, tmp_path, monkeypatch)
    for i in range(7):
        made.round(i)
        cached(i)
    odd, rows, text = Named(a=[], b="text", c=[[1]]), Rows([[], Named(x={})]), Text("abc")
    odd.__dict__[3] = [4]  # type: ignore[index]  # it is allowed
    rows.extra, text.extra = {1: [2]}, bytearray(9)  # type: ignore[attr-defined]  # see above
    made.KEPT = [
        odd, rows, text, Slotted(), cached, OrderedDict(a=1), deque([(1, [2])]), frozenset({(3,)}),
        Named(**{f"n{i}": [i] for i in range(MAX_NAMES + 1)}), Named(), "plain", b"", bytearray(),
        [Named(rows=[i]) for i in range(20)], int, Named, lambda: odd, object(), memoryview(b"ab"),
    ]  # fmt: skip
    narrow(monkeypatch, made, hostile)
    plain, counting = both(Slots())
    assert counting == plain
    assert len(plain) > 80
