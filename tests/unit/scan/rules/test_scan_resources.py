"""FLD5xx: what has to be closed or limited, and what is."""

from __future__ import annotations

import pytest

FOUND: dict[str, tuple[str, str | dict[str, str]]] = {
    "a client that is made, used and dropped in one expression": (
        "FLD505",
        """
        def fetch(url):
            return Session().get(url).text
        """,
    ),
    "an executor of one call": (
        "FLD505",
        """
        from concurrent.futures import ThreadPoolExecutor

        def fan_out(work, items):
            pool = ThreadPoolExecutor(4)
            return list(pool.map(work, items))
        """,
    ),
    "an engine that a coroutine makes": (
        "FLD505",
        """
        async def rows(url, query):
            engine = await create_engine(url)
            async with engine.connect() as connection:
                return await connection.execute(query)
        """,
    ),
    "a class of the program that can be closed": (
        "FLD505",
        """
        class ApiClient:
            def get(self, url): ...
            def close(self): ...

        def handle(url):
            client = ApiClient()
            return client.get(url)
        """,
    ),
    "a queue that somebody reads": (
        "FLD501",
        """
        from queue import Queue

        jobs = Queue(maxsize=0)

        def accept(job):
            jobs.put(job)

        def work():
            while True:
                jobs.get()()
        """,
    ),
    "handles that pile up in a map": (
        "FLD503",
        """
        logs = {}

        def log_of(user_id):
            logs[user_id] = open(f"{user_id}.log", "a")

        def forget(user_id):
            logs.pop(user_id, None)

        def handle(user_id):
            log_of(user_id)
            forget(user_id)
        """,
    ),
    "attributes of a measurement": (
        "FLD504",
        """
        @app.post("/done")
        def done(seconds, session_id):
            histogram.record(seconds, {"session": session_id})
        """,
    ),
    "tags given by name": (
        "FLD504",
        """
        @app.post("/done")
        def done(request):
            statsd.increment("done", tags={"user": request.user_id})
        """,
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_a_rule_finds(case, found):
    rule, code = FOUND[case]
    files = code if isinstance(code, dict) else {"app": code}
    assert [finding.rule for finding in found(**files)] == [rule]


CLEAN = {
    "a client that is closed": """
        def fetch(url):
            client = Client()
            try:
                return client.get(url)
            finally:
                client.close()
    """,
    "a client that is handed on": """
        def fetch(url, keep):
            client = Client()
            keep(client)
            return client.get(url)
    """,
    "a client that is returned": """
        def connected(url):
            client = Client()
            client.get(url)
            return client
    """,
    "a client of the start": """
        def main():
            client = Client()
            client.get("/")
    """,
    "a class of the program that has nothing to close": """
        class Session:
            def get(self, key): ...

        def handle(key):
            session = Session()
            return session.get(key)
    """,
    "a thing that is called like a client and does something else": """
        def handle(record):
            session = Session(record)
            session.describe()
    """,
    "a queue with a size": """
        from queue import Queue

        jobs = Queue(100)

        def accept(job):
            jobs.put(job)
    """,
    "a queue of one call": """
        from queue import Queue

        def run(items):
            jobs = Queue()
            for item in items:
                jobs.put(item)
            return jobs
    """,
    "a handle that another method closes": """
        class Upload:
            def __init__(self, path):
                self._file = open(path)

            def end(self):
                self._file.close()

        def receive(path):
            upload = Upload(path)
            upload.end()
    """,
    "a handle that is entered": """
        class Upload:
            def __init__(self, path):
                self._file = open(path)

            def read(self):
                with self._file:
                    return self._file.read()

        def receive(path):
            upload = Upload(path)
            return upload.read()
    """,
    "a handle whose end somebody is told": """
        class Upload:
            def __init__(self, path, stack):
                self._file = open(path)
                stack.push(self._file.close)

        def receive(path, stack):
            upload = Upload(path, stack)
            return upload.name
    """,
    "a handle that the process keeps": """
        class Lock:
            def __init__(self, path):
                self._file = open(path)

        lock = Lock("lock")
    """,
    "a handle of a method that is not the maker": """
        class Reader:
            def renew(self, path):
                self._file = open(path)

        def read(path):
            reader = Reader()
            reader.renew(path)
    """,
    "handles in a map that is not known": """
        def keep(files, user_id):
            files[user_id] = open(user_id)
    """,
    "handles in a map of somewhere else": """
        from elsewhere import files

        def keep(user_id):
            files[user_id] = open(user_id)
    """,
    "handles under a few fixed keys": """
        files = {}

        def keep():
            files["log"] = open("log")
            files["out"] = open("out")
    """,
    "a queue that is filled at start-up by something that passes": """
        from queue import Queue

        class Plan:
            def __init__(self, steps):
                self._steps = Queue()
                self._fill(steps)

            def _fill(self, steps):
                for step in steps:
                    self._steps.put(step)

        def run(steps):
            plan = Plan(steps)
            plan.go()
    """,
    "labels of a fixed set": """
        def count(requests, method, *rest):
            requests.labels(method, "ok", *rest).inc()
    """,
    "labels at start-up": """
        def setup(requests, user_id):
            requests.labels(user_id).inc()
    """,
}


@pytest.mark.parametrize("case", CLEAN)
def test_no_rule_speaks_of(case, found):
    assert [(finding.rule, finding.symbol) for finding in found(app=CLEAN[case])] == []


def test_a_bound_is_no_answer_to_a_client(found):
    code = FOUND["an executor of one call"][1].replace("(4)", "(4)  # floodline: bounded[by luck]")
    (finding,) = found(app=code)
    assert finding.status == "new"
