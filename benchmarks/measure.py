"""Measures our code against a peer's: interleaved, best of many repeats, printed as ratios.

The machine may be busy, so each of many short repeats measures both sides, one after the other, and
the best of each counts.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One comparison: seconds per operation, and what the ratio should be."""

    name: str
    ours: float
    peer: float | None
    target: str
    ok: bool

    @property
    def ratio(self) -> float | None:
        return None if not self.peer else self.ours / self.peer


def best(works: Sequence[Work], *, number: int = 1, repeats: int = 200) -> list[float]:
    """Return the best seconds per operation of each work; each call does `number` of them.

    With many short repeats, some run while nothing else wants the CPU.
    """
    times = [float("inf")] * len(works)
    gc.collect()
    gc.disable()
    try:
        for _ in range(repeats):
            for at, work in enumerate(works):
                start = time.perf_counter()
                work()
                times[at] = min(times[at], time.perf_counter() - start)
    finally:
        gc.enable()
    return [seconds / number for seconds in times]


def loop(statement: str, number: int, **names: object) -> Work:
    """Compile `statement` into a loop of `number` rounds, with as little overhead as possible."""
    body = "\n".join("        " + line for line in statement.strip().splitlines())
    arguments = ", ".join(names)
    source = f"def work({arguments}):\n    for _ in range({number}):\n{body}\n"
    space: dict[str, Callable[..., object]] = {}
    exec(compile(source, "<benchmark>", "exec"), space)
    work = space["work"]
    return lambda: work(*names.values())


def at_most(name: str, ours: float, peer: float, limit: float) -> Row:
    """Ours may take at most `limit` times as long as the peer."""
    return Row(name, ours, peer, f"≤ {limit:g}× peer", ours <= limit * peer)


def at_least_faster(name: str, ours: float, peer: float, times: float) -> Row:
    """Ours must be at least `times` times as fast as the peer."""
    return Row(name, ours, peer, f"≥ {times:g}× faster", ours * times <= peer)


def below(name: str, ours: float, limit: float) -> Row:
    """Ours must stay below `limit` seconds."""
    return Row(name, ours, None, f"< {_time(limit)}", ours < limit)


def show(title: str, rows: Sequence[Row]) -> bool:
    """Print the table; return True if every target was met."""
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"\n{title} (Python {version})")
    print(f"{'':44}{'ours':>10}{'peer':>10}{'ours/peer':>11}  {'target':<15}ok")
    for row in rows:
        peer = _time(row.peer) if row.peer else "-"
        ratio = f"{row.ratio:.2f}×" if row.ratio else "-"
        sign = "yes" if row.ok else "NO"
        print(f"{row.name:44}{_time(row.ours):>10}{peer:>10}{ratio:>11}  {row.target:<15}{sign}")
    return all(row.ok for row in rows)


def _time(seconds: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"
