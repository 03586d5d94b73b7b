from __future__ import annotations

import atexit
import contextvars
import json
import weakref
from collections import deque

from floodline.leaks._closeup.closeup import Close, merge
from floodline.leaks._figures.candidates import Candidate
from floodline.leaks._figures.trend import Trend
from floodline.leaks._heap.roots import HELD_BY_C, survey
from floodline.leaks._heap.slots import Slots
from floodline.leaks._heap.walk import Held, Walk
from floodline.leaks._source.place import Place


def test_hooks_of_the_interpreter_are_named_by_their_function():
    slots = Slots()
    one = Candidate(slots[slots.root(HELD_BY_C)], "count", Trend("growing", 1.0), 0.0, 3)
    held = [Held(None, test_hooks_of_the_interpreter_are_named_by_their_function)]
    found = Close(one, lambda _: held)
    assert found.owner.endswith("test_hooks_of_the_interpreter_are_named_by_their_function")
    assert Close(one, lambda _: [Held(None, [])]).owner == HELD_BY_C


def test_the_newest_function_of_the_longest_list_of_hooks_names_it():
    slots = Slots()
    one = Candidate(slots[slots.root(HELD_BY_C)], "length", Trend("growing", 1.0), 0.0, 3)
    lists = [[merge, Hooked().run], [merge, survey, json.dumps], [json.dumps]]
    assert Close(one, lambda _: [Held(None, hooks) for hooks in lists]).owner.endswith("Hooked.run")
    assert Close(one, lambda _: [Held(None, lists[2])]).owner == f"{HELD_BY_C} json.dumps"


class Hooked:
    def run(self):
        pass


def test_what_a_function_that_c_code_holds_has_in_its_closure_is_put_down_to_that_function():
    slots = Slots()
    held_by_c = slots.child(slots.root(HELD_BY_C), "", "→function")
    cell = slots.child(slots.root("app.query.<locals>.key"), "app.query.<locals>.key", "{rows}")
    slots.enter(cell, held_by_c)
    one = Candidate(slots[cell], "count", Trend("growing", 1.0), 0.0, 3)
    held = {cell: [Held(None, 3), Held(Hooked().run, [])]}
    close = Close(one, lambda slot: held.get(slot.index, []))
    assert close.owner == f"{HELD_BY_C} app.query.<locals>.key"
    assert close.held_by_c() is Hooked.run.__code__
    held[cell] = []
    assert close_of(slots, cell, held).held_by_c() is None


def close_of(slots, slot, held):
    one = Candidate(slots[slot], "count", Trend("growing", 1.0), 0.0, 3)
    return Close(one, lambda slot: held.get(slot.index, []))


def test_a_cache_in_an_attribute_of_a_wrapper_is_shown_at_the_decorated_function():
    def wrapper():
        pass

    wrapper.__wrapped__, wrapper.store = Hooked.run, {}
    slots = Slots()
    slot = slots.child(slots.root("lib.wrapper"), "lib.wrapper", ".store")
    found = {slot: [Held(wrapper, wrapper.store)]}
    close = close_of(slots, slot, found)
    close.head = slots[slot]
    assert close._path() == f"{__name__}.Hooked.run.store"


def test_hooks_at_exit_are_watched_by_their_number():
    slots = Slots()
    walk = Walk(slots)
    slot = slots.child(slots.root("atexit"), "atexit", ".register")
    walk.lengthen(slot, 3)
    assert walk.length[slot] == 3
    close = Close(Candidate(slots[slot], "length", Trend("growing", 1.0), 0.0, 3), lambda _: [])
    watch = close.watch()
    atexit.register(Hooked.run)
    watch.compare(lambda _: Place("a.py", 1, "f"))
    atexit.unregister(Hooked.run)
    assert (close.owner, watch.fed) == ("atexit.register", True)


def test_a_variable_of_a_context_is_watched_through_its_values():
    slots = Slots()
    variable = contextvars.ContextVar("trail", default=())
    one = Candidate(slots[slots.root("app.TRAIL")], "length", Trend("growing", 1.0), 0.0, 3)
    watch = Close(one, lambda _: [Held(variable, ())]).watch()
    variable.set((1, 2))
    watch.compare(lambda _: Place("a.py", 1, "f"))
    assert watch.fed
    assert Close(one, lambda _: []).suspect(1).type == ""


def closely(owner, items, rate=1.0):
    slots = Slots()
    slot = slots.child(
        slots.root(owner.rpartition(".")[0]),
        owner.rpartition(".")[0],
        "." + owner.rpartition(".")[2],
    )
    one = Candidate(slots[slot], "length", Trend("growing", rate), 0.0, len(items))
    found = Close(one, lambda _: [Held(None, items)])
    found.owner = owner
    return found


def test_echoes_are_merged():
    shared = [[1], [2], [3]]
    first = closely("app.X", shared)
    same = closely("app.X", [[9]])
    copy = closely("app.Y", list(shared))
    library = closely("asyncio.tasks.all", [[4]])
    other = closely("app.Z", [[5]], rate=3.0)
    numbers = closely("app.N", [1, 2])
    merged = merge([first, same, copy, library, other, numbers])
    assert [(one.owner, echoes) for one, echoes in merged] == [
        ("app.X", ("app.Y", "asyncio.tasks.all")),
        ("app.Z", ()),
        ("app.N", ()),
    ]


def test_a_registry_of_weak_references_echoes_what_holds_the_same():
    slots, kept = Slots(), [Hooked(), Hooked()]

    def close(label, values):
        slot = slots[slots.child(slots.root("logging"), "logging", label)]
        return Close(Candidate(slot, "length", Trend("growing", 1.0), 0.0, 2), lambda _: values)

    weak = close("._handlerList", [Held(None, [weakref.ref(one) for one in kept])])
    strong = close(".handlers", [Held(None, kept)])
    ((first, echoes),) = merge([weak, strong])
    assert (first, echoes) == (strong, ("logging._handlerList",))


def test_what_grows_on_is_no_echo_of_a_cache_that_fills():
    slots = Slots()

    def close(label, value):
        slot = slots[slots.child(slots.root("queue"), "queue", label)]
        one = Candidate(slot, "length", Trend("growing", 1.0), 0.0, 2)
        return Close(one, lambda _: [Held(None, value)])

    fills, grows = close(".recent", deque([[1], [2]], maxlen=9)), close(".waiting", [[3], [4]])
    assert (fills.fills, grows.fills) == (True, False)
    assert [one for one, _ in merge([fills, grows])] == [fills, grows]
    assert [one for one, _ in merge([grows, fills])] == [grows]


def test_what_holds_comes_before_what_only_points_at_the_same():
    class Thing:
        pass

    slots, things = Slots(), [Thing() for _ in range(4)]

    def close(label, items, rate=1.0):
        slot = slots[slots.child(slots.root("app"), "app", label)]
        one = Candidate(slot, "length", Trend("growing", rate), 0.0, 4)
        return Close(one, lambda _: [Held(None, items)])

    weak = close(".by_id", {n: weakref.ref(one) for n, one in enumerate(things)})
    other, strong = close(".rows", [[1]], 3.0), close(".kept", things)
    merged = merge([weak, other, strong])
    assert [(one.owner, echoes) for one, echoes in merged] == [
        ("app.kept", ("app.by_id",)),
        ("app.rows", ()),
    ]
