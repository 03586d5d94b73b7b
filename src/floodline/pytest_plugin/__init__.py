"""Soak tests in pytest: `@pytest.mark.soak(rounds=200)` and the fixture `soak`.

pytest imports this module in every run, so everything else is imported by the first soak test.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from floodline.errors import ConfigError

if TYPE_CHECKING:
    from floodline.pytest_plugin._soaks import Soaks

__all__ = ["SoakWarning"]

UNDECIDED = ("warn", "fail", "skip")
MARK = (
    "soak(rounds=200, warmup=None, allow=()): run the test this many times, with its fixtures set "
    "up once, and fail if something grows; `allow` names owners that may"
)


class SoakWarning(pytest.PytestWarning):
    """A soak that could not decide; its text says what else is needed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--soak-rounds` and the setting `soak_undecided`."""
    group = parser.getgroup("floodline")
    group.addoption(
        "--soak-rounds",
        type=int,
        metavar="N",
        help="run every soak for N rounds, whatever its test says; the warm-up scales with N",
    )
    parser.addini(
        "soak_undecided",
        "what an undecided soak does: warn, fail or skip",
        default="warn",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and refuse invalid options."""
    config.addinivalue_line("markers", MARK)
    chosen = config.getini("soak_undecided")
    if chosen not in UNDECIDED:
        raise pytest.UsageError(
            f"soak_undecided={chosen!r} is unknown; choose one of {', '.join(UNDECIDED)}"
        )
    rounds = config.getoption("soak_rounds")
    if rounds is not None and rounds < 1:
        raise pytest.UsageError(f"--soak-rounds {rounds} must be at least 1")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Replace a marked test with a loop, for whichever plugin calls it."""
    mark = item.get_closest_marker("soak")
    if mark is None:
        return (yield)
    if mark.args:
        raise ConfigError(f"soak{mark.args!r}: name the argument, as in soak(rounds=200)")
    unknown = ", ".join(mark.kwargs.keys() - {"rounds", "warmup", "allow"})
    if unknown:
        raise ConfigError(f"soak({unknown}=…) is unknown; it accepts rounds, warmup and allow")
    if not isinstance(item, pytest.Function):
        raise ConfigError("the mark soak is for test functions only; use the fixture soak here")
    from floodline.pytest_plugin._soaks import Soaks, in_place_of

    soaks = Soaks(item)
    with in_place_of(item, soaks, mark.kwargs):
        result = yield
    if not soaks.begun:
        raise ConfigError(f"{item.nodeid} is called in a way that the mark soak cannot loop")
    return result


@pytest.fixture
def soak(request: pytest.FixtureRequest) -> Soaks:
    """Soak a block: `for _ in soak.rounds(200)`, `soak(function)`, `await soak.run(function)`."""
    from floodline.pytest_plugin._soaks import Soaks

    return Soaks(request.node)
