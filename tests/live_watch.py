"""A live watch on simulated time: nothing in it depends on the speed of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from floodline.leaks import Live, LiveAnswer
from floodline.leaks._live import watch as watch_module
from floodline.leaks._live.readings import listed_objects
from floodline.leaks._live.readings import process_sampler as process_module
from floodline.leaks._live.walk.sliced_walk import SlicedWalk

WORK = 0.000_02  # what each question for the processor time costs


class Watched:
    """Drives a program and a watch that knows only its modules; figures of the process are told."""

    def __init__(self, monkeypatch: Any, *modules: Any, **options: Any) -> None:
        self.now = self.spent = 0.0
        self.rounds, self.work = 0, WORK
        self.rss, self.blocks, self.malloc, self.objects = 50 << 20, 10_000, (0, 0, 0), 0
        monkeypatch.setattr(watch_module, "roots", lambda skipped=0, known=None: _begins(modules))
        monkeypatch.setattr(watch_module, "library_roots", lambda skipped=0: iter(()))
        monkeypatch.setattr(process_module, "rss", lambda: self.rss)
        monkeypatch.setattr(process_module, "judged_malloc", lambda: self.malloc)
        told = SimpleNamespace(getallocatedblocks=lambda: self.blocks)
        monkeypatch.setattr(process_module, "sys", told)
        monkeypatch.setattr(process_module, "count", lambda: self.objects)
        self.collecting = True  # all objects, every ten seconds
        monkeypatch.setattr(listed_objects, "full_passes", self._full_passes)
        self.live = Live(clock=lambda: self.now, cpu=self._cpu, **options)

    def _full_passes(self) -> int:
        return int(self.now // 10) if self.collecting else 0

    def _cpu(self) -> float:
        self.spent += self.work
        return self.spent

    def run(
        self, seconds: float, each: Callable[[int], Any] | None = None, rate: float = 2.0
    ) -> LiveAnswer:
        """Let so many seconds pass, with `rate` rounds of the program in each."""
        end = self.now + seconds
        while self.now < end:
            self.now += max(self.live.step(), 0.001)
            while each is not None and self.rounds < self.now * rate:
                each(self.rounds)
                self.rounds += 1
        return self.live.answer()


def _begins(modules: tuple[Any, ...]) -> Iterator[Callable[[SlicedWalk], None]]:
    for one in modules:
        yield lambda walk, one=one: walk.root(one, one.__name__)
