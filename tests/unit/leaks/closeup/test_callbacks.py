from __future__ import annotations

import functools
import weakref

from floodline.leaks._closeup.callbacks import kind_of_item, name_of_called
from floodline.leaks._heap.roots import _is_hooks


class Held:
    def close(self) -> None:
        pass

    def __call__(self) -> None:
        pass


def function() -> None:
    pass


def test_what_is_called_has_the_name_of_its_source():
    assert name_of_called(function) == f"{__name__}.function"
    assert name_of_called(Held().close) == f"{__name__}.Held.close"
    assert name_of_called(functools.partial(function)) == f"{__name__}.function"
    assert name_of_called(Held()) == f"{__name__}.Held"
    assert name_of_called([]) is None
    assert name_of_called(len) is None


def test_a_pending_finalizer_is_called_what_it_will_call():
    target = Held()
    pending = weakref.finalize(target, function)
    built_in = weakref.finalize(target, len, "x")
    assert kind_of_item(pending._registry[pending]) == f"{__name__}.function"
    assert kind_of_item(pending._registry[built_in]) == "_Info"
    assert kind_of_item({}) == "dict"
    assert kind_of_item(target) == "Held"
    pending.detach()
    built_in.detach()


def test_hooks_of_the_interpreter_are_lists_and_maps_of_what_can_be_called():
    assert _is_hooks([function, Held().close, len, functools.partial(function)])
    assert _is_hooks([Held()])
    assert _is_hooks({str(number): function for number in range(4)})
    assert not _is_hooks({"a": function})  # may be the variables of a thread
    assert not _is_hooks(dict.fromkeys(range(4), function))
    assert not _is_hooks({str(number): [] for number in range(4)})
    assert not _is_hooks([])
    assert not _is_hooks([function, []])
    assert not _is_hooks((function,))
