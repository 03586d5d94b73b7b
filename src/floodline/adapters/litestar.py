"""A store for Litestar: sessions, response caches and rate limits in any floodline store.

    root = FloodlineStore("sqlite:///app.db")
    app = Litestar([...], stores=StoreRegistry({"floodline": root}, root.with_namespace))

Expired values are removed automatically, without `delete_expired`.
"""

from __future__ import annotations

import time
from datetime import timedelta
from types import TracebackType
from urllib.parse import quote

from floodline._clock import Clock
from floodline._units import Duration
from floodline.adapters._extras import missing
from floodline.adapters._leased_values import KEYS_IN_MEMORY, LeasedValues, Value
from floodline.adapters._store_flows import Flow, FlowStore
from floodline.errors import ConfigError
from floodline.stores import RowStore

try:
    from litestar.stores.base import NamespacedStore
except ImportError as error:
    raise missing("Litestar", "litestar", error) from error

__all__ = ["FloodlineStore"]


class FloodlineStore(NamespacedStore):
    """Litestar's key-value store, with namespaces, safe with several workers.

    `store` is a URL or a store; without one the values are in memory, the 10,000 written last.
    `max_keys` is that number, over all namespaces, and `retention` deletes what was not written for
    that long; both are off by default for a store that you give. Values that have expired are
    looked for at every eighth `set`.
    """

    __slots__ = ("_flows", "_prefix", "_values")

    def __init__(
        self,
        store: RowStore | str | None = None,
        *,
        max_keys: int | None = None,
        retention: Duration | None = None,
        name: str = "litestar",
        clock: Clock = time.time,
    ) -> None:
        if store is None and max_keys is None:
            max_keys = KEYS_IN_MEMORY
        self._flows = FlowStore(store)
        self._values = LeasedValues(name, max_keys=max_keys, retention=retention, wall=clock)
        self.namespace, self._prefix = "", ""

    def with_namespace(self, namespace: str) -> FloodlineStore:
        """Return a store for a part of this one, which `delete_all` of this one deletes, too."""
        if not namespace:
            raise ConfigError("namespace='' must be a non-empty string")
        child = object.__new__(type(self))
        child._flows, child._values = self._flows, self._values
        # quoted, so that neither part of an id can be mistaken for the other
        child._prefix = f"{self._prefix}/{quote(namespace, safe='')}"
        child.namespace = f"{self.namespace}_{namespace}" if self.namespace else namespace
        return child

    async def set(
        self, key: str, value: str | bytes, expires_in: int | timedelta | None = None
    ) -> None:
        """Set a value, which is there until it expires, is deleted or must make room."""
        data = value.encode() if isinstance(value, str) else bytes(value)
        await self._flows.finish(self._values.put(self._id(key), data, _seconds(expires_in)))

    async def get(self, key: str, renew_for: int | timedelta | None = None) -> bytes | None:
        """Return a value; with `renew_for` one that expires does so that much later than now."""
        flow = self._values.get(self._id(key))
        found = await self._flows.arun(flow)
        seconds = _seconds(renew_for)
        if found is not None and found.expires_at is not None and seconds is not None:
            found = await self._flows.finish(self._renew(key, seconds))
        if found is None:
            return None
        data: bytes = found.data
        return data

    async def delete(self, key: str) -> None:
        """Delete a value, if it is there."""
        await self._flows.finish(self._values.delete(self._id(key)))

    async def delete_all(self) -> None:
        """Delete what is in this namespace and in those below it."""
        await self._flows.finish(self._delete_all())

    async def delete_expired(self) -> None:
        """Delete what has expired; there is no need to call this."""
        await self._flows.finish(self._delete_expired())

    async def exists(self, key: str) -> bool:
        """Return True if there is a value that has not expired."""
        return await self._flows.arun(self._values.get(self._id(key))) is not None

    async def expires_in(self, key: str) -> int | None:
        """Return the seconds that a value has left, -1 if it never expires, None without one."""
        found = await self._flows.arun(self._values.get(self._id(key)))
        if found is None:
            return None
        left = found.seconds_left(self._values.wall())
        return -1 if left is None else int(left)

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the store, unless it was given as an object or this is only a namespace of it."""
        if not self._prefix:
            self._flows.close()

    def _id(self, key: str) -> str:
        return f"{self._prefix}:{key}"

    def _renew(self, key: str, seconds: float) -> Flow[Value | None]:
        def later(value: Value | None) -> Value | None:
            if value is None or value.expires_at is None:
                return value
            return Value(value.data, self._values.wall() + seconds)

        return self._values.change(self._id(key), later)

    def _delete_all(self) -> Flow[None]:
        for prefix in (f"{self._prefix}:", f"{self._prefix}/"):
            for one in (yield from self._values.keys(prefix)):
                yield from self._values.delete(one)
        yield from self._values.delete(f"{self._prefix}:")  # the empty key is a key

    def _delete_expired(self) -> Flow[None]:
        for _ in range((yield from self._values.count()) // 100 + 1):
            yield from self._values.sweep(100)


def _seconds(given: int | timedelta | None) -> float | None:
    """Return the seconds; 0 stands for no end, as in Litestar's own stores."""
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    return float(seconds) if seconds else None
