"""The calls that mocks record, reset after each round."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

_COUNTS: dict[str, Any] = {"call_count": 0, "called": False, "call_args": None, "await_count": 0}
_COUNTS |= {"await_args": None}


class Mocks:
    """Call lists of mocks: those that exist at first, and those that appear later."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], dict[str, Any]]] = {}
        self._rounds = 0
        self._find(fresh=False)

    def put_back(self) -> None:
        self._rounds += 1
        if self._rounds & (self._rounds - 1) == 0:  # looks at every object, less and less often
            self._find(fresh=True)
        todo = [one for ref, _ in self._known.values() if (one := ref()) is not None]
        seen = set(map(id, todo))
        while todo:
            mock = todo.pop()
            ref, before = self._known.get(id(mock), (None, {}))
            _restore(mock, before if ref is not None and ref() is mock else {})
            state = vars(mock)
            children = [*state.get("_mock_children", {}).values(), state.get("_mock_return_value")]
            fresh = [one for one in children if _is_mock(one) and id(one) not in seen]
            seen.update(map(id, fresh))
            todo += fresh

    def _find(self, *, fresh: bool) -> None:
        if "unittest.mock" not in sys.modules:
            return
        self._known = {key: pair for key, pair in self._known.items() if pair[0]() is not None}
        for one in filter(_is_mock, gc.get_objects()):
            if id(one) not in self._known:
                self._known[id(one)] = (weakref.ref(one), {} if fresh else _record(one))


def _is_mock(obj: object) -> bool:
    module = sys.modules.get("unittest.mock")
    return module is not None and issubclass(type(obj), module.NonCallableMock)


def _states(mock: Any) -> list[dict[str, Any]]:
    """Return where a mock keeps its calls: an autospecced function keeps them in a function."""
    state = vars(mock)
    delegate = state.get("_mock_delegate")
    return [state] if delegate is None else [state, vars(delegate)]


def _record(mock: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, state in enumerate(_states(mock)):
        for name, value in state.items():
            if _is_calls(value):
                found[f"{number}{name}"] = len(value)
            elif name.removeprefix("_mock_") in _COUNTS:
                found[f"{number}{name}"] = value
    return found


def _restore(mock: Any, before: dict[str, Any]) -> None:
    for number, state in enumerate(_states(mock)):
        for name, value in list(state.items()):
            if _is_calls(value):
                del value[before.get(f"{number}{name}", 0) :]
            elif (plain := name.removeprefix("_mock_")) in _COUNTS:
                state[name] = before.get(f"{number}{name}", _COUNTS[plain])


def _is_calls(value: object) -> bool:
    return type(value) is sys.modules["unittest.mock"]._CallList
