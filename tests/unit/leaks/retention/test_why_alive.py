"""Who holds an object: the words, the names, and what a search leaves behind."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import json
import sys
import threading
import types
import weakref

import pytest

from floodline import why_alive
from floodline.leaks._retention import why_alive as why_alive_module

HERE = __name__


class Thing:
    pass


class Service:
    shared: object = None

    def __init__(self) -> None:
        self._sessions: dict[object, object] = {}


class Heir(Service):
    pass


class Slotted:
    __slots__ = ("never", "x")


SERVICE = Service()


HOOKS: list[object] = []


LOCAL = threading.local()


VARIABLE: contextvars.ContextVar[object] = contextvars.ContextVar("VARIABLE")


@pytest.fixture(autouse=True)
def _clean():
    yield
    HOOKS.clear()
    SERVICE.__dict__.clear()
    SERVICE._sessions = {}
    Service.shared = None
    LOCAL.__dict__.clear()


def paths(why):
    return [one.path for one in why.retainers]


def test_nothing_but_the_caller_holds_it():
    thing = Thing()
    why = why_alive(thing)
    assert (why.verdict, why.retainers, why.notes) == ("caller", (), ())
    assert str(why) == f"{HERE}.Thing: only the caller holds it"
    assert why.path == "only the caller holds it"


def test_a_value_in_a_dict_of_a_global_is_named_without_its_key():
    thing = SERVICE._sessions["secret"] = Thing()
    why = why_alive(thing)
    assert paths(why) == [f"{HERE}.SERVICE._sessions[*]"]
    assert why.retainers[0].owner == f"{HERE}.Service._sessions"
    assert "secret" not in str(why)
    assert f"(owner {HERE}.Service._sessions)" in str(why)
    assert json.loads(json.dumps(why.as_dict()))["retainers"][0]["count"] == 1


def test_the_owner_is_the_class_whose_source_assigns_the_attribute():
    HOOKS.append(Heir())
    HOOKS[0]._sessions["a"] = thing = Thing()
    why = why_alive(thing)
    assert [(one.path, one.owner) for one in why.retainers] == [
        (f"{HERE}.HOOKS[*]._sessions[*]", f"{HERE}.Service._sessions")
    ]


def test_each_place_is_shown_and_equal_ones_are_one():
    thing = Thing()
    SERVICE.other, SERVICE._sessions = [thing], {"a": thing}
    HOOKS.extend([[thing], [thing]])
    why = why_alive(thing)
    assert {one.path: one.count for one in why.retainers} == {
        f"{HERE}.SERVICE.other[*]": 1,
        f"{HERE}.SERVICE._sessions[*]": 1,
        f"{HERE}.HOOKS[*][*]": 2,
    }
    assert "×2" in str(why)


def test_a_key_a_slot_and_a_class_attribute_are_named():
    key, held = Thing(), Slotted()
    SERVICE._sessions[key] = 1
    held.x = Thing()
    HOOKS.append(held)
    Service.shared = shared = Thing()
    assert paths(why_alive(key)) == [f"{HERE}.SERVICE._sessions[keys]"]
    assert f"{HERE}.HOOKS[*].x" in paths(why_alive(held.x))
    assert paths(why_alive(shared)) == [f"{HERE}.Service.shared"]


@pytest.mark.parametrize("generation", [None, 0, 1, 2])
def test_a_closure_and_defaults_are_named_by_their_function(generation):
    thing = Thing()

    def make(captured):
        if generation is not None:
            gc.collect(generation)  # the cell is older now, and met after the other holders

        def hook(a, b=captured, *, c=captured):
            return captured, a, b, c

        hook.mark = captured
        return hook

    HOOKS.append(make(thing))
    inner = f"{HERE}.HOOKS[*] → {make.__module__}.{make.__qualname__}.<locals>.hook"
    wanted = {f"{inner}{end}" for end in ("{captured}", "(b=)", "(c=)", ".mark")}
    assert set(paths(why_alive(thing))) == wanted


def test_a_function_may_hold_something_in_another_way():
    def hook() -> None: ...

    class Name(str):
        pass

    hook.__name__ = "x"
    name = Name("n")
    hook.__doc__ = name  # type: ignore[assignment]  # not a plain str, so the collector knows it
    HOOKS.append(hook)
    assert any(path.endswith("hook→Name") for path in paths(why_alive(name)))


@pytest.mark.parametrize("size", [8, None])
def test_a_functools_cache_is_named(size, monkeypatch):
    made = functools.lru_cache(size)(lambda n: Thing())
    monkeypatch.setattr(sys.modules[HERE], "CACHED", made, raising=False)
    assert f"{HERE}.CACHED[*]" in paths(why_alive(made(1)))


def test_a_local_of_another_thread_is_named():
    ready, end, box = threading.Event(), threading.Event(), []

    def work():
        busy = Thing()
        box.append(busy)
        ready.set()
        end.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait(30)
    found = paths(why_alive(box.pop()))
    end.set()
    thread.join()
    assert found == [f"{HERE}.{work.__qualname__}()busy"]


def test_the_callers_of_the_caller_are_named():
    def ask(thing):
        return why_alive(thing)

    def outer(mine):
        return ask(mine)

    assert paths(outer(Thing())) == [f"{HERE}.{outer.__qualname__}()mine"]


def test_a_dict_in_a_variable_does_not_show_its_keys():
    def ask(box):
        return why_alive(box["secret"])

    def outer():
        mine = {"secret": Thing()}
        return ask(mine)

    found = paths(outer())
    assert {path.rpartition("()")[2] for path in found} <= {"mine[*]", "box[*]"}
    assert found


def test_a_coroutine_that_waits_is_named_and_the_one_that_asks_is_not():
    async def wait(inside, gate):
        await gate.wait()
        return inside

    async def main():
        gate, thing = asyncio.Event(), Thing()
        assert why_alive(thing).verdict == "caller"
        task = asyncio.ensure_future(wait(thing, gate))
        await asyncio.sleep(0)
        why = why_alive(thing)
        gate.set()
        await task
        return why

    why = asyncio.run(main())
    assert {one.owner for one in why.retainers} == {f"{HERE}.{wait.__qualname__}()inside"}


def test_generators_are_named():
    def numbers(first):
        yield 1
        yield first

    async def later(last):
        yield last

    thing = Thing()
    HOOKS.append(numbers(thing))
    next(HOOKS[0])
    HOOKS.append(later(thing))
    owners = {one.owner for one in why_alive(thing).retainers}
    assert owners == {f"{HERE}.{numbers.__qualname__}()first", f"{HERE}.{later.__qualname__}()last"}


def test_a_traceback_is_named_by_the_function_that_failed():
    def fail(inside):
        raise ValueError

    try:
        fail(Thing())
    except ValueError as error:
        HOOKS.append(error)
    thing = HOOKS[0].__traceback__.tb_next.tb_frame.f_locals["inside"]
    assert {one.owner for one in why_alive(thing).retainers} == {
        f"{HERE}.{fail.__qualname__}()inside"
    }


def test_a_thread_local_and_a_context_variable_are_found():
    LOCAL.thing = Thing()
    assert paths(why_alive(LOCAL.thing)) == [f"{HERE}.LOCAL.thing"]
    context = contextvars.copy_context()
    context.run(VARIABLE.set, Thing())
    HOOKS.append(context)
    assert any(path.startswith(f"{HERE}.HOOKS[*]→") for path in paths(why_alive(context[VARIABLE])))


def test_what_only_c_code_holds_is_said_to_be():
    def ask():
        VARIABLE.set(Thing())
        return why_alive(VARIABLE.get())

    found = paths(contextvars.Context().run(ask))
    assert "<held by the interpreter> _contextvars.Context" in [p.split("→")[0] for p in found]


def test_garbage_is_said_to_be_garbage():
    def pair():
        one = Thing()
        one.other = Thing()
        one.other.back = [one]
        return one.other.back

    alone = Thing()
    alone.me = alone
    gc.disable()
    try:
        assert why_alive(alone).verdict == "garbage"
        assert str(why_alive(pair())).startswith("list: only a garbage cycle holds it")
    finally:
        gc.enable()


def test_a_variable_that_an_inner_function_may_use_is_still_the_callers():
    thing = Thing()
    assert (lambda: thing)() is thing
    assert why_alive(thing).verdict == "caller"


def test_a_module_that_is_in_no_table_is_followed():
    module = types.ModuleType("lost_module")
    module.thing = Thing()
    nameless = types.ModuleType("nameless")
    nameless.__dict__["__name__"] = 3
    nameless.thing = Thing()
    HOOKS.extend([module, nameless])
    assert {one.owner for one in why_alive(module.thing).retainers} == {"lost_module.thing"}
    assert {one.owner for one in why_alive(nameless.thing).retainers} == {"?.thing"}


def test_no_code_of_the_program_runs():
    class Hostile(dict):
        def _fail(self, *_):
            raise AssertionError("user code ran")

        __len__ = __iter__ = __eq__ = __getattribute__ = __contains__ = _fail
        __hash__ = None
        __bool__ = __repr__ = _fail

        @property
        def __class__(self):
            raise AssertionError("user code ran")

    hostile = Hostile()
    dict.__setitem__(hostile, "k", hostile)
    HOOKS.append(hostile)
    assert f"{HERE}.HOOKS[*]" in paths(why_alive(hostile))


def test_a_large_container_is_not_searched_whole_and_that_is_said():
    SERVICE._sessions.update((n, None) for n in range(10_000))
    SERVICE._sessions["last"] = thing = Thing()
    why = why_alive(thing)
    assert paths(why) == [f"{HERE}.SERVICE._sessions[*]"]
    assert why.notes == ("only 10,000 of 10,001 items were searched",)
    assert "note: only 10,000 of 10,001" in str(why)


def test_a_large_container_that_has_no_name_is_not_judged():
    def make():
        thing = Thing()
        thing.many = [thing] * 10_001
        return thing

    why = why_alive(make())
    assert why.verdict == "unknown"
    assert why.notes == ("a holder with more than 10,000 items was not searched",)


def test_attributes_in_a_dict_of_another_class_are_read_without_its_code():
    class Names(dict):
        def items(self):
            raise AssertionError("user code ran")

        __len__ = __iter__ = keys = values = items

    holder = Thing()
    holder.__dict__ = Names(thing=Thing())
    HOOKS.append(holder)
    assert f"{HERE}.HOOKS[*].thing" in paths(why_alive(dict.get(holder.__dict__, "thing")))


def test_many_holders_are_sampled_and_that_is_said():
    thing = Thing()
    HOOKS.extend([thing] for _ in range(100))
    why = why_alive(thing)
    assert paths(why) == [f"{HERE}.HOOKS[*][*]"]
    assert why.notes == ("not every holder was followed: there may be more paths",)


def test_a_search_stops_after_its_passes():
    thing = at = Thing()
    for _ in range(20):
        at = [at]
    HOOKS.append(at)
    why = why_alive_module.Search(thing, frames=False, passes=5).answer()
    assert (why.verdict, len(why.notes)) == ("unknown", 1)
    assert why.path == "no name that leads to it was found"


def test_a_search_stops_when_it_has_enough_paths(monkeypatch):
    thing = Thing()
    for n in range(30):
        module = types.ModuleType(f"many_{n}")
        module.thing = thing
        monkeypatch.setitem(sys.modules, module.__name__, module)
    why = why_alive(thing)
    assert len(why.retainers) == why_alive_module.MAX_PATHS


def test_ways_that_branch_too_often_are_cut(monkeypatch):
    monkeypatch.setattr(why_alive_module, "MAX_OPEN", 0)
    HOOKS.append(thing := Thing())
    assert why_alive(thing).retainers == ()


def test_a_long_path_is_cut_in_the_middle():
    at = SERVICE
    for n in range(12):
        setattr(at, f"a_rather_long_attribute_name_{n}", Thing())
        at = getattr(at, f"a_rather_long_attribute_name_{n}")
    assert all(len(path) < 200 for path in paths(why_alive(at)))


def test_frozen_objects_are_mentioned(monkeypatch):
    monkeypatch.setattr(why_alive_module.gc, "get_freeze_count", lambda: 5000)
    thing = Thing()
    assert why_alive(thing).notes == ("5000 objects are frozen (gc.freeze) and were not searched",)


def test_no_reference_is_kept():
    gc.disable()
    try:
        thing = Thing()
        thing.held = [Thing()]
        SERVICE._sessions["a"] = thing
        refs = [weakref.ref(thing), weakref.ref(thing.held[0])]
        why_alive(thing.held[0])
        why_alive(thing)
        del thing
        SERVICE._sessions.clear()
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


def test_a_class_is_found_among_its_instances():
    made = [Thing() for _ in range(500)]
    assert f"{HERE}.Thing" in paths(why_alive(Thing))
    assert len(made) == 500
