"""The Grafana board and the alert rules of `floodline serve`, made from its metric names.

python tests/service_monitoring.py    # writes docs/serve-grafana.json and docs/serve-alerts.yml
"""

from __future__ import annotations

import json
from pathlib import Path

from floodline._service._metrics import FAMILIES

DOCS = Path(__file__).parents[1] / "docs"
BOARD, ALERTS = DOCS / "serve-grafana.json", DOCS / "serve-alerts.yml"

_NAMES = {family.name: family.full_name for family in FAMILIES}


def name(short):
    """Return the full name of a metric; one that does not exist is an error."""
    for part in ("_bucket", "_sum", "_count"):
        if short.endswith(part) and short.removesuffix(part) in _NAMES:
            return _NAMES[short.removesuffix(part)] + part
    return _NAMES[short]


def rate(short, by="", where=""):
    """Return the rate per second of a counter."""
    grouped = f" by ({by})" if by else ""
    return f"sum{grouped} (rate({name(short)}{where}[5m]))"


def quantile(share):
    """Return the time in which this share of requests is answered."""
    return f"histogram_quantile({share}, {rate('request_seconds_bucket', 'le')})"


FAILED = '{status=~"5..|other"}'
# not those that are live: unused ones stay until others need their place, so that is always full
FULLNESS = f"sum by (tenant) ({name('sessions_held')}) / sum by (tenant) ({name('sessions_limit')})"

PANELS = [
    ("Requests per second", "reqps", [(rate("requests_total", "route"), "{{route}}")]),
    ("Refused and failed requests", "reqps", [
        (rate("requests_total", "status", '{status!="200"}'), "{{status}}"),
    ]),
    ("Time to answer", "s", [(quantile(q), f"p{q * 100:g}") for q in (0.5, 0.95, 0.99)]),
    ("Requests in progress", "short", [(f"sum({name('in_flight')})", "in progress")]),
    ("Items per second", "ops", [
        (rate("items_appended_total", "tenant"), "appended {{tenant}}"),
        (rate("items_repeated_total", "tenant"), "repeated {{tenant}}"),
        (rate("items_deleted_total", "tenant"), "deleted {{tenant}}"),
    ]),
    ("Conversations per second", "ops", [
        (rate("conversations_created_total", "tenant"), "created {{tenant}}"),
        (rate("conversations_deleted_total", "tenant"), "deleted {{tenant}}"),
    ]),
    ("Conversations in memory", "short", [
        (f"sum by (tenant) ({name('sessions_live')})", "live {{tenant}}"),
        (f"sum by (tenant) ({name('sessions_held')})", "in use {{tenant}}"),
        (f"sum by (tenant) ({name('sessions_waiting')})", "waiting {{tenant}}"),
        (f"sum by (tenant) ({name('sessions_limit')})", "limit {{tenant}}"),
    ]),
    ("Conversations in the store", "short", [
        (f"max by (tenant) ({name('sessions_stored')})", "{{tenant}}"),
    ]),
    ("Saves and loads per second", "ops", [
        (rate("session_saves_total"), "saves"),
        (rate("session_loads_total"), "loads"),
        (rate("session_save_errors_total"), "failed saves"),
        (rate("session_conflicts_total"), "conflicts"),
    ]),
    ("Not saved", "short", [(f"sum({name('sessions_unsaved')})", "unsaved")]),
    ("Memory", "bytes", [
        (f"sum({name('resident_bytes')})", "resident"),
        (f"sum({name('buffered_bytes')})", "request bodies"),
    ]),
    ("Workers", "short", [
        (f"sum({name('workers')})", "workers"),
        (f"sum({name('draining')})", "draining"),
        (f"min({name('store_up')})", "store up"),
        (f"sum({name('event_readers')})", "event streams"),
        (rate("errors_total"), "defects per second"),
    ]),
]  # fmt: skip  # a table

RULES = [
    ("FloodlineStoreDown", f"min({name('store_up')}) == 0", "1m", "critical",
     "The store of floodline serve does not answer."),
    ("FloodlineUnsaved", f"sum({name('sessions_unsaved')}) > 0", "5m", "critical",
     "The store refuses to save some conversations; they are still in memory."),
    ("FloodlineFailing",
     f"{rate('requests_total', where=FAILED)} / {rate('requests_total')} > 0.05", "5m", "critical",
     "More than 5 % of the requests fail."),
    ("FloodlineDefect", f"increase({name('errors_total')}[10m]) > 0", "0m", "warning",
     "A request failed because of a bug; its id is in the log."),
    ("FloodlineSlow", f"{quantile(0.99)} > 2.5", "10m", "warning",
     "One request in a hundred takes more than 2.5 s."),
    ("FloodlineFull", f"{FULLNESS} > 0.8", "15m", "warning",
     "A tenant is close to its limit of conversations in memory; raise --max-sessions."),
    ("FloodlineConflicts", f"{rate('session_conflicts_total')} > 0.1", "10m", "warning",
     "Processes change the same conversations at once; route each conversation to one process."),
    ("FloodlineGrowing", f"deriv({name('resident_bytes')}[6h]) * 86400 > 500e6", "6h", "warning",
     "Memory grows by more than 500 MB a day; open /dashboard/."),
]  # fmt: skip  # a table


def board():
    """Return the board as Grafana imports it."""
    panels = []
    for number, (title, unit, targets) in enumerate(PANELS):
        place = {"h": 8, "w": 12, "x": 12 * (number % 2), "y": 8 * (number // 2)}
        panels.append(
            {
                "id": number + 1,
                "type": "timeseries",
                "title": title,
                "datasource": {"type": "prometheus", "uid": "${source}"},
                "gridPos": place,
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "targets": [
                    {"refId": chr(65 + n), "expr": expression, "legendFormat": legend}
                    for n, (expression, legend) in enumerate(targets)
                ],
            }
        )
    source = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "title": "floodline serve",
        "uid": "floodline-serve",
        "schemaVersion": 39,
        "tags": ["floodline"],
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [source]},
        "panels": panels,
    }


def alerts():
    """Return the rules as Prometheus reads them."""
    lines = [
        "# Made by tests/service_monitoring.py",
        "groups:",
        "  - name: floodline-serve",
        "    rules:",
    ]
    for alert, expression, wait, severity, text in RULES:
        lines += [
            f"      - alert: {alert}",
            f"        expr: {json.dumps(expression)}",
            f"        for: {wait}",
            f"        labels: {{severity: {severity}}}",
            f"        annotations: {{summary: {json.dumps(text)}}}",
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    BOARD.write_text(json.dumps(board(), indent=2) + "\n", encoding="utf-8")
    ALERTS.write_text(alerts(), encoding="utf-8")
