"""OpenTelemetry: observable instruments, which read when a reader of the SDK collects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from floodline import __version__
from floodline.exporters._extras import required
from floodline.exporters._metrics import METRICS, Metric
from floodline.exporters._reader import Reader, Reading

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider, Observation


class _Instruments:
    """All instruments of one meter, which share one reading per collection."""

    def __init__(self, observation: Callable[..., Any]) -> None:
        self._observation = observation
        self._reader = Reader()
        self._reading: Reading = {}
        self._served: set[str] = set()
        self.ended = False

    def observe(self, metric: Metric, _options: object) -> Iterator[Observation]:
        """Answer the callback of one instrument."""
        if self.ended:
            return
        for labels, value in self._read(metric.stem):
            yield self._observation(value, dict(zip(metric.labels, labels, strict=True)))

    def _read(self, stem: str) -> list[tuple[tuple[str, ...], float]]:
        # the SDK asks each instrument once per collection: a second request begins the next
        reading = self._reading
        if not reading or stem in self._served:
            self._served = set()
            reading = self._reading = self._reader.read()
        self._served.add(stem)
        return reading[stem]

    def end(self) -> None:
        """Stop observing; OpenTelemetry has no way to remove an instrument."""
        self.ended = True
        self._reading = {}


def instrument_otel(meter_provider: MeterProvider | None = None) -> Callable[[], None]:
    """Create an instrument for each metric, on the given or the global provider.

    Call it once per provider, after its readers are added; the result ends the observation.
    """
    api = required("opentelemetry.metrics", "otel")
    provider = meter_provider or api.get_meter_provider()
    meter = provider.get_meter("floodline", __version__)
    instruments = _Instruments(api.Observation)
    for metric in METRICS:
        make = {
            "gauge": meter.create_observable_gauge,
            "counter": meter.create_observable_counter,
        }[metric.type]
        make(metric.otel, [partial(instruments.observe, metric)], metric.unit, metric.help)
    return instruments.end
