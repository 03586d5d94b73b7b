from __future__ import annotations

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
    bot, history = Bot(), []
    bot.history = history
    outline = Outline(Bot)
    assert outline.given(bot, history, ("name", "answer", "history")) == "history"
    assert outline.names["history"].endswith(".Bot.history")
    assert outline.given(bot, history, ("history",)) is None
    for _ in range(MAX_STRANGERS):
        assert outline.given(bot, object(), ("other",)) is None
    bot.other = []
    assert outline.given(bot, bot.other, ("other",)) is None


def test_the_names_in_use_are_those_of_the_program(monkeypatch):
    monkeypatch.setattr(outline_module, "program_modules", lambda: ["none_such", __name__, "json"])
    outlines = Outlines()
    outlines.refresh()
    assert "given" in outlines.used
    assert "JSONDecoder" not in outlines.used  # a library's code is not asked
    monkeypatch.setattr(outline_module, "MOST_FUNCTIONS", 0)
    assert outline_module._names_in_use() < outlines.used
