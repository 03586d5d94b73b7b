"""Prometheus: everything is read at the scrape, and nothing between scrapes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from floodline.exporters._extras import required
from floodline.exporters._metrics import METRICS, Metric
from floodline.exporters._reader import Reader

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family
    from prometheus_client.registry import Collector, CollectorRegistry
else:
    Collector = object  # the library is needed to create a collector, not to import this module

Message = MutableMapping[str, Any]


class PrometheusCollector(Collector):
    """A collector of all holders: `REGISTRY.register(PrometheusCollector())`.

    Keep one for the life of the process: it remembers the counts of holders that are gone.
    """

    def __init__(self) -> None:
        self._families = required("prometheus_client.core", "prometheus")
        self._reader = Reader()

    def collect(self) -> Iterator[Family]:
        """Read all holders; one whose `stats()` raises is skipped and counted."""
        reading = self._reader.read()
        for metric in METRICS:
            if samples := reading[metric.stem]:
                family = self._family(metric)
                for labels, value in samples:
                    family.add_metric(labels, value)
                yield family

    def describe(self) -> Iterator[Family]:
        """Name all metrics, without reading anything."""
        return map(self._family, METRICS)

    def _family(self, metric: Metric) -> Any:
        make = {
            "gauge": self._families.GaugeMetricFamily,
            "counter": self._families.CounterMetricFamily,
        }[metric.type]
        return make(metric.prometheus, metric.help, labels=metric.labels)


class _App:
    """An object, because Starlette treats a function as an endpoint and not as an ASGI app."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        await self._app(scope, receive, send)


def prometheus_app(*, registry: CollectorRegistry | None = None) -> _App:
    """Return an ASGI app that answers with all metrics: `Route("/metrics", prometheus_app())`.

    Without a `registry` it serves only floodline's metrics; they are registered in a given one.
    """
    client = required("prometheus_client", "prometheus")
    if registry is None:
        registry = client.CollectorRegistry()
    registry.register(PrometheusCollector())
    return _App(client.make_asgi_app(registry))


def metrics_text(*, collector: PrometheusCollector | None = None) -> str:
    """Return the metrics in the Prometheus format, for people or for another web framework.

    If it is scraped, pass the same `collector` each time: one created for the call does not know
    holders that are gone, and counters would go back.
    """
    client = required("prometheus_client", "prometheus")
    registry = client.CollectorRegistry()
    registry.register(collector or PrometheusCollector())
    text: bytes = client.generate_latest(registry)
    return text.decode()
