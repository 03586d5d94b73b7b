from __future__ import annotations

from floodline.leaks._heap.slots import MAX_SLOTS, Slots, shorten


def below(slots, *steps):
    at = slots.root("app")
    for anchor, label in steps:
        at = slots.child(at, anchor, label)
    return slots[at]


def test_a_registry_of_the_library_does_not_belong_to_who_leads_to_it():
    logger = ("app", ".LOG"), ("logging.Logger", ".manager"), ("logging.Manager", ".loggerDict")
    slot = below(Slots(), *logger, ("", "[*]"), ("logging.Logger", ".handlers"))
    assert slot.head().owner == "logging.Logger.handlers"


def test_a_container_of_the_library_that_the_program_holds_is_the_programs():
    slots = Slots()
    held = ("app", ".QUEUES"), ("weakref.WeakValueDictionary", ".data")
    slot = below(slots, *held, ("", "[*]"), ("queue.Queue", ".queue"))
    assert slot.head().owner == "app.QUEUES"
    assert below(slots, ("app", ".ROWS"), ("", "[*]")).head().owner == "app.ROWS"
    assert slots[slots.child(slots.root("gc"), "", "[*]")].head().label == "gc"


def test_a_function_in_a_variable_of_its_own_has_some_head():
    slots = Slots()
    cell = slots.child(slots.root("functools.f"), "functools.f", "{x}")
    slots.enter(cell, cell)
    assert slots[cell].head() == slots[cell]


def test_a_full_table_of_slots_puts_the_rest_into_the_parent():
    slots = Slots()
    root = slots.root("app")
    slots.labels += [""] * MAX_SLOTS
    before = len(slots), len(slots.names), len(slots.kids)
    assert slots.child(root, "app", ".NAME") == root
    assert slots[slots.root("app.One")].label == slots[slots.root("app.Two")].label == "<more>"
    assert (len(slots), len(slots.names), len(slots.kids)) == before


def test_long_paths_lose_their_middle():
    assert shorten("a.b") == "a.b"
    cut = shorten("a" * 150 + "b" * 150)
    assert len(cut) < 200
    assert (cut[0], cut[-1]) == ("a", "b")
