"""The five systems of `examples/`: the same behaviour twice, found, named, fixed and proved."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from example_systems import EXAMPLES, NAMES, load
from floodline.cli import main
from floodline.cli._demo.players import play_until_done
from floodline.errors import ConfigError
from floodline.memory import rss
from floodline.recorder import read_recording
from floodline.scan import Scan
from floodline.verify import Claim, verify
from floodline.verify import load as load_claims

VERSIONS = ("leaky", "bounded")
TESTS = Path(__file__).parents[1]
# what grows in each system, and the rule of scan that says so
OWNERS = {
    "plan_service": {"PlanService._memories": "FLD103", "PlanService._locks": "FLD103"},
    "session_worker": {
        "SessionWorker._sessions": "FLD102",
        "SessionWorker._queues": "FLD102",
        "Session.history": "FLD202",
    },
    "swarm_caches": {
        "AnalyticsCache._results": "FLD101",
        "StatusCache._status": "FLD201",
        "CookieCache._cookies": "FLD103",
        "MessageBatch._messages": "FLD103",
    },
    "stage_pipeline": {
        "Pipeline._snapshots": "FLD101",
        "Pipeline._conversation": "FLD101",
        "Pipeline._outputs": "FLD101",
        "Pipeline._events": "FLD202",
        "Tracker.samples": "FLD101",
    },
    "plugin_host": {"Plugin._tasks": "FLD102"},
}
NOT_IN_THE_SOURCE = ("Session.history",)  # its limit is behind a default_factory: it is fed instead
SOUND = ("MetricsHistory",)  # the one announced limit that was there
NAMED = ("PlanService._memories", "SessionWorker._sessions", "Plugin._tasks", "Pipeline._snapshots",
         "AnalyticsCache._results", "StatusCache._status", "CookieCache._cookies",
         "MessageBatch._messages")  # fmt: skip


@pytest.fixture(params=VERSIONS)
def version(request) -> str:
    return str(request.param)


@pytest.fixture
def worker(version, tmp_path, monkeypatch) -> Any:
    monkeypatch.setenv("WORKER_STORE", f"sqlite:///{tmp_path}/worker.db")
    return load("session_worker", version).SessionWorker()


def test_plans_behave_the_same(version):
    plans = load("plan_service", version).PlanService()
    assert plans.create_plan("alice", "cross") == 1
    assert plans.run_step("alice", "pack") == 2
    with pytest.raises(ValueError, match="words"):
        plans.run_step("bob", "")
    assert plans.review("bob") == ["step: "]
    assert plans.live() == 2
    plans.clear_memory("alice")
    plans.clear_memory("alice")
    plans.clear_memory("nobody")
    assert (plans.live(), plans.review("alice")) == (1, [])


def test_workers_behave_the_same(worker):
    async def use() -> None:
        for provider in ("anthropic", "openai", "gemini"):
            assert await worker.ask(provider, "how high is it?", provider) == "You said 4 words."
            assert len(await worker.sent(provider)) == 2
        await worker.enqueue("openai", "and now")
        assert await worker.work("openai") == ["You said 2 words."]
        assert await worker.work("openai") == []
        words = [word async for word in worker.stream("openai", "why")]
        assert words == ["You", "said", "1", "words."]
        assert worker.live() == 3
        await worker.delete("gemini")
        assert await worker.sent("gemini") == []
        await worker.complete("openai")
        assert len(await worker.sent("openai")) == 6  # done, and not lost
        await worker.shutdown()
        assert worker.live() == 0

    asyncio.run(use())


def test_caches_behave_the_same(version):
    caches = load("swarm_caches", version)
    for cache in (caches.AnalyticsCache(), caches.StatusCache(), caches.CookieCache()):
        cache.put("a", "first")
        cache.put("a", "second")
        assert (cache.get("a"), cache.get("b"), len(cache)) == ("second", None, 1)
    sent: list[str] = []
    batch = caches.MessageBatch(sent.extend)
    batch.add("hello")
    assert (len(batch), sent) == (1, [])
    batch.flush()
    assert (len(batch), sent) == (0, ["hello"])
    metrics = caches.MetricsHistory()
    metrics.add(range(1500))
    assert (len(metrics), metrics.latest()) == (1000, 1499)


def test_pipelines_behave_the_same(version):
    pipeline = load("stage_pipeline", version).Pipeline()
    reply = asyncio.run(pipeline.turn("the river"))
    assert reply == "The best page begins with 'page about the river'."
    assert pipeline.last_output()["reply"] == reply
    with pytest.raises(ValueError, match="flood"):
        asyncio.run(pipeline.turn("a flood"))
    for n in range(3):
        pipeline.emit(f"event {n}")
    assert pipeline.latest(2) == ["event 1", "event 2"]
    assert pipeline.kept() == 6


def test_hosts_behave_the_same(version):
    system = load("plugin_host", version)
    bus = system.EventBus(lost=0.0)
    host = system.PluginHost(bus)
    assert [host.work("alice", "look"), host.work("alice", "report")] == [1, 2]
    assert host.work("bob", "look") == 1
    assert host.entries() == 2 * system.PLUGINS
    bus.emit("session.deleted", "alice")
    bus.emit("session.deleted", "alice")
    bus.emit("session.deleted", "nobody")
    assert host.entries() == system.PLUGINS
    assert host.work("alice", "again") == 1


@pytest.mark.parametrize("name", NAMES)
def test_scan_finds_each_leak_and_nothing_in_the_fixed_version(name):
    found = Scan([EXAMPLES / name / "leaky.py"]).report().findings
    rules = {each.symbol.partition("leaky.")[2]: each.rule for each in found}
    assert {owner: rules.get(owner) for owner in OWNERS[name]} == OWNERS[name]
    fixed = Scan([EXAMPLES / name / "bounded.py"]).report().findings
    assert [each.symbol for each in fixed if each.confidence != "low"] == []


def verdicts(claims: list[Claim], run: bool = False) -> list[str]:
    return [str(verify(claim, run=run).verdict) for claim in claims]


def test_four_of_five_announced_fixes_are_refuted():
    announced = load_claims(EXAMPLES / "swarm_caches" / "announced.toml")
    assert verdicts(announced) == ["refuted"] * 4 + ["proved"]


@pytest.mark.parametrize("name", NAMES)
def test_the_limits_are_proved_in_the_fixed_version_and_refuted_in_the_leaky_one(name):
    claims = load_claims(EXAMPLES / name / "fixed.toml")
    hidden = [claim for claim in claims if claim.symbol in NOT_IN_THE_SOURCE]
    plain = [claim for claim in claims if claim not in hidden]
    assert plain
    assert verdicts(plain) == ["proved"] * len(plain)
    assert verdicts(hidden, run=True) == ["proved"] * len(hidden)
    leaky = [c._replace(file=c.file.with_name("leaky.py")) for c in plain if c.symbol not in SOUND]
    assert "proved" not in verdicts(leaky)
    assert verdicts(leaky)[0] == "refuted"


def test_soak_names_what_grows_and_calls_the_fixed_versions_bounded(tmp_path, monkeypatch):
    """All five in one soak, as the demo runs them; `nox -s systems` soaks them one by one."""
    lines = ("import sys", f"sys.path.insert(0, {str(TESTS)!r})", "from example_systems import *")
    (tmp_path / "scenario.py").write_text("\n".join(lines), encoding="utf-8")

    for name in [name for name in os.environ if name.startswith("COVERAGE")]:
        monkeypatch.delenv(name)  # a measured walk takes several times as long

    class Nothing:
        def draw(self, players: object) -> None:
            pass

    leaky, bounded = play_until_done(tmp_path, 30, Nothing())
    assert leaky.record is not None
    assert bounded.record is not None
    named = {s["owner"].removeprefix("leaky."): s for s in leaky.record["answer"]["suspects"]}
    assert (leaky.verdict, [owner for owner in NAMED if owner not in named]) == ("growing", [])
    memories = named["PlanService._memories"]
    assert Path(str(memories["file"])).parts[-2:] == ("plan_service", "leaky.py")
    source = (EXAMPLES / "plan_service" / "leaky.py").read_text(encoding="utf-8").splitlines()
    assert "self._memories[session_id] =" in source[int(memories["line"] or 0) - 1]
    assert bounded.verdict == "bounded", bounded.record["text"]
    assert leaky.curve
    assert leaky.done == 30


def test_a_thousand_turns_stay_under_five_megabytes():
    pipeline = load("stage_pipeline", "bounded").Pipeline()

    async def take(turns: int) -> None:
        for turn in range(turns):
            await pipeline.turn(f"turn {turn}: " + "what does the gauge say; " * 10)

    asyncio.run(take(50))
    before = rss()
    asyncio.run(take(1000))
    assert rss() - before < 5 << 20


@pytest.mark.long
@pytest.mark.parametrize("kind", ["baseline", "chaos"])
@pytest.mark.parametrize("name", NAMES)
def test_each_system_is_growing_and_then_bounded(name, kind, version, tmp_path):
    if kind != "baseline" and name != "stage_pipeline":
        pytest.skip("only the pipeline has other kinds of rounds")
    out = tmp_path / "answer.json"
    command = [sys.executable, "-m", "floodline", "soak", str(EXAMPLES / name / "scenario.py")]
    subprocess.run(
        [*command, "--rounds=300", f"--json={out}"],
        env={**os.environ, "VERSION": version, "PIPELINE": kind},
        check=False,
    )
    answer = json.loads(out.read_text(encoding="utf-8"))
    assert answer["verdict"] == {"leaky": "growing", "bounded": "bounded"}[version]
    named = {each["owner"].removeprefix("leaky.") for each in answer["suspects"]}
    assert not named or named & OWNERS[name].keys()


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_the_claims_hold_when_the_code_is_run(name):
    fixed = load_claims(EXAMPLES / name / "fixed.toml")
    assert verdicts(fixed, run=True) == ["proved"] * len(fixed)


@pytest.mark.long
def test_the_announcements_are_refuted_when_the_code_is_run():
    announced = load_claims(EXAMPLES / "swarm_caches" / "announced.toml")
    assert verdicts(announced, run=True) == ["refuted"] * 4 + ["proved"]


def test_run_names_what_grows(tmp_path, monkeypatch):
    """One of them, until it is named; `nox -s systems` waits for the verdicts of all."""
    for name in [name for name in os.environ if name.startswith("COVERAGE")]:
        monkeypatch.delenv(name)  # a measured walk takes several times as long
    file = tmp_path / "play.rec"
    run = [sys.executable, "-m", "floodline", "run", "--no-dashboard", f"--record={file}"]
    play = [str(EXAMPLES / "play.py"), "plan_service", "leaky", "--seconds", "100"]
    suspects: list[Any] = []
    with subprocess.Popen([*run, *play], stderr=subprocess.PIPE, text=True) as running:
        while not suspects and running.poll() is None:
            time.sleep(1)
            with contextlib.suppress(ConfigError):  # nothing is in it yet
                suspects = read_recording(file).state()["suspects"]
        running.send_signal(signal.SIGINT)
        _, said = running.communicate()
    source = (EXAMPLES / "plan_service" / "leaky.py").read_text(encoding="utf-8").splitlines()
    lines = {each["owner"]: source[each["line"] - 1].strip() for each in suspects}
    memories = "self._memories[session_id] = MemoryService(session_id)"
    assert lines["leaky.PlanService._memories"] == memories
    assert "leaky.PlanService._memories" in said


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_run_tells_them_apart(name, version, tmp_path):
    report = tmp_path / "report.json"
    run = [sys.executable, "-m", "floodline", "run", "--no-dashboard", f"--report={report}"]
    play = [str(EXAMPLES / "play.py"), name, version, "--seconds", "150"]
    subprocess.run([*run, f"--record={tmp_path / 'play.rec'}", *play], check=True)
    answer = json.loads(report.read_text(encoding="utf-8"))
    owners = {each["owner"].removeprefix("leaky.") for each in answer["suspects"]}
    if version == "leaky":
        assert (answer["verdict"], bool(owners & OWNERS[name].keys())) == ("growing", True)
    else:
        assert answer["verdict"] != "growing", owners


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_what_scan_and_verify_say(name, monkeypatch, capsys):
    monkeypatch.chdir(TESTS.parent)
    page = Path("docs", "examples", f"{name}.md").read_text(encoding="utf-8")
    shown = page.replace("\n$ ", "\n")
    main(["scan", f"examples/{name}/leaky.py", "--confidence", "low", "--no-cache"])
    found = [line for line in capsys.readouterr().out.splitlines() if ": FLD" in line]
    assert found
    assert [line for line in found if line.rpartition(" rank ")[0] not in shown] == []
    for claims in sorted(Path("examples", name).glob("*.toml")):
        main(["verify", str(claims)])
        evidence = [line for line in capsys.readouterr().out.splitlines() if line[:2] == "  "]
        assert evidence
        assert [line for line in evidence if f"{line}\n" not in shown] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_lines_on_the_page_are_those_of_the_program(name):
    page = (TESTS.parent / "docs" / "examples" / f"{name}.md").read_text(encoding="utf-8")
    source = (EXAMPLES / name / "leaky.py").read_text(encoding="utf-8").splitlines()
    shown = re.findall(
        r"^  leaky\.\w+\.(\w+) .*?^    fed at +\S+/leaky\.py:(\d+)", page, re.MULTILINE | re.DOTALL
    )
    assert shown
    assert [attribute for attribute, line in shown if attribute not in source[int(line) - 1]] == []
    for line in difflib.ndiff(source, (EXAMPLES / name / "bounded.py").read_text().splitlines()):
        if line.startswith("+ ") and line[2:].strip():
            assert f"\n+{line[2:]}\n" in page


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_the_test_kit_tells_them_apart(version):
    program = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from example_systems import load
from floodline.testing import SessionKit
plans = load("plan_service", {version!r}).PlanService()
kit = SessionKit(lambda id: plans.create_plan(id, "cross"), work=plans.review, live=plans.live)
kit.abandon(400)
kit.check_flat(100)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) is (version == "bounded"), done.stderr
    assert ("PlanService._memories" in done.stderr) is (version == "leaky")
