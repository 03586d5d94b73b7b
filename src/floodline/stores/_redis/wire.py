"""One connection to a Redis or Valkey server, on the raw connection of redis-py.

A pipeline of redis-py would throw away the replies that came before the connection broke, and may
send a batch again by itself; here every request has its own reply, or is known to have none.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from floodline.errors import ConfigError, FloodlineError, StoreUnavailable
from floodline.stores._redis.batches import Batch, batches
from floodline.stores._redis.faults import code_of, needs_another_server, translate
from floodline.stores._redis.lease_scripts import SCHEMA
from floodline.stores._redis.operations import Operations
from floodline.stores._redis.requests import Request
from floodline.stores._redis.risks import check_risks
from floodline.stores._redis.scripts import Script, scripts_for
from floodline.stores._redis.talk import RedisTalk
from floodline.stores._server.addresses import conceal, mask, need
from floodline.stores._server.layout import check_layout
from floodline.stores._server.link import Unanswered

_SIZES = [b"$%d\r\n" % size for size in range(64)]
_KEEPS = frozenset({"save", "delete", "quarantine", "confirm", "append_rows", "delete_rows"})


@dataclass(slots=True, frozen=True)
class Target:
    """Where to connect to, and what to ask of the server."""

    url: str = field(repr=False)  # error trackers show what variables hold
    prefix: str
    timeout: float
    wait_replicas: int
    accept_eviction: bool


class RedisWire:
    """Sends requests together and reads their replies one by one."""

    def __init__(self, target: Target, operations: Operations) -> None:
        redis: Any = need("redis", "redis", mask(target.url))
        self._target = target
        self._errors = redis.exceptions
        self._root = f"{{{target.prefix}}}:".encode()
        self._usable = True
        self._connection: Any = connection_to(redis, target)
        try:
            self._connection.connect()
            self._scripts: dict[str, Script] = {}
            self._greet(operations)
        except FloodlineError:
            self.close()
            raise
        except (self._errors.RedisError, OSError) as error:
            self.close()
            raise translate(error, target.url) from error

    def exchange(self, requests: Sequence[Request]) -> list[Any]:
        """See `Wire.exchange`."""
        replies: list[Any] = [None] * len(requests)
        failed = self._run(batches(requests, range(len(requests))), replies)
        if failed and self._usable:  # of several callers: by one of them, perhaps
            self._run(batches(requests, failed, most=1), replies)
        if self._target.wait_replicas and self._usable:
            self._wait_for_replicas(requests, replies)
        return [self._told(reply) for reply in replies]

    def usable(self) -> bool:
        """See `Wire.usable`."""
        return self._usable

    def close(self) -> None:
        """See `Wire.close`."""
        self._usable = False
        with suppress(Exception):  # whatever it is, the connection is gone
            self._connection.disconnect()

    def talk(self) -> RedisTalk | None:
        """Return the same connection for an event loop; close it if that cannot use it."""
        sock = self._connection._sock
        if type(sock) is not socket.socket or self._target.wait_replicas:  # TLS has its own ways
            self.close()
            return None
        return RedisTalk(self, sock)

    def packed(self, runs: Sequence[Batch]) -> bytes:
        """See `Connected.packed`."""
        return _packed([self._command(one) for one in runs])

    disown = close  # redis-py says nothing to the server when a child closes

    def _run(self, runs: Sequence[Batch], replies: list[Any]) -> list[int]:
        """Run scripts; return the places of requests that failed together with others."""
        said = self._round([self._command(one) for one in runs])
        missing = [
            n
            for n, reply in enumerate(said)
            if isinstance(reply, Exception) and code_of(reply) == "NOSCRIPT"
        ]
        if missing and self._usable:  # the server was emptied of its scripts, or is another one
            again = self._round([self._command(runs[n], whole=True) for n in missing])
            for n, reply in zip(missing, again, strict=True):
                said[n] = reply
        failed: list[int] = []
        for one, reply in zip(runs, said, strict=True):
            one.answer(reply, replies)
            if isinstance(reply, Exception) and len(one.places) > 1:
                failed += one.places
        return failed

    def _command(self, one: Batch | Request, *, whole: bool = False) -> tuple[Any, ...]:
        script = self._scripts[one.what]
        start = ("EVAL", script.text) if whole else ("EVALSHA", script.digest)
        return (*start, 1, self._root, *one.head, *one.args)

    def _round(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        replies: list[Any] = []
        errors = self._errors
        try:
            connection = self._connection
            connection.send_packed_command([_packed(commands)], check_health=False)
            for _ in commands:
                try:
                    reply = connection.read_response(disable_decoding=True)
                except errors.ResponseError as error:
                    reply = error
                except (errors.ConnectionError, errors.TimeoutError) as error:
                    if not code_of(error):  # `LOADING` is an answer, and a ConnectionError
                        raise
                    reply = error
                replies.append(reply)
                if isinstance(reply, Exception) and needs_another_server(reply):
                    self._usable = False
        except (errors.RedisError, OSError) as error:
            self.close()
            # one that is slow would be as slow again
            lost = Unanswered(
                self.outcome_unknown(error), again=not isinstance(error, errors.TimeoutError)
            )
            replies += [lost] * (len(commands) - len(replies))
        return replies

    def outcome_unknown(self, error: BaseException) -> FloodlineError:
        """See `Connected.outcome_unknown`."""
        mine = translate(error, self._target.url)
        said = f"{mine}; whether it was done is unknown"
        unknown = StoreUnavailable(said)
        unknown.__cause__ = error
        return unknown

    def _told(self, reply: Any) -> Any:
        if isinstance(reply, Exception) and not isinstance(reply, (Unanswered, FloodlineError)):
            return translate(reply, self._target.url)
        return reply

    def _wait_for_replicas(self, requests: Sequence[Request], replies: list[Any]) -> None:
        """Make of what too few replicas have an unknown outcome."""
        kept = [
            n
            for n, request in enumerate(requests)
            if request.what in _KEEPS and not isinstance(replies[n], Exception)
        ]
        if not kept:
            return
        wanted, patience = self._target.wait_replicas, round(self._target.timeout * 500)
        (have,) = self._round([("WAIT", wanted, patience)])
        if isinstance(have, int) and have >= wanted:
            return
        if isinstance(have, int):
            error: Any = StoreUnavailable(
                f"{mask(self._target.url)!r} has it, but only {have} of {wanted} replicas do "
                f"after {patience / 1000:.3g} s; whether it survives a failover is unknown"
            )
            have = Unanswered(error, again=False)
        for n in kept:
            replies[n] = have

    def _greet(self, operations: Operations) -> None:
        """Learn which server this is, and make the store known to it."""
        (info,) = self._asked(("INFO",))
        facts = dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)
        major = int(facts.get("redis_version", "7").split(".")[0])
        self._scripts = scripts_for(major)
        check_risks(facts, self._asked, self._target.url, self._target.accept_eviction)
        mine = operations.greeting(facts.get("run_id", ""))
        schema, born = self._asked(self._command(mine, whole=True))[0]
        check_layout(self._target.url, int(schema), SCHEMA, "prefix")
        operations.meet(born)

    def _asked(self, *commands: tuple[Any, ...]) -> list[Any]:
        replies = self._round(commands)
        for reply in replies:
            if isinstance(reply, Unanswered):
                raise reply.error
            if isinstance(reply, Exception):
                raise reply
        return replies


def connection_to(redis: Any, target: Target) -> Any:
    """Make one connection for a URL, of which redis-py knows only its own schemes."""
    url = target.url
    for ours, theirs in (("valkeys://", "rediss://"), ("valkey://", "redis://")):
        if url.startswith(ours):
            url = theirs + url.removeprefix(ours)
    try:
        pool = redis.ConnectionPool.from_url(
            url, protocol=2, socket_timeout=target.timeout, socket_connect_timeout=target.timeout
        )
        return pool.make_connection()
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"{mask(target.url)!r} cannot be used: {conceal(str(error), target.url)}"
        ) from None  # the original may show a password


def _packed(commands: Sequence[tuple[Any, ...]]) -> bytes:
    """Return commands as the server reads them, in a third of the time that redis-py takes."""
    parts: list[bytes] = []
    for command in commands:
        parts.append(b"*%d\r\n" % len(command))
        for term in command:
            kind = type(term)
            if kind is str:
                term = term.encode()
            elif kind is int:
                term = b"%d" % term
            size = len(term)
            parts += (_SIZES[size] if size < 64 else b"$%d\r\n" % size, term, b"\r\n")
    return b"".join(parts)
