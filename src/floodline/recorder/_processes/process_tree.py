"""The processes around a program: its children, and those it leaves behind when it ends."""

from __future__ import annotations

import os

from floodline.recorder import _proc
from floodline.recorder._probe_site import SITE
from floodline.recorder._processes.fleet import Fleet

LOOK_EVERY = 1.0  # seconds between two looks for child processes
CHILD_AGE = 3.0  # seconds after which a child without a probe is reported
LOOKS = 3  # a process that forks and ends while we look is missed; the next look finds its child


class Family:
    """Finds processes from outside, and tells the fleet about those without a probe.

    After the end of the program, those that carry a probe for `address` remain, even if it has not
    reported yet: a daemon and its workers. A process without a probe is not waited for.
    """

    def __init__(self, fleet: Fleet, address: str) -> None:
        self._fleet, self._address = fleet, address
        self._since: dict[int, float] = {}
        self._looked = 0.0

    def look(self, now: float) -> None:
        """Look for children of the program or of what it left behind."""
        main = self._fleet.main
        if now - self._looked < LOOK_EVERY or main is None:
            return
        if self._fleet.went_on:
            self._take(self._left_behind(main, now), main, now)
        elif main in self._fleet.running:
            self._take(_proc.descendants(main), main, now)
            program = self._fleet.running[main]
            if now - program.started >= CHILD_AGE and program.python is None:
                self._tell(main, os.getpid(), now)
        else:
            return
        self._looked = now

    def _take(self, present: list[int], parent: int, now: float) -> None:
        self._since = {pid: self._since.get(pid, now) for pid in present}
        for pid, since in self._since.items():
            known = self._fleet.running.get(pid)
            if now - since >= CHILD_AGE and (known is None or (known.blind and not known.sample)):
                self._tell(pid, parent, now)

    def _tell(self, pid: int, parent: int, now: float) -> None:
        found = _proc.look(pid, parent, SITE)
        if found is not None:
            self._fleet.seen(found, now)

    # ---- after the end of the program

    def outlives(self, now: float) -> bool:
        """Return True if the ended program has left processes behind."""
        self._fleet.went_on = True
        self._fleet.went_on = bool(self._look_again(now))
        return self._fleet.went_on

    def left(self, now: float) -> list[int]:
        """Return those that remain; if none does, look for others that they left behind."""
        return self.remaining() or self._look_again(now)

    def _look_again(self, now: float) -> list[int]:
        for _ in range(LOOKS):
            self._looked = 0.0
            self.look(now)
            if found := self.remaining():
                return found
        return []

    def remaining(self) -> list[int]:
        """Return those that carry a probe and are still running."""
        running = self._fleet.running.values()
        those = [one for one in running if one.python or one.quiet]
        return [one.pid for one in those if one.pid != self._fleet.main and _proc.alive(one.pid)]

    def _left_behind(self, main: int, now: float) -> list[int]:
        found = dict.fromkeys(_proc.carriers(self._address))
        for pid in [pid for pid in found if pid not in self._fleet.running and pid != main]:
            seen = _proc.look(pid, main, SITE)
            if seen is not None and seen.key == _proc.NoProbe.QUIET:
                self._fleet.seen(seen, now)
        for pid in self.remaining():
            found.update(dict.fromkeys(_proc.descendants(pid)))
        found.pop(main, None)
        return list(found)

    def heads(self) -> list[int]:
        """Return the processes a signal is for: those that remain without their parent."""
        running = self._fleet.running
        parents = {pid: running[pid].parent for pid in self.remaining()}
        return [
            pid
            for pid, parent in parents.items()
            # a pid may be reused by now; some write their title over their environment
            if parent not in parents
            and (running[pid].connected or _proc.carries(pid, self._address))
        ]
