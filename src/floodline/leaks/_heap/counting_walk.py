"""The walk of a sample: counts exactly what `Walk` counts, in half the time.

A soak spends almost all of its own time here. So the steps that every object takes are written out
in the loops, and an empty container is not queued. What is found below which slot, and in which
order, is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from floodline.leaks._heap.slots import ITEM, KEYS, NOWHERE, Slots
from floodline.leaks._heap.walk import MANY_NAMES, MAX_NAMES, PLAIN, Walk
from floodline.leaks._objects.anatomy import INERT, SIZES, Anatomy, basic_size

Sizer = Callable[[Any], int]
# fixed size, else how to read it; its length; text instead of items; inspected even if empty
Steps = tuple[int, Sizer | None, Sizer | None, bool, bool]
_dict_len = dict.__len__
_NONE: dict[str, dict[str, int]] = {}
_UNKNOWN: Steps = (0, None, None, False, False)
_STR, _LIST, _DICT = frozenset((id(str),)), id(list), id(dict)
_text_size = str.__sizeof__


class CountingWalk(Walk):
    """A walk that captures nothing."""

    def __init__(self, slots: Slots) -> None:
        super().__init__(slots)
        self._steps: dict[int, Steps | None] = dict.fromkeys(INERT)
        self._plain: dict[int, Callable[[Any], Any]] = {}
        self._children: dict[int, dict[str, dict[str, int]]] = {}

    def _steps_of(self, kind: type) -> Steps:
        plan = self._plan(kind)
        if plan.base is None:
            steps = basic_size(kind), None, plan.extra, True, True
        else:
            inspected = bool(plan.dict_of) or (plan.kind == "container" and bool(plan.slots))
            steps = 0, SIZES[plan.base], plan.length, plan.kind == "text", inspected
        if plan.kind != "cache":  # its length is its own business
            self._steps[id(kind)] = steps
            self.seen.add(id(steps))
        simple = plan.kind == "instance" and not (plan.local or plan.hidden or plan.slots)
        if simple and plan.dict_of is not None:
            self._plain[id(kind)] = plan.dict_of
        return steps

    def push(self, obj: Any, slot: int) -> None:
        """Count an object in a slot, once per walk, and inspect it later."""
        self._push_all((obj,), slot)

    def _push_all(self, items: Any, slot: int) -> None:
        seen, known, later = self.seen, self._steps, self.queue.append
        count = length = text = size = 0
        for obj in items:
            kind = type(obj)
            key = id(kind)
            if key in known:
                steps = known[key]
                if steps is None or id(obj) in seen:
                    continue
            elif id(obj) in seen:
                continue
            elif self._plan(kind).kind == "cache":
                super().push(obj, slot)
                continue
            else:
                steps = self._steps_of(kind)
            seen.add(id(obj))
            count += 1
            fixed, sizer, measure, is_text, inspected = steps
            size += fixed if sizer is None else sizer(obj)
            if measure is not None:
                measured = measure(obj)
                if is_text:
                    text += measured
                else:
                    length += measured
                    inspected = inspected or measured > 0
            if inspected:
                later((obj, slot))
        if count:
            if slot >= len(self.count):
                self._widen(slot)
            self.objects += count
            self.count[slot] += count
            self.length[slot] += length
            self.text[slot] += text
            self.bytes[slot] += size

    def run(self) -> None:
        """Inspect everything that was pushed, nearest first."""
        queue, plans, expand, known = self.queue, self._plans, self._expand, self._plain
        while queue:
            obj, slot = queue.popleft()
            dict_of = known.get(id(type(obj)))
            if dict_of is None:
                key = id(type(obj))
                if key == _LIST:
                    self._items(list(obj), slot, ITEM)
                elif key == _DICT:
                    self._items(list(obj.values()), slot, ITEM)
                    self._items(list(obj), slot, KEYS)
                else:
                    plan = plans[key]
                    expand[plan.kind](obj, slot, plan)
            else:  # most objects: an instance with nothing but a dict
                names = dict_of(obj)
                if names is not None:
                    size = _dict_len(names)
                    if size > MANY_NAMES or not self.slots.starred[slot]:
                        self.lengthen(slot, size)
                    self.namespace(names, slot, plans[id(type(obj))].label)

    def _items(self, items: list[Any], slot: int, label: str) -> None:
        if not items:
            return
        kinds = {id(type(items[0]))} if len(items) == 1 else set(map(id, map(type, items)))
        if kinds <= INERT:
            return
        number = self.slots.names.get(label, -1)
        child = self.slots.kids.get(slot << 32 | number, -1) if number >= 0 else -1
        if child < 0:
            child = self.slots.child(slot, "", label)
        if kinds == _STR and child < len(self.count):
            self.objects += len(items)
            self.count[child] += len(items)
            self.text[child] += sum(map(len, items))
            self.bytes[child] += sum(map(_text_size, items))
        elif kinds <= PLAIN:
            self._texts(items, child)
        else:
            self._push_all(items, child)

    def _attributes(self, obj: Any, slot: int, plan: Anatomy) -> None:
        if plan.slots:
            super()._attributes(obj, slot, plan)
            return
        names = plan.dict_of(obj) if plan.dict_of else None
        if names is not None:
            size = _dict_len(names)
            if size > MANY_NAMES or not self.slots.starred[slot]:
                self.lengthen(slot, size)
            self.namespace(names, slot, self._belongs_to(slot, plan))

    def namespace(self, names: Any, slot: int, anchor: str, *, entered: int = NOWHERE) -> None:
        """Count what a dict of attributes holds, each under its name."""
        if entered != NOWHERE or _dict_len(names) > MAX_NAMES:
            super().namespace(names, slot, anchor, entered=entered)
            return
        seen = self.seen
        seen.add(id(names))
        children = self._children.get(slot, _NONE).get(anchor)
        if children is None:
            children = self._children.setdefault(slot, {}).setdefault(anchor, {})
            seen.update((id(children), id(self._children[slot])))
        known, later = self._steps, self.queue.append
        for name, value in list(dict.items(names)):
            key = id(type(value))
            steps = known.get(key, _UNKNOWN)
            if steps is None or id(value) in seen:
                continue
            if type(name) is not str:
                self._named(value, slot, anchor, ".?")
                continue
            child = children.get(name)
            if child is None:
                child = children[name] = self.slots.child(slot, anchor, f".{name}")
            if steps is _UNKNOWN or child >= len(self.count):
                self._push_all((value,), child)
                continue
            seen.add(id(value))
            self.objects += 1
            self.count[child] += 1
            fixed, sizer, measure, is_text, inspected = steps
            self.bytes[child] += fixed if sizer is None else sizer(value)
            if measure is not None:
                measured = measure(value)
                if is_text:
                    self.text[child] += measured
                else:
                    self.length[child] += measured
                    inspected = inspected or measured > 0
            if inspected:
                later((value, child))
