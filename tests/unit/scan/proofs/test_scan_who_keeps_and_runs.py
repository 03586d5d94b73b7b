"""Small programs: who makes and keeps an instance, what runs once, and who runs a function."""

from __future__ import annotations

from textwrap import dedent

import pytest
from test_scan_small_programs import APP, Program, reported

from floodline.scan import Scan

TRACKER = """
    class Tracker:
        def __init__(self):
            self.states = {}
        def note(self, item_id):
            self.states[item_id] = object()
"""
CHAT = """
    from bots import Bot

    class Chat(Bot):
        def __init__(self, host):
            self.uses = {}
        async def on_message(self, message):
            self.uses[message.nick] = message.text
"""
LOADED = """
    rows = []
    def first(day):
        if len(rows) == 0:
            load()
        return [row for row in rows if row.day > day]
    def load():
        for row in database.select():
            rows.append(Row(row))
    @app.get("/")
    def show(request):
        return first(request.day)
"""
LOADED_BY_ITSELF = """
    class Rows:
        def __init__(self):
            self.rows = {}
        def first(self, day):
            if not self.rows:
                self._load(day)
            return self.rows.get(day)
        def _load(self, day):
            self.rows[day] = Row(day)
    rows = Rows()
    @app.get("/")
    def show(request):
        return rows.first(request.day)
"""
KINDS = """
    from wire import ImageMessage, TextMessage

    images = {}

    @app.post("/")
    def take(event):
        if isinstance(event.message, ImageMessage):
            keep(event.source.user_id, event)
        elif isinstance(event.message, TextMessage):
            answer(event.source.user_id)
    def keep(user_id, event):
        images[user_id] = event
    def answer(user_id):
        return images.pop(user_id, None)
"""
ENDLESS = {
    "a loop of its own, begun while it is empty": """
    def begin():
        if not rows:
            serve()
    def serve():
        while True:
            rows.append(socket.recv())
    """,
    "a loop around its calls, begun while it is empty": """
    def begin():
        if rows:
            return
        while True:
            accept()
    def accept():
        rows.append(socket.accept())
    """,
    "a loop that is begun once, behind a flag": """
    begun = False

    def begin():
        global begun
        if not begun:
            begun = True
            while True:
                rows.append(socket.recv())
    """,
    "a loop over a stream, begun while it is empty": """
    async def begin():
        if not rows:
            async for message in stream:
                rows.append(message)
    """,
    "an event that calls what is also called while it is empty": """
    class Rows:
        def __init__(self):
            app.on("message", self._load)
        def first(self):
            if not rows:
                self._load(1)
        def _load(self, message):
            rows.append(message)
    begin = Rows().first
    """,
    "a base that may call what is also called while it is empty": """
    from web import Service

    class Rows(Service):
        def begin(self, message):
            if not rows:
                self.load(message)
        def load(self, message):
            rows.append(message)
    app.on("start", Rows().begin)
    """,
}


@pytest.mark.parametrize("case", ENDLESS)
def test_that_it_was_empty_before_bounds_nothing_in(case, tmp_path):
    start = "\n    rows = []\n"
    handler = '\n    @app.post("/")\n    def enter(request):\n        begin()\n'
    code = dedent(APP + start) + dedent(ENDLESS[case]) + dedent(handler)
    assert reported(tmp_path, ("rows", {"main": code}))


