"""The checkpointer under LangGraph's own conformance suite, and under a real graph."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="the extra dev is not installed")

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from floodline.adapters._langgraph.rows import CHECKPOINTS, VALUES
from floodline.adapters.langgraph import FloodlineSaver
from floodline.errors import ConfigError, SessionBusy
from floodline.stores import MemoryStore, SQLiteStore


class Blocking(FloodlineSaver):
    """Answers the async calls by the blocking ones, so that the suite judges those."""

    async def aget_tuple(self, config: Any) -> Any:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(self, config: Any, **terms: Any) -> AsyncIterator[Any]:
        for found in await asyncio.to_thread(lambda: list(self.list(config, **terms))):
            yield found

    async def aput(self, *args: Any) -> Any:
        return await asyncio.to_thread(self.put, *args)

    async def aput_writes(self, *args: Any, **options: Any) -> None:
        await asyncio.to_thread(self.put_writes, *args, **options)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Any) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, *args: Any) -> None:
        await asyncio.to_thread(self.copy_thread, *args)

    async def aprune(self, thread_ids: Any, *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))


@pytest.mark.parametrize("kind", [FloodlineSaver, Blocking])
@pytest.mark.parametrize(
    "where",
    [
        *("memory", "sqlite"),
        pytest.param("redis", marks=pytest.mark.long),
        pytest.param("postgres", marks=pytest.mark.long),
    ],
)
def test_every_capability_of_the_conformance_suite_is_there_and_passes(
    kind: type[FloodlineSaver], where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    local = {"memory": lambda: None, "sqlite": lambda: f"sqlite:///{tmp_path / 'graph.db'}"}
    begin = local.get(where) or request.getfixturevalue(where)

    @checkpointer_test(name="floodline")
    async def saver() -> AsyncIterator[FloodlineSaver]:
        with kind(store := begin()) as one:
            yield one
        if where not in local:
            store.close()

    report = asyncio.run(validate(saver))
    assert {one: (r.detected, r.passed, r.failures) for one, r in report.results.items()} == {
        one.value: (True, True, []) for one in ALL_CAPABILITIES
    }


class State(TypedDict):
    said: Annotated[list[str], operator.add]
    fixed: str


class Counted(TypedDict):
    count: int


def build(node: Callable[[State], Any], saver: FloodlineSaver, kind: Any = State) -> Any:
    builder = StateGraph(kind)
    builder.add_node("answer", node)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=saver)


def at(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def echo(state: State) -> dict[str, Any]:
    return {"said": [f"answer {len(state['said'])}"]}


@pytest.mark.parametrize("opened", [MemoryStore, SQLiteStore])
def test_a_graph_keeps_its_state_and_only_so_many_checkpoints(opened: Any, tmp_path: Path) -> None:
    store = opened() if opened is MemoryStore else opened(tmp_path / "graph.db")
    saver = FloodlineSaver(store, keep=10)
    graph = build(echo, saver)
    for turn in range(40):
        graph.invoke(
            {"said": [f"q{turn}"], "fixed": "x"} if turn == 0 else {"said": ["q"]}, at("t")
        )
    state = graph.get_state(at("t"))
    assert len(state.values["said"]) == 80
    assert state.values["fixed"] == "x"
    assert store.count_rows("langgraph", "t", CHECKPOINTS) <= 10 + 8
    kept = list(graph.get_state_history(at("t")))
    assert [len(one.values.get("said", [])) for one in kept[:2]] == [80, 79]
    # what no kept checkpoint refers to is gone, and what did not change is there once
    assert store.count_rows("langgraph", "t", VALUES) <= 3 * 18
    keys = [row.key for row in store.rows("langgraph", "t", VALUES, limit=1000)]
    assert sum(key.endswith(":fixed") for key in keys) == 1
    # another worker goes on
    assert len(build(echo, FloodlineSaver(store)).invoke({"said": ["q"]}, at("t"))["said"]) == 82
    store.close()


def test_an_interrupted_step_survives_pruning() -> None:
    def ask(state: State) -> dict[str, Any]:
        return {"said": [interrupt("what now?")]}

    saver = FloodlineSaver(keep=1)
    graph = build(ask, saver)
    graph.invoke({"said": ["q"]}, at("t"))
    saver.prune(["t"])
    assert graph.get_state(at("t")).next == ("answer",)
    assert graph.invoke(Command(resume="this"), at("t"))["said"] == ["q", "this"]


def test_what_a_delta_channel_needs_is_kept() -> None:
    class Deltas(TypedDict):
        said: Annotated[list[str], DeltaChannel(_extend, snapshot_frequency=20)]

    saver = FloodlineSaver(keep=2)
    graph = build(lambda _state: {"said": ["a"]}, saver, Deltas)
    for turn in range(30):
        graph.invoke({"said": [f"q{turn}"]}, at("t"))
    before = graph.get_state(at("t")).values["said"]
    assert len(before) == 60
    saver.prune(["t"])
    assert graph.get_state(at("t")).values["said"] == before
    copied = FloodlineSaver(keep=None)
    assert copied.get_tuple(at("t")) is None
    saver.copy_thread("t", "u")
    assert graph.get_state(at("u")).values["said"] == before


def _extend(left: list[str], right: list[list[str]]) -> list[str]:
    return [*left, *(one for some in right for one in some)]


def test_subgraphs_of_steps_that_are_gone_are_gone() -> None:
    saver = FloodlineSaver(keep=4)
    inner = StateGraph(Counted)
    inner.add_node("deep", lambda state: {"count": state["count"] + 1})
    inner.add_edge(START, "deep")
    outer = StateGraph(Counted)
    outer.add_node("sub", inner.compile())
    outer.add_edge(START, "sub")
    graph = outer.compile(checkpointer=saver)
    for turn in range(30):
        assert graph.invoke({"count": turn}, at("t")) == {"count": turn + 1}
    spaces = {one.config["configurable"]["checkpoint_ns"] for one in saver.list(at("t"))}
    assert len(spaces) < 12


def test_loops_and_threads_share_one_saver(tmp_path: Path) -> None:
    saver = FloodlineSaver(f"sqlite:///{tmp_path / 'graph.db'}")
    graph = build(echo, saver)

    async def turn() -> int:
        return len((await graph.ainvoke({"said": ["q"]}, at("t")))["said"])

    assert asyncio.run(turn()) == 2
    assert asyncio.run(turn()) == 4
    seen: list[int] = []
    thread = threading.Thread(
        target=lambda: seen.append(len(graph.invoke({"said": ["q"]}, at("t"))["said"]))
    )
    thread.start()
    thread.join()
    assert seen == [6]
    saver.close()


def test_threads_in_memory_are_bounded_and_retention_deletes() -> None:
    saver = FloodlineSaver(max_threads=3)
    graph = build(echo, saver)
    for number in range(10):
        graph.invoke({"said": ["q"]}, at(f"t{number}"))
    assert {one.config["configurable"]["thread_id"] for one in saver.list(None)} <= {
        "t6", "t7", "t8", "t9",
    }  # fmt: skip
    wall = [1000.0]
    store = MemoryStore(clock=lambda: wall[0], wall=lambda: wall[0])
    saver = FloodlineSaver(store, retention="1 h")
    graph = build(echo, saver)
    graph.invoke({"said": ["q"]}, at("old"))
    wall[0] += 7200
    saver._next_purge = 0.0
    graph.invoke({"said": ["q"]}, at("new"))
    wall[0] += 1
    saver._next_purge = 0.0
    graph.invoke({"said": ["q"]}, at("newer"))
    assert store.ids("langgraph") == ["new", "newer"]


def test_a_thread_that_somebody_holds_is_not_deleted() -> None:
    store = MemoryStore()
    saver = FloodlineSaver(store)
    build(echo, saver).invoke({"said": ["q"]}, at("t"))
    store.acquire("langgraph", "t", "somebody", lease=60)
    with pytest.raises(SessionBusy, match="somebody"):
        saver.delete_thread("t")


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ConfigError, match="keep"):
        FloodlineSaver(keep=0)
    with pytest.raises(ConfigError, match="no row log"):
        FloodlineSaver(object())  # type: ignore[arg-type]
    saver = FloodlineSaver()
    with pytest.raises(ConfigError, match="keep_latest"):
        saver.prune(["t"], strategy="all")
    with pytest.raises(ConfigError, match="checkpoint_id"):
        saver.put_writes(at("t"), [("a", 1)], "task")
