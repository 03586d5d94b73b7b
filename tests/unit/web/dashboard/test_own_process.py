"""The dashboard of the process that shows it, in an app of one's own and in the service."""

from __future__ import annotations

import asyncio
import os

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from floodline._service import Limits, Tenants, make_service
from floodline._service._http.guard import Door
from floodline.web import create_dashboard
from floodline.web._dashboard.own_process import OwnProcess
from floodline.web._serving.dashboard import dashboard_routes


def ask(app, path, **headers):
    async def main():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(main())


def test_a_mounted_dashboard_shows_its_own_process():
    dashboard = create_dashboard()
    source = dashboard.state.live.source
    try:
        app = Starlette(routes=[Mount("/memory", dashboard)])
        assert ask(app, "/memory/").status_code == 200
        assert ask(app, "/memory/", host="evil.example").status_code == 421
        version = source.version
        while not source.state()["processes"][0]["objects"]:
            version = source.wait(version, 60)
        state = ask(app, "/memory/api/state").json()
        assert [process["pid"] for process in state["processes"]] == [os.getpid()]
    finally:
        source.close()


def test_a_watch_begins_again_after_its_end_and_in_a_child(monkeypatch):
    source = OwnProcess()
    first = source.start()
    assert source.start() is first
    source.close()
    source.close()
    second = source.start()
    assert second is not first
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: second.pid + 1)
        second.end()  # not ours to end
        assert not second._ended.is_set()
        third = source.start()
    assert third is not second
    third.pid = os.getpid()
    source.close()
    second.end()


@pytest.fixture
def service(tmp_path):
    tenants = Tenants.of([("acme", "acme-secret"), ("admin", "admin-secret")])
    limits = Limits(store=f"sqlite:///{tmp_path}/s.db")
    app = make_service(limits, tenants, Door(), extra=dashboard_routes)
    yield app
    app.state.service.drain()
    app.state.service.tenanted["acme"].keeping._store.close()


def test_the_dashboard_of_the_service_is_for_its_administrator(service):
    assert ask(service, "/dashboard").headers["location"] == "dashboard/"
    for path, headers in [
        ("/dashboard/", {}),
        ("/dashboard/?token=acme-secret", {}),
        ("/dashboard/", {"authorization": "Bearer acme-secret"}),
        ("/dashboard/", {"cookie": "floodline_admin=acme-secret; x"}),
    ]:
        assert ask(service, path, **headers).status_code == 401
    first = ask(service, "/dashboard/?token=admin-secret")
    assert first.status_code == 200
    cookie = first.headers["set-cookie"].partition(";")[0]
    assert "script-src 'self'" in first.headers["content-security-policy"]
    assert ask(service, "/dashboard/static/app.js", cookie=cookie).status_code == 200
    bearer = {"authorization": "Bearer admin-secret"}
    assert ask(service, "/dashboard/api/state", **bearer).json()["schema"] == 1
