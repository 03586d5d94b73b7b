"""Small programs, each with one thing that hides a leak or looks like one."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from floodline.scan import Scan

Program = tuple[str, dict[str, str]]  # a container, and the code of files
APP = """
    from web import App

    app = App()
"""
GROWS: dict[str, Program] = {
    "an id that only a guessed caller hands on": (
        "_tasks",
        {
            "host": """
    class Plugin:
        def __init__(self, bus):
            self._tasks = {}
            bus.on("session.deleted", self.forget)
        def work(self, session_id):
            if session_id not in self._tasks:
                self._tasks[session_id] = []
            self._tasks[session_id].append(1)
        def forget(self, session_id):
            self._tasks.pop(session_id, None)
    class Host:
        def __init__(self, bus):
            self._plugins = [Plugin(bus)]
        def work(self, session_id):
            return max(plugin.work(session_id) for plugin in self._plugins)
""",
        },
    ),
    "an id that a guessed caller hands on, beside a method that takes less": (
        "_tasks",
        {
            "host": """
    class Plugin:
        def __init__(self, bus):
            self._tasks = {}
            bus.on("session.deleted", self.forget)
        def work(self, job_id, text):
            if job_id not in self._tasks:
                self._tasks[job_id] = []
            self._tasks[job_id].append(text)
        def forget(self, job_id):
            self._tasks.pop(job_id, None)
    class Host:
        def __init__(self, bus):
            self._plugins = [Plugin(bus)]
        def work(self, job_id, text):
            return max(plugin.work(job_id, text) for plugin in self._plugins)
    class Idle:
        def work(self, job_id):
            return job_id
""",
        },
    ),
    "a key that a static method gets as its only parameter": (
        "locks",
        {
            "main": APP
            + """
    locks = {}
    class Saves:
        @staticmethod
        def lock_of(guid):
            locks[guid] = object()
            return locks[guid]
    @app.post("/")
    def save(request):
        return Saves.lock_of(request.guid)
