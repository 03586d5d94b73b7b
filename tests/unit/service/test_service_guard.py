"""Who may ask, for what, how much at once; and what the answers and the log say."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque

import httpx
import pytest

from floodline import AsyncSessions, Sessions, telemetry
from floodline._service import Limits, Tenants, make_service
from floodline._service._http import events
from floodline._service._http.guard import Door
from floodline._service._refusals import Refusal
from floodline.errors import ConfigError
from floodline.stores import MemoryStore
from service_items import Asking, text

ACME, ADMIN = ("acme", "acme-secret"), ("admin", "admin-secret")


def bearer(pair):
    return {"authorization": f"Bearer {pair[1]}"}


@pytest.fixture
def service(loop, tmp_path):
    """Return a function that asks the whole service, with two tenants and an administrator."""
    tenants = Tenants.of([ACME, ("other", "other-secret"), ADMIN])
    limits = Limits(store=f"sqlite:///{tmp_path}/s.db", drain=0, grace=1)
    app = make_service(limits, tenants, Door())
    context = app.router.lifespan_context(app)
    loop.run_until_complete(context.__aenter__())
    yield Asking(app, loop)
    loop.run_until_complete(context.__aexit__(None, None, None))


def test_a_tenant_sees_its_own_conversations_only(service):
    made = service("POST", "/v1/conversations", json={}, headers=bearer(ACME)).json()
    path = f"/v1/conversations/{made['id']}"
    assert service("GET", path, headers=bearer(ACME)).status_code == 200
    for method, where in [("GET", path), ("DELETE", path), ("GET", f"{path}/items")]:
        assert service(method, where, headers=bearer(("", "other-secret"))).status_code == 404
    assert service("GET", path, headers=bearer(ADMIN)).status_code == 403


def test_a_token_is_needed_except_for_health(service):
    for headers in ({}, bearer(("", "wrong")), {"authorization": "Basic acme-secret"}):
        refused = service("POST", "/v1/conversations", json={}, headers=headers)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
    for path in ("/health/live", "/health/ready"):
        assert service("GET", path).json() == {"status": "ok"}
    for path in ("/docs", "/docs/explorer.js", "/openapi.json"):
        assert service("GET", path).status_code == 200


def test_a_window_keeps_to_the_bound_of_today(service):
    held = service.app.state.service.tenanted["acme"]
    asked = {"headers": bearer(ACME)}
    items = [text(str(n)) for n in range(20)]
    chat = service("POST", "/v1/conversations", json={"items": items}, **asked).json()["id"]
    path = f"/v1/floodline/conversations/{chat}/window"
    for bound, length in [(50, 20), (5, 5), (8, 5)]:
        held.max_history = bound
        assert len(service("GET", path, **asked).json()["messages"]) == length
    service("POST", f"/v1/conversations/{chat}/items", json={"items": items[:5]}, **asked)
    assert len(service("GET", path, **asked).json()["messages"]) == 8


def test_what_is_unused_is_deleted_although_nothing_is_in_memory(loop, tmp_path, monkeypatch):
    monkeypatch.setattr("floodline.sessions._flows.upkeep.PURGE_SLICE", 2)
    monkeypatch.setattr("floodline._service._app.SWEEP_EVERY", 0.05)
    limits = Limits(store=f"sqlite:///{tmp_path}/r.db", retain=0.2, drain=0, grace=1)
    app = make_service(limits, Tenants(), Door())
    ask = Asking(app, loop)

    async def work():
        async with app.router.lifespan_context(app):
            for _ in range(7):
                made = await ask._client.post("/v1/conversations", json={})
                await ask._client.post(f"/v1/floodline/conversations/{made.json()['id']}/park")
            for _ in range(1000):
                left = (await ask._client.get("/v1/floodline/conversations")).json()["data"]
                if not left:
                    break
                await asyncio.sleep(0.01)
        assert left == []

    ask.wait(work())


def test_what_is_about_all_tenants_is_for_the_administrator(service):
    service("POST", "/v1/conversations", json={}, headers=bearer(ACME))
    for path in ("conversations", "stats", "events"):
        where = f"/v1/floodline/{path}"
        assert service("GET", where, headers=bearer(ACME)).status_code == 403
        assert service("GET", where, headers=bearer(ADMIN)).status_code == 200
    assert service("GET", "/metrics", headers=bearer(ACME)).status_code == 403
    scrape = service("GET", "/metrics", headers=bearer(ADMIN)).text
    assert 'floodline_serve_conversations_created_total{tenant="acme"} 1\n' in scrape
    assert 'floodline_serve_sessions_live{tenant="acme"} 1\n' in scrape
    stats = service("GET", "/v1/floodline/stats", headers=bearer(ADMIN)).json()
    assert stats["tenants"]["acme"]["items"] == 1
    assert stats["limits"]["store"] == "sqlite"


def test_a_draining_service_is_not_ready_and_ends_its_connections(service):
    service.app.state.service.drain()
    answer = service("GET", "/health/ready")
    assert (answer.status_code, answer.json()) == (503, {"status": "unavailable"})
    assert answer.headers["connection"] == "close"
    assert service("GET", "/health/live").status_code == 200
    stream = {**bearer(ADMIN), "accept": "text/event-stream"}
    assert service("GET", "/v1/floodline/events", headers=stream).status_code == 503


def test_a_store_that_does_not_answer_is_not_ready(make, monkeypatch):
    class Down(MemoryStore):
        def load(self, *_args):
            raise OSError("gone")

    ask = make(Sessions, sessions={"store": Down()})
    monkeypatch.setattr(ask.app.state.service.tenanted[""].keeping, "_awaited", None)
    assert ask("GET", "/health/ready").status_code == 503
    assert ask("GET", "/health/ready").status_code == 503  # asked once a second


def test_the_list_is_paged_by_prefix_and_last_use(make, store):
    ask = make(Sessions)
    for id in ("a-1", "a-2", "a", "b-1", "c"):  # noqa: A001 - the word of the API
        with ask.sessions.use(id):
            pass
    ask.append("a-2", text("x"))

    def listed(**query):
        page = ask("GET", "/v1/floodline/conversations", params=query).json()
        return [one["id"] for one in page["data"]], page["has_more"], page["last_id"]

    assert listed(limit=2) == (["a", "a-1"], True, "a-1")
    assert listed(limit=10, after="a-1") == (["a-2", "b-1", "c"], False, "c")
    assert listed(prefix="a") == (["a", "a-1", "a-2"], False, "a-2")
    assert listed(prefix="a-", limit=1) == (["a-1"], True, "a-1")
    assert listed(used_after=1) == (["a-2"], False, "c")
    assert listed(used_before=1, prefix="b") == (["b-1"], False, "b-1")
    assert ask("GET", "/v1/floodline/conversations?tenant=nobody").status_code == 404
    assert ask("GET", "/v1/floodline/conversations?limit=0").status_code == 400


def test_the_list_of_all_tenants_names_them_and_goes_on_where_a_page_ends(service):
    other, key = bearer(("", "other-secret")), {"idempotency-key": "same"}
    for tenant in (bearer(ACME), other):  # the same id for both
        service("POST", "/v1/conversations", json={}, headers=tenant | key)
    service("POST", "/v1/conversations", json={}, headers=other)

    def listed(**query):
        page = service(
            "GET", "/v1/floodline/conversations", params=query, headers=bearer(ADMIN)
        ).json()
        return [f"{one['tenant']}/{one['id']}" for one in page["data"]], page

    everything, whole = listed()
    assert [one.partition("/")[0] for one in everything] == ["acme", "other", "other"]
    assert (whole["first_id"], whole["last_id"]) == (everything[0], everything[-1])
    paged, after, more = [], "", True
    while more:
        one, page = listed(limit=1, after=after)
        paged += one
        after, more = page["last_id"], page["has_more"]
    assert paged == everything
    assert listed(limit=2)[1]["has_more"] is True
    shared = everything[0].partition("/")[2]
    assert listed(prefix=shared)[0] == [f"acme/{shared}", f"other/{shared}"]
    mine, page = listed(tenant="acme")
    assert (mine, page["last_id"]) == (everything[:1], shared)
    assert listed(after="nobody/x")[0] == everything[1:]  # a tenant that is no more


def test_a_list_of_all_tenants_looks_at_so_many_ids_in_all(service, monkeypatch):
    for tenant in (bearer(ACME), bearer(("", "other-secret"))):
        service("POST", "/v1/conversations", json={}, headers=tenant)
    monkeypatch.setattr("floodline._service._log.listing.MOST_READ", 2)
    where, after, pages = "/v1/floodline/conversations", "", []
    while not pages or after:
        page = service("GET", where, params={"after": after}, headers=bearer(ADMIN)).json()
        pages.append([one["tenant"] for one in page["data"]])
        after = page["last_id"] if page["has_more"] else ""
    assert pages == [["acme"], ["other"], []]


def test_a_long_list_ends_a_page_after_so_many_ids(make, monkeypatch):
    monkeypatch.setattr("floodline._service._log.listing.MOST_READ", 2)
    ask = make(Sessions)
    for n in range(3):
        with ask.sessions.use(f"c{n}"):
            pass
    page = ask("GET", "/v1/floodline/conversations?used_after=5").json()
    assert (page["data"], page["last_id"], page["has_more"]) == ([], "c1", True)


@pytest.mark.parametrize("path", ["/v1/floodline/conversations/{}/{}", "/sessions/{}/{}"])
def test_complete_and_park_leave_memory_and_lose_nothing(ask, path):
    chat = ask.new(text("one"))
    for how in ("complete",) if path.startswith("/s") else ("complete", "park"):
        ask.append(chat, text("more"))
        assert chat in ask.sessions
        assert ask("POST", path.format(chat, how)).json()["done"] is True
        assert chat not in ask.sessions
        assert ask("POST", path.format("nobody", how)).status_code == 404
    assert "one" in ask.texts(chat)
    assert ask("DELETE", f"/sessions/{chat}").json()["deleted"] is True


def test_a_window_has_bounds_and_a_provider(ask):
    chat = ask.new(text("be brief", role="system"), *(text(f"question {n}") for n in range(10)))
    path = f"/v1/floodline/conversations/{chat}/window"
    whole = ask("GET", path).json()
    less = ask("GET", path, params={"max_tokens": whole["tokens"] // 2}).json()
    assert less["tokens"] < whole["tokens"]
    assert len(less["messages"]) < len(whole["messages"]) == 11
    for query in ("provider=nobody", "max_tokens=0", "max_tokens=x"):
        assert ask("GET", f"{path}?{query}").status_code == 400
    assert ask("GET", "/v1/floodline/conversations/nobody/window").status_code == 404


def test_a_foreign_host_is_refused_and_an_address_is_not(make):
    ask = make(allow_hosts=["my.example"])
    for host in ("my.example", "MY.example:80", "localhost:1", "127.0.0.1", "[::1]:7", "10.0.0.1"):
        assert ask("GET", "/health/live", headers={"host": host}).status_code == 200, host
    for host in ("evil.example", "", "my.example.evil", "[::1"):
        assert ask("GET", "/health/live", headers={"host": host}).status_code in (200, 421)
    assert ask("GET", "/health/live", headers={"host": "evil.example"}).status_code == 421
    local = Door(frozenset({"127.0.0.1"}), local=True)
    assert not local._is_ours("10.0.0.1")
    assert local._is_ours("127.0.0.2:80")


def test_a_page_of_another_site_is_refused_unless_it_is_named(make):
    ask = make()
    for origin, status in [("http://localhost", 200), ("https://evil.example", 403), ("null", 403)]:
        answer = ask("POST", "/v1/conversations", json={}, headers={"origin": origin})
        assert answer.status_code == status
        assert "access-control-allow-origin" not in answer.headers
    named = make(allow_origins=["https://app.example"])
    site = {"origin": "https://app.example"}
    answer = named("POST", "/v1/conversations", json={}, headers=site)
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert "x-should-retry" in answer.headers["access-control-expose-headers"].split(", ")
    preflight = {
        **site,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-lang",
    }
    assert named("OPTIONS", "/v1/conversations", headers=preflight).status_code == 200


def test_any_token_is_ignored_where_there_are_none(ask):
    assert ask("POST", "/v1/conversations", json={}, headers=bearer(ACME)).status_code == 200


def test_an_app_of_ones_own_has_one_tenant(make):
    ask = make(tokens=[ACME, ADMIN], headers=bearer(ACME))
    assert ask.new()
    with pytest.raises(ValueError, match="single tenant"):
        make(tokens=[ACME, ("b", "b-secret-token")])
    with pytest.raises(ConfigError, match="no store with row logs"):
        make(AsyncSessions, sessions={"store": None})


def test_unknown_paths_and_methods_are_answered_in_the_same_shape(ask):
    for path in ("/", "/v1", "/v1/conversations/", "/v1/conversations/a/b/c", "/../etc/passwd"):
        refused = ask("GET", path)
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown_url")
    refused = ask("PUT", "/v1/conversations")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert ask("HEAD", "/health/live").status_code == 200
    for strange in ("%00", "a" * 600, "%7f", "%F0%9F%98%80", "%ff", "%2e%2e"):
        assert ask("GET", f"/v1/conversations/{strange}").status_code == 404


def test_writes_need_json(ask):
    chat = ask.new()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        refused = ask(
            "POST", f"/v1/conversations/{chat}/items", content=b"{}", headers={"content-type": kind}
        )
        assert refused.status_code == 415
    park = f"/v1/floodline/conversations/{chat}/park"
    assert ask("POST", park, headers={"content-type": "text/plain"}).status_code == 415
    answer = ask(
        "POST",
        "/v1/conversations",
        content=b"{}",
        headers={"content-type": "application/json; charset=utf-8"},
    )
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "invalid_json"),
        (b"[]", 400, "invalid_json"),
        (b"\xff", 400, "invalid_json"),
        (b'{"a": NaN}', 400, "invalid_json"),
        (b"[" * 100_000, 400, "invalid_json"),
        (b'{"a":' * 70 + b"1" + b"}" * 70, 400, "invalid_json"),
        (b'{"items":[' + b"[]," * 100_000 + b"[]]}", 413, "too_many_values"),
        (b'{"items":[' + b"1," * 25 + b"1]}", 400, "too_many_items"),
        (b'{"items":{}}', 400, "invalid_value"),
        (b'{"items":[1]}', 400, "invalid_value"),
        (b'{"metadata":{"x":"' + b"," * 200_000 + b'"}}', 400, "invalid_value"),
        (b'{"metadata":{"x":"' + b"y" * 5_000_000 + b'"}}', 413, "body_too_large"),
    ],
)
def test_a_body_that_cannot_be_right_gets_a_typed_answer(ask, body, status, code):
    headers = {"content-type": "application/json"}
    refused = ask("POST", "/v1/conversations", content=body, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (status, code)
    assert ask.app.state.service.buffers.held == 0


def test_a_body_without_end_stops_at_the_limit(make):
    ask = make(max_body=1000)

    async def endless():
        while True:
            yield b" " * 100

    headers = {"content-type": "application/json"}
    refused = ask("POST", "/v1/conversations", content=endless(), headers=headers)
    assert refused.json()["error"]["code"] == "body_too_large"
    assert refused.headers["connection"] == "close"


def test_a_body_that_takes_too_long_or_ends_early_is_not_waited_for(ask, monkeypatch):
    monkeypatch.setattr(Limits, "body_seconds", property(lambda _: 0.01))
    for messages, status in [([], 408), ([{"type": "http.disconnect"}], 400)]:
        assert raw(ask, messages)["status"] == status
    assert ask.app.state.service.buffers.held == 0


def test_slow_bodies_do_not_keep_others_out(ask, monkeypatch):
    service = ask.app.state.service
    monkeypatch.setattr(Limits, "body_seconds", property(lambda _: 0.2))

    async def crowd():
        slow = [asyncio.create_task(begin(ask, [])) for _ in range(service.limits.max_requests + 9)]
        await asyncio.sleep(0)  # each begins to read
        assert service.buffers.reading == len(slow)
        sent = await begin(ask, [{"type": "http.request", "body": b"{}", "more_body": False}])
        return sent["status"], {(await one)["status"] for one in slow}

    assert ask.wait(crowd()) == (200, {408})
    assert service.buffers.reading == 0


def raw(ask, messages):
    """Return the start of the answer to a request whose body comes as these messages."""
    return ask.wait(begin(ask, messages))


async def begin(ask, messages):
    waiting, sent = deque(messages), []

    async def receive():
        if waiting:
            return waiting.popleft()
        return await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    request = {
        "type": "http",
        "method": "POST",
        "path": "/v1/conversations",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    await ask.app(request, receive, send)
    return sent[0]


def test_too_much_at_once_is_told_to_come_back(ask, monkeypatch):
    service = ask.app.state.service
    monkeypatch.setattr(Limits, "max_buffered", property(lambda _: 10))
    busy = ask("POST", "/v1/conversations", json={"metadata": {"long": "enough"}})
    assert (busy.status_code, busy.headers["retry-after"]) == (503, "1")
    assert service.buffers.held == 0

    async def crowd():
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=ask.app), base_url="http://localhost"
        )
        monkeypatch.setattr(Limits, "max_buffered", property(lambda _: 1 << 20))
        answers = [client.post("/v1/conversations", json={}) for _ in range(300)]
        return [answer.status_code for answer in await asyncio.gather(*answers)]

    seen = ask.wait(crowd())
    assert set(seen) == {200, 503}
    assert service.board.value("in_flight") == 0


def test_what_large_bodies_took_is_given_back(ask, monkeypatch):
    trimmed = []
    monkeypatch.setattr("floodline._service._http.bodies.trim_malloc", lambda: trimmed.append(1))
    monkeypatch.setattr("floodline._service._http.bodies.GIVE_BACK", 1500)
    buffers = ask.app.state.service.buffers
    for _ in range(2):
        ask.new(text("x" * 1000))
        buffers.give_back()
    buffers.give_back()
    assert (buffers.held, trimmed) == (0, [1])


def test_a_defect_is_a_typed_answer_that_says_nothing(ask, monkeypatch, caplog):
    async def broken(*_args):
        raise RuntimeError("secret")

    monkeypatch.setattr(ask.app.state.service.tenanted[""], "record", broken)
    with caplog.at_level(logging.CRITICAL, logger="floodline.serve"):
        refused = ask("GET", "/v1/conversations/x")
    assert refused.status_code == 500
    assert "secret" not in refused.text
    assert ask.app.state.service.board.value("errors_total") == 1


def test_the_access_log_has_timings_and_no_text(ask, caplog):
    with caplog.at_level(logging.INFO, logger="floodline.serve.access"):
        chat = ask.new(text("a secret"), metadata={"also": "secret"})
        ask("GET", f"/v1/conversations/{chat}/items?after=secret")
    lines = [json.loads(record.getMessage()) for record in caplog.records]
    assert [(line["route"], line["status"]) for line in lines] == [
        ("conversations", 200),
        ("items", 404),
    ]
    assert lines[1]["conversation"] == chat
    assert all(line["ms"] > 0 and line["time"].endswith("+00:00") for line in lines)
    assert "secret" not in caplog.text


def test_the_client_behind_a_proxy_is_named_if_the_proxy_is_trusted(ask):
    ask("GET", "/health/live")
    guard = ask.app.middleware_stack.app
    scope = {
        "headers": [(b"x-forwarded-for", b"1.1.1.1, 2.2.2.2")],
        "type": "http",
        "client": ("3.3.3.3", 1),
    }
    assert guard._client(scope) == "3.3.3.3"
    guard.door = Door(trust_proxy=True)
    assert guard._client(scope) == "2.2.2.2"
    assert guard._client({**scope, "headers": []}) == "3.3.3.3"
    assert guard._client({"headers": [], "client": None}) == ""


def test_events_are_listed_newest_first(ask):
    telemetry.emit("test_event", "here", number=1)
    found = ask("GET", "/v1/floodline/events?limit=1").json()["data"]
    assert found[0]["kind"] == "test_event"
    assert found[0]["fields"] == {"number": "1"}


def test_a_stream_of_events_ends_with_the_service(loop, monkeypatch):
    monkeypatch.setattr(events, "HEARTBEAT", 0.01)
    monkeypatch.setattr(events, "MAX_WAITING", 2)

    async def read():
        streams = events.Streams()
        lines = streams.open()
        seen = [await anext(lines), await anext(lines)]
        for number in range(3):
            telemetry.emit("test_event", "here", number=number)
        seen += [await anext(lines) for _ in range(2)]
        streams.end()
        seen += [line async for line in lines]
        assert len(streams) == 0
        return b"".join(seen)

    text = loop.run_until_complete(read())
    assert text.startswith(b": floodline\n\n: still here\n\n")
    assert b"event: test_event\ndata: " in text


def test_the_number_of_streams_is_bounded(loop):
    async def fill():
        streams = events.Streams()
        streams.open()  # never read, so it is not counted
        opened = [streams.open() for _ in range(events.MAX_READERS)]
        for lines in opened:
            await anext(lines)
        with pytest.raises(Refusal):
            streams.open()
        await opened[0].aclose()
        streams.open()
        for lines in opened:
            await lines.aclose()
        assert len(streams) == 0

    loop.run_until_complete(fill())


def test_the_page_and_the_document_are_here(ask):
    document = ask("GET", "/openapi.json").json()
    known = {route.path for route in ask.app.routes} - {"/openapi.json"}
    assert set(document["paths"]) == {path for path in known if not path.startswith("/docs")}
    for path in ("/docs", "/docs/explorer.js", "/docs/explorer.css"):
        answer = ask("GET", path)
        assert answer.status_code == 200
        assert "http://" not in answer.text.replace("http://www.w3.org", "")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