GROWS: dict[str, Program] = {
    "what the only instance of a class keeps, which its base creates": (
        "live",
        {
            "main": APP
            + """
    from single import Single

    class Manager(Single):
        def __init__(self):
            self.live = {}
        def add(self, key, value):
            self.live[key] = value
    @app.post("/")
    async def enter(request):
        Manager.only().add(request.user, request.text)
""",
            "single": """
    class Single:
        made = {}
        @classmethod
        def only(cls):
            if cls not in cls.made:
                cls.made[cls] = cls()
            return cls.made[cls]
""",
        },
    ),
    "what is returned early if the key is there": (
        "queues",
        {
            "main": APP
            + """
    queues = {}
    @app.post("/")
    def queue_of(request):
        queue = queues[request.user] if request.user in queues else None
        if queue:
            return queue
        queue = object()
        queues[request.user] = queue
        return queue
"""
        },
    ),
    "what is returned early if the key is known": (
        "queues",
        {
            "main": APP
            + """
    from asyncio import Queue

    queues = {}
    @app.post("/")
    def queue_of(request):
        queue = queues.get(request.user)
        if queue is not None:
            return queue
        queue = Queue()
        queues[request.user] = queue
        return queue
"""
        },
    ),
    "a command of a cog whose decorator has a plain name": (
        "answers",
        {
            "main": APP
            + """
    from discord.ext.commands import Cog, command

    class Misc(Cog):
        def __init__(self):
            self.answers = {}
        @command(pass_context=True)
        async def ask(self, ctx, question):
            known = question.lower()
            self.answers[known] = object()
    @app.post("/")
    def note(request):
        return request
"""
        },
    ),
    "what a client gets that is made for each start": (
        "memory",
        {
            "main": APP
            + """
    import botpy

    class Client(botpy.Client):
        def __init__(self):
            self.memory = {}
        async def on_message(self, message):
            self.memory[message.user_id] = [message.text]
    class Bots:
        def start(self, name):
            self.client = Client()
            self.client.name = name
    bots = Bots()
    @app.post("/start")
    async def start(request):
        bots.start(request.name)
"""
        },
    ),
    "strikes that go only at the last of them": (
        "strikes",
        {
            "main": APP
            + """
    strikes = {}
    @app.post("/")
    def post(request):
        strikes[request.user] = strikes.get(request.user, 0) + 1
        if strikes[request.user] > 9:
            del strikes[request.user]
"""
        },
    ),
    "ids of a list that an answer takes out only if there is one": (
        "waiting",
        {
            "main": APP
            + """
    waiting = []
    @app.post("/")
    async def ask(request):
        if request.muted:
            return
        waiting.append(request.user)
        picture = await find(request)
        if not picture:
            waiting.remove(request.user)
"""
        },
    ),
    "calls that only an error and an unknown caller end": (
        "calls",
        {
            "main": APP
            + """
    calls = {}
    @app.post("/")
    def ask(request):
        calls[request.id] = request
        try:
            answer(request)
        except OSError:
            del calls[request.id]
    def forget(name):
        calls.pop(name, None)
"""
        },
    ),
    "files that go if they are there, but only when they are bad": (
        "files",
        {
            "main": APP
            + """
    files = {}
    @app.post("/")
    def load(request):
        files[request.user] = request.text
        if request.bad:
            if request.user in files:
                del files[request.user]
"""
        },
    ),
    "questions that are taken out before the next one": (
        "asked",
        {
            "main": APP
            + """
    asked = {}
    @app.post("/")
    def ask(request):
        if request.user in asked:
            del asked[request.user]
        asked[request.user] = request.text
"""
        },
    ),
    "answers that another event clears in a thread": (
        "answers",
        {
            "main": APP
            + """
    import asyncio

    answers = {}
    @app.post("/")
    def ask(request):
        answers[request.question] = object()
    @app.delete("/")
    async def forget(request):
        await asyncio.to_thread(clear)
    def clear():
        answers.clear()
"""
        },
    ),
    "what a route leads to in a folder that is called like scripts": (
        "states",
        {
            "scripts/routes": APP
            + """
    states = {}

    @app.post("/{lesson_id}")
    async def trigger(lesson_id, text):
        start(lesson_id, text)
    def start(lesson_id, text):
        states[lesson_id] = text
"""
        },
    ),
    "what each event adds to an object that start-up creates": (
        "messages",
        {
            "main": """
    from web import App

    class Manager:
        def __init__(self, app):
            self.messages = []
            app.on("message", self.note)
        def note(self, message):
            self.messages.append(message)
    def main():
        app = App()
        manager = Manager(app)
        app.run()
    if __name__ == "__main__":
        main()
"""
        },
    ),
    "what only another kind of message takes out": ("images", {"main": APP + KINDS}),
    "what a part of something new is the key of": (
        "images",
        {
            "main": APP
            + """
    from uuid import uuid4

    images = {}

    def some_key():
        return str(uuid4())[:8]
    @app.post("/")
    def take(event):
        key = some_key()
        images[key] = event.image
"""
        },
    ),
    "what is also loaded while it is full": (
        "rows",
        {"main": APP + LOADED + '    @app.post("/")\n    def more(request):\n        load()\n'},
    ),
    "what its object also loads while it is full": (
        "rows",
        {
            "main": APP
            + LOADED_BY_ITSELF
            + '    @app.post("/")\n    def more(request):\n        rows._load(request.day)\n'
        },
    ),
    "an instance that is put into a map with update": (
        "stamps",
        {
            "loading": APP
            + """
    commands = {}
    class Command:
        def __init__(self, name):
            self.name = name
            self.stamps = {}
        def run(self, user_id, now):
            self.stamps[user_id] = now
    def load(names):
        for name in names:
            command = Command(name)
            if command.name:
                commands.update({name: command})
    @app.post("/")
    def enter(request):
        commands[request.name].run(request.user_id, request.now)
"""
        },
    ),
    "a key that is made of who sends it": (
        "locked",
        {
            "duels": APP
            + """
    from bots import Cog

    class Duels(Cog):
        def __init__(self, bot):
            self.locked = {}
        @app.command()
        async def duel(self, ctx, challenged_user):
            challenged = challenged_user.id
            account = await app.account(challenged)
            if not account:
                raise LookupError(challenged)
            self.locked[challenged] = True
"""
        },
    ),
    "what a wrapper notes around a handler": (
        "calls",
        {
            "limits": APP
            + """
    from functools import wraps

    calls = {}
    def limited(function):
        @wraps(function)
        def wrapper(request, *rest):
            if request.text:
                calls[request.name] = 1
            return function(request, *rest)
        return wrapper
    @app.post("/")
    @limited
    def enter(request):
        return request.text
"""
        },
    ),
    "what the counterpart would undo that nothing calls": (
        "sessions",
        {
            "server": APP
            + """
    class Manager:
        def __init__(self):
            self.sessions = {}
        def connect(self, socket):
            self.sessions[socket] = object()
        def disconnect(self, socket):
            self.sessions.pop(socket, None)
    manager = Manager()
    @app.websocket("/")
    async def enter(socket):
        manager.connect(socket)
"""
        },
    ),
    "an entry that goes if its time, in another map, has passed when it is asked for": (
        "cache",
        {
            "server": APP
            + """
    import time

    class Answers:
        def __init__(self):
            self.cache = {}
            self.times = {}
        def get(self, question):
            if question in self.cache:
                if time.time() - self.times[question] < 900:
                    return self.cache[question]
                del self.cache[question]
                del self.times[question]
            return None
        def put(self, question, answer):
            self.cache[question] = answer
            self.times[question] = time.time()
    answers = Answers()
    @app.post("/")
    async def enter(request):
        if answers.get(request.text) is None:
            answers.put(request.text, await app.ask(request.text))
"""
        },
    ),
    "what a decorator of the program gives to an app": (
        "files",
        {
            "server": APP
            + """
    files = {}
    def tool(section):
        def decorate(function):
            return app.tool(function)
        return decorate
    @tool("files")
    def fetch(address):
        files[address] = 1
    def again(address):
        fetch(address)
    @app.get("/")
    def index(request):
        return request
"""
        },
    ),
    "what a lambda adds that an external object gets for a kind of event": (
        "requests",
        {
            "browser": """
    import driver

    class Requests:
        def __init__(self):
            self.requests = {}
        def watch(self, tab):
            tab.add_handler(driver.Sent, lambda event: self._sent(event))
        def _sent(self, event):
            self.requests[event.number] = event
    class Tabs:
        def __init__(self):
            self.kept = Requests()
    tabs = Tabs()
    def serve(jobs):
        while True:
            tabs.kept.watch(jobs.get())
"""
        },
    ),
    "a class of a framework that is called like one of the program": (
        "scores",
        {
            "parts": """
    from enum import Enum

    class Cog(Enum):
        WHEEL = 1
""",
            "quiz": """
    from bots.ext import commands

    class Quiz(commands.Cog):
        def __init__(self):
            self.scores = {}
        @commands.command()
        async def play(self, event):
            self.scores[event.user_id] = 1
""",
        },
    ),
    "what an own class inherits the decorator for": (
        "seen",
        {
            "cogs": """
    from bots import Cog

    class Plugin(Cog):
        pass
""",
            "names": APP
            + """
    from cogs import Plugin

    @app.get("/")
    def index(request):
        return request

    seen = {}
    class Names(Plugin):
        @Plugin.listener()
        def on_name(self, event):
            seen[event.name] = event
""",
        },
    ),
}
FLAG = """
    class Link:
        def __init__(self):
            self.seen = []
            self.open = False
        def note(self, request):
            {flag} = {given}
            if not {flag}:
                self.seen.append(request.text)
                {flag} = True
        def close(self):
            self.open = False
    link = Link()
    @app.post("/")
    def enter(request):
        link.note(request)
    @app.delete("/")
    def leave(request):
        link.close()
"""
GROWS |= {
    "what a flag lets in again that another function resets": (
        "seen",
        {"main": APP + FLAG.format(flag="self.open", given="self.open")},
    ),
    "what a flag of one call lets in": (
        "seen",
        {"main": APP + FLAG.format(flag="told", given="request.told")},
    ),
    "answers that are asked for their age, which is computed before": (
        "answers",
        {
            "main": APP
            + """
    import time

    answers = {}
    def fetch(place):
        key = app.named(place)
        if key in answers:
            then, answer = answers[key]
            age = time.monotonic() - then
            if age < 60:
                return answer
        answers[key] = (time.monotonic(), app.read(place))
    def later(place):
        fetch(place)
    @app.get("/")
    def index(request):
        return request
"""
        },
    ),
    "an address that a program's own object keeps, and that nothing takes out": (
        "versions",
        {
            "main": APP
            + """
    class Peers:
        def __init__(self):
            self.versions = {}
        def note(self, ip, version):
            self.versions[ip] = version
        def forget(self, ip):
            self.versions.pop(ip, None)
    def work(peers, ip):
        peers.note(ip, 1)
    @app.get("/")
    def index(request):
        return request
    if __name__ == "__main__":
        peers = Peers()
        app.run(work, peers)
"""
        },
    ),
    "another item of an event than the one that is checked": (
        "threads",
        {
            "main": APP
            + """
    KINDS = {"pdf", "text"}
    threads = {}
    @app.event("message")
    def enter(event):
        kind = event["kind"]
        if kind not in KINDS:
            return
        threads[event["thread"]] = event["text"]
"""
        },
    ),
    "tasks that only a method without a caller takes out, which puts some back": (
        "tasks",
        {
            "main": APP
            + """
    from collections import deque

    class Recorder:
        def __init__(self):
            self.tasks = deque()
        def record(self, video):
            self.tasks.append(object())
        def recorded(self):
            task = self.tasks.popleft()
            self.tasks.append(task)
            return task
    recorder = Recorder()
    @app.post("/")
    def enter(request):
        recorder.record(request.video)
"""
        },
    ),
    "a look-up that brings back a key that was deleted": (
        "callbacks",
        {
            "main": APP
            + """
    from collections import defaultdict

    class Paths:
        def __init__(self):
            self.callbacks = defaultdict(list)
        def remove(self, path, callback):
            self.callbacks[path].remove(callback)
        def drop(self, path):
            del self.callbacks[path]
    paths = Paths()
    @app.post("/")
    def enter(request):
        paths.remove(request.path, request.callback)
    @app.delete("/")
    def leave(request):
        paths.drop(request.path)
"""
        },
    ),
    "what a thread of its own sees in an instance that a handler creates": (
        "completed",
        {
            "main": APP
            + """
    from threading import Thread

    class Jobs:
        def __init__(self, queue):
            self.queue = queue
            self.completed = {}
            Thread(target=self._work).start()
        def _work(self):
            while True:
                job = self.queue.get()
                self.completed[job.job_id] = job
    @app.post("/")
    def enter(request):
        jobs = Jobs(request.queue)
        return jobs.queue
"""
        },
    ),
    "what an owner keeps that nothing here names": (
        "results",
        {
            "engine": """
    class Engine:
        def __init__(self):
            self.results = {}
        def note(self, task_id, result):
            self.results[task_id] = result
    class Swarm:
        def __init__(self):
            self.engine = Engine()
        def note(self, task_id, result):
            self.engine.note(task_id, result)
""",
            "main": APP
            + """
    @app.post("/")
    def enter(request):
        return request
""",
        },
    ),
    "what an instance keeps that goes into a list": (
        "uses",
        {
            "main": CHAT
            + """
    def run_all(hosts):
        chats = []
        for host in hosts:
            chat = Chat(host)
            chats.append(chat)
        for chat in chats:
            chat.start()
""",
            "other": "from main import Chat",
        },
    ),
    "what an instance keeps that a start without a caller creates": (
        "uses",
        {
            "main": CHAT
            + """
    def run():
        chat = Chat("one")
        chat.start()
""",
            "other": "from main import Chat",
        },
    ),
}
SAFE: dict[str, Program] = {
    "what the same kind of message takes out": (
        "images",
        {"main": APP + KINDS.replace("TextMessage):", "ImageMessage):").replace("elif", "if")},
    ),
    "what is only loaded while it is empty": ("rows", {"main": APP + LOADED}),
    "what its object only loads while it is empty": ("rows", {"main": APP + LOADED_BY_ITSELF}),
    "what a package in a folder without one makes for each call": (
        "states",
        {
            "outer/main": APP
            + """
    from outer.lib.formats import Tracker

    async def convert(lines):
        tracker = Tracker()
        async for line in lines:
            tracker.note(line.item_id)
    @app.post("/")
    async def enter(request):
        await convert(request)
""",
            "outer/lib/formats/__init__": "from .states import Tracker\n",
            "outer/lib/formats/states": TRACKER,
        },
    ),
    "what a flag lets in once": (
        "names",
        {
            "main": APP
            + """
    class Files:
        def __init__(self):
            self.names = []
            self.checked = False
        def list(self):
            if not self.checked:
                for name in app.list():
                    self.names.append(name)
                self.checked = True
            return self.names
    files = Files()
    @app.post("/")
    def enter(request):
        return files.list()
"""
        },
    ),
    "a list that a handler of an object gets, which a function uses for each call": (
        "on_error{errors}",
        {
            "main": APP
            + """
    async def fetch(browser, address):
        page = await browser.new_page()
        errors = []
        def on_error(error):
            errors.append(error)
        page.on("pageerror", on_error)
        await page.goto(address)
        return errors
    @app.get("/")
    def index(request):
        return request
"""
        },
    ),
    "what each run of a task begins with": (
        "errors",
        {
            "main": APP
            + """
    class Checks:
        @classmethod
        async def run(cls, queue):
            cls.errors = {}
            await cls.work(queue)
        @classmethod
        async def work(cls, queue):
            while True:
                account = await queue.get()
                cls.errors[account.account_id] = 1
    @app.post("/")
    async def enter(request):
        await Checks.run(request.queue)
"""
        },
    ),
    "a list that only gets something where it was found empty": (
        "connections",
        {
            "main": APP
            + """
    connections = []
    @app.post("/")
    def enter(request):
        if connections:
            return connections[0]
        else:
            connections.append(object())
        return None
"""
        },
    ),
    "a lookup that only removes from what it finds": (
        "callbacks",
        {
            "main": APP
            + """
    from collections import defaultdict

    class Paths:
        def __init__(self):
            self.callbacks = defaultdict(list)
        def remove(self, path, callback):
            self.callbacks[path].remove(callback)
    paths = Paths()
    @app.post("/")
    def enter(request):
        paths.remove(request.path, request.callback)
"""
        },
    ),
    "a plain function that nothing names": (
        "cache",
        {
            "caches": """
    cache = {}
    def remembered(function, user_id):
        cache[user_id] = function(user_id)
""",
            "main": APP
            + """
    @app.post("/")
    def enter(request):
        return request
""",
        },
    ),
    "a class that nothing names": (
        "digests",
        {
            "stores": """
    class Digests:
        def __init__(self):
            self.digests = {}
        def note(self, user_id, digest):
            self.digests[user_id] = digest
    def note(store, user_id, digest):
        store.note(user_id, digest)
""",
            "main": APP
            + """
    @app.post("/")
    def enter(request):
        return request
""",
        },
    ),
    "a part of an item, which takes its place": (
        "orders",
        {
            "main": APP
            + """
    class Orders:
        def __init__(self):
            self.orders = {}
        def drop(self, user_id, order):
            self.orders[user_id] = [one for one in self.orders[user_id] if one != order]
    orders = Orders()
    @app.post("/")
    def enter(request):
        orders.drop(request.user_id, request.order)
"""
        },
    ),
    "a script of its own beside a server": (
        "users",
        {
            "main": APP
            + """
    @app.post("/")
    def enter(request):
        return request
""",
            "move": """
    from pool import Pool

    users = {}
    def move(batch):
        for user_id, rows in batch.items():
            users[user_id] = len(rows)
    def run():
        with Pool() as pool:
            pool.submit(move, pool.read())
    if __name__ == "__main__":
        run()
""",
        },
    ),
    "what a part of a command line adds": (
        "routes",
        {
            "main": APP
            + """
    from plugins import load

    @app.post("/")
    def enter(request):
        return request
""",
            "plugins": """
    class Plugin:
        def __init__(self):
            self.routes = []
        def load(self, route):
            self.routes.append(route)
    plugin = Plugin()
    def load(route):
        plugin.load(route)
""",
            "cli/status": """
    from shell import App
    from plugins import load

    part = App()
    @part.command()
    def status(route):
        load(route)
""",
        },
    ),
    "what a decorator registers that gives the function back": (
        "commands",
        {
            "main": APP
            + """
    commands = []
    def command(name):
        def decorate(function):
            commands.append((name, function))
            return function
        return decorate
    @app.post("/")
    @command("enter")
    def enter(request):
        return request
"""
        },
    ),
    "an entry that goes when what is in it is gone": (
        "rooms",
        {
            "main": APP
            + """
    rooms = {}
    @app.post("/")
    def leave(request):
        rooms.setdefault(request.room, set()).add(request.user)
        rooms[request.room].discard(request.user)
        if not rooms[request.room]:
            rooms.pop(request.room)
"""
        },
    ),
    "an entry that goes when a local finds it empty": (
        "rooms",
        {
            "main": APP
            + """
    rooms = {}
    @app.post("/")
    def leave(request):
        users = rooms[request.room] = [request.user]
        users.remove(request.user)
        if not users:
            rooms.pop(request.room)
"""
        },
    ),
    "an entry that goes at the end behind a test": (
        "calls",
        {
            "main": APP
            + """
    calls = {}
    @app.post("/")
    def ask(request):
        try:
            calls[request.id] = request
            answer(request)
        finally:
            if request.id in calls:
                del calls[request.id]
"""
        },
    ),
    "what is done once, as a local tells that is read from what stays": (
        "parts",
        {
            "main": APP
            + """
    parts = []
    class Whole:
        made = None
        def get(self, request):
            made = self.made
            if made is not None:
                return made
            made = self.made = object()
            parts.append(made)
            return made
    whole = Whole()
    @app.post("/")
    def show(request):
        return whole.get(request)
"""
        },
    ),
    "an entry that goes if it is there": (
        "calls",
        {
            "main": APP
            + """
    calls = {}
    @app.post("/")
    def ask(request):
        calls[request.id] = request
        if request.id in calls:
            del calls[request.id]
"""
        },
    ),
    "an entry that goes in both arms": (
        "calls",
        {
            "main": APP
            + """
    calls = {}
    @app.post("/")
    def ask(request):
        calls[request.id] = request
        if request.good:
            del calls[request.id]
            return True
        else:
            del calls[request.id]
            return False
"""
        },
    ),
    "a connection that ends by an error": (
        "sockets",
        {
            "main": APP
            + """
    sockets = {}
    @app.websocket("/")
    async def enter(socket):
        sockets[socket.id] = socket
        try:
            while True:
                answer(await socket.receive())
        except Disconnected:
            if socket.id in sockets:
                del sockets[socket.id]
"""
        },
    ),
    "what runs beside the event that fills it": (
        "answers",
        {
            "main": APP
            + """
    import asyncio

    answers = {}
    @app.post("/")
    async def ask(request):
        answers[request.question] = object()
        await asyncio.to_thread(sweep)
    def sweep():
        answers.clear()
"""
        },
    ),
    "a size that a local tells": (
        "shown",
        {
            "main": APP
            + """
    shown = set()
    @app.post("/")
    def show(request):
        wanted = request.id not in shown and len(shown) < 5
        if wanted:
            shown.add(request.id)
"""
        },
    ),
    "what a counterpart undoes that a handler calls": (
        "sessions",
        {
            "server": APP
            + """
    class Manager:
        def __init__(self):
            self.sessions = {}
        def connect(self, socket):
            self.sessions[socket] = object()
        def disconnect(self, socket):
            self.sessions.pop(socket, None)
    manager = Manager()
    @app.websocket("/")
    async def enter(socket):
        manager.connect(socket)
        try:
            await socket.receive()
        finally:
            manager.disconnect(socket)
"""
        },
    ),
}


