"""A LangGraph checkpointer that keeps what a thread needs, and not everything forever.

    graph = builder.compile(checkpointer=FloodlineSaver(store="sqlite:///graph.db"))

Each checkpoint is a row, and so is each value of a channel: one that did not change is stored once.
"""

from __future__ import annotations

import builtins
import random
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from floodline._units import Duration, parse_count, parse_duration
from floodline.adapters._extras import missing
from floodline.adapters._langgraph.keeping import keep_newest, keep_only, remove
from floodline.adapters._langgraph.rows import (
    CHECKPOINTS,
    PAGE,
    VALUES,
    Place,
    Saved,
    ThreadRows,
    Write,
    config_of,
    encode,
    place_of,
    read_saved,
    read_value,
    read_write,
    value_key,
    writes_log,
)
from floodline.adapters._store_flows import Flow, FlowStore, Give, Stream, ask
from floodline.errors import ConfigError, SessionBusy
from floodline.stores import Append, Held, NewRow, Row, RowStore, new_owner

try:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        get_checkpoint_id,
        get_checkpoint_metadata,
        writes_sort_key,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol
except ImportError as error:
    raise missing("LangGraph", "langgraph", error) from error

__all__ = ["FloodlineSaver"]

LOOK_EVERY = 8  # steps of a graph between two looks at what need not be kept
PURGE_EVERY = 60.0
LEASE = 15.0
THREADS_IN_MEMORY = 1000


