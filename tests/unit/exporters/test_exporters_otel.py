"""The real SDK of OpenTelemetry collects what the holders tell."""

from __future__ import annotations

import gc

import pytest
from opentelemetry import metrics as api
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Gauge, InMemoryMetricReader, Sum

import floodline
from floodline import BoundedMap, Sessions, telemetry
from floodline.exporters import METRICS, instrument_otel


@pytest.fixture(autouse=True)
def only_our_holders(monkeypatch):
    gc.collect()
    monkeypatch.setattr(telemetry, "_holders", {})


@pytest.fixture
def reader():
    return InMemoryMetricReader()


@pytest.fixture
def provider(reader):
    made = MeterProvider([reader], shutdown_on_exit=False)
    yield made
    made.shutdown()


def collected(reader):
    data = reader.get_metrics_data()
    scopes = data.resource_metrics[0].scope_metrics if data is not None else ()
    return {metric.name: metric for scope in scopes for metric in scope.metrics}


def points(metric):
    return {tuple(point.attributes.values()): point.value for point in metric.data.data_points}


class Counted:
    """A holder that counts how often it is asked."""

    asked = 0

    def __init__(self):
        telemetry.register(self)

    def stats(self):
        self.asked += 1
        return telemetry.Stats(kind="test", name="counted", items=self.asked)


def test_the_sdk_collects_items_limits_and_what_left_by_reason(provider, reader):
    instrument_otel(provider)
    cache = BoundedMap(max_items=2, name="cache")
    with Sessions(dict, max_sessions=2, name="chats") as sessions:
        for each in ("ann", "bob", "cid"):
            with sessions.use(each):
                cache[each] = each
        found = collected(reader)
    chats = ("sessions", "chats")
    assert points(found["floodline.items"]) == {chats: 2, ("map", "cache"): 2}
    assert points(found["floodline.max_items"]) == {chats: 2, ("map", "cache"): 2}
    assert points(found["floodline.left"]) == {
        (*chats, "count"): 1,
        ("map", "cache", "count"): 1,
    }
    assert points(found["floodline.opened"]) == {chats: 3}
    assert points(found["floodline.stats_errors"]) == {(): 0}
    assert "floodline.parked" not in found


def test_gauges_are_gauges_and_counters_are_monotonic_sums(provider, reader):
    instrument_otel(provider)
    kept = BoundedMap(max_items=2, max_bytes=100, name="cache")
    kept["a"] = "b"
    found = collected(reader)
    known = {metric.otel: metric for metric in METRICS}
    assert isinstance(found["floodline.bytes"].data, Gauge)
    assert found["floodline.bytes"].unit == "By"
    assert isinstance(found["floodline.hits"].data, Sum)
    assert found["floodline.hits"].data.is_monotonic
    for name, metric in found.items():
        assert metric.description == known[name].help
        assert isinstance(metric.data, Sum) == (known[name].type == "counter")


def test_the_attributes_are_the_labels_and_no_id_is_among_them(provider, reader):
    instrument_otel(provider)
    with Sessions(dict, max_sessions=1, name="chats") as sessions:
        for each in ("customer-1", "customer-2"):
            with sessions.use(each):
                pass
        found = collected(reader)
    attributes = [p.attributes for metric in found.values() for p in metric.data.data_points]
    assert {name for each in attributes for name in each} == {"kind", "name", "reason"}
    assert "customer" not in repr(attributes)


def test_one_collection_asks_each_holder_once(provider, reader):
    instrument_otel(provider)
    holder = Counted()
    for collection in (1, 2, 3):
        assert points(collected(reader)["floodline.items"]) == {("test", "counted"): collection}
        assert holder.asked == collection


def test_two_readers_of_one_provider_both_get_fresh_figures():
    first, second = InMemoryMetricReader(), InMemoryMetricReader()
    provider = MeterProvider([first, second], shutdown_on_exit=False)
    instrument_otel(provider)
    holder = Counted()
    for collection, reader in enumerate((first, second, second, first), start=1):
        assert points(collected(reader)["floodline.items"]) == {("test", "counted"): collection}
    assert holder.asked == 4
    provider.shutdown()


def test_nothing_is_observed_after_the_end(provider, reader):
    end = instrument_otel(provider)
    holder = Counted()
    end()
    assert collected(reader) == {}
    assert holder.asked == 0


def test_without_a_provider_the_global_one_is_instrumented(monkeypatch, provider, reader):
    monkeypatch.setattr(api, "get_meter_provider", lambda: provider)
    instrument_otel()
    holder = Counted()
    found = reader.get_metrics_data().resource_metrics[0].scope_metrics[0]
    assert (found.scope.name, found.scope.version) == ("floodline", floodline.__version__)
    assert holder.asked == 1
