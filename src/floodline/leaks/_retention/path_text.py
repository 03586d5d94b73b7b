"""Writes the path from a root down to an object, with names that a developer can search for."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from itertools import islice
from typing import Any

from floodline.leaks._heap.owner_names import defining_class
from floodline.leaks._heap.slots import shorten
from floodline.leaks._objects.anatomy import Anatomy, label_of, names_of_module
from floodline.leaks._objects.frames import code_label, frame_of, read_locals

MAX_LOOKED_AT = 10_000


class Route:
    """`path` from the root to the object, `owner` the last name on it, `notes` on guesses.

    `chain` starts with the root's object; each object in it holds the next. `is_module` means that
    the first is the dict of a module, whose keys are names.
    """

    def __init__(self, root: str, chain: list[Any], *, is_module: bool = False) -> None:
        self._text = self._owner = root
        self.notes: list[str] = []
        at = self._attribute(root, chain[0], chain[1]) if is_module else 0
        while at < len(chain) - 1:
            at += self._step(chain, at)
        self.path, self.owner = shorten(self._text), shorten(self._owner)

    def _step(self, chain: list[Any], at: int) -> int:
        """Write one step; return how many objects it covers."""
        holder = chain[at]
        plan = Anatomy(type(holder))
        if plan.kind == "function":
            return self._function(chain, at)
        if plan.kind in ("suspended", "frame"):
            return self._frame(holder, chain[at + 1])
        if plan.kind == "cache" and type(chain[at + 1]) is dict and at + 2 < len(chain):
            self._text += "[*]"
            return 2
        if plan.local and [type(o) for o in chain[at + 1 : at + 3]] == [dict, dict]:
            if at + 3 < len(chain):
                self._attribute(self._owner, chain[at + 2], chain[at + 3])
            return 3
        names = _namespace(holder, plan)
        if names is chain[at + 1] and at + 2 < len(chain):
            self._attribute(_anchor(holder, plan), names, chain[at + 2])
            return 2
        return self._direct(holder, chain[at + 1], plan, names)

    def _attribute(self, anchor: Any, names: Any, child: Any) -> int:
        name = self._name_in(names, child)
        self._text += f".{name}"
        home = anchor if type(anchor) is str else defining_class(anchor, name)
        self._owner = f"{home}.{name}"
        return 1

    def _direct(self, holder: Any, child: Any, plan: Anatomy, names: Any) -> int:
        for name, get in plan.slots:
            if _slot_holds(get, holder, child):
                self._text += f".{name}"
                self._owner = f"{defining_class(type(holder), name)}.{name}"
                return 1
        if names is not None and self._name_in(names, child) != "?":
            return self._attribute(_anchor(holder, plan), names, child)
        if plan.base is dict:
            self._text += "[*]" if self._among(dict.values(holder), child) else "[keys]"
        elif plan.kind in ("container", "cache"):
            self._text += "[*]"
        else:
            self._text += "→" + label_of(type(child)).rpartition(".")[2]
        return 1

    def _function(self, chain: list[Any], at: int) -> int:
        function, rest = chain[at], chain[at + 1 :]
        code = function.__code__
        label = code_label(code, function.__globals__)
        if rest[0] is function.__closure__ and len(rest) > 1:
            cells = zip(code.co_freevars, rest[0], strict=False)
            name = next((name for name, cell in cells if cell is rest[1]), "?")
            self._restart(f"{label}{{{name}}}")
            return min(3, len(rest))
        if rest[0] is function.__defaults__ and len(rest) > 1:
            taken = code.co_varnames[: code.co_argcount][-len(rest[0]) :]
            pairs = zip(taken, rest[0], strict=False)
            name = next((name for name, value in pairs if value is rest[1]), "?")
            self._restart(f"{label}({name}=)")
            return 2
        if type(rest[0]) is dict and len(rest) > 1:
            name = self._name_in(rest[0], rest[1])
            written = f"({name}=)" if rest[0] is function.__kwdefaults__ else f".{name}"
            self._restart(label + written)
            return 2
        self._restart(f"{label}→{label_of(type(rest[0])).rpartition('.')[2]}")
        return 1

    def _frame(self, holder: Any, child: Any) -> int:
        frame = frame_of(holder)
        if frame is None:  # it has ended in the meantime
            self._text += "→" + label_of(type(child)).rpartition(".")[2]
            return 1
        label = code_label(frame.f_code, frame.f_globals)
        held = read_locals(frame).items()
        name = next((name for name, value in held if value is child), "")
        self._restart(f"{label}(){name}")
        return 1

    def _restart(self, label: str) -> None:
        """Continue with the name of a function, which is what source code shows."""
        self._text = f"{self._text} → {label}"
        self._owner = label

    def _name_in(self, names: Any, child: Any) -> str:
        for name, value in self._some(dict.items(names)):
            if value is child and type(name) is str:
                return name
        return "?"

    def _among(self, items: Any, child: Any) -> bool:
        known = any(one is child for one in self._some(items))
        return known or len(items) > MAX_LOOKED_AT

    def _some(self, items: Any) -> Iterable[Any]:
        """Return a copy of the first items, which other threads cannot change."""
        if len(items) > MAX_LOOKED_AT:
            self.notes.append(f"only {MAX_LOOKED_AT:,} of {len(items):,} items were searched")
        for _ in range(3):
            try:
                return list(islice(items, MAX_LOOKED_AT))
            except RuntimeError:  # another thread changed it meanwhile
                continue
        return ()


def _anchor(holder: Any, plan: Anatomy) -> Any:
    """Return the module's name, or the class that may define an attribute."""
    if plan.kind == "module":
        name = dict.get(names_of_module(holder), "__name__")
        return name if type(name) is str else "?"
    return label_of(holder) if plan.kind == "type" else type(holder)


def _namespace(holder: Any, plan: Anatomy) -> Any:
    if plan.kind == "module":
        return names_of_module(holder)
    if plan.kind == "type":
        # the proxy shows the same dict that the collector reports as the holder
        return next((o for o in gc.get_referents(holder) if type(o) is dict), None)
    return plan.dict_of(holder) if plan.dict_of and not plan.local else None


def _slot_holds(get: Any, holder: Any, child: Any) -> bool:
    try:
        return get(holder) is child
    except AttributeError:  # never assigned
        return False
