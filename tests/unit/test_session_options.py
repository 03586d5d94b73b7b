"""An option of sessions is declared once; whatever repeats it, repeats it exactly."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from floodline import AsyncSessions, Sessions
from floodline._session_options import OPTIONS, SETTINGS, Option
from floodline.errors import ConfigError
from floodline.sessions._drivers.options import Options
from floodline.sessions._drivers.sessions_base import SessionsBase
from floodline.sessions._table.policy import Policy, read_policy
from floodline.settings import KEYS, default
from floodline.stores import MemoryStore

DOCS = Path(__file__).parents[2] / "docs"


def written(option: Option) -> str:
    """The default as a page shows it."""
    value = option.default
    return "none" if value is None else f"`{value!r}`".replace("'", '"')


def table_under(page: str, heading: str) -> list[str]:
    """The rows of the first table after a line, without its head."""
    text = (DOCS / page).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    return table[0].splitlines()[2:] if table else []


@pytest.mark.parametrize("kind", [Sessions, AsyncSessions])
def test_the_constructors_take_the_options_with_their_defaults(kind: Any) -> None:
    factory, *taken = inspect.signature(kind).parameters.values()
    assert factory.name == "factory"
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in taken)
    declared = [(option.name, option.default) for option in OPTIONS.values()]
    assert [(parameter.name, parameter.default) for parameter in taken] == declared


def test_the_signature_marks_exactly_the_defaults_that_a_setting_replaces() -> None:
    taken = inspect.signature(SessionsBase).parameters
    marker = type(default(None))
    assert [name for name in taken if isinstance(taken[name].default, marker)] == list(SETTINGS)


def test_the_signature_and_the_options_for_type_checkers_have_the_declared_types() -> None:
    declared = {option.name: option.type for option in OPTIONS.values()}
    taken = SessionsBase.__init__.__annotations__
    told = {name: str(form.__forward_arg__) for name, form in Options.__annotations__.items()}
    assert {name: taken[name] for name in taken if name not in ("factory", "return")} == declared
    assert list(told.items()) == list(declared.items())
    assert Options.__required_keys__ == frozenset()


def test_every_plain_option_but_the_store_is_part_of_the_policy() -> None:
    assert [field.name for field in fields(Policy)] == [
        "name",
        *(name for name in SETTINGS if name != "store"),
        "stored",
    ]
    defaults = {name: option.default for name, option in OPTIONS.items()}
    assert read_policy(defaults, stored=False, weighed=False) == Policy()


def test_every_option_is_read_by_the_constructor() -> None:
    """[S1]: each is refused with its name, so none is passed over."""
    unread = {"state_type", "close_state"}  # any type, any truth value
    for name in OPTIONS.keys() - unread:
        with pytest.raises(ConfigError, match=rf"^{name}="):
            Sessions(dict, **{name: object()})  # type: ignore[arg-type]


def test_the_settings_are_the_plain_options() -> None:
    assert list(KEYS) == [*SETTINGS, "probe"]


@pytest.mark.parametrize("kind", [Sessions, AsyncSessions])
def test_the_options_that_none_stands_for_something_else_in_are_read_so(kind: Any) -> None:
    absent = dict.fromkeys(
        ("idle", "wait", "busy_wait", "max_hold", "sweep_every", "lease", "linger")
    )
    policy = kind(dict, store=MemoryStore(), **absent)._core.policy
    never = float("inf")
    assert (policy.idle, policy.wait, policy.busy_wait, policy.max_hold) == (never,) * 4
    assert (policy.sweep_every, policy.lease, policy.linger) == (never, 15, 0)


def test_the_page_of_the_settings_has_the_declared_table() -> None:
    rows = [
        f"| `{option.name}` | `FLOODLINE_{option.name.upper()}` | {written(option)} "
        f"| {option.takes} | {option.means} |"
        for option in SETTINGS.values()
    ]
    shown = table_under("settings.md", "## The settings")
    assert [row for row in shown if "`probe`" not in row] == rows


def test_the_page_of_the_sessions_has_the_declared_table() -> None:
    rows = [
        f"| `{option.name}` | {written(option)} | {option.means} |" for option in OPTIONS.values()
    ]
    assert table_under("sessions.md", "## Options") == rows


def test_the_reference_shows_the_declared_signature() -> None:
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    shown = ", ".join(
        f"{option.name}={option.default!r}".replace("'", '"') for option in OPTIONS.values()
    )
    for kind in ("Sessions", "AsyncSessions"):
        assert f"\n### `{kind}(factory=None, *, {shown})`\n" in text
