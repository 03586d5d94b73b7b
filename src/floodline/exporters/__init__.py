"""The figures of all holders, for Prometheus and OpenTelemetry; no session id is ever a label.

Both read the registry of `floodline.telemetry` on demand, and take their names from one table,
`METRICS`. Their libraries are needed to use them, not to import this package.
"""

from __future__ import annotations

from floodline.exporters._metrics import METRICS, Metric
from floodline.exporters._otel import instrument_otel
from floodline.exporters._prometheus import PrometheusCollector, metrics_text, prometheus_app

__all__ = [
    "METRICS",
    "Metric",
    "PrometheusCollector",
    "instrument_otel",
    "metrics_text",
    "prometheus_app",
]
