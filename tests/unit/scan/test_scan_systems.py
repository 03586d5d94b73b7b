"""The systems of the design, rebuilt in small: what grew in them is found, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from floodline.scan import Scan

PLAN_SERVICE = {
    "app": """\
from service import PlanService

def create_app(framework, llm):
    app = framework()
    service = PlanService(llm)

    @app.post("/plan")
    async def plan(session_id: str, goal: str):
        return await service.create_plan(session_id, goal)

    @app.post("/refine")
    async def refine(session_id: str, feedback: str):
        return await service.refine_plan(session_id, feedback)

    @app.get("/stream")
    async def stream(session_id: str, goal: str):
        return service.stream_plan(session_id, goal)

    return app
""",
    "memory": """\
from dataclasses import dataclass, field

@dataclass
class MemoryService:
    session_id: str
    notes: list[str] = field(default_factory=list)
    def add(self, text: str) -> None:
        self.notes.append(text)
        del self.notes[:-100]
""",
    "service": """\
from __future__ import annotations
import asyncio
from memory import MemoryService

class PlanService:
    def __init__(self, llm) -> None:
        self._llm = llm
        self._memory_services: dict[str, MemoryService] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def get_memory_service(self, session_id: str) -> MemoryService:
        service = self._memory_services.get(session_id)
        if service is None:
            service = MemoryService(session_id)
            self._memory_services[session_id] = service
        return service

    def _lock(self, session_id: str) -> asyncio.Lock:
        if session_id not in self._locks:
            self._locks[session_id] = asyncio.Lock()
        return self._locks[session_id]

    async def create_plan(self, session_id: str, goal: str) -> str:
        async with self._lock(session_id):
            memory = self.get_memory_service(session_id)
            plan = await self._llm.plan(goal, memory.notes)
            memory.add(plan)
            return plan

    async def refine_plan(self, session_id: str, feedback: str) -> str:
        memory = self.get_memory_service(session_id)
        return await self._llm.refine(feedback, memory.notes)

    async def stream_plan(self, session_id: str, goal: str):
        memory = self.get_memory_service(session_id)
        async for part in self._llm.stream(goal):
            memory.add(part)
            yield part

    def clear_memory(self, session_id: str) -> None:
        self._memory_services.pop(session_id, None)
""",
}

SESSION_MANAGER = {
    "manager": """\
import queue, time
class Session:
    def __init__(self, session_id):
        self.id = session_id
        self.started_at = time.time()
        self.conversation_history = []

class SessionManager:
    def __init__(self):
        self.sessions = {}
        self.queues = {}

    def initialize_session(self, session_id):
        if session_id in self.sessions:
            return self.sessions[session_id]
        session = Session(session_id)
        self.sessions[session_id] = session
        self.queues[session_id] = queue.Queue(maxsize=100)
        return session

    def enqueue(self, session_id, message):
        self.initialize_session(session_id)
        self.queues[session_id].put(message)

    def delete_session(self, session_id):
        self.sessions.pop(session_id, None)
        self.queues.pop(session_id, None)

    def shutdown_all(self):
        for session_id in list(self.sessions):
            self.delete_session(session_id)
""",
    "providers": """\
class ProviderA:
    def answer(self, session, client, text):
        session.conversation_history.append({"role": "user", "content": text})
        window = session.conversation_history[-20:]
        reply = client.send(window)
        session.conversation_history.append({"role": "assistant", "content": reply})
        return reply
class ProviderB:
    def answer(self, session, client, text):
        session.conversation_history.append({"role": "user", "content": text})
        return client.send(session.conversation_history[-10:])
""",
    "worker": """\
from http.server import BaseHTTPRequestHandler
from manager import SessionManager
from providers import ProviderA, ProviderB

class Worker:
    def __init__(self):
        self.manager = SessionManager()
        self.providers = {"a": ProviderA(), "b": ProviderB()}

    def on_message(self, session_id, text, client):
        session = self.manager.initialize_session(session_id)
        return self.providers["a"].answer(session, client, text)

    def on_delete(self, session_id):
        self.manager.delete_session(session_id)

worker = Worker()

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        worker.on_message(self.headers["session"], self.rfile.read(), None)

    def do_DELETE(self):
        worker.on_delete(self.headers["session"])
""",
}

SWARM = {
    "agent": """\
from core import AnalyticsCache, StatusTracker, CookieStore, MessageBatcher, Metrics

