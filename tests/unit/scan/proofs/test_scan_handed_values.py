"""Small programs whose keys, callers or instances come in by a way that is easy to overlook."""

from __future__ import annotations

import pytest
from test_scan_small_programs import APP, Program, reported

GROWS: dict[str, Program] = {
    "keys that are read from keyword arguments": (
        "threads",
        {
            "main": APP
            + """
    threads = {}
    def begin(*args, **kwargs):
        key = f"{kwargs['repository']}-{kwargs['number']}"
        threads[key] = args
    @app.post("/")
    def comment(request):
        begin(repository=request.repository, number=request.number)
"""
        },
    ),
    "keys that `get` reads from keyword arguments": (
        "threads",
        {
            "main": APP
            + """
    threads = {}
    def begin(**kwargs):
        threads[kwargs.get("number")] = object()
    @app.post("/")
    def comment(request):
        begin(number=request.number)
"""
        },
    ),
    "an argument that may be in a map that is unpacked": (
        "threads",
        {
            "main": APP
            + """
    threads = {}
    def begin(number=None):
        threads[number] = object()
    @app.post("/")
    def comment(request):
        begin(**request.options)
"""
        },
    ),
    "an instance of a class whose module has its name": (
        "answers",
        {
            "app/services/__init__": """
    from .Maps import Maps
""",
            "app/services/Maps": """
    class Maps(object):
        def __init__(self):
            self.answers = []
        def find(self, place):
            self.answers.append(place)
""",
            "app/__init__": "",
            "app/main": APP
            + """
    from app.services import Maps
    maps = Maps()
    @app.post("/")
    def find(request):
        maps.find(request.place)
""",
        },
    ),
    "what is wrapped in a map on its way": (
        "jobs",
        {
            "main": APP
            + """
    jobs = {}
    def take(event):
        jobs[event.get("body")] = object()
    def handle(payload):
        take(payload.get("request"))
    @app.post("/")
    def comment(request):
        handle({"request": request, "kind": "comment"})
"""
        },
    ),
    "a method without an instance, called on its class": (
        "counts",
        {
            "main": APP
            + """
    counts = {}
    class Actions(object):
        def send(event, text=None):
            counts[str(event.id)] = text
    @app.post("/")
    def comment(request):
        Actions.send(request)
"""
        },
    ),
    "what each of a family is asked for by a method of that name": (
        "seen",
        {
            "main": """
    from bots import tasks

    class Source:
        def fetch(self):
            raise NotImplementedError
    class Posts(Source):
        def __init__(self, web):
            self.web = web
            self.seen = set()
        def fetch(self):
            for post in self.web.get():
                if post["id"] not in self.seen:
                    self.seen.add(post["id"])
    class News:
        def __init__(self, web):
            self.sources = [Posts(web)]
        @tasks.loop(minutes=5)
        async def fetch(self):
            for source in self.sources:
                source.fetch()
"""
        },
    ),
    "an entry that goes only if its key comes again": (
        "times",
        {
            "main": APP
            + """
    import time
    times = {}
    def is_soon(user_id):
        if str(user_id) in times:
            now = time.time()
            before = times[str(user_id)]
            if round(now - before) < 10:
                return True
            del times[str(user_id)]
        else:
            times[str(user_id)] = time.time()
        return False
    @app.post("/")
    def comment(request):
        return is_soon(request.user_id)
"""
        },
    ),
    "what a class of a framework is told of": (
        "answered",
        {
            "main": APP
            + """
    from chat import Bot
    @app.get("/")
    def show(request):
        return request.text
    class Helper(Bot):
        def __init__(self):
            self.answered = {}
        async def on_message(self, message):
            self.answered[message] = message.text
    helper = Helper()
"""
        },
    ),
    "what a loop takes out of a queue": (
        "places",
        {
            "main": """
    from queue import Queue
    class Maps:
        def __init__(self):
            self.places = {}
        def find(self, spot):
            self.places[spot] = object()
    class Manager:
        def __init__(self):
            self._queue = Queue()
            self._maps = Maps()
        def run(self):
            while True:
                event = self._queue.get(timeout=5)
                self.process(event)
        def process(self, event):
            self._maps.find(event.spot)
    manager = Manager()
"""
        },
    ),
    "a map of constants that is filled later": (
        "skins",
        {
            "main": APP
            + """
    skins = {}
    def skin_of(player_id):
        skins[player_id] = object()
    @app.post("/")
    def show(request):
        given = {"player": ""}
        for name, value in request.items():
            given[name] = value
        skin_of(given["player"])
"""
        },
    ),
}
SAFE: dict[str, Program] = {
    "keys of keyword arguments that are constants": (
        "threads",
        {
            "main": APP
            + """
    threads = {}
    def begin(**kwargs):
        threads[kwargs["kind"]] = object()
    @app.post("/")
    def comment(request):
        begin(kind="comment")
    @app.get("/")
    def show(request):
        begin(kind="show")
"""
        },
    ),
}


@pytest.mark.parametrize("case", GROWS)
def test_growth_is_seen_in(case, tmp_path):
    assert reported(tmp_path, GROWS[case])


@pytest.mark.parametrize("case", SAFE)
def test_nothing_is_said_about(case, tmp_path):
    assert not reported(tmp_path, SAFE[case])
