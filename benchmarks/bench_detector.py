"""Is the detector's own memory flat? Resident memory over a long soak, and over hours of watching.

    python benchmarks/bench_detector.py [--quick] [--rounds 10000] [--hours 0.5]

The soak runs a program that does not grow. The watch runs on simulated time, on all modules of
this process; what the program does meanwhile is the same.
"""

from __future__ import annotations

import argparse
import sys
from array import array

from floodline import soak
from floodline.leaks import Live
from floodline.memory import rss

MOST = 4 << 20  # bytes from the first quarter on; the judging at the end takes some
POINTS = 20


class Program:
    def __init__(self):
        self.recent, self.saw = {}, []

    def round(self, i):
        self.recent[i % 50] = [i]
        self.saw.append([i])
        if len(self.saw) > 100:
            self.saw.clear()


PROGRAM = Program()


def in_soak(rounds):
    points = array("q", [0] * POINTS)

    def progress(done, total, _):
        points[done * POINTS // total] = rss()

    answer = soak.run(PROGRAM.round, rounds=rounds, progress=progress)
    return f"soak of {rounds:,} rounds: {answer.verdict}", points


def in_watch(hours):
    points = array("q", [0] * POINTS)
    now = [0.0]
    live = Live(clock=lambda: now[0])
    end = hours * 3600
    while now[0] < end:
        points[int(now[0] * POINTS / end)] = rss()
        PROGRAM.round(int(now[0]))
        now[0] += max(live.step(), 0.001)
    answer = live.answer()
    told = f"{hours:g} h of watching, {answer.walks} walks: {answer.verdict}"
    return told, points


def show(told, points):
    grown = points[-1] - points[POINTS // 4]
    kept = grown <= MOST
    shown = " ".join(f"{point / 2**20:.1f}" for point in points)
    print(f"{told}\n  MiB: {shown}\n  {'ok ' if kept else 'NOT'} flat: {grown / 1024:+,.0f} KiB")
    return kept


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=10_000)
    options.add_argument("--hours", type=float, default=0.5)
    options.add_argument("--quick", action="store_true", help="1,000 rounds, 6 minutes")
    chosen = options.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.hours = 1_000, 0.1
    kept = show(*in_soak(chosen.rounds))
    return 0 if show(*in_watch(chosen.hours)) and kept else 1


if __name__ == "__main__":
    sys.exit(main())
