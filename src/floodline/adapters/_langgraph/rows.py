"""How the checkpoints of LangGraph lie in the row logs of a thread.

A namespace has a log of checkpoints, ordered by their ids, and a log of channel values, one row for
each version; each checkpoint with pending writes has a log of those.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from floodline.adapters._extras import missing
from floodline.adapters._store_flows import Flow, ask
from floodline.stores import Row

try:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import get_checkpoint_id
except ImportError as error:
    raise missing("LangGraph", "langgraph", error) from error

CHECKPOINTS, VALUES, WRITES = "c:", "v:", "w:"  # how the names of the three kinds of logs begin
PAGE = 500

Typed = tuple[str, bytes]


class Saved(msgspec.Struct, array_like=True):
    """The row of a checkpoint; its values are rows of their own."""

    checkpoint: Typed
    metadata: Typed
    parent: str | None
    versions: dict[str, str | int | float]
    run_id: str | None
    delta_channels: list[str]

    def value_keys(self) -> list[str]:
        """Return the keys of the values that belong to this checkpoint."""
        return [value_key(*pair) for pair in self.versions.items()]


class Write(msgspec.Struct, array_like=True):
    """The row of one pending write."""

    task_id: str
    index: int
    channel: str
    value: Typed
    task_path: str


encode = msgspec.msgpack.Encoder().encode
read_saved = msgspec.msgpack.Decoder(Saved).decode
read_write = msgspec.msgpack.Decoder(Write).decode
read_value = msgspec.msgpack.Decoder(Typed).decode


class Place(NamedTuple):
    """Which checkpoints a config is about."""

    thread: str
    ns: str
    checkpoint: str | None


def place_of(config: RunnableConfig) -> Place:
    """Return what a config names."""
    given = config["configurable"]
    ns = given.get("checkpoint_ns", "")
    return Place(str(given["thread_id"]), ns, get_checkpoint_id(config))


def config_of(thread: str, ns: str, checkpoint: str) -> RunnableConfig:
    """Return the config that names a checkpoint."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint}}


def value_key(channel: str, version: str | int | float) -> str:
    """Return the key of one version of a channel's value."""
    return f"{version}:{channel}"


def writes_log(ns: str, checkpoint: str) -> str:
    """Return the name of the log of a checkpoint's pending writes."""
    return f"{WRITES}{checkpoint}:{ns}"


class ThreadRows:
    """Reads the rows of threads, page by page."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ask(self, method: str, thread: str, *args: Any, **options: Any) -> Flow[Any]:
        """Call the store about one thread."""
        return (yield from ask(method, self.name, thread, *args, **options))

    def threads(self) -> Flow[list[str]]:
        """Return the ids of all threads."""
        found: list[str] = []
        while page := (
            yield from ask("ids", self.name, after=found[-1] if found else "", limit=PAGE)
        ):
            found += page
        return found

    def spaces(self, thread: str) -> Flow[list[str]]:
        """Return the namespaces of a thread."""
        logs = yield from self.logs(thread, CHECKPOINTS)
        return [log.removeprefix(CHECKPOINTS) for log in logs]

    def logs(self, thread: str, prefix: str = "") -> Flow[list[str]]:
        """Return the names of the logs that begin with `prefix`."""
        found: list[str] = []
        after = prefix[:-1]
        while page := (yield from self.ask("logs", thread, after=after, limit=PAGE)):
            found += [one.log for one in page if one.log.startswith(prefix)]
            after = page[-1].log
            if not after.startswith(prefix) and after > prefix:
                break
        return found

    def rows(self, thread: str, log: str) -> Flow[list[Row]]:
        """Return all rows of a log."""
        found: list[Row] = []
        after: str | None = None
        while page := (yield from self.ask("rows", thread, log, after=after, limit=PAGE)):
            found += page
            after = page[-1].key
            if len(page) < PAGE:
                break
        return found

    def saved(self, thread: str, ns: str) -> Flow[dict[str, Saved]]:
        """Return the checkpoints of a namespace by id."""
        rows = yield from self.rows(thread, CHECKPOINTS + ns)
        return {row.key: read_saved(row.data) for row in rows}


def slices(keys: list[str]) -> Iterator[list[str]]:
    """Yield the keys in portions of one page."""
    for first in range(0, len(keys), PAGE):
        yield keys[first : first + PAGE]
