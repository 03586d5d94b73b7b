"""Who may read the dashboard, and what a browser may do with it."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from floodline.web import make_app
from floodline.web._dashboard.access import Access
from web_states import Shown, leaking

TOKEN = "a/secret+token="


def get(path, *, token=None, host="127.0.0.1:7357", method="GET", app=None, **options):
    async def main():
        transport = httpx.ASGITransport(app or make_app(Shown(leaking()), token=token))
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await client.request(method, path, **options)

    return asyncio.run(main())


@pytest.mark.parametrize("host", ["127.0.0.1:7357", "localhost", "LOCALHOST:1", "[::1]:7357"])
def test_without_a_token_this_machine_may_read(host):
    answer = get("/api/state", host=host)
    assert answer.status_code == 200
    assert answer.json()["verdict"] == "growing"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7357", "127.0.0.1.evil.example"])
def test_a_name_that_another_site_lets_point_here_is_refused(host):
    answer = get("/api/state", host=host)
    assert answer.status_code == 421
    assert "floodline run printed" in answer.text


@pytest.mark.parametrize("path", ["/", "/api/state", "/api/live", "/metrics", "/static/app.js"])
def test_with_a_token_nothing_is_read_without_it(path):
    answer = get(path, token=TOKEN, host="10.0.0.7:7357")
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_the_token_of_the_address_becomes_a_cookie_that_is_enough_from_then_on():
    first = get("/", token=TOKEN, host="10.0.0.7", params={"token": TOKEN})
    assert first.status_code == 200
    cookie = first.headers["set-cookie"]
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
    kept = cookie.partition(";")[0]
    others = f"a/b=c; d; {kept}; e=1"  # another server of this host may have set anything
    then = get("/api/state", token=TOKEN, host="10.0.0.7", headers={"cookie": others})
    assert then.status_code == 200
    assert "set-cookie" not in then.headers


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_a_program_sends_the_token_in_a_header(scheme):
    headers = {"authorization": f"{scheme} {TOKEN}"}
    assert get("/api/state", token=TOKEN, host="h", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "options",
    [
        {"params": {"token": "wrong"}},
        {"headers": {"authorization": "Bearer wrong"}},
        {"headers": {"authorization": f"Basic {TOKEN}"}},
        {"headers": {"cookie": "floodline_000000000000=wrong"}},
        {"headers": {"cookie": "a/b=c; d"}},
    ],
)
def test_a_wrong_token_is_refused(options):
    assert get("/api/state", token=TOKEN, host="h", **options).status_code == 401


def test_two_dashboards_on_one_host_keep_their_cookies_apart():
    names = {
        get("/", token=token, host="h", params={"token": token})
        .headers["set-cookie"]
        .partition("=")[0]
        for token in ("one", "two")
    }
    assert len(names) == 2


@pytest.mark.parametrize("path", ["/", "/api/state", "/static/style.css", "/nowhere", "/metrics"])
def test_every_answer_is_sealed(path):
    headers = get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert not [name for name in headers if name.startswith("access-control")]


def test_refusals_are_sealed_too():
    assert "content-security-policy" in get("/", host="evil.example").headers


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_may_open_the_page_and_nothing_else(site):
    headers = {"sec-fetch-site": site}
    assert get("/", headers=headers).status_code == 200
    assert get("/api/live", headers=headers).status_code == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/", "/api/state", "/api/live"])
def test_nothing_can_be_changed(path, method):
    assert get(path, method=method).status_code == 405


def test_the_page_and_its_files_are_served():
    page = get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name in ("app.js", "parts.js", "plot.js", "words.js", "style.css", "uPlot.iife.min.js"):
        assert get(f"/static/{name}").status_code == 200
    assert get("/static/../asgi.py").status_code == 404


def test_the_page_loads_nothing_from_elsewhere_and_has_no_inline_code():
    page = get("/").text
    assert "http:" not in page
    assert "https:" not in page
    assert "style=" not in page
    assert "onclick" not in page


def test_text_is_never_put_into_the_page_as_markup():
    for name in ("app.js", "parts.js", "plot.js", "words.js"):
        script = get(f"/static/{name}").text
        for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert way not in script


def test_one_reader_too_many_is_told_when_to_come_again():
    app = make_app(Shown(leaking()), token=None, max_readers=0)
    answer = get("/api/live", app=app)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "10"
    assert "which is the limit" in answer.text


def test_what_is_no_request_goes_through():
    async def main():
        said = []

        async def receive():
            return {"type": "lifespan.startup"} if not said else {"type": "lifespan.shutdown"}

        async def send(message):
            said.append(message["type"])

        await make_app(Shown(leaking()), token="t")({"type": "lifespan"}, receive, send)
        return said

    assert asyncio.run(main()) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_without_a_descriptor_for_a_file_one_reader_is_told_and_nothing_is_logged(monkeypatch):
    def none():
        raise OSError(24, "Too many open files")

    source = Shown(leaking())
    monkeypatch.setattr(source, "state", none)
    answer = get("/api/state", app=make_app(source, token=None))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert "try again" in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_answer_that_has_begun_is_not_begun_again():
    async def half(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise OSError(5, "gone")

    with pytest.raises(OSError, match="gone"):
        get("/", app=Access(half, token=None))
