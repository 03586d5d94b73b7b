"""Measures what a soak costs, and whether the detector's own memory stays flat.

    python benchmarks/bench_detector.py [--quick] [--rounds 10000] [--hours 0.5] [--objects 100000]

Resident memory over a long soak of a program that does not grow, and over hours of watching, in
simulated time and on all modules of this process. Then 300 rounds of 10 ms, bare and under soak, of
a program that leaks, so that the answer has a name and a line; on a busy machine the CPU time says
more than the seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from array import array

from floodline import soak
from floodline.leaks import Live
from floodline.memory import rss

MOST = 4 << 20  # bytes from the first quarter on; the verdict at the end takes some
POINTS = 20
MOST_SECONDS = 30.0  # more than the bare run
TIMED, PACE = 300, 0.01


class Program:
    def __init__(self):
        self.recent, self.saw = {}, []

    def round(self, i):
        self.recent[i % 50] = [i]
        self.saw.append([i])
        if len(self.saw) > 100:
            self.saw.clear()


PROGRAM = Program()


LEAK = []


def leak(i):
    until = time.perf_counter() + PACE
    PROGRAM.round(i)
    LEAK.append([i])
    while time.perf_counter() < until:
        pass


def in_time(objects):
    heap = [[n] for n in range(objects)]
    began, used = time.perf_counter(), time.process_time()
    for i in range(TIMED):
        leak(i)
    bare, bare_used = time.perf_counter() - began, time.process_time() - used
    LEAK.clear()
    began, used = time.perf_counter(), time.process_time()
    answer = soak.run(leak, rounds=TIMED)
    more = time.perf_counter() - began - bare
    more_used = time.process_time() - used - bare_used
    LEAK.clear()
    kept = more < MOST_SECONDS
    first = next(iter(answer.suspects), None)
    fed = f"{first.owner} fed at line {first.line}" if first else "nothing named"
    print(
        f"{TIMED} rounds of {PACE * 1000:g} ms next to {len(heap):,} objects: {answer.verdict}\n"
        f"  {fed}\n"
        f"  bare {bare:.1f} s, soak {bare + more:.1f} s\n"
        f"  {'ok ' if kept else 'NOT'} {more:+.1f} s ({more_used:+.1f} s of CPU time)"
    )
    return kept


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
    options.add_argument("--objects", type=int, default=100_000, help="in the timed process")
    options.add_argument("--quick", action="store_true", help="1,000 rounds, 6 minutes")
    chosen = options.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.hours = 1_000, 0.1
    kept = [show(*in_soak(chosen.rounds)), show(*in_watch(chosen.hours)), in_time(chosen.objects)]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
