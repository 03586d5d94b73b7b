"""The exporters: one table, one reading, sums that do not go back, and no id in any label."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from floodline import BoundedMap, Sessions, SessionScope, exporters, telemetry
from floodline.bounded._stats import BatchStats, LogStats, MapStats
from floodline.errors import ConfigError
from floodline.exporters import METRICS, PrometheusCollector, instrument_otel, metrics_text
from floodline.exporters import _reader as reader_module
from floodline.exporters._reader import Reader
from floodline.memory import BudgetStats, GCController, GCStats, MemoryTracker, TrackerStats
from floodline.sessions import ScopeStats, SessionsStats
from floodline.stores import MemoryStore
from floodline.telemetry import Reason, Stats

PAGE = Path(__file__).parents[3] / "docs" / "exporters.md"
TOLD_ELSEWHERE = {
    "budget": {
        *("collections", "reclaimed", "pause"),  # by its own collector
        "level",  # by bytes and the lines
    }
}
SETTINGS = {
    "order",
    "ttl",
    "idle",
    "max_age",
    "max_wait",
    "action",
}  # say what was wanted, not what is


class Holder:
    """A holder that tells whatever it is told to tell."""

    def __init__(self, name="pool", kind="test", **figures):
        self.told = Stats(kind=kind, name=name, **{"items": 1, **figures})
        telemetry.register(self)

    def stats(self):
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


@pytest.fixture(autouse=True)
def only_our_holders(monkeypatch):
    gc.collect()
    monkeypatch.setattr(telemetry, "_holders", {})


def value(reading, stem, *labels):
    found = [number for known, number in reading[stem] if known == labels]
    return found[0] if found else None


# ---- the table


def test_metric_names_are_unique_and_follow_the_conventions():
    names = [metric.prometheus for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch(r"floodline_[a-z]+(_[a-z]+)*", metric.prometheus)
        assert metric.prometheus.endswith("_total") == (metric.type == "counter")
        assert ("bytes" in metric.stem) == (metric.unit == "By")
        assert ("seconds" in metric.stem) == (metric.unit == "s")
        assert metric.help.endswith(".")


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        ("sessions", SessionsStats),
        ("scope", ScopeStats),
        ("map", MapStats),
        ("log", LogStats),
        ("batch", BatchStats),
        ("budget", BudgetStats),
        ("gc", GCStats),
        ("tracker", TrackerStats),
    ],
)
def test_every_figure_of_a_record_is_a_metric(kind, record):
    told = {metric.field for metric in METRICS if metric.of in ("", kind)} | SETTINGS
    told |= TOLD_ELSEWHERE.get(kind, set())
    assert {field.name for field in fields(record)} - told == {"kind", "name"}


def test_every_field_of_the_table_exists():
    records = (
        *(SessionsStats, ScopeStats, MapStats, LogStats, BatchStats),
        *(BudgetStats, GCStats, TrackerStats),
    )
    known = {field.name for record in records for field in fields(record)}
    assert {metric.field for metric in METRICS} - known == {""}


def test_the_documentation_lists_every_metric_as_the_table_has_it():
    rows = [
        f"| `{m.prometheus}` | `{m.otel}` | {m.type} | {m.of or 'all'} "
        f"| {', '.join(m.labels) or 'none'} | {m.help} |"
        for m in METRICS
    ]
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in page if line.startswith("| `floodline_")] == rows


# ---- the reading


def test_two_holders_of_one_kind_and_name_are_summed():
    pair = [
        Holder(items=2, max_items=10, bytes=5, left={"idle": 1}),
        Holder(items=3, max_items=20, bytes=6, left={"idle": 2, "count": 4}),
    ]
    other = Holder("else", items=7)
    reading = Reader().read()
    assert len(pair) == value(reading, "holders", "test", "pool")
    assert value(reading, "items", "test", "pool") == 5
    assert value(reading, "items", "test", "else") == other.told.items
    assert value(reading, "max_items", "test", "pool") == 30
    assert value(reading, "bytes", "test", "pool") == 11
    assert value(reading, "left", "test", "pool", "idle") == 3
    assert value(reading, "left", "test", "pool", "count") == 4


@pytest.mark.parametrize("limits", [(10, None), (None, 10), (None, None)])
def test_a_sum_with_an_unlimited_or_unknown_part_is_not_told(limits):
    kept = [Holder(max_items=limit) for limit in limits]
    reading = Reader().read()
    assert value(reading, "max_items", "test", "pool") is None
    assert value(reading, "items", "test", "pool") == len(kept)


def test_a_counter_that_counted_nothing_is_zero_and_not_absent():
    kept = Holder()
    assert value(Reader().read(), "hook_errors", "test", "pool") == kept.told.hook_errors == 0


def test_a_figure_of_another_kind_of_holder_is_not_taken():
    @dataclass(slots=True, frozen=True, kw_only=True)
    class Odd(Stats):
        hits: int = 5

    kept = Holder()
    kept.told = Odd(kind="odd", name="pool", items=1)
    assert Reader().read()["hits"] == []


def test_a_holder_whose_stats_raises_is_passed_over_and_counted():
    broken, fine = Holder("broken", left={"idle": 3}), Holder("fine", items=4)
    reader = Reader()
    reader.read()
    broken.told = RuntimeError("boom")
    for scrape in (1, 2):
        reading = reader.read()
        assert value(reading, "stats_errors") == scrape
        assert value(reading, "items", "test", "fine") == fine.told.items
        assert value(reading, "items", "test", "broken") is None
        assert value(reading, "left", "test", "broken", "idle") == 3


@pytest.mark.parametrize("wrong", ["many", object(), [1]])
def test_a_record_that_is_no_record_counts_as_an_error(wrong):
    kept = Holder(items=wrong)
    reading = Reader().read()
    assert value(reading, "stats_errors") == 1
    assert value(reading, "holders", "test", kept.told.name) is None


def test_counters_do_not_go_back_when_a_holder_is_collected():
    stays, goes = Holder(left={"idle": 5}), Holder(left={"idle": 10}, hook_errors=1)
    reader = Reader()
    assert value(reader.read(), "left", "test", "pool", "idle") == 15
    del goes
    gc.collect()
    stays.told = Stats(kind="test", name="pool", items=1, left={"idle": 6})
    reading = reader.read()
    assert value(reading, "left", "test", "pool", "idle") == 16
    assert value(reading, "hook_errors", "test", "pool") == 1
    assert value(reading, "holders", "test", "pool") == 1
    assert value(reading, "items", "test", "pool") == 1


def test_the_counts_of_a_name_outlive_all_its_holders_and_go_on():
    reader = Reader()
    for _ in range(3):
        gone = Holder(left={"idle": 10})
        reader.read()
        del gone
        gc.collect()
    reading = reader.read()
    assert value(reading, "left", "test", "pool", "idle") == 30
    assert value(reading, "items", "test", "pool") is None


def test_a_holder_at_the_address_of_a_dead_one_is_another_one():
    reader, old = Reader(), Holder(left={"idle": 10})
    reader.read()
    new = Holder("new", left={"idle": 1})
    reader._seen[id(new)] = reader._seen.pop(id(old))
    del old
    gc.collect()
    reading = reader.read()
    assert value(reading, "left", "test", "pool", "idle") == 10
    assert value(reading, "left", "test", "new", "idle") == 1


def test_a_reading_that_was_overtaken_does_not_take_a_counter_back():
    holder = Holder(left={"idle": 5})
    reader, slow = Reader(), Reader()
    late = [(holder, reader_module._ask(holder))]
    holder.told = Stats(kind="test", name="pool", items=1, left={"idle": 8})
    reader.read()
    assert value(reader._merge(late), "left", "test", "pool", "idle") == 8
    assert value(slow._merge(late), "left", "test", "pool", "idle") == 5


def test_containers_without_a_name_are_summed_under_one():
    maps = [BoundedMap(max_items=3) for _ in range(5)]
    maps[0]["a"] = 1
    reading = Reader().read()
    assert value(reading, "holders", "map", "unnamed") == 5
    assert value(reading, "items", "map", "unnamed") == 1
    assert len(reading["items"]) == 1


def test_of_what_measures_the_whole_process_the_largest_is_told_and_counts_are_summed():
    pair = [Holder("main", "gc", items=1, bytes=size, hook_errors=1) for size in (7, 9, 8)]
    reading = Reader().read()
    assert value(reading, "bytes", "gc", "main") == 9
    assert value(reading, "holders", "gc", "main") == len(pair)
    assert value(reading, "hook_errors", "gc", "main") == 3


def test_what_trackers_and_collectors_own_has_no_name_of_its_own_either():
    kept = [MemoryTracker(), GCController()]
    reading = Reader().read()
    assert len(kept) <= len(reading["items"])
    assert {labels[1] for labels, _ in reading["items"]} == {"unnamed"}
    assert value(reading, "gc_collections", "gc", "unnamed") == 0


def test_the_number_of_names_is_bounded(monkeypatch):
    monkeypatch.setattr(reader_module, "MAX_NAMES", 3)
    reader, kept = Reader(), []
    for number in range(10):
        kept.append(Holder(f"session {number}", left={"idle": 1}))
        reader.read()
    reading = reader.read()
    assert {labels[1] for labels, _ in reading["items"]} == {
        *("session 0", "session 1", "session 2"),
        "other",
    }
    assert value(reading, "items", "test", "other") == 7
    kept.clear()
    gc.collect()
    assert value(reader.read(), "left", "test", "other", "idle") == 7
    assert not reader._seen


def test_a_reason_that_is_none_of_ours_is_not_told_by_its_word():
    kept = Holder(left={"alice": 1, "bob": 2, Reason.age: 3})
    reading = Reader().read()
    assert value(reading, "left", "test", kept.told.name, "other") == 3
    assert value(reading, "left", "test", kept.told.name, "age") == 3
    assert len(reading["left"]) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_counts_anew_even_if_the_fork_fell_into_a_reading():
    reader, kept = Reader(), Holder(left={"idle": 1})
    gone = Holder(left={"idle": 10})
    reader.read()
    del gone
    gc.collect()
    with reader._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(30)  # a child that hangs must not outlive the test
            found = value(reader.read(), "left", "test", "pool", "idle")
            os._exit(0 if found == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert value(reader.read(), "left", "test", kept.told.name, "idle") == 11


# ---- Prometheus


def scraped(text):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_no_label_carries_an_id_whatever_happened_to_the_session(tmp_path):
    ids = [f"customer-{number}" for number in range(20)]
    scope = SessionScope(name="scope")
    locks = scope.map("locks")
    store = MemoryStore()
    with Sessions(dict, store=store, max_sessions=5, scope=scope, name="chats") as sessions:
        for each in ids:
            with sessions.use(each) as state:
                state["id"] = each
                locks[each] = each
        locks["customer-stray"] = 1
        sessions.close(ids[0])
        sessions.park(ids[-1])
        sessions.sweep()
        text = metrics_text()
        found = scraped(text)
    assert "customer" not in text
    assert found["floodline_items", "sessions", "chats"] == 4
    assert found["floodline_parked", "sessions", "chats"] == 15
    assert found["floodline_opened_total", "sessions", "chats"] == 20
    assert found["floodline_left_total", "sessions", "chats", "count"] == 15
    assert found["floodline_left_total", "sessions", "chats", "parked"] == 1
    assert found["floodline_scope_strays", "scope", "scope"] == 1
    labels = {
        name for f in text_string_to_metric_families(text) for s in f.samples for name in s.labels
    }
    assert labels == {"kind", "name", "reason"}


def test_a_collector_can_be_registered_beside_others_and_only_once():
    registry = CollectorRegistry()
    registry.register(PrometheusCollector())
    with pytest.raises(ValueError, match="floodline_items"):
        registry.register(PrometheusCollector())


def test_registering_reads_nothing_and_one_metric_can_be_asked_for():
    class Touchy(Holder):
        asked = 0

        def stats(self):
            self.asked += 1
            return super().stats()

    holder, registry = Touchy(), CollectorRegistry()
    registry.register(PrometheusCollector())
    assert holder.asked == 0
    assert registry.get_sample_value("floodline_items", {"kind": "test", "name": "pool"}) == 1


def test_the_type_and_the_help_of_each_metric_arrive():
    kept = Holder(items=1, max_items=2, bytes=3, max_bytes=4, left={"idle": 1})
    families = {f.name: f for f in text_string_to_metric_families(metrics_text())}
    assert families["floodline_left"].type == "counter"
    assert families["floodline_bytes"].type == "gauge"
    by_name = {metric.prometheus.removesuffix("_total"): metric for metric in METRICS}
    assert kept.told.items == 1
    assert {name: f.documentation for name, f in families.items()} == {
        name: by_name[name].help for name in families
    }


def test_the_same_collector_remembers_and_a_new_one_does_not():
    gone, collector = Holder(left={"idle": 2}), PrometheusCollector()
    metrics_text(collector=collector)
    del gone
    gc.collect()
    assert scraped(metrics_text(collector=collector)) == {
        ("floodline_left_total", "test", "pool", "idle"): 2,
        ("floodline_stats_errors_total",): 0,
    }
    assert "idle" not in metrics_text()


# ---- without the libraries


@pytest.mark.parametrize(
    ("use", "library", "extra"),
    [
        (PrometheusCollector, "prometheus_client", "prometheus"),
        (metrics_text, "prometheus_client", "prometheus"),
        (exporters.prometheus_app, "prometheus_client", "prometheus"),
        (instrument_otel, "opentelemetry.metrics", "otel"),
    ],
)
def test_a_missing_library_is_named_with_the_command_that_brings_it(
    monkeypatch, use, library, extra
):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, "prometheus_client.core", None)
    with pytest.raises(ConfigError, match=rf"pip install 'floodline\[{extra}\]'"):
        use()
