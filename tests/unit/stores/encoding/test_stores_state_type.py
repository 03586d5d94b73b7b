from __future__ import annotations

import functools
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import pytest

from floodline.stores import infer_state_type

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]  # never resolvable, on purpose

T = TypeVar("T")


@dataclass
class Plan:
    title: str = ""

    @classmethod
    def make(cls) -> Plan:
        return cls()


class Typed(TypedDict):
    a: int


def annotated() -> Plan:
    return Plan()


def with_id(id: str) -> dict[str, int]:
    return {}


async def coroutine() -> Plan:
    return Plan()


def awaitable() -> Awaitable[Plan]:
    return coroutine()


def coroutine_type() -> Coroutine[Any, Any, Plan]:
    return coroutine()


def bare():  # type: ignore[no-untyped-def]  # what users write
    return {}


def unresolvable() -> Missing:
    return None


def anything() -> Any:
    return None


def nothing() -> None:
    return None


def generic() -> T:  # type: ignore[type-var]  # says nothing about the type
    raise NotImplementedError


class Maker:
    def __call__(self) -> Plan:
        return Plan()


@functools.wraps(annotated)
def wrapped(*args: Any) -> Any:
    return annotated()


@pytest.mark.parametrize(
    ("factory", "kind"),
    [
        (None, None),
        (dict, None),
        (list, None),
        (Plan, Plan),
        (Typed, Typed),
        (set, set),
        (annotated, Plan),
        (with_id, dict[str, int]),
        (coroutine, Plan),
        (awaitable, Plan),
        (coroutine_type, Plan),
        (Plan.make, Plan),
        (Maker(), Plan),
        (wrapped, Plan),
        (functools.partial(Plan, "x"), Plan),
        (functools.partial(with_id, "x"), dict[str, int]),
        (bare, None),
        (unresolvable, None),
        (anything, None),
        (nothing, None),
        (generic, None),
        (lambda: Plan(), None),
        (len, None),
    ],
)
def test_the_state_type_is_that_of_the_factory(factory: Any, kind: Any) -> None:
    assert infer_state_type(factory) == kind