ONLY = """
    class Store:
        def __init__(self):
            self.sessions = {}
        def remember(self, name, secret):
            self.sessions[name] = secret
    class Analyzer:
        _instance = None
        def __init__(self):
            self.store = Store()
            Analyzer._instance = self
        @classmethod
        def get(cls):
            if cls._instance is None:
                cls._instance = cls()
            return cls._instance
"""


def test_what_a_class_method_creates_the_class_keeps(tmp_path):
    (tmp_path / "app.py").write_text(dedent(ONLY), encoding="utf-8")
    told = Scan([tmp_path]).silence("Store.sessions")
    assert told[1].startswith("  proved: Store is kept by Analyzer: Analyzer is kept by a class")


ENDING = """
    from database import at_end

    class Users:
        def __init__(self, session):
            self.known = {}
            @at_end(session)
            def forget():
                self.known.clear()
        def fetch(self, name):
            self.known[name] = object()
    users = Users(object())
"""


def test_what_a_decorator_gets_runs_when_its_event_arrives(tmp_path):
    (tmp_path / "app.py").write_text(dedent(ENDING), encoding="utf-8")
    told = Scan([tmp_path]).silence("Users.known")
    assert told[4].startswith("  assumed: forget() runs only when its event arrives")


CONNECTED = """
    from database import create_engine
    from web import App

    app = App()
    class Single:
        made = {}
        @classmethod
        def only(cls):
            if cls not in cls.made:
                cls.made[cls] = cls()
            return cls.made[cls]
    class Manager(Single):
        def __init__(self):
            self.live = []
        async def connect(self, socket):
            self.live.append(socket)
    def migrate():
        engine = create_engine()
        engine.connect()
    migrate()
    def get_manager():
        return Manager.only()
    manager = get_manager()
    @app.websocket("/")
    async def enter(socket):
        await manager.connect(socket)
"""


