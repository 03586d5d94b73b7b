from __future__ import annotations

import sys

from floodline.leaks._objects import outline as outline_module
from floodline.leaks._objects.outline import MAX_STRANGERS, MISSING, Outline, Outlines, _slot


def test_slots_that_are_not_there_are_missing():
    class One:
        __slots__ = ("rows",)

    assert _slot((One,), 5, "rows", One()) is MISSING
    assert _slot((One,), 0, "other", One()) is MISSING
    assert _slot((One,), 0, "rows", One()) is MISSING
    plan = Outline(One)
    assert plan.attributes(One()) == []
    assert plan.attribute(One(), "other") is MISSING
    assert not plan._is_namespace(One(), {"rows": 1})


def test_a_dict_is_the_namespace_only_if_the_object_says_so():
    class Box:
        pass

    box, plan = Box(), Outline(Box)
    box.x = [1]
    assert plan._is_namespace(box, {"x": box.x})
    for other in ({}, {"x": [1]}, {1: 2}, {"__init__": 1}, Shy()):
        assert not plan._is_namespace(box, other)


class Shy(dict):
    def __iter__(self):
        raise RuntimeError("changed")


def test_outlines_begin_anew_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr("floodline.leaks._objects.outline.MAX_OUTLINES", 2)
    outlines = Outlines()
    for kind in (int, str, list):
        outlines.of(kind)
    assert len(outlines.by_id) == 1
    outlines.of(list).complete = 5
    outlines.refresh()
    assert outlines.of(list).complete == 0


def test_attributes_that_only_annotations_and_wrappers_speak_of_are_known():
    class Base:
        noted: list

        @staticmethod
        def make(obj):
            obj.made = [1]

        @classmethod
        def fill(cls, obj):
            obj.filled = [1]

        @property
        def shown(self):
            self.seen = [1]
            return lambda: setattr(self, "never", 1)

        later = None

        def use(self):
            self.later = self.use = 1

    names = set(Outline(Base).names)
    assert {"noted", "made", "filled", "seen", "later"} <= names
    assert "use" not in names  # a method answers for it


class Bot:
    def __init__(self):
        self.name = "a"


def test_an_attribute_that_other_code_gave_is_known_by_its_use():
    bot, history, outlines = Bot(), [], Outlines()
    bot.history = history
    outlines.used = frozenset(("name", "answer", "history"))
    plan = outlines.of(Bot)
    assert outlines.given(plan, bot, history) == "history"
    assert plan.names["history"].endswith(".Bot.history")
    for _ in range(MAX_STRANGERS):
        assert outlines.given(plan, bot, object()) is None
    bot.answer = []
    assert outlines.given(plan, bot, bot.answer) is None
    outlines.used, outlines._modules = frozenset(("answer",)), len(sys.modules)
    outlines.refresh()
    assert outlines.given(plan, bot, bot.answer) == "answer"


def test_the_names_in_use_are_those_of_the_program(monkeypatch):
    monkeypatch.setattr(outline_module, "program_modules", lambda: ["none_such", __name__, "json"])
    outlines = Outlines()
    outlines.refresh()
    assert "given" in outlines.used
    assert "JSONDecoder" not in outlines.used  # a library's code is not asked
    monkeypatch.setattr(outline_module, "MAX_USED", 3)
    assert len(outline_module._names_in_use()) == 3
