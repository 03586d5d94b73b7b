"""What all holders tell, for Prometheus and OpenTelemetry; no session id is ever a label.

Both read the one registry of `floodline.telemetry` when they are asked, and name things by one
table, `METRICS`. Their libraries are needed when they are used, not to import this.
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
