"""Calls while a server is down, slow, full or read-only, or the wire is cut [T9]."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from floodline import AsyncSessions, Conversation, Sessions
from floodline.errors import (
    ConfigError,
    SessionConflict,
    StoreCorrupt,
    StoreError,
    StoreTooNew,
    StoreUnavailable,
)
from floodline.stores import Held, PostgresStore, RedisStore, open_store
from floodline.stores._postgres.schema import SCHEMA
from floodline.stores._postgres.wire import _LOCK
from floodline.stores._server.link import Unanswered
from floodline.stores._writer import Call
from loopback_proxy import Proxy
from servers import (
    Postgres,
    RedisWithTls,
    Valkey,
    asked,
    folder_of,
    free_port,
    put,
    running,
    take,
    told,
)


@pytest.fixture
def own() -> Iterator[Valkey]:
    """A Valkey of this test alone, to be treated badly."""
    with folder_of("valkey") as folder:
        server = Valkey(folder, "--appendfsync", "always", "--repl-diskless-sync-delay", "0")
        yield server
        server.end()


def replication(server: Valkey) -> bytes:
    import redis

    with redis.Redis(port=server.port) as client:
        client.set_response_callback("INFO", lambda answer, **_: answer)
        return bytes(client.execute_command("INFO", "replication"))


# -- up and down


def test_a_store_goes_on_after_its_server_was_restarted(server: Any, opened: Any) -> None:
    if server.kind == "redis":  # the second that it may lose otherwise would be ours
        told(server, "CONFIG", "SET", "appendfsync", "always")
    store = opened()
    version = put(store, b"one")
    held = take(store, "held")
    server.end()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        store.load("chat", "a")
    server.start()
    assert store.load("chat", "a").envelope == b"one"
    assert put(store, b"two") > version + 1000  # lost versions may have had the next numbers
    if server.kind == "redis":  # on PostgreSQL a lease does not wait for the disk
        save = {"fence": held.fence, "version": 0, "write_id": "w", "release": True}
        assert store.save("chat", "held", b"x", **save) > 0
    assert take(store, "held", owner="you" if server.kind == "redis" else "me").fence > held.fence


def test_a_restart_between_two_calls_is_not_noticed(server: Any, opened: Any) -> None:
    store = opened()
    grant = take(store)
    server.end(signal.SIGINT if server.kind == "postgres" else signal.SIGTERM)
    server.start()
    version = store.save(
        "chat", "a", b"x", fence=grant.fence, version=0, write_id="w", release=True
    )
    assert store.written("chat", "a", "w") == version


def test_a_server_that_is_not_there_is_an_error_that_names_it() -> None:
    for url in ("redis://me:geheim@127.0.0.1:1/0", "postgresql://me:geheim@127.0.0.1:1/db"):
        with pytest.raises(StoreUnavailable, match=r"me:\*\*\*@127.0.0.1:1.*cannot be") as caught:
            open_store(url)
        assert "geheim" not in str(caught.value)


def test_a_server_that_does_not_answer_is_not_waited_for_forever(server: Any, opened: Any) -> None:
    store = opened(timeout="400 ms", connections=1)
    put(store, b"one")
    backends = [server.process.pid]
    if server.kind == "postgres":
        sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
        backends = [pid for (pid,) in asked(server, sql)]
    for pid in backends:
        send(pid, signal.SIGSTOP)
    with pytest.raises(StoreUnavailable, match="unknown"):
        store.load("chat", "a")
    for pid in backends:
        send(pid, signal.SIGCONT)
    assert opened().load("chat", "a").envelope == b"one"
    assert put(store, b"two") > 1


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # the connection that asked for it
        os.kill(pid, number)


# -- a wire that is cut


def test_a_lost_answer_is_asked_for_again_and_the_write_counts_once(
    server: Any, opened: Any
) -> None:
    with Proxy(server.port) as proxy:
        store = opened(proxy.port, connections=1)
        grant = take(store)
        proxy.cut_answers = 1
        terms = {"fence": grant.fence, "version": 0, "write_id": "w", "release": True}
        assert store.save("chat", "a", b"one", **terms) == 1
        assert proxy.cut_answers < 0
        proxy.cut_answers = 1
        assert take(store, known=1).envelope is None
        proxy.cut()
        assert store.load("chat", "a").version == 1
    direct = opened()
    assert direct.load("chat", "a").envelope == b"one"
    assert direct.conflicts() == []


def test_an_outcome_that_stays_unknown_is_said_to_be_and_can_be_looked_up(
    server: Any, opened: Any
) -> None:
    with Proxy(server.port) as proxy:
        store = opened(proxy.port, connections=1)
        put(store, b"x", "other")
        store.delete("chat", "other", fence=take(store, "other").fence)  # it knows the scripts now
        grant = take(store)
        proxy.cut_answers = 1000
        terms = {"fence": grant.fence, "version": 0, "write_id": "w", "release": True}
        with pytest.raises(StoreUnavailable):
            store.save("chat", "a", b"one", **terms)
        proxy.cut_answers = 0
        assert store.written("chat", "a", "w") == store.load("chat", "a").version
        proxy.cut_answers = 1
        grant = take(store)
        proxy.cut_answers = 1
        with pytest.raises(StoreUnavailable, match="whether it was done is unknown"):
            store.delete("chat", "a", fence=grant.fence)
        assert store.load("chat", "a") is None


def test_a_write_is_known_by_its_id_after_others_have_written(opened: Any) -> None:
    store = opened()
    grant = take(store)
    terms = {"fence": grant.fence, "version": 0, "write_id": "mine", "release": True}
    assert store.save("chat", "a", b"mine", **terms) == 1
    for n in range(4):
        put(store, b"theirs", write_id=f"theirs {n}")
    assert store.save("chat", "a", b"mine", **terms) == 1
    put(store, b"theirs", write_id="one more")
    with pytest.raises(SessionConflict):
        store.save("chat", "a", b"mine", **terms)
    assert store.load("chat", "a").envelope == b"theirs"


# -- servers that refuse


def test_a_read_only_server_is_an_error_that_says_so(own: Valkey, pg: Postgres) -> None:
    with RedisStore(own.url) as store:
        put(store, b"one")
        told(own, "REPLICAOF", "127.0.0.1", "1")
        with pytest.raises(StoreUnavailable, match="read-only replica"):
            put(store, b"two")
        with pytest.raises(StoreUnavailable, match="read-only replica"):
            RedisStore(own.url)
        told(own, "REPLICAOF", "NO", "ONE")
        assert put(store, b"two") == 2
    PostgresStore(pg.url).close()
    with pytest.raises(StoreUnavailable, match="only reads"):
        PostgresStore(f"{pg.url}?options=-cdefault_transaction_read_only%3Don")


def test_a_full_server_refuses_to_grow_and_lets_go(own: Valkey) -> None:
    with RedisStore(own.url) as store:
        put(store, b"one")
        grant = take(store)
        told(own, "CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(StoreUnavailable, match="out of memory"):
            store.save("chat", "a", b"x", fence=grant.fence, version=1, write_id="w", release=True)
        assert store.written("chat", "a", "w") is None
        assert store.renew("chat", "me", {"a": grant.fence}, lease=15.0) == set()
        assert store.delete("chat", "a", fence=grant.fence)
        told(own, "CONFIG", "SET", "maxmemory", "0")
        assert put(store, b"again") > 1


def test_a_server_without_connections_left_says_so(own: Valkey, pg: Postgres) -> None:
    told(own, "CONFIG", "SET", "maxclients", "1")
    with RedisStore(own.url, connections=1) as store:
        assert store.count("chat") == 0
        with pytest.raises(StoreUnavailable, match="no connection left"):
            RedisStore(own.url)
    asked(pg, "CREATE ROLE nobody LOGIN CONNECTION LIMIT 0")
    with pytest.raises(StoreUnavailable, match="no connection left"):
        PostgresStore(pg.url.replace("postgres@", "nobody@"))
    asked(pg, "DROP ROLE nobody")


def test_a_user_without_rights_and_a_wrong_password_are_told(own: Valkey, pg: Postgres) -> None:
    told(own, "CONFIG", "SET", "requirepass", "richtig")
    wrong = own.url.replace("//", "//default:geheim@")
    with pytest.raises(StoreUnavailable, match="password") as caught:
        RedisStore(wrong)
    assert "geheim" not in str(caught.value)
    with pytest.raises(StoreUnavailable, match="wants a password"):
        RedisStore(own.url)
    RedisStore(own.url.replace("//", "//default:richtig@")).close()
    asked(pg, "CREATE ROLE guest LOGIN")
    with pytest.raises(StoreUnavailable, match="does not allow this user"):
        PostgresStore(pg.url.replace("postgres@", "guest@"), schema="another")
    asked(pg, "DROP ROLE guest")
    with pytest.raises(StoreUnavailable, match="no such database"):
        PostgresStore(pg.url.removesuffix("postgres") + "nowhere")
    with pytest.raises(StoreUnavailable, match="does not accept the user"):
        PostgresStore(pg.url.replace("postgres@", "somebody@"))


def test_what_is_not_ours_is_left_alone(own: Valkey, pg: Postgres) -> None:
    told(own, "SET", "{floodline}:meta", "something else")
    with pytest.raises(StoreCorrupt, match="other data"):
        RedisStore(own.url)
    told(own, "DEL", "{floodline}:meta")
    told(own, "HSET", "{floodline}:meta", "schema", "99", "born", "x")
    with pytest.raises(StoreTooNew, match="schema 99"):
        RedisStore(own.url)
    told(own, "HSET", "{floodline}:meta", "schema", "1")
    with pytest.raises(StoreError, match=r"older version.*another prefix"):
        RedisStore(own.url)
    PostgresStore(pg.url).close()
    asked(pg, "UPDATE floodline.meta SET version = 99")
    with pytest.raises(StoreTooNew, match="schema 99"):
        PostgresStore(pg.url)
    asked(pg, "UPDATE floodline.meta SET version = 1")
    with pytest.raises(StoreError, match=r"older version.*another schema"):
        PostgresStore(pg.url)
    asked(pg, f"UPDATE floodline.meta SET version = {SCHEMA}")
    with PostgresStore(pg.url, schema="damaged") as store:
        asked(pg, "DROP TABLE damaged.leases CASCADE")
        with pytest.raises(StoreCorrupt, match="lacks what a store has"):
            take(store)
    asked(pg, "DROP SCHEMA damaged CASCADE")


def test_several_processes_may_find_an_empty_server_at_once(pg: Postgres) -> None:
    import psycopg

    problems: list[Exception] = []

    def open_one() -> None:
        try:
            PostgresStore(pg.url, schema="crowd", timeout="30 s").close()
        except Exception as error:
            problems.append(error)

    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    threads = [threading.Thread(target=open_one) for _ in range(3)]
    with psycopg.connect(pg.url, autocommit=True) as first:
        first.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))  # they all wait to create the tables
        for thread in threads:
            thread.start()
        until = time.monotonic() + 30
        while first.execute(waiting).fetchone() != (3,):
            assert time.monotonic() < until, problems
    for thread in threads:
        thread.join()
    assert problems == []
    asked(pg, "DROP SCHEMA crowd CASCADE")


# -- what would lose rows


def test_a_server_that_evicts_is_refused(own: Valkey) -> None:
    told(own, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    with pytest.warns(RuntimeWarning, match="evicts any key"):
        RedisStore(own.url).close()
    told(own, "CONFIG", "SET", "maxmemory", "100mb")
    with pytest.raises(ConfigError, match="CONFIG SET maxmemory-policy noeviction"):
        RedisStore(own.url)
    RedisStore(own.url, accept_eviction=True).close()
    told(own, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")  # ours never expire
    RedisStore(own.url).close()


def test_a_server_that_forgets_is_warned_of(own: Valkey, pg: Postgres) -> None:
    told(own, "CONFIG", "SET", "appendonly", "no")
    with pytest.warns(RuntimeWarning, match="CONFIG SET appendonly yes"):
        RedisStore(own.url).close()
    told(own, "CONFIG", "SET", "save", "60 1")
    RedisStore(own.url).close()
    with pytest.warns(RuntimeWarning, match="ALTER SYSTEM SET synchronous_commit = on"):
        PostgresStore(f"{pg.url}?options=-csynchronous_commit%3Doff").close()


def test_a_server_that_lost_everything_is_not_asked_for_differences(own: Valkey) -> None:
    with RedisStore(own.url, connections=1) as store:
        assert put(store, b"old") == 1
        told(own, "FLUSHALL")
        with RedisStore(own.url) as other:
            assert put(other, b"new") == 1
        told(own, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert take(store, known=1).envelope == b"new"
    with RedisStore(own.url, connections=1) as store:
        told(own, "FLUSHALL")  # with us watching: versions begin above the time
        assert put(store, b"x") > 1_000_000


# -- replicas


def test_a_promoted_replica_that_lagged_accepts_nothing_stale(own: Valkey) -> None:
    with folder_of("valkey") as folder, running(Valkey(folder)) as replica:
        told(replica, "REPLICAOF", "127.0.0.1", str(own.port))
        with RedisStore(own.url) as store:
            while b"master_link_status:up" not in replication(replica):
                threading.Event().wait(0.01)
            with RedisStore(own.url, wait_replicas=1) as careful:
                assert put(careful, b"one") == 1
            told(replica, "REPLICAOF", "NO", "ONE")  # it is cut off from here on
            old = take(store)
            lost = store.save(
                "chat", "a", b"lost", fence=old.fence, version=1, write_id="w2", release=False
            )
        own.end()
        with RedisStore(replica.url) as store:
            new = take(store, owner="you", known=lost)
            assert (new.version, new.envelope) == (1, b"one")
            assert new.fence > old.fence
            for version in (1, lost):
                with pytest.raises(SessionConflict):
                    store.save(
                        "chat",
                        "a",
                        b"stale",
                        fence=old.fence,
                        version=version,
                        write_id="w3",
                        release=False,
                    )
            terms = {"fence": new.fence, "version": 1, "write_id": "w4", "release": True}
            assert store.save("chat", "a", b"two", **terms) != lost
            assert take(store, known=lost).envelope == b"two"


def test_a_write_that_too_few_replicas_have_is_not_done(own: Valkey) -> None:
    with RedisStore(own.url, wait_replicas=1, timeout="2 s") as store:
        grant = take(store)
        terms = {"fence": grant.fence, "version": 0, "write_id": "w", "release": True}
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
            store.save("chat", "a", b"x", **terms)
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
            store.written("chat", "a", "w")
        assert store.load("chat", "a").version == 1


# -- processes, threads and loops


def test_a_forked_child_has_connections_of_its_own(opened: Any) -> None:
    store = opened()
    put(store, b"parent")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            put(store, b"child")
            store.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.load("chat", "a").envelope == b"child"
    assert put(store, b"parent again") == 3


def test_a_child_that_was_forked_in_the_middle_of_a_call_leaves_its_parent_alone(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from floodline.stores import _forks as forks

    monkeypatch.setattr(forks, "_FORK_PATIENCE", 0.01)
    store = opened(connections=1)
    put(store, b"parent")
    with store._writers[0]._running:  # as if a call were on its way
        child = os.fork()
        if child == 0:
            code = 1
            try:
                put(store, b"child")
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    wire = store._writers[0]._runner._wire
    assert put(store, b"parent again") == 3
    assert store._writers[0]._runner._wire is wire  # it was not closed behind our back


def test_closing_leaves_no_thread_and_no_connection(server: Any, opened: Any) -> None:
    def connections() -> int:
        if server.kind == "redis":
            return len(told(server, "CLIENT", "LIST").decode().splitlines())
        sql = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        return int(asked(server, sql)[0][0])

    threads, before = set(threading.enumerate()), connections()
    store = opened(connections=3)
    workers = [
        threading.Thread(target=lambda n=n: [put(store, b"x", f"{n}.{k}") for k in range(5)])
        for n in range(6)
    ]
    for one in workers:
        one.start()
    for one in workers:
        one.join(60)
    assert store.count("chat") == 30
    assert connections() <= before + 3
    store.close()
    assert set(threading.enumerate()) <= threads
    last = connections()
    for _ in range(200):
        if last <= before:
            break
        threading.Event().wait(0.01)
        last = connections()
    assert last <= before


def test_sessions_live_on_a_server(
    server: Any, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    opened()
    with Sessions(dict, store=server.url, name="chats") as sessions:
        with sessions.use("alice") as state:
            state["turns"] = 1
        assert "***" not in repr(sessions)
    monkeypatch.setenv("FLOODLINE_STORE", server.url)

    async def main() -> None:
        sessions = AsyncSessions(dict, name="chats")
        async with sessions, sessions.use("alice") as state:
            assert state == {"turns": 1}
            state["turns"] = 2

    asyncio.run(main())
    with open_store(server.url) as store:
        assert store.ids("chats") == ["alice"]


@pytest.mark.parametrize("scheme", ["redis", "postgresql"])
def test_an_event_loop_does_not_wait_for_a_server_to_accept(scheme: str) -> None:
    import asyncio

    url = f"{scheme}://127.0.0.1:{free_port()}/0"

    async def main() -> None:
        with open_store(url) as store, pytest.raises(StoreUnavailable):  # not while it opens
            await store.aio.count("chat")

    with pytest.raises(StoreUnavailable):
        open_store(url)
    asyncio.run(main())


@dataclass
class Desk:
    chat: Conversation = field(
        default_factory=lambda: Conversation(max_messages=3, archive="session", archive_id="c")
    )


def test_a_conversation_inside_a_state_asks_the_server_for_nothing(opened: Any) -> None:
    store = opened()
    with Sessions(Desk, store=store, name="desks") as sessions:
        for first in (0, 8):
            with sessions.use("alice") as desk:
                ask, store._ask = store._ask, None
                for n in range(first, first + 8):
                    desk.chat.append({"role": "user", "content": f"{n}"})
                store._ask = ask
                archived = [int(one["content"]) for one in desk.chat.archived()]
                assert archived == list(range(first + 5))
            assert store.count_rows("desks", "alice") == first + 5


def test_sockets_in_the_file_system_work(pg: Postgres) -> None:
    with PostgresStore(
        f"postgresql:///postgres?host={pg.folder}&port={pg.port}&user=postgres"
    ) as s:
        assert s.count("chat") == 0
    with folder_of("valkey") as folder:
        path = Path(folder, "socket")
        server = Valkey(folder, "--unixsocket", str(path))
        with running(server), open_store(f"unix://{path}?db=1") as store:
            assert store.stats().kind == "redis"


@pytest.mark.skipif(
    shutil.which("redis-server") is None or shutil.which("openssl") is None,
    reason="no redis-server with TLS here: Debian has it",
)
def test_a_server_is_reached_by_tls_if_its_certificate_is_known() -> None:
    with folder_of("redis") as folder, running(RedisWithTls(folder)) as server:
        with open_store(server.url) as store, open_store(server.url) as other:
            put(store, b"one")
            grant, bell = take(store), other.bell("chat", "a")  # listening goes by TLS, too
            assert bell.wait(60)
            assert isinstance(other.acquire("chat", "a", "you", lease=15.0), Held)
            store.release("chat", "a", grant.fence)
            assert bell.wait(60)
            assert other.load("chat", "a").envelope == b"one"
        with pytest.raises(StoreUnavailable, match="certificate verify failed"):
            open_store(f"rediss://localhost:{server.port}/0")
        with pytest.raises(StoreUnavailable):
            open_store(f"redis://localhost:{server.port}/0")


def test_the_first_server_of_several_that_can_write_is_used(pg: Postgres, postgres: Any) -> None:
    hosts = f"127.0.0.1:1,127.0.0.1:{pg.port}"
    url = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"
    with open_store(url) as store:
        assert put(store, b"one") == 1
        assert store.bell("chat", "a").wait(60)
    with pytest.raises(StoreUnavailable):
        open_store(url.replace("read-write", "standby"))


# -- what else can happen


def test_a_lone_caller_who_is_interrupted_leaves_no_half_read_answer(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(connections=1)
    put(store, b"one")
    wire = store._writers[0]._runner._wire
    monkeypatch.setattr(type(wire), "exchange", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.load("chat", "a")
    monkeypatch.undo()
    assert store.load("chat", "a").envelope == b"one"
    assert store._writers[0]._runner._wire is not wire


def _interrupted(*_: Any) -> Any:
    raise KeyboardInterrupt


def test_an_error_of_ours_reaches_the_caller_as_one_of_the_store(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(connections=1)
    wire = store._writers[0]._runner._wire
    monkeypatch.setattr(type(wire), "exchange", lambda *_: 1 / 0)
    with pytest.raises(StoreUnavailable, match="ZeroDivisionError"):
        store.count("chat")


def test_a_store_that_nobody_closed_closes_its_connections(opened: Any, server: Any) -> None:
    url = server.url
    store = RedisStore(url) if server.kind == "redis" else PostgresStore(url)
    wire = store._writers[0]._runner._wire
    assert repr(store) == f"{type(store).__name__}({url!r})"
    del store
    gc.collect()
    assert not wire.usable()


def test_one_statement_that_fails_does_not_harm_its_batch(pg: Postgres, postgres: Any) -> None:
    with postgres(connections=1) as store:
        put(store, b"one")
        requests = [
            store._operations.operate(Call("load", ("chat", "a"))).send(None),
            store._operations.operate(Call("count", ("chat",))).send(None),
        ]
        broken = requests[1]._replace(sql="SELECT 1 / 0 + count(*) FROM floodline.totals")
        wire = store._writers[0]._runner._wire
        good, bad = wire.exchange([requests[0], broken._replace(params=())])
        assert good == [(1, b"one")]
        assert isinstance(bad, StoreUnavailable)
        terminated = requests[1]._replace(
            sql="SELECT pg_terminate_backend(pg_backend_pid())", params=()
        )
        lost = wire.exchange([requests[0], terminated])
        assert all(isinstance(reply, Unanswered) and reply.again for reply in lost)
        assert not wire.usable()
        assert store.count("chat") == 1


def test_a_server_of_another_isolation_level_is_used_at_ours(pg: Postgres, postgres: Any) -> None:
    url = f"{pg.url}?options=-cdefault_transaction_isolation%3Dserializable"
    with PostgresStore(url, connections=1) as store:
        put(store, b"one")
        connection = store._writers[0]._runner._wire._connection
        (level,) = connection.execute("SHOW transaction_isolation").fetchone()
        assert level == "read committed"


def test_a_session_is_found_by_its_key_before_any_statistics(pg: Postgres) -> None:
    def index(sql: str) -> str:
        listed = " ".join(line for (line,) in asked(pg, f"EXPLAIN (GENERIC_PLAN) {sql}"))
        return listed.partition("Index Scan using ")[2].split(maxsplit=1)[0]

    with PostgresStore(pg.url, schema="unknown"):
        some = "SELECT version FROM unknown.sessions WHERE"
        assert index(f"{some} name = $1 AND id = $2") == "sessions_pkey"
        assert index(f"{some} name || '' = $1 AND slot <= $2") == "sessions_by_slot"
    asked(pg, "DROP SCHEMA unknown CASCADE")


def test_the_servers_clock_judges_what_is_unused(opened: Any) -> None:
    store = opened()
    put(store, b"one")
    assert store.purge("chat", unused=3600, limit=10) == []
    assert store.purge("chat", unused=0, limit=10) == ["a"]
    assert opened().purge("chat", unused=3600, limit=10) == []  # resumes what was noted
    assert store.renew("chat", "me", {}, lease=15.0) == set()
