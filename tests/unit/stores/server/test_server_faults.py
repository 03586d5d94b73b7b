"""Errors of servers, as their drivers raise them."""

from __future__ import annotations

import psycopg
import pytest
import redis

from floodline.errors import FloodlineError, StoreUnavailable, TooLarge
from floodline.stores._postgres import faults as postgres
from floodline.stores._redis import faults as valkey
from floodline.stores._server.times import Times


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (redis.exceptions.TimeoutError("slow"), "did not answer in time"),
        (redis.exceptions.BusyLoadingError("loading"), "still loading"),
        (redis.exceptions.ResponseError("NOREPLICAS Not enough"), "fewer replicas"),
        (redis.exceptions.ResponseError("MISCONF Errors writing"), "cannot save to its disk"),
        (redis.exceptions.ResponseError("MOVED 1 h:1"), "node of a cluster"),
        (redis.exceptions.ResponseError("ERR script: -OOM command"), "out of memory"),
        (redis.exceptions.ResponseError("something geheim"), r"refused an operation.*\*\*\*"),
        (redis.exceptions.ConnectionError(""), "cannot be reached"),
    ],
)
def test_what_redis_says_becomes_a_next_step(error: Exception, said: str) -> None:
    with pytest.raises(StoreUnavailable, match=f"me:\\*\\*\\*@h.*{said}") as caught:
        raise valkey.translate(error, "redis://me:geheim@h/0")
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    ("state", "said", "kind"),
    [
        ("53100", "no disk space", StoreUnavailable),
        ("53400", "short of resources", StoreUnavailable),
        ("40001", "give way", StoreUnavailable),
        ("57P01", "shut down", StoreUnavailable),
        ("54000", "of that size", TooLarge),
        ("22012", "refused an operation", StoreUnavailable),
    ],
)
def test_what_postgres_says_becomes_a_next_step(
    state: str, said: str, kind: type[FloodlineError]
) -> None:
    error = (
        psycopg.errors.lookup(state)("no") if state != "57P01" else psycopg.errors.AdminShutdown()
    )
    with pytest.raises(kind, match=said):
        raise postgres.translate(error, "postgresql://me:geheim@h/db")
    assert postgres.needs_another_server(error) == (state == "57P01")


def test_one_clock_serves_as_both() -> None:
    times = Times(lambda: 5.0, None)
    assert times.read() == (5.0, 5.0, 5.0)
    assert times.judge(None, None) == (5.0, 5.0, 5.0)
