"""Scraping a real `/metrics` of a real server, in a process of its own."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families

from floodline import AsyncSessions
from floodline.exporters import prometheus_app

SERVER = Path(__file__).parents[3] / "examples" / "agent_server.py"
LIMITS = {"FLOODLINE_MAX_SESSIONS": "3", "FLOODLINE_SWEEP_EVERY": "50 ms"}


@pytest.fixture
def address(tmp_path):
    server = subprocess.Popen(
        [sys.executable, str(SERVER), "--port", "0", "--db", str(tmp_path / "chats.db")],
        env={**os.environ, **LIMITS},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    too_slow = threading.Timer(60, server.kill)
    too_slow.start()
    try:
        assert server.stdout is not None
        yield re.search(r"http://[\d.:]+", server.stdout.readline())[0]
    finally:
        too_slow.cancel()
        server.terminate()
        server.communicate(timeout=100)


def scrape(http):
    answer = http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    return found, answer.text


def test_a_scrape_tells_what_the_server_holds_and_what_left_and_why(address):
    chats = ("sessions", "chats")
    people = [f"person{number}" for number in range(8)]
    with httpx.Client(base_url=address, timeout=100) as http:
        for person in people:
            assert http.post(f"/chat/{person}", json={"text": "hello"}).status_code == 200
        http.post(f"/chat/{people[-1]}/done")
        http.delete(f"/chat/{people[0]}")
        limit = time.monotonic() + 100
        found, text = scrape(http)
        while found.get(("floodline_parked", *chats)) != 5:
            assert time.monotonic() < limit, "the upkeep never asked the store, or it is wrong"
            found, text = scrape(http)
    assert found["floodline_items", *chats] == 2
    assert found["floodline_max_items", *chats] == 3
    assert found["floodline_store_rows", *chats] <= 8  # as of the last upkeep
    assert found["floodline_store_file_bytes", *chats] > 0
    assert found["floodline_bytes", *chats] > 0
    assert found["floodline_opened_total", *chats] == 8
    assert found["floodline_saved_total", *chats] == 8
    assert found["floodline_left_total", *chats, "count"] == 5
    assert found["floodline_left_total", *chats, "completed"] == 1
    assert found["floodline_conflicts_total", *chats] == 0
    assert found["floodline_stats_errors_total",] == 0
    assert "person" not in text


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("agent_server_with_metrics", SERVER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def get(app, path):
    async def main():
        http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")
        async with http:
            return await http.get(path)

    return asyncio.run(main())


def test_without_the_library_the_example_answers_404_and_says_what_to_install(monkeypatch, example):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    answer = get(example.build(AsyncSessions()), "/metrics")
    assert answer.status_code == 404
    assert "pip install 'floodline[prometheus]'" in answer.json()["error"]


def test_metrics_of_a_registry_of_your_own_are_served_too():
    registry = CollectorRegistry()
    Counter("my_orders", "Orders taken.", registry=registry).inc()
    answer = get(prometheus_app(registry=registry), "/")
    assert "my_orders_total 1.0" in answer.text
    assert "floodline_stats_errors_total" in answer.text


def test_an_app_of_its_own_has_our_metrics_only():
    answer = get(prometheus_app(), "/")
    names = [f.name for f in text_string_to_metric_families(answer.text)]
    assert "floodline_stats_errors" in names
    assert [name for name in names if not name.startswith("floodline_")] == []
