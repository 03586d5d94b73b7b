"""The store on a Redis or Valkey server."""

from __future__ import annotations

from floodline._clock import Clock
from floodline._units import Duration, parse_count, parse_duration
from floodline.errors import ConfigError
from floodline.stores._redis.ear import RedisEar
from floodline.stores._redis.operations import Operations
from floodline.stores._redis.wire import RedisWire, Target
from floodline.stores._server.addresses import check_scheme, mask, need
from floodline.stores._server.link import Link
from floodline.stores._server.listening import Listener
from floodline.stores._server.on_loop import OnLoop, WriterOf
from floodline.stores._server.store import ServerStore
from floodline.stores._server.talk import Talk
from floodline.stores._server.times import Times

SCHEMES = ("redis", "rediss", "valkey", "valkeys", "unix")


class RedisStore(ServerStore):
    """Sessions on a Redis or Valkey server, which any number of machines may share.

    `url` is `redis://`, `rediss://` (TLS), `valkey://`, `valkeys://` or `unix://`, with what
    redis-py takes after a `?`. `prefix` begins every key, so that several stores can share a
    server. `timeout` is how long a call may wait for an answer. `wait_replicas` is how many
    replicas must have a write before it counts as done: a failover then loses less. `connections`
    is the most that this store opens for calls, which share a round trip if they come together:
    the last is for lists, figures and retention, the others for sessions; one more hears when a
    session becomes free. A server that evicts any key is refused unless
    `accept_eviction` is True.

    All calls run on a thread for each connection. `aio` is the coroutine twin: an event loop that
    makes many calls has one more connection, on which it asks without a thread, except with TLS or
    `wait_replicas`.
    `clock` and `wall` are for tests: without them leases and retention run on the server's clock.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "floodline",
        timeout: Duration = "5 s",
        wait_replicas: int = 0,
        connections: int = 2,
        accept_eviction: bool = False,
        clock: Clock | None = None,
        wall: Clock | None = None,
    ) -> None:
        check_scheme(url, SCHEMES, "redis://host:6379/0")
        if not prefix or set(prefix) & set("{}"):
            raise ConfigError(f"prefix={prefix!r} cannot begin a key; give letters and digits")
        if wait_replicas != 0:
            parse_count(wait_replicas, "wait_replicas")
        target = Target(
            url=url,
            prefix=prefix,
            timeout=parse_duration(timeout, "timeout"),
            wait_replicas=wait_replicas,
            accept_eviction=accept_eviction,
        )
        need("redis", "redis", mask(url))
        channel = f"{{{prefix}}}:leases".encode()
        listener = Listener(lambda: RedisEar(target, channel))
        self._operations = operations = Operations(
            Times(clock, wall), listener.tells, confirmed=wait_replicas > 0
        )
        links = [
            Link(lambda: RedisWire(target, operations), operations.operate)
            for _ in range(parse_count(connections, "connections"))
        ]

        def on_loop(writer_of: WriterOf) -> OnLoop:
            def talk() -> Talk | None:
                return RedisWire(target, operations).talk()

            return OnLoop(talk, operations.operate, writer_of, target.timeout)

        super().__init__(mask(url), links, listener, on_loop=on_loop)

    def _lease_token(self, name: str, id: str) -> bytes:
        return f"{len(name.encode())}:{name}{id}".encode()

    def _owner_token(self, owner: str) -> bytes:
        return owner.encode()
