"""Runs in the environment of a case: `python peer.py TOOL SCENARIO ROUNDS PEERS OUT`.

Each tool is used as its documentation says: a mark after the warm-up, a comparison at the end, the
first three of what grew. Growth is at least one thing in two rounds.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import inspect
import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

Answer = dict[str, Any]


class Tracemalloc:
    """The lines that allocated what is still there; it cannot say who holds it."""

    def __init__(self) -> None:
        import tracemalloc

        self._tool = tracemalloc
        tracemalloc.start()

    def mark(self) -> None:
        gc.collect()
        self._before = self._tool.take_snapshot()

    def compare(self, rounds: int) -> list[Answer]:
        gc.collect()
        hide = [self._tool.Filter(False, self._tool.__file__), self._tool.Filter(False, __file__)]
        after, before = (s.filter_traces(hide) for s in (self._tool.take_snapshot(), self._before))
        grown = [s for s in after.compare_to(before, "lineno") if s.count_diff >= rounds / 2]
        grown.sort(key=lambda stat: -stat.size_diff)
        return [
            {"said": "", "file": s.traceback[0].filename, "line": s.traceback[0].lineno}
            for s in grown[:3]
        ]


class Objgraph:
    """The types that grew, and a chain of references to a new object of each."""

    def __init__(self) -> None:
        import objgraph

        self._tool = objgraph

    def mark(self) -> None:
        self._tool.growth(limit=None)

    def compare(self, rounds: int) -> list[Answer]:
        grown = [g for g in self._tool.growth(limit=None) if g[2] >= rounds / 2]
        return [{"said": self._chain(name)} for name, _, _ in grown[:3]]

    def _chain(self, name: str) -> str:
        found = self._tool.by_type(name)
        chain = self._tool.find_backref_chain(found[-1], self._tool.is_proper_module, max_depth=12)
        words = [name]
        for holder, held in pairwise(chain):
            if inspect.ismodule(holder) or inspect.isclass(holder):
                words.append(holder.__name__)
            else:
                words.append(type(holder).__name__)
            words += re.findall(r"\w+", self._tool._edge_label(holder, held))
        return " ".join(words)


class Guppy:
    """The kinds that grew, and the shortest path to one of each."""

    def __init__(self) -> None:
        from guppy import hpy

        self._tool = hpy()

    def mark(self) -> None:
        self._tool.setrelheap()

    def compare(self, rounds: int) -> list[Answer]:
        heap = self._tool.heap()
        rows = [heap[k] for k in range(min(10, heap.partition.numrows))]
        grown = [row for row in rows if row.count >= rounds / 2]
        return [{"said": f"{row.kind} {row.byid[0].sp}"} for row in grown[:3]]


TOOLS = {"tracemalloc": Tracemalloc, "objgraph": Objgraph, "guppy3": Guppy}


async def drive(scene: Any, tool: Any, rounds: int) -> list[Answer]:
    async def call(name: str, *arguments: Any) -> None:
        result = getattr(scene, name, lambda *_: None)(*arguments)
        if inspect.isawaitable(result):
            await result

    warmup = max(1, rounds // 5)
    await call("setup")
    for i in range(warmup):
        await call("round", i)
    tool.mark()
    for i in range(warmup, rounds):
        await call("round", i)
    gc.collect()
    answers: list[Answer] = tool.compare(rounds - warmup)
    await call("teardown")
    return answers


def main(name: str, scenario: str, rounds: str, peers: str, out: str) -> None:
    sys.path[0] = str(Path(scenario).parent)
    sys.path.append(peers)
    tool = TOOLS[name]()
    spec = importlib.util.spec_from_file_location("scenario", scenario)
    assert spec is not None
    assert spec.loader is not None
    scene = sys.modules["scenario"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scene)
    answers = asyncio.run(drive(scene, tool, int(rounds)))
    Path(out).write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
