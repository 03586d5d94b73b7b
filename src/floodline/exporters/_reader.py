"""Reading all holders at once, summed by kind and name, with counters that never go back.

A sum of counters falls when one of its holders is collected, which Prometheus takes for a restart
and adds again. So the last known counts of holders that are gone stay in the sum. What a holder
counted between its last reading and its end is lost; a false peak would be worse.
"""

from __future__ import annotations

import operator
import os
import re
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from floodline import telemetry
from floodline.exporters._metrics import GROUP, HOLDERS, METRICS, STATS_ERRORS, Metric
from floodline.telemetry import Holder, Reason

MAX_NAMES = 200
UNNAMED, OTHER = "unnamed", "other"

Group = tuple[str, str]
Series = tuple[str, str]  # the stem of a metric, and the value of its last label
Reading = dict[str, list[tuple[tuple[str, ...], float]]]

_REASONS = frozenset(map(str, Reason))
_NUMBERED = re.compile(r"(map|log|batch|budget|gc|tracker)-\d+(\..*)?")
_OF_THE_PROCESS = frozenset({"budget", "gc", "tracker"})  # they report the same memory


@dataclass(slots=True)
class _Figures:
    """What one holder reported."""

    group: Group
    gauges: dict[str, float | None] = field(default_factory=dict)
    counters: dict[Series, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Seen:
    """What is kept about a holder; zeros are left out, since there may be many holders."""

    holder: weakref.ref[Holder]
    group: Group
    counters: dict[Series, float] = field(default_factory=dict)


class Reader:
    """Reads the registry; each exporter has its own reader, whose state is bounded.

    It grows with the number of live holders and with `MAX_NAMES`. Holders without a name of their
    own are summed under `unnamed`, those beyond that many names under `other`. A sum is left out if
    one part is unknown or unlimited. Of figures for the whole process, the largest is reported.
    """

    def __init__(self) -> None:
        self._start_empty()

    def _start_empty(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._seen: dict[int, _Seen] = {}
        self._names: set[Group] = set()
        self._gone: dict[Group, Counter[Series]] = {}
        self._errors = 0

    def read(self) -> Reading:
        """Return the samples of each metric, by its stem: label values and number."""
        if self._pid != os.getpid():  # a fork, perhaps in the middle of a reading
            self._start_empty()
        told = [(holder, _ask(holder)) for holder in telemetry.holders()]
        with self._lock:
            return self._merge(told)

    def _merge(self, told: list[tuple[Holder, _Figures | None]]) -> Reading:
        gauges: dict[Group, dict[str, float | None]] = {}
        known: dict[Group, set[Series]] = {}
        for holder, figures in told:
            if figures is None:
                self._errors += 1
                continue
            seen = self._note(holder, figures)
            known.setdefault(seen.group, set()).update(figures.counters)
            join = max if seen.group[0] in _OF_THE_PROCESS else operator.add
            _add(gauges.setdefault(seen.group, {}), figures.gauges, join)
        self._bury({id(holder) for holder, _ in told})
        return self._samples(gauges, self._totals(known))

    def _note(self, holder: Holder, figures: _Figures) -> _Seen:
        seen = self._seen.get(id(holder))
        if seen is None or seen.holder() is not holder:
            if seen is not None:  # a new holder lives where an old one did
                self._bury_one(id(holder))
            seen = _Seen(weakref.ref(holder), self._group(figures.group))
            self._seen[id(holder)] = seen
        for series, value in figures.counters.items():
            if value > seen.counters.get(series, 0):  # two readings may overtake each other
                seen.counters[series] = value
        return seen

    def _group(self, group: Group) -> Group:
        kind, name = group
        if _NUMBERED.fullmatch(name):
            group = (kind, UNNAMED)
        if group not in self._names:
            if len(self._names) >= MAX_NAMES:
                return kind, OTHER
            self._names.add(group)
        return group

    def _bury(self, alive: set[int]) -> None:
        for key in self._seen.keys() - alive:
            self._bury_one(key)

    def _bury_one(self, key: int) -> None:
        seen = self._seen.pop(key)
        self._gone.setdefault(seen.group, Counter()).update(seen.counters)

    def _totals(self, known: dict[Group, set[Series]]) -> dict[Group, Counter[Series]]:
        totals = {group: Counter(counts) for group, counts in self._gone.items()}
        for seen in self._seen.values():
            totals.setdefault(seen.group, Counter()).update(seen.counters)
        for group, series in known.items():
            totals[group].update(dict.fromkeys(series, 0))
        return totals

    def _samples(
        self, gauges: dict[Group, dict[str, float | None]], totals: dict[Group, Counter[Series]]
    ) -> Reading:
        reading: Reading = {metric.stem: [] for metric in METRICS}
        for group, figures in gauges.items():
            for stem, value in figures.items():
                if value is not None:
                    reading[stem].append((group, value))
        for group, counts in totals.items():
            for (stem, label), total in counts.items():
                reading[stem].append(((*group, label) if label else group, total))
        reading[STATS_ERRORS.stem].append(((), self._errors))
        return reading


def _ask(holder: Holder) -> _Figures | None:
    """Return what a holder reports, or None: its code, or its own record type, may be broken."""
    try:
        return _figures(holder.stats())
    except Exception:
        return None


def _figures(stats: Any) -> _Figures:
    figures = _Figures((str(stats.kind), str(stats.name)))
    record: Any = type(stats)
    for metric in _metrics_of(record, figures.group[0]):
        _take(figures, metric, getattr(stats, metric.field))
    return figures


@lru_cache(maxsize=64)  # called for each holder at each reading; there are few kinds
def _metrics_of(record: Any, kind: str) -> tuple[Metric, ...]:
    known = {each.name for each in fields(record)}
    return tuple(m for m in METRICS if m.of in ("", kind) and m.field in known)


def _take(figures: _Figures, metric: Metric, value: Any) -> None:
    if metric.labels != GROUP:
        for label, number in value.items():
            # the words of a reason are ours; anything else in there may be an id
            series = (metric.stem, str(label) if label in _REASONS else OTHER)
            figures.counters[series] = figures.counters.get(series, 0) + float(number)
    elif metric.type == "counter":
        figures.counters[metric.stem, ""] = float(value)
    else:
        figures.gauges[metric.stem] = None if value is None else float(value)


def _add(
    sums: dict[str, float | None],
    more: dict[str, float | None],
    join: Callable[[float, float], float],
) -> None:
    sums[HOLDERS.stem] = (sums.get(HOLDERS.stem) or 0) + 1
    for stem, value in more.items():
        if stem in sums:
            present = sums[stem]
            value = None if present is None or value is None else join(present, value)
        sums[stem] = value
