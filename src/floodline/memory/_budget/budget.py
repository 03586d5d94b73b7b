"""A line that the process's memory must not cross, and what happens when it does."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

from floodline import telemetry
from floodline._clock import Clock, forward, sweeper
from floodline._interruptible_lock import Guard
from floodline._units import Duration, Size, format_size, parse_choice, parse_count, parse_duration
from floodline.bounded._arguments import callable_or_none
from floodline.bounded._registry import name_of
from floodline.errors import ConfigError
from floodline.memory._budget.shedding import Holders
from floodline.memory._budget.thresholds import Ground, Line, parse_line
from floodline.memory._collector import GCController
from floodline.memory._measuring.probes import Probe
from floodline.telemetry import Stats

Action = Literal["shed", "alert"]
Alarm = Literal["warn", "critical"]
Level = Literal["ok", "warn", "critical", "pressure"]
EventKind = Literal["warn", "critical", "pressure", "relieved", "exhausted"]
BACK = 15 / 16  # the target below a limit, if none is given: 75% for 80%
MOST_ROUNDS = 12  # per check, each with a full collection; the next check continues
MOST_ITEMS = 4096  # per round; slices may double while they are not enough


@dataclass(slots=True, frozen=True)
class BudgetEvent:
    """What `on_event` gets; sizes are bytes.

    `kind` is `warn`, `critical`, `pressure` (the line was crossed), `relieved` (back at the target)
    or `exhausted` (nothing more can be shed, and it is still too much).
    """

    kind: EventKind
    budget: str
    used: int
    limit: int
    target: int
    shed: int


@dataclass(slots=True, frozen=True)
class Check:
    """What one check found and did; `used` is after shedding."""

    used: int
    limit: int
    target: int
    level: Level
    shed: int
    rounds: int
    exhausted: bool


@dataclass(slots=True, frozen=True, kw_only=True)
class BudgetStats(Stats):
    """`items` are attached holders, `bytes` the last memory reading, `max_bytes` the line."""

    target: int
    level: Level
    action: Action
    checks: int
    episodes: int
    rounds: int
    shed: int
    exhausted: int
    errors: int
    collections: int
    reclaimed: int
    pause: float


class MemoryBudget:
    """Has holders shed when memory passes `limit`, until it is back at `target`.

    `Sessions(pressure=budget)` and bounded containers attach themselves; each budget sheds only
    its own holders, least recently used first, in slices of at most `step` items, doubling each
    round, and no more than seems needed; then it collects, trims and measures again. It stops at
    the target, or when nothing more can be shed, and says which.
    `limit`, `target`, `warn` and `critical` are sizes, or shares of the cgroup's limit, else of the
    machine's memory. With `action="alert"` it only reports. Events of one kind are reported at most
    once per `cooldown`. It checks every `every` seconds once a holder is attached or `on_event` is
    given; otherwise call `check()`.
    """

    def __init__(
        self,
        limit: Size = "80%",
        *,
        target: Size | None = None,
        warn: Size | None = None,
        critical: Size | None = None,
        action: Action = "shed",
        every: Duration | None = "1 s",
        cooldown: Duration = "60 s",
        step: int = 64,
        on_event: Callable[[BudgetEvent], object] | None = None,
        probe: Probe | None = None,
        total: Probe | None = None,
        name: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        for what, part in {"probe": probe, "total": total, "clock": clock}.items():
            callable_or_none(part, what)
        self.name = name_of("budget", name)
        self._limit = parse_line(limit, "limit")
        self._target = self._limit.scaled(BACK) if target is None else parse_line(target, "target")
        alarms: dict[Alarm, Size | None] = {"critical": critical, "warn": warn}
        self._alarms = {
            kind: parse_line(line, kind) for kind, line in alarms.items() if line is not None
        }
        self._action = parse_choice(action, "action", get_args(Action))
        self._every = None if every is None else parse_duration(every, "every")
        self._cooldown = parse_duration(cooldown, "cooldown", zero=True)
        self._step = parse_count(step, "step")
        callable_or_none(on_event, "on_event")
        self._on_event = on_event
        lines: list[Line] = [self._limit, self._target, *self._alarms.values()]
        self._ground = Ground(any(line.share for line in lines), probe, total)
        self._clock = forward(clock)
        self._holders = Holders()
        self._guard = Guard()
        self._start()
        self._collector = GCController(trim=True, probe=self._ground.used, name=f"{self.name}.gc")
        self._last = self._first_look()
        telemetry.register(self)
        if on_event is not None:
            self._want_tick()

    def _start(self) -> None:
        self._checking = self._pressed = self._ticking = self._is_exhausted = False
        self._said: dict[str, float] = {}
        self._checks = self._episodes = self._rounds = self._shed = 0
        self._exhausted = self._errors = self._hook_errors = 0

    def _first_look(self) -> Check:
        used, total = self._ground.measure()
        limit, target = self._limit.at(total), self._target.at(total)
        if not 0 < target < limit:
            raise ConfigError(
                f"target={format_size(target)} must be below limit={format_size(limit)}; "
                "give a lower target"
            )
        return Check(used, limit, target, "ok", 0, 0, False)

    # ---- holders

    def attach(self, holder: object) -> None:
        """Ask this holder too when memory is short; it keeps the budget alive, not vice versa."""
        self._holders.add(holder, self)
        self._want_tick()

    def _holder_gone(self, key: int) -> None:
        self._holders.forget(key)

    # ---- checking

    def check(self) -> Check:
        """Measure now and act; while another thread does so, return the last result.

        On the thread of an event loop with `AsyncSessions` attached, it raises `WouldBlockLoop` if
        it would have to wait for that loop: `await acheck()` there.
        """
        claimed: list[bool] = []
        if not self._guard.is_guest():  # otherwise this thread is about to claim it
            self._guard.run(partial(self._claim, claimed))
        if claimed != [True]:
            return self._last
        try:
            self._last = self._look()
        finally:
            self._checking = False
        return self._last

    async def acheck(self) -> Check:
        """Check in a thread, for coroutines."""
        import asyncio

        return await asyncio.to_thread(self.check)

    def _claim(self, claimed: list[bool]) -> None:
        claimed.append(not self._checking)
        self._checking = True

    def _look(self) -> Check:
        used, total = self._ground.measure()
        limit = self._limit.at(total)
        target = min(self._target.at(total), limit)
        self._checks += 1
        passed = (kind for kind, line in self._alarms.items() if used > line.at(total))
        alarm: Alarm | None = next(passed, None)
        level: Level = alarm or "ok"
        if alarm is not None:
            self._say(alarm, used, limit, target, 0)
        if used > limit:
            level = "critical" if level == "critical" else "pressure"
            if not self._pressed:
                self._say("pressure", used, limit, target, 0)
                self._episodes += self._action == "shed"
        if self._action == "alert":
            return Check(used, limit, target, level, 0, 0, False)
        if not self._pressed and used <= limit:
            self._is_exhausted = False
            return Check(used, limit, target, level, 0, 0, False)
        self._pressed = True
        return self._relieve(Check(used, limit, target, level, 0, 0, False))

    def _relieve(self, found: Check) -> Check:
        """Shed in rounds, to the target, until nothing more can go, or until the next check."""
        used, limit, target = found.used, found.limit, found.target
        shed = rounds = 0
        exhausted = False
        most = ask = min(self._step, _needed(used - target, self._holders.held(), used))
        while used > target and rounds < MOST_ROUNDS:
            went = self._holders.shed(ask, self.name)
            self._errors += went.errors
            if went.items == 0 and not went.sure:
                break  # a holder is still shedding
            rounds += 1
            shed += went.items
            exhausted = went.items == 0
            if went.items or self._may_collect():
                self._said["collected"] = self._clock()
                self._collector.collect()
            before, used = used, self._ground.used()
            if exhausted:
                break
            most = min(2 * most, MOST_ITEMS)
            ask = min(most, _needed(used - target, went.items, before - used))
        exhausted = exhausted and used > target
        self._rounds += rounds
        self._shed += shed
        self._pressed = used > target and not exhausted
        if exhausted:
            self._exhausted += not self._is_exhausted
            self._say("exhausted", used, limit, target, shed)
        elif not self._pressed:
            self._say("relieved", used, limit, target, shed)
        self._is_exhausted = exhausted
        return Check(used, limit, target, found.level, shed, rounds, exhausted)

    def _may_collect(self) -> bool:
        """Return True if a collection is due; with nothing shed, not at every check."""
        last = self._said.get("collected")
        return last is None or self._clock() - last >= self._cooldown

    # ---- reporting

    def _say(self, kind: EventKind, used: int, limit: int, target: int, shed: int) -> None:
        now, last = self._clock(), self._said.get(kind)
        if last is not None and now - last < self._cooldown:
            return
        self._said[kind] = now
        telemetry.emit(
            f"memory_{kind}",
            self.name,
            used=format_size(used),
            limit=format_size(limit),
            target=format_size(target),
            shed=shed,
        )
        if self._on_event is None:
            return
        try:
            self._on_event(BudgetEvent(kind, self.name, used, limit, target, shed))
        except Exception as error:
            self._hook_errors += 1
            telemetry.emit("hook_error", self.name, error=telemetry.describe(error))

    def stats(self) -> BudgetStats:
        """Return the figures of the last check and the totals over all of them."""
        last, gc = self._last, self._collector.stats()
        return BudgetStats(
            kind="budget",
            name=self.name,
            items=len(self._holders),
            bytes=last.used,
            max_bytes=last.limit,
            hook_errors=self._hook_errors,
            target=last.target,
            level=last.level,
            action=self._action,
            checks=self._checks,
            episodes=self._episodes,
            rounds=self._rounds,
            shed=self._shed,
            exhausted=self._exhausted,
            errors=self._errors,
            collections=gc.collections,
            reclaimed=gc.reclaimed,
            pause=gc.pause,
        )

    def __repr__(self) -> str:
        return f"<MemoryBudget {self.name!r}: {format_size(self._last.limit)}>"

    # ---- ticking

    def _want_tick(self) -> None:
        if self._every is not None and not self._ticking:
            self._ticking = sweeper.want(self._tick, self._every)

    def _tick(self) -> float | None:
        self._ticking = False
        if not self._holders and self._on_event is None:
            return None
        self._ticking = True
        try:
            self.check()
        except Exception as error:  # from a probe; the next check may succeed, and is due as usual
            self._hook_errors += 1
            telemetry.emit("hook_error", self.name, error=telemetry.describe(error))
        return min(self._every or 1.0, 0.05) if self._pressed else self._every

    def _after_fork(self) -> None:
        self._guard.reset()
        self._start()


def _needed(excess: int, items: int, size: int) -> int:
    """Return how many items hold `excess` bytes if `items` hold `size`; at least one."""
    return max(1, -(-excess * items // size)) if size > 0 else MOST_ITEMS


def _go_on_in_child() -> None:
    """Restart the ticks in a forked worker: nothing calls a budget there that would do it."""
    for budget in telemetry.holders():
        if isinstance(budget, MemoryBudget) and (budget._holders or budget._on_event):
            budget._want_tick()


if hasattr(os, "register_at_fork"):
    # after `_clock`, which is imported above, has created the child's ticker
    os.register_at_fork(after_in_child=_go_on_in_child)
