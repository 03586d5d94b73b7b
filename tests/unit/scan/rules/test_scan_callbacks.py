"""FLD4xx: work that is registered and never ends, and work that does."""

from __future__ import annotations

import pytest

FOUND: dict[str, tuple[str, str | dict[str, str]]] = {
    "a listener of each instance": (
        "FLD403",
        """
        class View:
            def __init__(self, model):
                model.add_change_listener(self.redraw)

            def redraw(self): ...

        def show(model):
            view = View(model)
            view.redraw()
        """,
    ),
    "a listener on what was handed in with its type": (
        "FLD403",
        """
        class Bus: ...

        def handle(bus: Bus):
            bus.on("message", lambda message: message)
        """,
    ),
    "a listener on what an instance was given": (
        "FLD403",
        """
        class Bridge:
            def __init__(self, bus):
                self._bus = bus

            def open_channel(self, channel):
                self._bus.subscribe(lambda event: channel.send(event))
        """,
    ),
    "a timer of the loop that is set for ever": (
        "FLD404",
        """
        def poll(loop, check):
            check()
            loop.call_later(5, poll, loop, check)
        """,
    ),
    "a context variable of another file": (
        "FLD406",
        {
            "state": "from contextvars import ContextVar\n\ncurrent = ContextVar('current')\n",
            "app": "import state\n\ndef handle(request):\n    state.current.set(request)\n",
        },
    ),
    "tasks that are only kept alive": (
        "FLD401",
        """
        import asyncio

        tasks = []

        async def handle(request):
            tasks.append(asyncio.create_task(request.answer()))
        """,
    ),
    "futures of an executor": (
        "FLD402",
        """
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor()
        futures = []

        def submit(work):
            futures.append(pool.submit(work))
        """,
    ),
    "a logging handler for each request": (
        "FLD405",
        """
        import logging

        def handle(request):
            logging.getLogger(request.name).addHandler(logging.FileHandler(request.path))
        """,
    ),
    "one error for all": (
        "FLD407",
        """
        CLOSED = RuntimeError("closed")

        class Connection:
            def send(self, data):
                raise CLOSED

        connection = Connection()
        """,
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_a_rule_finds(case, found):
    rule, code = FOUND[case]
    files = code if isinstance(code, dict) else {"app": code}
    assert [finding.rule for finding in found(**files)] == [rule]


CLEAN = {
    "a listener for the end of the process": """
        import atexit

        def handle(file):
            atexit.register(lambda: file.flush())
    """,
    "a listener that the owner of both adds": """
        class Window:
            def __init__(self, label):
                self._button = Button(label)
                self._button.subscribe(self.click)

            def click(self): ...

        def show(label):
            window = Window(label)
            window.click()
    """,
    "a listener whose handle is kept": """
        def handle(bus, keep):
            keep(bus.subscribe(lambda event: event))
    """,
    "a plain function that listens": """
        def log(event): ...

        def handle(bus):
            bus.subscribe(log)
    """,
    "a listener that is added at start-up": """
        def setup(bus, store):
            bus.subscribe(lambda event: store(event))
    """,
    "a timer that may stop": """
        def poll(loop, check):
            if check():
                return
            loop.call_later(5, poll, loop, check)
    """,
    "a timer of something that lives as long as the process": """
        from threading import Timer

        class Flusher:
            def flush(self):
                Timer(30, self.flush).start()

        flusher = Flusher()
    """,
    "a timer for something else": """
        def handle(loop, done):
            loop.call_later(5, done)
    """,
    "a variable that is reset by a callback": """
        from contextvars import ContextVar

        current = ContextVar("current")

        def handle(request, later):
            token = current.set(request)
            later(current.reset, token)
    """,
    "an event that is set": """
        from threading import Event

        ready = Event()

        def handle(request):
            ready.set(request)
    """,
    "a variable that its caller asked to set": """
        from contextvars import ContextVar

        current = ContextVar("current")

        def set_current(request):
            current.set(request)
    """,
    "a constant in a variable": """
        from contextvars import ContextVar

        active = ContextVar("active")

        def handle(request):
            active.set(True)
    """,
    "tasks that are discarded when they are done": """
        import asyncio

        tasks = set()

        async def handle(request):
            task = asyncio.create_task(request.answer())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    """,
    "a logging handler that is taken out again": """
        import logging

        def handle(request):
            handler = logging.FileHandler(request.path)
            logging.getLogger(request.name).addHandler(handler)
            logging.getLogger(request.name).removeHandler(handler)
    """,
    "a new error each time": """
        class Connection:
            def send(self, data):
                raise RuntimeError("closed")

        connection = Connection()
    """,
}


@pytest.mark.parametrize("case", CLEAN)
def test_no_rule_speaks_of(case, found):
    assert [(finding.rule, finding.symbol) for finding in found(app=CLEAN[case])] == []
