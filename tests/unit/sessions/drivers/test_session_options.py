"""What type checkers are told of the arguments is what the constructors take."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from floodline import AsyncSessions, Sessions
from floodline.sessions._drivers.options import Options
from floodline.sessions._drivers.sessions_base import SessionsBase


@pytest.mark.parametrize("kind", [Sessions, AsyncSessions])
def test_the_options_are_the_arguments_in_their_order(kind: Any) -> None:
    arguments = list(inspect.signature(kind).parameters)
    assert arguments == ["factory", *Options.__annotations__]


def test_the_options_have_the_types_of_the_arguments() -> None:
    taken = dict(SessionsBase.__init__.__annotations__)
    told = {name: str(form.__forward_arg__) for name, form in Options.__annotations__.items()}
    assert told == {name: taken[name] for name in told}
    assert Options.__required_keys__ == frozenset()
