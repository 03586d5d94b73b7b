"""The test kit: what other projects can say about their sessions, in three frameworks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from floodline import Sessions
from floodline.errors import ConfigError
from floodline.soak import Answer
from floodline.testing import SessionKit, _session_kit
from floodline.testing.robot_keywords import SessionKeywords

behave_steps = pytest.importorskip("floodline.testing.behave_steps")


class Program:
    """Sessions in a dict, without a bound."""

    def __init__(self) -> None:
        self.live: dict[str, int] = {}

    def kit(self) -> SessionKit:
        return SessionKit(
            self.open, work=self.work, close_session=self.live.pop, live=lambda: len(self.live)
        )

    def open(self, session: str) -> None:
        self.live[session] = 0

    def work(self, session: str) -> None:
        self.live[session] += 1


def make_kit() -> SessionKit:
    return Program().kit()


KIT = make_kit()
NO_KIT = object()


def _named(kit: SessionKit) -> str:
    globals()["GIVEN"] = kit
    return f"{__name__}.GIVEN"


def verdict(kind: str, **more: object) -> Answer:
    return Answer(verdict=kind, where=None, rounds=40, warmup=4, **more)  # type: ignore[arg-type]


def test_abandoned_sessions_are_counted_while_they_are_opened():
    kit = make_kit()
    kit.abandon(7)
    kit.check_live(7)
    with pytest.raises(AssertionError, match=r"7 sessions were live at once.*at most 6"):
        kit.check_live(6)


def test_closed_sessions_are_not_live_together():
    kit = make_kit()
    kit.open_and_close(7)
    kit.check_live(1)


def test_sessions_of_floodline_keep_their_bound():
    with Sessions(dict, max_sessions=5) as sessions:

        def open_session(session: str) -> None:
            with sessions.use(session):
                pass

        kit = SessionKit(open_session, live=lambda: len(sessions))
        kit.abandon(50)
        kit.check_live(5)


@pytest.mark.parametrize("own_loop", [True, False])
def test_coroutines_run_on_one_loop(own_loop):
    import asyncio

    loops = set()

    async def note(*_: str) -> int:
        loops.add(asyncio.get_running_loop())
        return len(loops)

    with asyncio.Runner() as runner:
        kit = SessionKit(note, live=note, run=None if own_loop else runner.run)
        kit.abandon(3)
        kit.check_live(1)
        assert (runner.get_loop() in loops) is not own_loop
        kit.close()
        kit.close()


@pytest.mark.parametrize("kind", ["growing", "undecided", "failed", "bounded"])
def test_only_a_bounded_soak_is_flat(kind, monkeypatch):
    kit = make_kit()
    asked = []

    def soak(work, *, rounds):
        work(0)
        asked.append((rounds, kit.opened))
        return verdict("bounded", errors=("no",)) if kind == "failed" else verdict(kind)

    monkeypatch.setattr(_session_kit, "run", soak)
    if kind == "bounded":
        behave_steps.is_flat(SimpleNamespace(floodline=kit), 40)
    else:
        with pytest.raises(AssertionError, match="memory over 40 rounds"):
            SessionKeywords(_named(kit)).memory_does_not_grow(40)
    assert asked == [(40, 5)]


def test_what_the_kit_lacks_is_named():
    kit = SessionKit(str)
    with pytest.raises(ConfigError, match="close_session="):
        kit.open_and_close(1)
    with pytest.raises(ConfigError, match="live="):
        kit.check_live(1)


def test_the_steps_of_behave_need_a_kit_in_the_context():
    with pytest.raises(ConfigError, match=r"environment\.py"):
        behave_steps.abandon(SimpleNamespace(), 1)


@pytest.mark.parametrize("name", ["KIT", "make_kit"])
def test_robot_finds_a_kit_by_its_dotted_name(name):
    keywords = SessionKeywords(f"{__name__}.{name}")
    keywords.open_sessions_and_close_them(3)
    keywords.live_count_stays_at_or_below(1)


@pytest.mark.parametrize("name", ["kit", f"{__name__}.NO_KIT", f"{__name__}.missing"])
def test_a_name_without_a_kit_is_refused(name):
    with pytest.raises(ConfigError, match="is not the dotted name"):
        SessionKeywords(name)