class FloodlineSaver(BaseCheckpointSaver[str], AbstractContextManager["FloodlineSaver"]):
    """Checkpoints of LangGraph in any floodline store, blocking and async, without a `setup()`.

    `store` is a URL or a store; without one the checkpoints are in memory, those of the last 1,000
    threads. `keep` is how many checkpoints a thread keeps (100; None: all), not counting those that
    a kept one still needs: the ancestors of delta channels. Pending writes of kept checkpoints are
    never removed. `retention` deletes threads unused for that long; `max_threads` the least
    recently used above that number. Both are off by default for a store that you give.
    """

    def __init__(
        self,
        store: RowStore | str | None = None,
        *,
        keep: int | None = 100,
        retention: Duration | None = None,
        max_threads: int | None = None,
        name: str = "langgraph",
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._keep = None if keep is None else parse_count(keep, "keep")
        self._retention = None if retention is None else parse_duration(retention, "retention")
        self._max_threads = None if max_threads is None else parse_count(max_threads, "max_threads")
        if store is None and max_threads is None:
            self._max_threads = THREADS_IN_MEMORY
        self._rows = ThreadRows(name)
        self._store = FlowStore(store)
        self._owner = new_owner(name)
        self._next_purge = 0.0

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store, unless it was given as an object."""
        self._store.close()

    # ---- blocking

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names, or the newest of its thread."""
        return self._store.run(self._get(place_of(config)))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the newest of each namespace first."""
        return self._store.stream(self._list(config, filter, before, limit))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint and its new values, all or nothing."""
        return self._store.run(self._put(config, checkpoint, metadata, new_versions))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Save the pending writes of a task."""
        self._store.run(self._put_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread."""
        self._store.run(self._delete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs, in every thread; this reads all of them."""
        self._store.run(self._delete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy everything of a thread to another, which keeps what it has."""
        self._store.run(self._copy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the newest checkpoint of each namespace, or nothing with `strategy="delete"`.

        Ancestors that the newest needs for its delta channels stay.
        """
        self._store.run(self._prune(thread_ids, strategy))

    # ---- async: the same flows, awaited

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See `get_tuple`."""
        return await self._store.arun(self._get(place_of(config)))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See `list`."""
        async for found in self._store.astream(self._list(config, filter, before, limit)):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See `put`."""
        return await self._store.arun(self._put(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """See `put_writes`."""
        await self._store.arun(self._put_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """See `delete_thread`."""
        await self._store.arun(self._delete_thread(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """See `delete_for_runs`."""
        await self._store.arun(self._delete_for_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See `copy_thread`."""
        await self._store.arun(self._copy_thread(source_thread_id, target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """See `prune`."""
        await self._store.arun(self._prune(thread_ids, strategy))

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002 - the base's
        """Return a version above `current` that no fork of the thread gets, too."""
        number = 0 if current is None else int(str(current).split(".")[0])
        return f"{number + 1:032}.{random.random():016}"

    # ---- reading

    def _get(self, place: Place) -> Flow[CheckpointTuple | None]:
        log = CHECKPOINTS + place.ns
        if place.checkpoint is None:
            page = yield from self._rows.ask("rows", place.thread, log, limit=1, newest_first=True)
        else:
            found = yield from self._rows.ask("get_rows", place.thread, log, [place.checkpoint])
            page = [*found.values()]
        if not page:
            return None
        return (yield from self._read(place.thread, place.ns, page[0]))

    def _list(
        self,
        config: RunnableConfig | None,
        wanted: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Stream:
        only = None if config is None else place_of(config)
        threads = (yield from self._rows.threads()) if only is None else [only.thread]
        end = get_checkpoint_id(before) if before else None
        for thread in threads:
            given = None if config is None else config["configurable"].get("checkpoint_ns")
            spaces = [given] if given is not None else (yield from self._rows.spaces(thread))
            for ns in spaces:
                rows = yield from self._rows.rows(thread, CHECKPOINTS + ns)
                for row in reversed(rows):
                    if limit is not None and limit <= 0:
                        return
                    if only is not None and only.checkpoint not in (None, row.key):
                        continue
                    if end is not None and row.key >= end:
                        continue
                    if wanted and not self._matches(row, wanted):
                        continue
                    yield Give((yield from self._read(thread, ns, row)))
                    limit = None if limit is None else limit - 1

    def _matches(self, row: Row, wanted: Mapping[str, Any]) -> bool:
        metadata = self.serde.loads_typed(read_saved(row.data).metadata)
        return all(metadata.get(key) == value for key, value in wanted.items())

    def _read(self, thread: str, ns: str, row: Row) -> Flow[CheckpointTuple]:
        saved = read_saved(row.data)
        keys = {value_key(*pair): pair[0] for pair in saved.versions.items()}
        found = yield from self._rows.ask("get_rows", thread, VALUES + ns, builtins.list(keys))
        values = {keys[key]: read_value(one.data) for key, one in found.items()}
        checkpoint = self.serde.loads_typed(saved.checkpoint)
        checkpoint["channel_values"] = {
            channel: self.serde.loads_typed(values[channel])
            for channel in saved.versions
            if channel in values
        }
        rows = yield from self._rows.rows(thread, writes_log(ns, row.key))
        writes = sorted(
            (read_write(one.data) for one in rows),
            key=lambda one: writes_sort_key(one.task_path, one.task_id, one.index),
        )
        return CheckpointTuple(
            config=config_of(thread, ns, row.key),
            checkpoint=checkpoint,
            metadata=self.serde.loads_typed(saved.metadata),
            parent_config=config_of(thread, ns, saved.parent) if saved.parent else None,
            pending_writes=[
                (one.task_id, one.channel, self.serde.loads_typed(one.value)) for one in writes
            ],
        )

    # ---- writing

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Flow[RunnableConfig]:
        place = place_of(config)
        values = checkpoint["channel_values"]
        bare = {key: value for key, value in checkpoint.items() if key != "channel_values"}
        full = get_checkpoint_metadata(config, metadata)
        saved = Saved(
            self.serde.dumps_typed(bare),
            self.serde.dumps_typed(full),
            place.checkpoint,
            dict(checkpoint["channel_versions"]),
            full.get("run_id"),
            sorted(full.get("counters_since_delta_snapshot") or ()),
        )
        rows = [
            NewRow(value_key(channel, version), encode(self.serde.dumps_typed(values[channel])), 0)
            for channel, version in new_versions.items()
            if channel in values
        ]
        key = checkpoint["id"]
        # equal numbers, so that checkpoints are ordered by their ids
        new = [NewRow(key, encode(saved), 0)]
        yield from self._rows.ask(
            "append_rows",
            place.thread,
            [
                Append(VALUES + place.ns, rows, when_taken="replace"),
                Append(CHECKPOINTS + place.ns, new, when_taken="replace"),
            ],
        )
        step = full.get("step")
        if not isinstance(step, int) or step % LOOK_EVERY == 0:
            yield from self._tidy(place.thread)
        return config_of(place.thread, place.ns, key)

    def _put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> Flow[None]:
        place = place_of(config)
        if place.checkpoint is None:
            raise ConfigError("put_writes needs a checkpoint_id in the config; put() returns one")
        first: builtins.list[NewRow] = []
        again: builtins.list[NewRow] = []
        for number, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, number)
            one = Write(task_id, index, channel, self.serde.dumps_typed(value), task_path)
            row = NewRow(f"{task_id}:{index}", encode(one))
            (first if index >= 0 else again).append(row)
        log = writes_log(place.ns, place.checkpoint)
        batches = [Append(log, first, when_taken="keep"), Append(log, again, when_taken="replace")]
        yield from self._rows.ask("append_rows", place.thread, [one for one in batches if one.rows])

    # ---- deleting

    def _delete_thread(self, thread: str) -> Flow[None]:
        grant = yield from self._rows.ask("acquire", thread, self._owner, lease=LEASE)
        if isinstance(grant, Held):
            raise SessionBusy(
                f"thread {thread!r} is held by {grant.owner} for another {grant.seconds:.0f} s"
            )
        yield from self._rows.ask("delete", thread, fence=grant.fence)

    def _delete_for_runs(self, run_ids: Sequence[str]) -> Flow[None]:
        runs, rows = set(run_ids), self._rows
        for thread in (yield from rows.threads()) if runs else ():
            for ns in (yield from rows.spaces(thread)):
                saved = yield from rows.saved(thread, ns)
                gone = {key for key, one in saved.items() if one.run_id in runs}
                yield from remove(rows, thread, ns, saved, gone)

    def _copy_thread(self, source: str, target: str) -> Flow[None]:
        for log in (yield from self._rows.logs(source)):
            rows = yield from self._rows.rows(source, log)
            new = [NewRow(row.key, row.data, row.number) for row in rows]
            append = [Append(log, new, when_taken="keep")]
            yield from self._rows.ask("append_rows", target, append)

    def _prune(self, thread_ids: Sequence[str], strategy: str) -> Flow[None]:
        if strategy not in ("keep_latest", "delete"):
            raise ConfigError(f'strategy={strategy!r} must be "keep_latest" or "delete"')
        for thread in thread_ids:
            if strategy == "delete":
                yield from self._delete_thread(thread)
                continue
            for ns in (yield from self._rows.spaces(thread)):
                saved = yield from self._rows.saved(thread, ns)
                yield from keep_newest(self._rows, thread, ns, saved, 1)

    def _tidy(self, thread: str) -> Flow[None]:
        """Remove what `keep`, `retention` and `max_threads` do not keep."""
        if self._keep is not None:
            yield from keep_only(self._rows, thread, self._keep)
        now = time.monotonic()
        if self._retention is not None and now >= self._next_purge:
            self._next_purge = now + PURGE_EVERY
            yield from ask("purge", self._rows.name, unused=self._retention, limit=PAGE)
        if self._max_threads is not None:
            over = (yield from ask("count", self._rows.name)) - self._max_threads
            if over > 0:
                yield from ask("purge", self._rows.name, unused=0.0, limit=over)
