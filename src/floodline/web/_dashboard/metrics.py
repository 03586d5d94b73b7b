"""The state in the Prometheus text format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from floodline.leaks._vocabulary import Outcome
from floodline.recorder._snapshot import (
    ContainerState,
    ProcessStatus,
    SessionsState,
    Snapshot,
    SuspectState,
)

SESSION_FIGURES: tuple[Literal["live", "parked", "stuck", "retained"], ...] = (
    *("live", "parked", "stuck", "retained"),
)
CONTAINER_FIGURES: tuple[Literal["items", "max_items", "bytes", "max_bytes"], ...] = (
    *("items", "max_items", "bytes", "max_bytes"),
)

Labels = dict[str, object]
Sample = tuple[Labels, float | None]


def metrics_text(state: Snapshot) -> str:
    """Return one scrape; unknown figures are left out."""
    lines: list[str] = []
    for name, says, samples in _families(state):
        sums: dict[str, float] = {}
        for labels, value in samples:
            if value is not None:  # two with the same name in one process are one series
                series = _series(name, labels)
                sums[series] = sums.get(series, 0.0) + value
        if sums:
            lines += [f"# HELP {name} {says}", f"# TYPE {name} gauge"]
            lines += [f"{series} {value:.15g}" for series, value in sums.items()]
    return "\n".join(lines) + "\n"


def _families(state: Snapshot) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    memory = state["memory"]
    yield "floodline_run_resident_bytes", "Resident memory of all processes.", _one(memory["now"])
    yield "floodline_run_peak_bytes", "Peak resident memory of all processes.", _one(memory["peak"])
    yield "floodline_run_line_bytes", "The flood line.", _one(state["line"])
    yield "floodline_run_limit_bytes", "The system's memory limit.", _one(memory["limit"])
    yield "floodline_run_growth_bytes_per_second", "Memory growth.", _one(memory["rate"])
    yield (
        "floodline_run_verdict",
        "1 for the current verdict.",
        [({"verdict": each}, float(each == state["verdict"])) for each in Outcome],
    )
    running = sum(process["state"] == ProcessStatus.RUNNING for process in state["processes"])
    yield "floodline_run_processes", "Running processes.", _one(running)
    yield (
        "floodline_run_suspect_bytes_per_second",
        "Growth of a container.",
        [(_suspect(each), each["bytes_per_round"]) for each in state["suspects"]],
    )
    for field in SESSION_FIGURES:
        yield (
            f"floodline_run_sessions_{field}",
            f"Sessions: {field}.",
            [(_holder(each), each[field]) for each in state["sessions"]],
        )
    for figure in CONTAINER_FIGURES:
        yield (
            f"floodline_run_container_{figure}",
            f"Bounded containers: {figure.replace('_', ' ')}.",
            [(_holder(each), each[figure]) for each in state["containers"]],
        )


def _one(value: float | None) -> list[Sample]:
    return [({}, value)]


def _suspect(suspect: SuspectState) -> Labels:
    return {"owner": suspect["owner"], "command": suspect["command"]}


def _holder(holder: SessionsState | ContainerState) -> Labels:
    return {"name": holder["name"], "pid": holder["pid"]}


def _series(name: str, labels: Labels) -> str:
    inside = ",".join(f'{key}="{_escaped(str(text))}"' for key, text in labels.items())
    return f"{name}{{{inside}}}" if inside else name


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