def test_what_a_function_of_the_program_returns_is_no_connection_of_a_library(tmp_path):
    (tmp_path / "app.py").write_text(dedent(CONNECTED), encoding="utf-8")
    told = Scan([tmp_path]).silence("Manager.live")
    assert "grows each time connect() runs: @app.websocket calls enter() for each event" in told[2]
    rest = dedent(CONNECTED).partition("manager = ")[0]
    (tmp_path / "app.py").write_text(rest, encoding="utf-8")
    told = Scan([tmp_path]).silence("Manager.live")
    assert "runs only at start-up" not in told[2]


FAR = (
    APP
    + """
    import elsewhere

    known = {}
    def one(name):
        two(name)
    def two(name):
        three(name)
    def three(name):
        four(name)
    def four(name):
        five(name)
    def five(name):
        six(name)
    def six(name):
        known[name] = object()
    DECORATOR
    def enter(request):
        one(request.name)
"""
)


@pytest.mark.parametrize(
    ("decorator", "told"),
    [
        ('@app.post("/")', "enter(), which leads to it, runs for each event"),
        ("@elsewhere.kept", "enter(), which leads to it, is passed on"),
        ("", "nothing here calls what leads to it"),
    ],
)
def test_who_leads_to_growth_from_afar_is_named(decorator, told, tmp_path):
    text = dedent(FAR.replace("DECORATOR", decorator))
    (tmp_path / "app.py").write_text(text, encoding="utf-8")
    assert f"grows each time six() runs; {told}" in Scan([tmp_path]).silence("known")[2]


LATE = """
    import time
    from uuid import uuid4

    requests = {}
    def ask(request):
        if request.asks:
            name = uuid4().hex
            requests[name] = False
            then = time.time()
            while time.time() < then + 5:
                if requests[name]:
                    break
            del requests[name]
"""


def test_what_asks_for_the_time_while_it_waits_takes_out_what_it_put_in(tmp_path):
    (tmp_path / "app.py").write_text(dedent(LATE), encoding="utf-8")
    told = Scan([tmp_path]).silence("requests")
    assert told[4].startswith("  refuted: removed where it grows")


@pytest.mark.parametrize("case", GROWS)
def test_growth_is_seen_in(case, tmp_path):
    assert reported(tmp_path, GROWS[case])


@pytest.mark.parametrize("case", SAFE)
def test_nothing_is_said_about(case, tmp_path):
    assert not reported(tmp_path, SAFE[case])