class Agent:
    def __init__(self):
        self.analytics = AnalyticsCache()
        self.status = StatusTracker()
        self.cookies = CookieStore()
        self.batch = MessageBatcher()
        self.metrics = Metrics()

    async def handle(self, task_id, url, message):
        self.status.update(task_id, "running")
        self.cookies.store(url, "sid", message.cookie)
        self.batch.add(message)
        self.metrics.record(message.cost)
        if self.analytics.get(message.query_hash) is None:
            self.analytics.put(message.query_hash, await message.analyse())
        self.status.finish(task_id)

agent = Agent()

async def serve(bus):
    async for task_id, url, message in bus:
        await agent.handle(task_id, url, message)
""",
    "core": """\
import logging, time
from collections import defaultdict
logger = logging.getLogger(__name__)

class AnalyticsCache:
    # LRU, at most 1000 entries
    MAX_SIZE = 1000
    def __init__(self):
        self._cache = {}
    def get(self, key):
        return self._cache.get(key)
    def put(self, key, value):
        self._cache[key] = value

class StatusTracker:
    def __init__(self):
        self.status = {}
    def update(self, task_id, status):
        self.status[task_id] = {"status": status, "at": time.time()}
    def finish(self, task_id):
        self.status[task_id]["status"] = "finished"

class CookieStore:
    def __init__(self, max_domains=100):
        self.max_domains = max_domains
        self.cookies = defaultdict(dict)
    def store(self, url, name, value):
        self.cookies[url][name] = value

class MessageBatcher:
    def __init__(self, limit=50):
        self.limit = limit
        self.pending = []
    def add(self, message):
        if len(self.pending) >= self.limit:
            logger.warning("batch limit %s reached", self.limit)
        self.pending.append(message)

class Metrics:
    def __init__(self, window=1000):
        self.window = window
        self.history = []
    def record(self, value):
        self.history.append((time.time(), value))
    def average(self):
        recent = self.history[-self.window:]
        return sum(v for _, v in recent) / max(1, len(recent))
""",
}

STAGE_PIPELINE = {
    "pipeline": """\
import time, psutil, copy
class MemoryTracker:
    def __init__(self):
        self.samples = []
    def sample(self, name):
        self.samples.append((name, time.time(), psutil.Process().memory_info().rss))

class Context:
    def __init__(self):
        self.data = {}
        self.snapshots = []
        self.outputs = {}
    def snapshot(self):
        self.snapshots.append(copy.deepcopy(self.data))

class Stage:
    name = "stage"
    def run(self, context, turn): ...

class Pipeline:
    def __init__(self, stages):
        self.stages = stages
        self.context = Context()
        self.tracker = MemoryTracker()

    def run_turn(self, turn):
        for stage in self.stages:
            self.tracker.sample(stage.name)
            self.context.snapshot()
            self.context.outputs[f"{turn.id}:{stage.name}"] = stage.run(self.context, turn)

def main(turns, stages):
    pipeline = Pipeline(stages)
    while True:
        pipeline.run_turn(turns.get())
""",
}

PLUGIN_HOST = {
    "hooks": """\
import state

def create_hooks(host):
    retries = {}
    last_seen = {}

    async def event(event):
        session_id = event.properties["sessionID"]
        if event.type == "message.updated":
            state.update_agent(session_id, event.properties["agent"])
            retries[session_id] = retries.get(session_id, 0) + 1
            last_seen[session_id] = event.time
            if session_id not in state.seen_parents:
                state.seen_parents.add(session_id)
        elif event.type == "session.deleted":
            state.forget(session_id)
            retries.pop(session_id, None)

    async def tool_before(call):
        state.session_tools.setdefault(call.session_id, set()).add(call.tool)
        state.pending_calls[call.id] = call.args

    async def tool_after(call):
        args = state.pending_calls.pop(call.id, None)
        return args

    return {"event": event, "tool.before": tool_before, "tool.after": tool_after}
""",
    "state": """\
session_agents: dict[str, str] = {}
session_tools: dict[str, set[str]] = {}
pending_calls: dict[str, dict] = {}
seen_parents: set[str] = set()

def update_agent(session_id: str, agent: str) -> None:
    session_agents[session_id] = agent

def forget(session_id: str) -> None:
    session_agents.pop(session_id, None)
    session_tools.pop(session_id, None)
""",
}

APP_STATE = {
    "main": """\
from framework import Framework
app = Framework()
app.state.sessions = {}
app.users = {}

@app.post("/a")
async def a(request, session_id):
    app.state.sessions[session_id] = request
    app.users[session_id] = 1
""",
    "other": """\
from main import app
def forget():
    app.state.sessions.clear()
