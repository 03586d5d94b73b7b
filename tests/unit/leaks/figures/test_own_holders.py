from __future__ import annotations

from types import SimpleNamespace

from floodline.leaks._figures.own_holders import OwnHolders, is_internal
from floodline.leaks._heap.slots import Slots
from floodline.telemetry import Stats


def holder(**figures):
    told = {"kind": "map", "name": "carts", "items": 0, "max_items": 1000, **figures}
    return SimpleNamespace(told=told, stats=lambda: Stats(**told))


def test_a_holder_that_fills_says_when_it_will_be_full():
    carts = holder()
    own = OwnHolders(lambda: [carts])
    for second in range(30):
        carts.told["items"] = 10 * second
        own.note(float(second))
    (one,) = own.filling()
    assert (one.kind, one.name, one.limit, one.items) == ("map", "carts", 1000, 290)
    assert 65 <= one.left <= 75


def test_a_full_holder_does_not_fill():
    carts = holder()
    own = OwnHolders(lambda: [carts])
    for second in range(300):
        carts.told["items"] = min(1000, 10 * second)
        own.note(float(second))
    assert own.filling() == []


def test_a_holder_may_be_bounded_by_bytes_and_may_be_emptied():
    log = holder(kind="log", max_items=None, bytes=0, max_bytes=10_000)
    own = OwnHolders(lambda: [log])
    for second in range(40):
        log.told["bytes"] = 100 * (second % 20)
        own.note(float(second))
    (one,) = own.filling()
    assert (one.items, one.limit) == (1900, 10_000)
    own.restart()
    assert own.filling() == []


def test_a_holder_that_raises_or_has_no_limit_is_left_out():
    def raising():
        raise RuntimeError("not ours")

    broken = SimpleNamespace(stats=raising)
    own = OwnHolders(lambda: [broken, holder(max_items=None)])
    for second in range(20):
        own.note(float(second))
    assert own.filling() == []


def test_places_inside_our_own_objects_are_internal():
    slots = Slots()
    main = slots.root("app")
    carts = slots.child(main, "app", ".carts")
    table = slots.child(carts, "floodline.sessions._table.table.Table", ".idle")
    item = slots.child(table, "", "[*]")
    state = slots.child(item, "floodline.sessions._table.entry.Entry", ".state")
    inner = slots.child(state, "", "[*]")
    own = {index for index in (carts, table, item, state, inner) if is_internal(slots[index])}
    assert own == {table, item}
    assert not is_internal(slots[slots.child(main, "", "→dict")])