""",
        },
    ),
    "a key of letters that are drawn at random": (
        "sessions",
        {
            "main": APP
            + """
    import random
    class Logins:
        def __init__(self):
            self.sessions = {}
        def begin(self, client):
            key = "".join(str(random.choice("abcdef")) for _ in range(64))
            self.sessions[key] = client
            return key
    logins = Logins()
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "a list of which a loop asks whether it has become longer": (
        "results",
        {
            "main": APP
            + """
    class Agent:
        def __init__(self):
            self.results = []
        def work(self, task):
            for _ in range(5):
                before = len(self.results)
                self.run(task)
                if len(self.results) == before:
                    break
        def run(self, task):
            self.results.append([task, 1])
    agent = Agent()
    @app.post("/")
    def enter(request):
        agent.work(request.text)
""",
        },
    ),
    "a class of which a base keeps the only instance": (
        "tokens",
        {
            "main": APP
            + """
    class Handler:
        _instance = None
        def __new__(cls):
            if not isinstance(cls._instance, cls):
                cls._instance = object.__new__(cls)
            return cls._instance
    class Legacy(Handler):
        def __init__(self):
            self.tokens = {}
        def note(self, client, text):
            self.tokens[text] = client
    @app.post("/")
    def enter(request):
        Legacy().note(request.client, request.text)
""",
        },
    ),
    "a function that an app gets from a call of its decorator": (
        "visits",
        {
            "main": APP
            + """
    visits = {}
    def visit(request):
        visits[request.path] = request.text
    app.get("/{path}")(visit)
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "a function that adds to a list each few seconds": (
        "samples",
        {
            "main": APP
            + """
    from jobs import Schedule, latest
    schedule = Schedule()
    samples = []
    def sample():
        samples.append(latest())
    schedule.register(sample, seconds=5)
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "a list that is made anew in a branch of what fills it": (
        "rooms",
        {
            "main": APP
            + """
    rooms = {"a": [], "b": []}
    @app.post("/")
    def enter(request):
        if request.text == "first":
            rooms["a"] = []
        rooms["a"].append([request.text])
""",
        },
    ),
    "what a module of the program fills again": (
        "languages",
        {
            "site_app": """
    from web import App
    languages = []
    class Site(App):
        def __init__(self, name):
            super().__init__(name)
            fill(self)
    def fill(site):
        languages.extend([str(one) for one in site.list_languages()])
""",
            "main": """
    from site_app import Site
    app = Site("main")
    @app.post("/")
    def enter(request):
        return request.text
""",
            "site_jobs": """
    from site_app import Site
    def make():
        return Site("jobs")
""",
        },
    ),
    "what a member of a large family empties when it is called once": (
        "missed",
        {
            "plans": """
    class Plan:
        def schedule(self):
            raise NotImplementedError
        def done(self, item):
            raise NotImplementedError
    class Circle(Plan):
        def schedule(self):
            return 1
    class Square(Plan):
        def schedule(self):
            return 2
    class Triangle(Plan):
        def schedule(self):
            return 3
    class Fast(Plan):
        def __init__(self):
            self.missed = {}
        def schedule(self):
            self.begin()
        def begin(self):
            self.missed = {}
        def done(self, item):
            self.missed[item.uid] = item
    class Plans:
        @classmethod
        def make(cls, name):
            return globals()[name]()
""",
            "main": """
    from plans import Plans
    def watch(names):
        plans = [Plans.make(name) for name in names]
        for number in range(len(plans)):
            plans[number].schedule()
    def update(queue, plans):
        while True:
            item = queue.get()
            plans[item.number].done(item)
""",
        },
    ),
    "what a loop that waits adds two calls further down": (
        "found",
        {
            "main": APP
            + """
    import asyncio
    import web
    found = {}
    async def load(texts):
        for text in texts:
            await handle(text)
    async def search():
        while True:
            for text in await web.get("proxies"):
                await handle(text)
            await asyncio.sleep(60)
    async def handle(text):
        await check(text.strip())
    async def check(ip):
        if ip not in found:
            found[ip] = await web.connect(ip)
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "a key that is bound in the condition of a loop": (
        "kinds",
        {
            "main": APP
            + """
    kinds = {}
    @app.post("/")
    async def enter(request):
        while kind := await request.next_kind():
            kinds[kind] = 1
""",
        },
    ),
    "a key that is bound in a condition": (
        "kinds",
        {
            "main": APP
            + """
    kinds = {}
    @app.post("/")
    async def enter(request):
        if (kind := request.kind) not in kinds:
            kinds[kind] = 1
""",
        },
    ),
    "a key that a match takes out of an event": (
        "kinds",
        {
            "main": APP
            + """
    kinds = {}
    @app.post("/")
    async def enter(request):
        match request.json():
            case {"kind": kind}:
                kinds[kind] = 1
""",
        },
    ),
    "a key of a pair within a pair": (
        "kinds",
        {
            "main": APP
            + """
    kinds = {}
    @app.post("/")
    async def enter(request):
        (kind, _), *rest = request.pairs()
        kinds[kind] = rest
""",
        },
    ),
    "keys that a comprehension takes out of an event": (
        "kinds",
        {
            "main": APP
            + """
    kinds = {}
    @app.post("/")
    async def enter(request):
        kinds.update({kind: 1 for kind in request.kinds()})
""",
        },
    ),
    "keys that a comprehension adds one at a time": (
        "kinds",
        {
            "main": APP
            + """
    kinds = {}
    @app.post("/")
    async def enter(request):
        [kinds.setdefault(kind, 1) for kind in request.kinds()]
""",
        },
    ),
    "a key that a context gives": (
        "kinds",
        {
            "main": APP
            + """
    kinds = {}
    @app.post("/")
    async def enter(request):
        with request.opened() as (kind, text):
            kinds[kind] = text
""",
        },
    ),
    "what a factory makes that is passed on, and so may stay": (
        "seen",
        {
            "services": """
    class Service:
        def __init__(self):
            self.seen = {}
        def note(self, session_id, text):
            self.seen[session_id] = text
    def make_service(settings):
        return Service()
""",
            "main": APP
            + """
    from wiring import provide
    from services import make_service
    def start(container):
        container.provide(make_service)
    @app.post("/")
    def enter(request):
        provide("service").note(request.session_id, request.text)
""",
        },
    ),
    "an instance under a name that is only filled at the start": (
        "seen",
        {
            "main": APP
            + """
    class Service:
        def __init__(self):
            self.seen = []
        def note(self, text):
            self.seen.append(text)
    services = {}
    services["main"] = Service()
    @app.post("/")
    def enter(request):
        services["main"].note(request.text)
""",
        },
    ),
    "a list that is left alone only if something else is there": (
        "seen",
        {
            "main": APP
            + """
    seen = []
    ready = []
    @app.post("/")
    def enter(request):
        if len(ready) > 0:
            return
        seen.append(request.text)
""",
        },
    ),
    "what a method of the program's own takes out that nothing runs": (
        "downloads",
        {
            "main": APP
            + """
    downloads = {}
    class Download:
        def __init__(self, url):
            self.url = url
        def run(self):
            downloads.pop(self.url)
    @app.post("/")
    def enter(request):
        downloads[request.url] = Download(request.url)
""",
        },
    ),
    "messages for what a function of the program gets and calls with each": (
        "seen",
        {
            "client": """
    import sockets
    class Client:
        async def start(self, consumer):
            while True:
                async with sockets.connect() as socket:
                    async for text in socket:
                        await consumer(text)
""",
            "main": APP
            + """
    import asyncio
    import json
    from client import Client
    class Agent(Client):
        def __init__(self):
            self.seen = {}
        async def note(self, text):
            told = json.loads(text)
            key = told["station"] + told["place"]
            if key not in self.seen:
                self.seen[key] = told
        def _restore(self):
            self.seen = json.load(open("seen.json"))["seen"]
        def run(self):
            self._restore()
            asyncio.get_event_loop().create_task(self.start(self.note))
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "a field that a base creates for an instance that the module keeps": (
        "history",
        {
            "main": APP
            + """
    from models import Model
    class Run(Model):
        history: list = []
        def step(self, text):
            self.history.append(text)
    run = Run()
    @app.post("/")
    def enter(request):
        run.step(request.text)
""",
        },
    ),
    "a function that a decorator of the program notes": (
        "streams",
        {
            "hook": """
    def message(pattern):
        def note(function):
            function.hooks = [pattern]
            return function
        return note
""",
            "log": """
    import hook
    streams = {}
    @hook.message("*")
    def log(event):
        stream(event.server, event.channel)
    def stream(server, channel):
        key = (server, channel)
        if key not in streams:
            streams[key] = open(channel)
        return streams[key]
""",
            "main": APP
            + """
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "a coroutine that an external decorator gets": (
        "counts",
        {
            "main": APP
            + """
    from framework import preprocessor
    counts = {}
    @preprocessor
    async def check(bot, event):
        counts[digest(event)] = event
    def digest(event):
        return event.text
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "a table of lambdas in a handler": (
        "games",
        {
            "main": APP
            + """
    class Table:
        games = {}
        @classmethod
        def begin(cls, name):
            cls.games[name] = []
    def answer(text, name):
        commands = {"new": lambda: begin(text, name), "help": lambda: "?"}
        return commands[text]()
    def begin(text, name):
        return Table.begin(name)
    @app.message
    def receive(message):
        return answer(message.text, message.name)
""",
        },
    ),
    "a function in place of a method of an external class": (
        "counts",
        {
            "__main__": """
    from web import Dispatcher
    counts = {}
    def process(self, update):
        counts[update.effective_chat.id] = counts.get(update.effective_chat.id, 0) + 1
    def main():
        Dispatcher.process_update = process
    main()
""",
        },
    ),
    "a function that an external client gets as an attribute": (
        "topics",
        {
            "main": APP
            + """
    import mqtt
    @app.post("/")
    def enter(request):
        return request.text
    topics = {}
    def note(client, data, message):
        topics[digest(message)] = message
    def digest(message):
        return message.topic
    def main():
        client = mqtt.Client()
        client.on_message = note
        client.loop_forever()
    main()
""",
        },
    ),
    "a function that a table of routes gets when its module is loaded": (
        "times",
        {
            "views": """
    times = {}
    def show(request, number):
        times[digest(request, number)] = number
    def digest(request, number):
        return f"{request.ip}:{number}"
""",
            "urls": """
    from web import path
    import views
    routes = [path("videos/<number>", views.show)]
""",
            "main": APP
            + """
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "a function that subscribes to a topic of an external object": (
        "nodes",
        {
            "main": APP
            + """
    from bus import pub
    @app.post("/")
    def enter(request):
        return request.text
    nodes = {}
    def receive(packet, interface):
        nodes[digest(packet)] = interface
    def digest(packet):
        return packet["from"]
    async def start():
        pub.subscribe(receive, "radio.receive")
""",
        },
    ),
    "a table that gets its key where the key is looked up": (
        "times",
        {
            "main": APP
            + """
    seen = {}
    times = {}
    @app.message
    def receive(event):
        key = digest(event)
        if key in seen:
            print(seen[key])
        seen[key] = event
        times[key] = event.time
    def digest(event):
        return repr(event)
""",
        },
    ),
    "a new value that a function tries and returns": (
        "codes",
        {
            "main": APP
            + """
    from random import randint
    codes = {}
    def new_code():
        while True:
            code = str(randint(1000, 9999))
            if code not in codes:
                return code
    @app.post("/")
    def enter(request):
        code = new_code()
        codes[code] = request
""",
        },
    ),
    "what an app's handlers share in the function that makes the app": (
        "enter{seen}",
        {
            "main": """
    from web import App
    def make_app():
        app = App()
        seen = {}
        @app.post("/")
        def enter(body):
            seen[body.id] = body
        return app
    app = make_app()
""",
        },
    ),
    "a command forgets, and returns before it grows": (
        "history",
        {
            "main": APP
            + """
    history = {}
    @app.message
    async def answer(message):
        if message.text == "/reset":
            history.pop(message.chat_id, None)
            return
        history.setdefault(message.chat_id, []).append(message.text)
""",
        },
    ),
    "a flag in the text forgets": (
        "history",
        {
            "main": APP
            + """
    history = {}
    def forget(chat_id):
        if chat_id in history:
            del history[chat_id]
    @app.message
    async def answer(message):
        if message.text.startswith("/new"):
            forget(message.chat_id)
            return
        elif "-clear" in message.text:
            return forget(message.chat_id)
        history[message.chat_id] = message.text
""",
        },
    ),
    "a removal after an error only": (
        "jobs",
        {
            "main": APP
            + """
    import uuid
    jobs = {}
    @app.post("/jobs")
    async def create(body):
        job_id = str(uuid.uuid4())
        jobs[job_id] = {"status": "running"}
        try:
            await run(body)
        except Exception:
            del jobs[job_id]
            raise
        return job_id
""",
        },
    ),
    "a timer that adds": (
        "samples",
        {
            "main": """
    import threading, time
    samples = []
    def sample():
        samples.append(time.time())
        threading.Timer(1, sample).start()
    if __name__ == "__main__":
        sample()
""",
        },
    ),
    "a command of a plugin that a bot gets": (
        "seen",
        {
            "cog": """
    from discord.ext import commands
    class Games(commands.Cog):
        def __init__(self, bot):
            self.bot = bot
            self.seen = {}
        @commands.command()
        async def play(self, ctx, name):
            self.seen[ctx.author.id] = name
    async def setup(bot):
        await bot.add_cog(Games(bot))
""",
            "main": """
    from discord.ext import commands
    bot = commands.Bot("!")
    bot.run("x")
""",
        },
    ),
    "a command with an interaction": (
        "seen",
        {
            "cog": """
    import discord
    from discord import app_commands
    from discord.ext import commands
    class Games(commands.Cog):
        def __init__(self, bot):
            self.seen = {}
        @app_commands.command(name="x")
        async def play(self, interaction: discord.Interaction, text: str):
            self.seen[interaction.user.id] = text
    async def setup(bot):
        await bot.add_cog(Games(bot))
""",
        },
    ),
    "a command of a tree": (
        "history",
        {
            "main": """
    import discord
    from discord import app_commands
    client = discord.Client()
    tree = app_commands.CommandTree(client)
    history = {}
    @tree.command(name="ask")
    async def ask(interaction: discord.Interaction, text: str):
        history[interaction.user.id] = text
    client.run("x")
""",
        },
    ),
    "a data class that the module keeps": (
        "items",
        {
            "main": APP
            + """
    from dataclasses import dataclass, field
    @dataclass
    class State:
        items: dict = field(default_factory=dict)
    STATE = State()
    @app.post("/x")
    def note(body):
        STATE.items[body.id] = body
""",
        },
    ),
    "an attribute of this name of other objects is cleared": (
        "entries",
        {
            "a": """
    class A:
        def __init__(self):
            self.entries = {}
        def add(self, key):
            self.entries[key] = 1
    class B:
        def __init__(self):
            self.entries = {}
        def sweep(self):
            self.entries.clear()
""",
            "main": APP
            + """
    from a import A
    store = A()
    @app.post("/x")
    def note(body):
        store.add(body.id)
    def tidy(other):
        other.entries.clear()
""",
        },
    ),
    "an instance from a factory": (
        "entries",
        {
            "main": APP
            + """
    class Store:
        def __init__(self):
            self.entries = {}
        def add(self, key):
            self.entries[key] = 1
    def make():
        return Store()
    store = make()
    @app.post("/x")
    def note(body):
        store.add(body.id)
""",
        },
    ),
    "an instance that a function makes once": (
        "entries",
        {
            "main": APP
            + """
    class Store:
        def __init__(self):
            self.entries = {}
        def add(self, key):
            self.entries[key] = 1
    _store = None
    def get_store():
        global _store
        if _store is None:
            _store = Store()
        return _store
    @app.post("/x")
    def note(body):
        get_store().add(body.id)
""",
        },
    ),
    "what is given, or a default": (
        "entries",
        {
            "main": APP
            + """
    class Store:
        def __init__(self):
            self.entries = {}
        def add(self, key):
            self.entries[key] = 1
    class Service:
        def __init__(self, store=None):
            self.store = store or Store()
        def note(self, key):
            self.store.add(key)
    service = Service()
    @app.post("/x")
    def note(body):
        service.note(body.id)
""",
        },
    ),
    "a class with a protocol": (
        "entries",
        {
            "main": APP
            + """
    from typing import Protocol
    class Keeps(Protocol):
        def add(self, key): ...
    class Store(Keeps):
        def __init__(self):
            self.entries = {}
        def add(self, key):
            self.entries[key] = 1
    store = Store()
    @app.post("/x")
    def note(body):
        store.add(body.id)
""",
        },
    ),
    "behind a property": (
        "entries",
        {
            "main": APP
            + """
    class Store:
        def __init__(self):
            self.entries = {}
        def add(self, key):
            self.entries[key] = 1
    class Service:
        def __init__(self):
            self._store = Store()
        @property
        def store(self):
            return self._store
    service = Service()
    @app.post("/x")
    def note(body):
        service.store.add(body.id)
""",
        },
    ),
    "a time as a number": (
        "log",
        {
            "main": APP
            + """
    from datetime import datetime
    log = {}
    @app.post("/x")
    def note():
        log[datetime.now().timestamp()] = 1
""",
        },
    ),
    "what is taken out": (
        "done",
        {
            "main": """
    import asyncio
    done = {}
    queue = []
    async def worker():
        while True:
            job = queue.pop()
            done[job.id] = 1
            await asyncio.sleep(1)
""",
        },
    ),
    "an attribute of what is taken out": (
        "done",
        {
            "main": """
    import asyncio
    done = {}
    queue = []
    async def worker():
        while True:
            done[queue.pop().id] = 1
            await asyncio.sleep(1)
""",
        },
    ),
    "a key that a method extracts": (
        "users",
        {
            "main": APP
            + """
    class Service:
        def __init__(self):
            self.users = {}
        def _extract(self, request):
            return request.headers["user"]
        def note(self, request):
            self.users[self._extract(request)] = 1
    service = Service()
    @app.post("/x")
    def note(request):
        service.note(request)
""",
        },
    ),
    "an attribute that is a global": (
        "KNOWN",
        {
            "main": APP
            + """
    KNOWN = {}
    class Service:
        def __init__(self):
            self.known = KNOWN
        def note(self, key):
            self.known[key] = 1
    @app.post("/x")
    def note(request):
        Service().note(request.id)
""",
        },
    ),
    "a rate limiter that writes its list again": (
        "hits",
        {
            "main": APP
            + """
    import time
    from collections import defaultdict
    hits = defaultdict(list)
    @app.post("/x")
    def note(request):
        now = time.time()
        hits[request.ip] = [t for t in hits[request.ip] if now - t < 60]
        hits[request.ip].append(now)
""",
        },
    ),
    "a rate limiter that empties its list": (
        "hits",
        {
            "main": APP
            + """
    import time
    from collections import defaultdict
    class Limiter:
        def __init__(self):
            self.hits = defaultdict(list)
        def allowed(self, key):
            now = time.time()
            window = self.hits[key]
            while window and window[0] < now - 60:
                window.pop(0)
            if len(window) >= 10:
                return False
            window.append(now)
            return True
    limiter = Limiter()
    @app.post("/x")
    def note(request):
        return limiter.allowed(request.ip)
""",
        },
    ),
    "a loop that counts": (
        "sent",
        {
            "main": """
    import itertools
    sent = {}
    def run(sock):
        for n in itertools.count():
            sent[n] = sock.recv(10)
""",
        },
    ),
    "a count": (
        "sent",
        {
            "main": APP
            + """
    import itertools
    numbers = itertools.count()
    sent = {}
    @app.post("/x")
    def note(request):
        sent[next(numbers)] = request.body
""",
        },
    ),
    "a clean-up that nobody calls": (
        "jobs",
        {
            "main": APP
            + """
    class Jobs:
        def __init__(self):
            self.jobs = {}
        def add(self, key):
            self.jobs[key] = 1
        def cleanup_old(self):
            self.jobs.clear()
    store = Jobs()
    @app.post("/x")
    def note(request):
        store.add(request.id)
""",
        },
    ),
    "reloaded from what was saved": (
        "jobs",
        {
            "main": APP
            + """
    import json
    class Jobs:
        def __init__(self):
            self.jobs = {}
        def add(self, key):
            self.jobs[key] = 1
            self.save()
        def save(self):
            json.dump(self.jobs, open("x", "w"))
        def load(self):
            self.jobs = json.load(open("x"))
    store = Jobs()
    store.load()
    @app.post("/x")
    def note(request):
        store.add(request.id)
""",
        },
    ),
    "replaced by itself and one more": (
        "jobs",
        {
            "main": APP
            + """
    class Jobs:
        def __init__(self):
            self.jobs = {}
        def add(self, key):
            self.jobs = {**self.jobs, key: 1}
    store = Jobs()
    @app.post("/x")
    def note(request):
        store.add(request.id)
""",
        },
    ),
    "a limit that only logs": (
        "items",
        {
            "main": APP
            + """
    import logging
    items = []
    @app.post("/x")
    def note(request):
        if len(items) > 100:
            logging.warning("many")
        items.append(request.body)
""",
        },
    ),
    "called by its name": (
        "seen",
        {
            "main": APP
            + """
    class Handler:
        def __init__(self):
            self.seen = {}
        def on_message(self, data):
            self.seen[data["id"]] = 1
        def on_close(self, data):
            pass
        def dispatch(self, data):
            getattr(self, "on_" + data["type"])(data)
    handler = Handler()
    @app.post("/x")
    def note(data):
        handler.dispatch(data)
""",
        },
    ),
    "called by its base class": (
        "seen",
        {
            "main": APP
            + """
    class Base:
        def process(self, data):
            self.handle(data)
    class Handler(Base):
        def __init__(self):
            self.seen = {}
        def handle(self, data):
            self.seen[data["id"]] = 1
    handler = Handler()
    @app.post("/x")
    def note(data):
        handler.process(data)
""",
        },
    ),
    "a handler in an object": (
        "chats",
        {
            "main": """
    from telegram.ext import Application, CommandHandler, MessageHandler, filters
    chats = {}
    async def reply(update, context):
        chats[update.effective_chat.id] = update.message.text
    def main():
        app = Application.builder().token("x").build()
        app.add_handler(CommandHandler("x", reply))
        app.run_polling()
    if __name__ == "__main__":
        main()
""",
        },
    ),
    "a method in a handler": (
        "chats",
        {
            "main": """
    from telegram.ext import Application, CommandHandler
    class Bot:
        def __init__(self):
            self.chats = {}
        async def reply(self, update, context):
            self.chats[update.effective_chat.id] = update.message.text
        def run(self):
            app = Application.builder().token("x").build()
            app.add_handler(CommandHandler("x", self.reply))
            app.run_polling()
    def main():
        Bot().run()
    if __name__ == "__main__":
        main()
""",
        },
    ),
    "a tool of a server": (
        "sessions",
        {
            "main": """
    from mcp.server.fastmcp import FastMCP
    mcp = FastMCP("x")
    sessions = {}
    @mcp.tool()
    def open_session(session_id: str) -> str:
        sessions[session_id] = {"a": 1}
        return session_id
    if __name__ == "__main__":
        mcp.run()
""",
        },
    ),
    "registered by an own decorator": (
        "found",
        {
            "main": """
    from wrapping import pattern
    found = {}
    @pattern("hello")
    async def greet(event):
        text = event.text
        found.update({text: event})
""",
            "wrapping": """
    from clients import bot
    def pattern(text):
        def wrap(function):
            async def wrapper(event):
                await function(event)
            bot.add_event_handler(wrapper, text)
            return wrapper
        return wrap
""",
        },
    ),
    "taken over from a local map": (
        "times",
        {
            "main": APP
            + """
    times = {}
    @app.command()
    async def greet(ctx):
        fresh = {}
        for kind in ("guild", "member"):
            fresh[kind, ctx.author] = 1
        times.update(fresh)
""",
        },
    ),
    "of a class with one instance by a decorator": (
        "requests",
        {
            "main": APP
            + """
    from uuid import uuid4
    def only(kind):
        known = {}
        def make():
            if kind not in known:
                known[kind] = kind()
            return known[kind]
        return make
    @only
    class Channel:
        def __init__(self):
            self.requests = {}
        def enter(self):
            request_id = uuid4()
            self.requests[request_id] = 1
    @app.post("/")
    def enter(request):
        Channel().enter()
""",
        },
    ),
    "a key that has another value in one branch": (
        "texts",
        {
            "main": APP
            + """
    texts = {}
    @app.post("/")
    def enter(text, kind):
        if kind == "other":
            text = "none"
        texts[text] = kind
""",
        },
    ),
    "of what a command line starts": (
        "nicks",
        {
            "bot/core": """
    class Bot:
        def __init__(self):
            self.nicks = {}
        def on_message(self, trigger):
            self.nicks[trigger.nick] = {}
        def run(self):
            connect("message", self.on_message)
""",
            "bot/cli": """
    from bot.core import Bot
    def start(settings):
        bot = Bot()
        bot.run()
""",
            "bot/web": APP
            + """
    @app.get("/")
    def index(request):
        return request.text
""",
        },
    ),
    "of a class beside the file that is run": (
        "chats",
        {
            "bot/talking": """
    class Talk:
        def __init__(self):
            self.chats = {}
        def note(self, chat_id, text):
            self.chats[chat_id] = text
""",
            "bot/main": APP
            + """
    from talking import Talk
    talk = Talk()
    @app.on_message()
    async def greet(message):
        talk.note(message.chat, message.text)
    if __name__ == "__main__":
        app.run()
""",
        },
    ),
    "taken out by a handler that adds it again": (
        "prompts",
        {
            "main": APP
            + """
    prompts = {}
    @app.on_message()
    async def prompt(message):
        prompts[message.chat_id] = message.text
    @app.command("again")
    async def again(message):
        message.text = prompts.pop(message.chat_id)
        await prompt(message)
""",
        },
    ),
    "behind a limit of a window that is emptied": (
        "errors",
        {
            "main": APP
            + """
    from collections import deque
    window, errors = deque(), {}
    @app.post("/")
    def enter(request):
        while window and window[0] < request.time - 10:
            window.popleft()
        if len(window) >= 10:
            return
        window.append(request.time)
        errors[request.id] = request.time
""",
        },
    ),
    "an item of a new key, where the function ends": (
        "offers",
        {
            "main": APP
            + """
    offers = {}
    @app.post("/")
    def enter(request):
        if request.id not in offers:
            offers[request.id] = request.user
            return "offered"
        return offers[request.id]
""",
        },
    ),
    "after a look into another table, where the function ends": (
        "results",
        {
            "main": APP
            + """
    results, pending = {}, {}
    def result_of(text):
        query = text.strip()
        if query in pending:
            return pending[query]
        results[query] = text
    @app.post("/")
    def enter(request):
        result_of(request.text)
""",
        },
    ),
    "an entry of its age, which the next read of it removes": (
        "pages",
        {
            "main": APP
            + """
    import time
    pages = {}
    def cached(key):
        entry = pages.get(key)
        if entry is None:
            return None
        text, at = entry
        if time.monotonic() - at < 60:
            return text
        del pages[key]
        return None
    @app.post("/")
    def enter(request):
        found = cached(request.url)
        if found is None:
            found = request.text
            pages[request.url] = (found, time.monotonic())
        return found
""",
        },
    ),
    "while something else is full, of which nothing is known": (
        "inside",
        {
            "main": APP
            + """
    class Room:
        def __init__(self):
            self.inside = {}
        def add(self, body):
            if len(self.others) >= self.most:
                return
            self.inside[body.id] = body
    room = Room()
    @app.post("/")
    def enter(body):
        room.add(body)
""",
        },
    ),
    "a key that its branch makes another one": (
        "reports",
        {
            "main": APP
            + """
    reports = {}
    @app.post("/")
    def enter(request):
        name = request.name
        if name in reports:
            name = name + request.id
            reports[name] = request.text
""",
        },
    ),
    "what an exit stack calls at its end": (
        "ends",
        {
            "main": APP
            + """
    from contextlib import ExitStack
    ends = ExitStack()
    @app.post("/")
    def enter(request):
        ends.callback(print, request.text)
""",
        },
    ),
    "a module under its whole path": (
        "addresses",
        {
            "shop/__init__": "",
            "shop/state": """
    resolver: "Resolver"
    class Resolver:
        def __init__(self):
            self.addresses = {}
        def of(self, headers):
            self.addresses[headers.split(",")[0]] = 1
""",
            "shop/main": APP
            + """
    import shop.state
    shop.state.resolver = shop.state.Resolver()
    @app.post("/")
    def enter(request):
        shop.state.resolver.of(request.headers)
""",
        },
    ),
    "whoever a call does not know, if that only logs": (
        "checked",
        {
            "main": APP
            + """
    from registry import find
    checked = {}
    @app.post("/")
    def enter(service_path):
        service = find(service_path)
        if not service:
            print("unknown", service_path)
        checked[service_path] = 1
""",
        },
    ),
    "a removal for another kind of event than the object has": (
        "texts",
        {
            "main": APP
            + """
    class Machine:
        def __init__(self):
            self.texts = []
            self.kind = "open"
        def step(self, text):
            if self.kind == "open":
                self.texts.append(text)
            elif self.kind == "delete":
                self.texts.pop()
    machine = Machine()
    @app.post("/")
    def enter(request):
        machine.step(request.text)
""",
        },
    ),
    "what an object is made of, which is no enum": (
        "stats",
        {
            "main": APP
            + """
    class Mode:
        def __init__(self, number):
            self.number = number
    stats = {}
    @app.post("/")
    def enter(request):
        mode = Mode(request.user_id)
        stats[mode] = request.text
""",
        },
    ),
    "an attribute that a method only creates": (
        "parts",
        {
            "main": APP
            + """
    class Speech:
        def __init__(self):
            self.begun = False
    class Stream(Speech):
        def speak(self, part):
            if not self.begun:
                self.begun = True
                self.parts = []
            self.parts.append(part)
    stream = Stream()
    @app.post("/")
    def enter(request):
        stream.speak(request.part)
""",
        },
    ),
    "what an app calls that others run": (
        "markets",
        {
            "main": APP
            + """
    markets = {}
    @app.command
    def run(request):
        markets[request.market_id] = request.text
    app.run()
""",
        },
    ),
    "a key that is dropped from one of two, whatever was under it": (
        "clients",
        {
            "main": APP
            + """
    class Hub:
        def __init__(self):
            self.clients = {}
            self.logs = {}
        def join(self, address):
            self.clients[address] = {}
            self.logs[address] = []
        def leave(self, address):
            self.clients.pop(address, None)
            self.logs.pop(address, None)
        def forget(self, address):
            del self.logs[address]
    hub = Hub()
    @app.post("/")
    def enter(request):
        hub.join(request.address)
    @app.post("/leave")
    def leave(request):
        hub.leave(request.address)
    @app.post("/forget")
    def forget(request):
        hub.forget(request.address)
""",
        },
    ),
    "a slot that stays taken if an event fails": (
        "slots",
        {
            "main": APP
            + """
    from server import connect
    slots = []
    @app.post("/")
    def enter(request):
        if request.slot in slots:
            return
        slots.append(request.slot)
        connect(request)
        slots.remove(request.slot)
""",
        },
    ),
    "what each event brings to a list of callbacks": (
        "callbacks",
        {
            "main": APP
            + """
    callbacks = []
    def on_change(callback):
        callbacks.append(callback)
    @app.post("/")
    def enter(request):
        on_change(request.callback)
""",
        },
    ),
    "what each event brings to a set of channels": (
        "channels",
        {
            "main": APP
            + """
    class Hub:
        def __init__(self):
            self.channels = set()
        def subscribe(self, channel):
            self.channels.add(channel)
    hub = Hub()
    @app.post("/")
    def enter(request):
        hub.subscribe(request.channel)
""",
        },
    ),
}
SAFE: dict[str, Program] = {
    "lines of an object that is passed on": (
        "lines",
        {
            "main": APP
            + """
    from jobs import run
    class Report:
        def __init__(self):
            self.lines = []
        def note(self, text):
            self.lines.append([text, 1])
    @app.post("/")
    def enter(request, report: Report):
        report.note(request.text)
    def setup():
        run(Report())
""",
        },
    ),
    "items that an event takes out, where none is seen to bring them": (
        "waiting",
        {
            "main": APP
            + """
    waiting = []
    class Hub:
        def hold(self, event):
            waiting.append([event, 1])
    @app.post("/")
    def enter(request):
        waiting.remove(request.item)
""",
        },
    ),
    "a key that callers bring who are not seen, called like nothing": (
        "modes",
        {
            "main": APP
            + """
    modes = {}
    def switch(mode):
        modes[mode] = 1
    class Control:
        def turn(self, mode):
            switch(mode)
    @app.post("/")
    def enter(request):
        switch("day")
""",
        },
    ),
    "what a clean-up without a caller takes out of an object that may be gone": (
        "pages",
        {
            "main": APP
            + """
    from jobs import run, find
    class Shelf:
        def __init__(self):
            self.pages = {}
        def note(self, text):
            page_id = find(text)
            self.pages[page_id] = [text]
        def _forget(self):
            self.pages.clear()
    @app.post("/")
    def enter(request, shelf: Shelf):
        shelf.note(request.text)
    def setup():
        run(Shelf())
""",
        },
    ),
    "scores that a job of a few seconds lowers": (
        "scores",
        {
            "main": APP
            + """
    from jobs import Schedule
    schedule = Schedule()
    class Keeper:
        def __init__(self):
            self.scores = {}
        def increase(self, uid):
            self.scores[uid] = 1
        def decrease(self):
            self.scores = {uid: s - 1 for uid, s in self.scores.items() if s > 1}
    keeper = Keeper()
    schedule.register(keeper.decrease, seconds=5)
    @app.post("/")
    def enter(request):
        keeper.increase(request.uid)
""",
        },
    ),
    "an object of a class within the class, made for each event": (
        "children",
        {
            "main": APP
            + """
    class Menu:
        class Page:
            def __init__(self):
                self.children = []
            def add(self, child):
                self.children.append(child)
        def __init__(self):
            self.main = self.Page()
        def add(self, child):
            self.main.add(child)
    @app.post("/")
    def enter(request):
        menu = Menu()
        menu.add(request.text)
        return menu
""",
        },
    ),
    "what a thread adds that is started once": (
        "services",
        {
            "main": APP
            + """
    from threading import Thread
    services = []
    class Core:
        def begin(self):
            services.append({"name": "core"})
    def main():
        core = Core()
        Thread(target=core.begin).start()
        app.run()
    @app.post("/")
    def enter(request):
        return request.text
    if __name__ == "__main__":
        main()
""",
        },
    ),
    "what a public method fills that only the constructor calls": (
        "translations",
        {
            "main": APP
            + """
    class Chat:
        def __init__(self):
            self.translations = {}
            self.load_translations()
        def load_translations(self):
            for line in read_lines():
                text_id, text = line.split("=")
                self.translations[text_id] = text
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "lists that a timer puts new ones in the place of": (
        "recent",
        {
            "main": APP
            + """
    from threading import Timer
    recent = {"comment": [], "gift": []}
    def forget(kind):
        if kind != "":
            recent[kind] = []
        Timer(60, forget, [kind]).start()
    forget("comment")
    @app.post("/")
    def enter(request):
        recent[request.kind].append([request.text])
""",
        },
    ),
    "a map that is handed on twice to what takes out of it": (
        "pending",
        {
            "main": APP
            + """
    pending = {}
    def answer(table, request):
        return finish(table, request)
    def finish(known, request):
        return known.pop(request.uid)
    @app.post("/")
    def enter(request):
        pending[request.uid] = request.text
        return answer(pending, request)
""",
        },
    ),
    "what a loop adds that only waits for the rest, at the end": (
        "found",
        {
            "main": APP
            + """
    import asyncio
    import web
    found = {}
    async def load(texts):
        for text in texts:
            await handle(text)
    async def shutdown():
        while True:
            for text in await web.get("proxies"):
                await handle(text)
            await asyncio.sleep(60)
    async def handle(text):
        await check(text.strip())
    async def check(place):
        if place not in found:
            found[place] = await web.connect(place)
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "what only a test fills again": (
        "languages",
        {
            "site_app": """
    from web import App
    languages = []
    class Site(App):
        def __init__(self, name):
            super().__init__(name)
            fill(self)
    def fill(site):
        languages.extend([str(one) for one in site.list_languages()])
""",
            "main": """
    from site_app import Site
    app = Site("main")
    @app.post("/")
    def enter(request):
        return request.text
""",
            "site_test": """
    from site_app import Site
    def make():
        return Site("test")
""",
        },
    ),
    "what a member of a large family empties when a loop calls it": (
        "missed",
        {
            "plans": """
    class Plan:
        def schedule(self):
            raise NotImplementedError
        def done(self, item):
            raise NotImplementedError
    class Circle(Plan):
        def schedule(self):
            return 1
    class Square(Plan):
        def schedule(self):
            return 2
    class Triangle(Plan):
        def schedule(self):
            return 3
    class Fast(Plan):
        def __init__(self):
            self.missed = {}
        def schedule(self):
            self.begin()
        def begin(self):
            self.missed = {}
        def done(self, item):
            self.missed[item.uid] = item
    class Plans:
        @classmethod
        def make(cls, name):
            return globals()[name]()
""",
            "main": """
    import time
    from plans import Plans
    def watch(names):
        plans = [Plans.make(name) for name in names]
        while True:
            for number in range(len(plans)):
                plans[number].schedule()
            time.sleep(1)
    def update(queue, plans):
        while True:
            item = queue.get()
            plans[item.number].done(item)
""",
        },
    ),
    "a map that takes over another one that comes from a fixed place": (
        "names",
        {
            "main": APP
            + """
    import web
    from settings import config
    names = {}
    def refresh():
        answer = web.get(f"{config.mirror}/names.json")
        names.update(answer.json())
    @app.post("/")
    def enter(request):
        refresh()
        return request.text
""",
        },
    ),
    "what a callback of an instance makes for each answer": (
        "failed",
        {
            "main": APP
            + """
    import json
    import web
    class Result:
        def __init__(self):
            self.failed = {}
        def parse(self, content, user_id):
            for item in json.loads(content):
                self.failed[user_id] = item["error"]
            return self
    class Client:
        def process(self, response, payload):
            result = Result()
            if response.code == 500:
                return result
            answer = response.text()
            answer.addCallback(result.parse, payload.user_id)
            return answer
        def send(self, payload):
            answer = web.post(payload)
            answer.addCallback(self.process, payload)
            return answer
    client = Client()
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "an instance that each event puts in the place of the last one": (
        "endings",
        {
            "main": APP
            + """
    class Service:
        def __init__(self):
            self.endings = []
        def add_ending(self, function):
            self.endings.append(function)
    services = {}
    @app.post("/")
    def enter(request):
        services["maker"] = Service()
        def end():
            return request.text
        services["maker"].add_ending(end)
""",
        },
    ),
    "a list that is filled only if its length is zero": (
        "entries",
        {
            "main": APP
            + """
    import json
    entries = []
    def fill():
        if len(entries) > 0:
            return
        for entry in json.load(open("entries.json")):
            entries.append(entry)
    @app.post("/")
    def enter(request):
        fill()
        return request.text
""",
        },
    ),
    "what a thread takes out when its work is done": (
        "downloads",
        {
            "main": APP
            + """
    from threading import Thread
    downloads = {}
    class Download(Thread):
        def __init__(self, url):
            super().__init__()
            self.url = url
            self.start()
        def run(self):
            downloads.pop(self.url)
    @app.post("/")
    def enter(request):
        downloads[request.url] = Download(request.url)
""",
        },
    ),
    "what a job at certain seconds takes out": (
        "logins",
        {
            "main": APP
            + """
    from jobs import scheduler
    logins = {}
    @app.post("/")
    async def enter(request):
        logins[request.user_id] = request.text
    @scheduler.scheduled_job("cron", second="*/10")
    async def check():
        for user_id in list(logins):
            logins.pop(user_id)
""",
        },
    ),
    "what a class keeps that is passed on to be created for each request": (
        "entries",
        {
            "main": APP
            + """
    class Log:
        def __init__(self):
            self.entries = {}
        def add(self, request_id):
            self.entries[request_id] = request_id
    class Script:
        def __init__(self):
            self.log = Log()
        def on_request(self, request_id):
            self.log.add(request_id)
    class Pages:
        def __init__(self, pool):
            self.pool = pool
        def render(self, request):
            return self.pool.render(Script, request)
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "a function that a module gets while it is loaded": (
        "commands",
        {
            "main": APP
            + """
    import importlib.util
    commands = {}
    def command(name):
        commands[name] = name
    def load(path):
        spec = importlib.util.spec_from_file_location("plugin", path)
        plugin = importlib.util.module_from_spec(spec)
        plugin.command = command
        spec.loader.exec_module(plugin)
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "a field that a base creates for an instance of one call": (
        "history",
        {
            "main": APP
            + """
    from models import Model
    class Run(Model):
        history: list = []
        def step(self, text):
            self.history.append(text)
    @app.post("/")
    def enter(request):
        run = Run()
        run.step(request.text)
        return run.history
""",
        },
    ),
    "a value that is either new or an old one": (
        "moments",
        {
            "main": APP
            + """
    from time import time
    moments = {}
    FIXED = 1.0
    def moment():
        last = time()
        if FIXED:
            last = FIXED
        return last
    @app.post("/")
    def enter(request):
        spot = moment()
        moments[spot] = request
""",
        },
    ),
    "a method that a decorator of the program notes": (
        "streams",
        {
            "main": APP
            + """
    def message(pattern):
        def note(function):
            function.hooks = [pattern]
            return function
        return note
    class Log:
        def __init__(self):
            self.streams = {}
        @message("*")
        def log(self, event):
            self.streams[event.server] = event
    log = Log()
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "a function that an object of the program gets as an attribute": (
        "made",
        {
            "main": APP
            + """
    made = {}
    class Plan:
        def __init__(self):
            self.step = None
    def build(part):
        made[part] = part
    plan = Plan()
    plan.step = build
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "an instance that decorates": (
        "times",
        {
            "main": """
    class Remembered:
        times = {}
        def __init__(self, seconds):
            self.seconds = seconds
        def __call__(self, function):
            self.times[function] = self.seconds
            return function
    @Remembered(60)
    def admins(chat):
        return [chat]
""",
        },
    ),
    "a size that is compared beside another one": (
        "blocked",
        {
            "main": APP
            + """
    known = set()
    blocked = set()
    @app.post("/")
    def enter(request):
        if len(known) >= 100 or len(blocked) >= 100:
            raise ValueError(request.ip)
        known.add(request.name)
        blocked.add(request.ip)
    @app.delete("/")
    def leave(request):
        known.discard(request.name)
""",
        },
    ),
    "added only to what is empty": (
        "cut",
        {
            "main": APP
            + """
    cut = []
    @app.post("/cut")
    def mark(body):
        if cut:
            return "paste first"
        cut.append(body.path)
""",
        },
    ),
    "both are taken out in a loop over them": (
        "threads",
        {
            "main": APP
            + """
    import threading
    managers, threads = {}, {}
    @app.post("/open")
    def enter(body):
        managers[body.id] = body
        threads[body.id] = threading.Thread(target=work, args=(body.id,))
    def work(key):
        for held in [managers, threads]:
            held.pop(key, None)
""",
        },
    ),
    "a choice that all ways leave behind removes too": (
        "recent",
        {
            "main": APP
            + """
    recent = {}
    @app.post("/")
    def enter(body):
        if body.kind == "ping":
            body.answer()
        recent.pop(body.before, None)
        recent[body.id] = body
""",
        },
    ),
    "an error ends a loop that waits": (
        "clients",
        {
            "main": APP
            + """
    clients = {}
    @app.websocket("/ws")
    async def talk(socket):
        clients[socket.id] = socket
        try:
            while True:
                await socket.receive()
        except Gone:
            clients.pop(socket.id)
""",
        },
    ),
    "an answer removes, and so does an error": (
        "waiting",
        {
            "main": APP
            + """
    waiting = {}
    @app.post("/ask")
    async def ask(body):
        waiting[body.id] = body
        try:
            await body.answered()
        except TimeoutError:
            waiting.pop(body.id)
            raise
        return finish(body)
    def finish(body):
        return waiting.pop(body.id)
""",
        },
    ),
    "a handler makes another one for its own event": (
        "steps",
        {
            "main": APP
            + """
    @app.post("/")
    def enter(request):
        steps = {}
        @request.on("step")
        def step(item):
            steps[item.id] = item
        return request.run()
""",
        },
    ),
    "a timer removes what was put in": (
        "jobs",
        {
            "main": APP
            + """
    import threading
    jobs = {}
    @app.post("/x")
    def start(request):
        jobs[request.id] = 1
        threading.Timer(60, forget, [request.id]).start()
    def forget(key):
        jobs.pop(key, None)
""",
        },
    ),
    "a timer that starts itself again": (
        "_jobs",
        {
            "main": APP
            + """
    import threading
    class Jobs:
        def __init__(self):
            self._jobs = {}
            threading.Timer(60, self.cleanup).start()
        def add(self, key, value):
            self._jobs[key] = value
        def cleanup(self):
            self._jobs.clear()
            threading.Timer(60, self.cleanup).start()
    jobs = Jobs()
    @app.post("/x")
    def start(request):
        jobs.add(request.id, 1)
""",
        },
    ),
    "others than a list in the source has are refused": (
        "CACHE",
        {
            "pages": """
    class Pages:
        def __init__(self):
            self.toc = ["a", "b"]
            self.CACHE = {}
        def page(self, name):
            if name not in self.toc:
                return None
            if name in self.CACHE:
                return self.CACHE[name]
            self.CACHE[name] = open(name).read()
            return self.CACHE[name]
""",
            "main": APP
            + """
    from pages import Pages
    PAGES = Pages()
    @app.get("/p")
    def show(name):
        return PAGES.page(name)
""",
        },
    ),
    "both parts of a key are refused": (
        "CACHE",
        {
            "pages": """
    class Pages:
        def __init__(self):
            self.toc = ["a", "b"]
            self.locales = ["en", "de"]
            self.CACHE = {}
        def page(self, name, locale):
            locale = locale or "en"
            if name not in self.toc:
                return None
            if locale not in self.locales:
                return None
            key = (name, locale)
            if key in self.CACHE:
                return self.CACHE[key]
            self.CACHE[key] = open(name).read()
            return self.CACHE[key]
""",
            "main": APP
            + """
    from pages import Pages
    PAGES = Pages()
    @app.get("/p")
    def show(name, locale):
        return PAGES.page(name, locale)
""",
        },
    ),
    "a member of an enum": (
        "counts",
        {
            "main": APP
            + """
    from enum import Enum
    class Kind(Enum):
        A = 1
        B = 2
    counts = {}
    @app.post("/x")
    def note(kind: Kind):
        counts[kind] = counts.get(kind, 0) + 1
""",
        },
    ),
    "a member of an enum, or none": (
        "counts",
        {
            "main": APP
            + """
    from enum import Enum
    class Kind(str, Enum):
        A = 1
        B = 2
    counts = {}
    @app.post("/x")
    def note(kind: Kind | None = None):
        counts[kind] = 1
""",
        },
    ),
    "a field that is a member of an enum": (
        "counts",
        {
            "main": APP
            + """
    from enum import Enum
    from pydantic import BaseModel
    class Kind(str, Enum):
        A = 1
        B = 2
    class Body(BaseModel):
        kind: Kind
    counts = {}
    @app.post("/x")
    def note(body: Body):
        counts[body.kind] = 1
""",
        },
    ),
    "an object that a handler returns": (
        "items",
        {
            "main": APP
            + """
    from dataclasses import dataclass, field
    @dataclass
    class Reply:
        items: list = field(default_factory=list)
    @app.post("/x")
    def note(body):
        reply = Reply()
        reply.items.append(body)
        return reply
""",
        },
    ),
    "begun anew for each event": (
        "items",
        {
            "main": APP
            + """
    class Turn:
        def __init__(self):
            self.items = []
        def reset(self):
            self.items = []
        def add(self, x):
            self.items.append(x)
    TURN = Turn()
    @app.post("/x")
    def note(body):
        TURN.reset()
        for x in body.parts:
            TURN.add(x)
        return TURN.items
""",
        },
    ),
    "of a context manager": (
        "items",
        {
            "main": APP
            + """
    class Batch:
        def __init__(self):
            self.items = []
        def __enter__(self):
            return self
        def __exit__(self, *a):
            pass
        def add(self, x):
            self.items.append(x)
    @app.post("/x")
    def note(body):
        with Batch() as batch:
            batch.add(body)
""",
        },
    ),
    "evicted together with its sibling": (
        "times",
        {
            "main": APP
            + """
    class Cache:
        def __init__(self):
            self.values = {}
            self.times = {}
        def put(self, key, value, now):
            self.values[key] = value
            self.times[key] = now
            if len(self.values) > 100:
                old = min(self.times, key=self.times.get)
                del self.values[old]
                del self.times[old]
    cache = Cache()
    @app.post("/x")
    def note(body):
        cache.put(body.id, body, 1)
""",
        },
    ),
    "a local that is a number": (
        "auto",
        {
            "main": APP
            + """
    auto = {}
    @app.post("/x")
    def note(request):
        chat_id = 123
        mode = auto.get(chat_id)
        if not mode:
            auto[chat_id] = request.body
""",
        },
    ),
    "cleared at an interval": (
        "cache",
        {
            "cog": """
    from discord.ext import commands, tasks
    class Games(commands.Cog):
        def __init__(self, bot):
            self.cache = {}
            self.tidy.start()
        @commands.command()
        async def play(self, ctx, name):
            self.cache[ctx.author.id] = name
        @tasks.loop(hours=1.0)
        async def tidy(self):
            self.cache.clear()
    async def setup(bot):
        await bot.add_cog(Games(bot))
""",
        },
    ),
    "a register": (
        "plugins",
        {
            "main": """
    plugins = {}
    def register(name, plugin):
        plugins[name] = plugin
    def get(name):
        return plugins[name]
""",
        },
    ),
    "loaded without a parameter": (
        "roles",
        {
            "cog": """
    from discord.ext import commands
    import constants
    class Games(commands.Cog):
        def __init__(self, bot):
            self.bot = bot
            self.roles = []
        async def cog_load(self):
            for role in constants.ROLES:
                self.roles.append(Role(role))
        @commands.command()
        async def play(self, ctx, name):
            await ctx.send(self.roles)
    class Role:
        def __init__(self, x):
            self.x = x
    async def setup(bot):
        await bot.add_cog(Games(bot))
""",
        },
    ),
    "a command line beside an app": (
        "ops",
        {
            "main": APP
            + """
    @app.get("/")
    def index(request):
        return "x"
""",
            "gen_accounts": """
    import argparse
    ops = []
    def _resp(id, resp, exc):
        ops.append(resp["name"])
    def create(service, n):
        batch = service.new_batch(callback=_resp)
        for i in range(n):
            batch.add(i)
        batch.execute()
    if __name__ == "__main__":
        parser = argparse.ArgumentParser()
        create(None, parser.parse_args().n)
""",
        },
    ),
    "swept by a task of the app": (
        "items",
        {
            "main": APP
            + """
    import asyncio, time
    class Store:
        def __init__(self):
            self.items = {}
        def add(self, key):
            self.items[key] = time.time()
        async def start(self):
            self.task = asyncio.create_task(self.sweep())
        async def sweep(self):
            while True:
                await asyncio.sleep(60)
                for key in [k for k, t in self.items.items() if time.time() - t > 60]:
                    del self.items[key]
    store = Store()
    @app.post("/")
    def enter(request):
        store.add(request.id)
    @app.on_event("startup")
    async def begin():
        await store.start()
""",
        },
    ),
    "swept by a thread that waits in its condition": (
        "items",
        {
            "main": APP
            + """
    import threading, time
    class Store:
        def __init__(self):
            self.items = {}
            self.stopped = threading.Event()
            threading.Thread(target=self.run, daemon=True).start()
        def add(self, key):
            self.items[key] = time.time()
        def run(self):
            while not self.stopped.wait(60):
                self.cleanup()
        def cleanup(self):
            self.items = {k: t for k, t in self.items.items() if time.time() - t < 60}
    store = Store()
    @app.post("/")
    def enter(request):
        store.add(request.id)
""",
        },
    ),
    "numbered up to a constant": (
        "activity",
        {
            "main": APP
            + """
    activity = {}
    @app.post("/")
    def enter(request):
        for number in range(1, 9):
            agent_id = f"agent {number}"
            activity[agent_id] = request.text
        for number, agent_id in enumerate(["a", "b"]):
            activity[agent_id] = number
""",
        },
    ),
    "of a list that is filled where it is made": (
        "activity",
        {
            "main": APP
            + """
    class Monitor:
        def __init__(self):
            self.agents = ["a", "b"]
            self.activity = {}
        def update(self, value):
            for agent_id in self.agents:
                self.activity[agent_id] = value
    monitor = Monitor()
    @app.post("/")
    def enter(request):
        monitor.update(request.text)
""",
        },
    ),
    "made for a key of second hand, which may be refused": (
        "clients",
        {
            "main": APP
            + """
    from settings import find
    clients = {}
    def client_of(key):
        if key not in clients:
            clients[key] = connect(key)
        return clients[key]
    @app.post("/")
    def enter(request):
        key = find(request)
        return client_of(key)
""",
        },
    ),
    "an entry is replaced, where another test comes after that for its key": (
        "texts",
        {
            "main": APP
            + """
    from texts import load
    texts = {}
    for language in load():
        texts[language] = {}
    @app.post("/")
    def enter(request):
        if request.language in texts and not texts[request.language]:
            texts[request.language] = load(request.language)
        if request.name not in texts.keys():
            print("unknown")
        else:
            texts[request.name] = request.text
""",
        },
    ),
    "a method of an entry is called like one of an exit stack": (
        "commands",
        {
            "main": APP
            + """
    from commands import every
    commands = {}
    for command in every():
        commands[command.name] = command
    @app.post("/")
    def enter(request):
        command = commands.get(request.name)
        command.callback(request.text)
""",
        },
    ),
    "what is removed by a method of what an annotation names": (
        "counts",
        {
            "main": APP
            + """
    from collections import defaultdict
    class Other:
        def check(self, key):
            return True
    class Another:
        def check(self, key):
            return True
    class Limiter:
        def __init__(self):
            self.counts = defaultdict(int)
        def check(self, key, today):
            if today != self.today:
                self.counts.clear()
            return self.counts[key] < 5
        def increase(self, key):
            self.counts[key] += 1
    LIMITERS = {"search": Limiter()}
    @app.post("/")
    def enter(request):
        limiter: Limiter = LIMITERS["search"]
        if limiter.check(request.user_id, request.day):
            limiter.increase(request.user_id)
""",
        },
    ),
    "what a module forgets that is called by its whole path": (
        "addresses",
        {
            "shop/__init__": "",
            "shop/state": """
    addresses = {}
    def note(key):
        addresses[key] = 1
    def sweep():
        addresses.clear()
""",
            "shop/main": APP
            + """
    import shop.state
    from shop.state import note
    @app.post("/")
    def enter(request):
        note(request.ip)
        shop.state.sweep()
""",
        },
    ),
    "whoever a call does not know is turned away": (
        "checked",
        {
            "main": APP
            + """
    from registry import find
    checked = {}
    @app.post("/")
    def enter(service_path):
        service = find(service_path)
        if not service:
            return "unknown"
        checked[service_path] = 1
""",
        },
    ),
    "a stack of states, each of which the last one leads to": (
        "texts",
        {
            "main": APP
            + """
    class Machine:
        def __init__(self):
            self.texts = []
            self.kind = "open"
        def step(self, text):
            if self.kind == "open":
                self.texts.append(text)
                self.kind = "delete"
            elif self.kind == "delete":
                self.texts.pop()
                self.kind = "open"
    machine = Machine()
    @app.post("/")
    def enter(request):
        machine.step(request.text)
""",
        },
    ),
    "the members of an enum": (
        "stats",
        {
            "main": APP
            + """
    from enum import IntEnum
    from rows import fetch
    class Mode(IntEnum):
        EASY = 0
        HARD = 1
    stats = {}
    names = {}
    @app.post("/")
    def enter(request):
        mode = Mode(request.user_id)
        stats[mode] = request.text
        stats[Mode(request.user_id).name] = request.text
        stats[Mode(fetch(request).user_id)] = request.text
""",
        },
    ),
    "an attribute of a base, which a method begins anew": (
        "parts",
        {
            "main": APP
            + """
    class Speech:
        def __init__(self):
            self.parts = []
    class Stream(Speech):
        def speak(self, part):
            if part.begins:
                self.parts = []
            self.parts.append(part)
    stream = Stream()
    @app.post("/")
    def enter(request):
        stream.speak(request.part)
""",
        },
    ),
    "what a command does once, since the program calls what has its commands": (
        "markets",
        {
            "trade": APP
            + """
    @app.post("/")
    def enter(request):
        return request.text
""",
            "main": """
    from tool import Tool
    tool = Tool()
    markets = {}
    @tool.command
    def run(path):
        for market in load(path):
            markets[market.market_id] = market
    if __name__ == "__main__":
        tool()
""",
        },
    ),
    "one of two drops a key under which nothing is left": (
        "clients",
        {
            "main": APP
            + """
    class Hub:
        def __init__(self):
            self.clients = {}
            self.logs = {}
        def join(self, address):
            self.clients[address] = {}
            self.logs[address] = []
        def leave(self, address):
            self.clients.pop(address, None)
            self.logs.pop(address, None)
        def forget(self, address):
            if len(self.logs[address]) == 0:
                del self.logs[address]
        def clear(self, address):
            if not self.logs[address]:
                del self.logs[address]
    hub = Hub()
    @app.post("/")
    def enter(request):
        hub.join(request.address)
        hub.leave(request.address)
    @app.post("/forget")
    def forget(request):
        hub.forget(request.address)
        hub.clear(request.address)
""",
        },
    ),
    "a slot that stays taken if what nobody is seen to call fails": (
        "slots",
        {
            "main": APP
            + """
    from server import connect
    slots = []
    def joined(request):
        if request.slot in slots:
            return
        slots.append(request.slot)
        connect(request)
        slots.remove(request.slot)
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
    "callbacks that nobody is seen to bring": (
        "callbacks",
        {
            "main": APP
            + """
    callbacks = []
    def on_change(callback):
        callbacks.append(callback)
    @app.post("/")
    def enter(request):
        for callback in callbacks:
            callback(request)
""",
        },
    ),
    "channels, where neither is seen how often they come nor from whom": (
        "channels",
        {
            "main": APP
            + """
    class Hub:
        def __init__(self):
            self.channels = set()
        def subscribe(self, channel):
            self.channels.add(channel)
    hub = Hub()
    @app.post("/")
    def enter(request):
        return request.text
""",
        },
    ),
}


def reported(folder: Path, program: Program) -> bool:
    """Whether a container is reported at medium or better."""
    symbol, files = program
    for name, code in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(dedent(code), encoding="utf-8")
    found = Scan([folder], library=None).report().findings
    return any(
        f.symbol.rpartition(".")[2] == symbol and f.confidence in ("high", "medium") for f in found
    )


@pytest.mark.parametrize("case", GROWS)
def test_growth_is_seen_in(case, tmp_path):
    assert reported(tmp_path, GROWS[case])


@pytest.mark.parametrize("case", SAFE)
def test_nothing_is_said_about(case, tmp_path):
    assert not reported(tmp_path, SAFE[case])