""",
}

GROWS = {
    "plan service": (PLAN_SERVICE, {"_memory_services": "FLD103", "_locks": "FLD106"}),
    "session manager": (
        SESSION_MANAGER,
        {"sessions": "FLD102", "queues": "FLD102", "conversation_history": "FLD202"},
    ),
    "swarm": (
        SWARM,
        {
            "_cache": "FLD101",
            "status": "FLD204",
            "cookies": "FLD101",
            "pending": "FLD201",
            "history": "FLD202",
        },
    ),
    "stage pipeline": (
        STAGE_PIPELINE,
        {"samples": "FLD101", "snapshots": "FLD101", "outputs": "FLD101"},
    ),
    "plugin host": (
        PLUGIN_HOST,
        {
            "retries": "FLD102",
            "last_seen": "FLD108",
            "seen_parents": "FLD107",
            "session_tools": "FLD102",
            "session_agents": "FLD102",
        },
    ),
    "state of an application": (APP_STATE, {"sessions": "FLD103", "users": "FLD101"}),
}


def found(folder: Path, files: dict[str, str]) -> dict[str, str]:
    """Return the containers that are reported at medium or better, with their rules."""
    for name, code in files.items():
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    return {
        finding.symbol.replace("{", ".").rstrip("}").rpartition(".")[2]: finding.rule
        for finding in Scan([folder]).report().findings
        if finding.confidence != "low"
    }


@pytest.mark.parametrize("system", GROWS)
def test_everything_that_grew_is_found_and_nothing_else(system, tmp_path):
    files, wanted = GROWS[system]
    assert found(tmp_path, files) == wanted


FIXES = {
    "plan service": [
        (
            "service",
            "self._memory_services: dict[str, MemoryService] = {}",
            "self._memory_services = BoundedMap(max_items=1000, idle=1800)",
        ),
        (
            "service",
            "self._locks: dict[str, asyncio.Lock] = {}",
            "self._locks = BoundedMap(max_items=1000)",
        ),
    ],
    "session manager": [
        (
            "manager",
            "    def enqueue(self",
            "    def sweep(self):\n"
            "        for session_id, session in list(self.sessions.items()):\n"
            "            if session.started_at < time.time() - 3600:\n"
            "                self.delete_session(session_id)\n\n"
            "    def enqueue(self",
        ),
        (
            "manager",
            "        session = Session(session_id)\n",
            "        self.sweep()\n        session = Session(session_id)\n",
        ),
        (
            "providers",
            "        window = session.conversation_history[-20:]\n",
            "        del session.conversation_history[:-20]\n"
            "        window = session.conversation_history\n",
        ),
        (
            "providers",
            "        return client.send(session.conversation_history[-10:])",
            "        del session.conversation_history[:-10]\n"
            "        return client.send(session.conversation_history)",
        ),
    ],
    "swarm": [
        (
            "core",
            "        self._cache[key] = value",
            "        if len(self._cache) >= self.MAX_SIZE:\n"
            "            del self._cache[next(iter(self._cache))]\n"
            "        self._cache[key] = value",
        ),
        ("core", 'self.status[task_id]["status"] = "finished"', "del self.status[task_id]"),
        (
            "core",
            "        self.cookies[url][name] = value",
            "        while len(self.cookies) >= self.max_domains:\n"
            "            self.cookies.pop(next(iter(self.cookies)))\n"
            "        self.cookies[url][name] = value",
        ),
        (
            "core",
            '            logger.warning("batch limit %s reached", self.limit)',
            "            self.pending.clear()",
        ),
        ("core", "        self.history = []", "        self.history = deque(maxlen=window)"),
        (
            "agent",
            "        if self.analytics.get(message.query_hash) is None:\n"
            "            self.analytics.put(message.query_hash, await message.analyse())\n"
            "        self.status.finish(task_id)",
            "        try:\n"
            "            self.analytics.put(message.query_hash, await message.analyse())\n"
            "        finally:\n"
            "            self.status.finish(task_id)",
        ),
    ],
    "stage pipeline": [
        ("pipeline", "self.samples = []", "self.samples = deque(maxlen=1000)"),
        ("pipeline", "self.snapshots = []", "self.snapshots = deque(maxlen=3)"),
        (
            "pipeline",
            "        for stage in self.stages:\n",
            "        self.context.outputs.clear()\n        for stage in self.stages:\n",
        ),
    ],
}


@pytest.mark.parametrize("system", FIXES)
def test_a_system_that_was_really_fixed_is_clean(system, tmp_path):
    files = dict(GROWS[system][0])
    for name, old, new in FIXES[system]:
        assert files[name].count(old) == 1
        files[name] = files[name].replace(old, new)
    assert found(tmp_path, files) == {}
