"""FLD2xx: what looks like a bound and is none, and what is one."""

from __future__ import annotations

import pytest

FOUND: dict[str, tuple[str, str | dict[str, str]]] = {
    "an age behind the clock of one's own": (
        "FLD203",
        """
        class Cache:
            def __init__(self, clock):
                self._clock = clock
                self._entries = {}

            def put(self, user_id, value):
                self._entries[user_id] = Entry(value, self._clock())

            def get(self, user_id):
                entry = self._entries.get(user_id)
                if entry is None or entry.until < self._clock():
                    return None
                return entry.value

        cache = Cache(tick)
        """,
    ),
    "an age of a nested pair in a loop": (
        "FLD203",
        """
        from time import monotonic

        seen = {}

        def note(user_id):
            seen[user_id] = monotonic()

        def active():
            return [user for user, at in seen.items() if monotonic() - seen[user] < 60]
        """,
    ),
    "a member of an enum set on what a look-up returned": (
        "FLD204",
        """
        orders = {}

        def place(order_id, order):
            orders[order_id] = order

        def ship(order_id):
            order = orders[order_id]
            order.state = State.SHIPPED
        """,
    ),
    "a task of one's own that is done": (
        "FLD204",
        """
        class Task:
            status = "new"

        tasks = {}

        def accept(task_id):
            tasks[task_id] = Task(task_id)

        def finish(task_id):
            tasks[task_id].status = "done"
        """,
    ),
    "times of access beside a map with a limit": (
        "FLD205",
        """
        class Cache:
            def __init__(self):
                self._items = {}
                self._times = {}

            def get(self, key):
                self._times[key] = 1
                return self._items.get(key)

            def put(self, key, value):
                if len(self._items) > 100:
                    self._items.popitem()
                self._items[key] = value
                self._times[key] = 1

        cache = Cache()
        """,
    ),
    "a limit that only warns": (
        "FLD201",
        """
        import warnings

        lines = []

        def note(line):
            if len(lines) > 1000:
                warnings.warn("many lines")
            lines.append(line)
        """,
    ),
    "a list of which the last lines are shown": (
        "FLD202",
        """
        lines = []

        def note(line):
            lines.append(line)

        def shown():
            return lines[-20:]
        """,
    ),
    "an exit stack of the process": (
        "FLD206",
        """
        from contextlib import ExitStack

        opened = ExitStack()

        def read(path):
            return opened.enter_context(open(path)).read()
        """,
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_a_rule_finds(case, found):
    rule, code = FOUND[case]
    files = code if isinstance(code, dict) else {"app": code}
    assert [finding.rule for finding in found(**files)] == [rule]


CLEAN = {
    "ages by which a sweeper removes": """
        import time

        seen = {}

        def note(user_id):
            seen[user_id] = time.time()
            for user, at in list(seen.items()):
                if time.time() - at > 60:
                    del seen[user]
    """,
    "what is taken out before its age is asked for": """
        import time

        codes = {}

        def issue(user_id, code):
            codes[user_id] = (code, time.time())

        def redeem(user_id):
            code, at = codes.pop(user_id)
            if time.time() - at > 60:
                raise ValueError
            return code
    """,
    "what is taken out whatever its age is": """
        import time

        codes = {}

        def issue(user_id):
            codes[user_id] = time.time()

        def redeem(user_id):
            expired = codes[user_id] < time.time() - 60
            del codes[user_id]
            return not expired
    """,
    "a limit that refuses": """
        lines = []

        def note(line):
            if len(lines) > 1000:
                return
            lines.append(line)
    """,
    "an exit stack of one call": """
        from contextlib import ExitStack

        def read(paths):
            with ExitStack() as opened:
                return [opened.enter_context(open(path)).read() for path in paths]
    """,
}


@pytest.mark.parametrize("case", CLEAN)
def test_no_rule_speaks_of(case, found):
    assert [(finding.rule, finding.symbol) for finding in found(app=CLEAN[case])] == []


def test_what_only_its_next_reader_removes_is_less_certain(found):
    [finding] = found(
        app="""
        import time

        tokens = {}

        def remember(user_id, token):
            tokens[user_id] = (token, time.time())

        def token_of(user_id):
            token, at = tokens.get(user_id, (None, 0))
            if time.time() - at > 3600:
                tokens.pop(user_id, None)
                return None
            return token
        """,
    )
    assert (finding.rule, finding.confidence) == ("FLD203", "medium")
    assert "asked for again" in finding.proofs[3].claim


def test_the_line_that_only_looks_like_a_bound_is_named(found):
    ttl, flip = (
        FOUND["an age behind the clock of one's own"][1],
        FOUND["a member of an enum set on what a look-up returned"][1],
    )
    aged, flipped = found(a=ttl, b=flip)
    assert aged.proofs[3].at.endswith("a.py:12")
    assert "becomes State.SHIPPED" in flipped.proofs[3].claim


HANDED_ON = {
    "FLD203": """
        import time
        from somewhere import inspect

        tokens = {}

        def remember(user_id, token):
            tokens[user_id] = (token, time.time())

        def token_of(user_id):
            token, at = tokens.get(user_id, (None, 0))
            return None if time.time() - at > 3600 else token

        def debug():
            inspect(tokens)
    """,
    "FLD204": """
        from somewhere import inspect

        orders = {}

        def place(order_id, order):
            orders[order_id] = order

        def ship(order_id):
            order = orders[order_id]
            order.state = State.SHIPPED

        def debug():
            inspect(orders)
    """,
}


@pytest.mark.parametrize("rule", HANDED_ON)
def test_code_that_is_not_known_may_remove_what_only_looks_bounded(rule, found):
    [finding] = found(app=HANDED_ON[rule])
    assert (finding.rule, finding.proofs[3].state) == (rule, "unknown")
    assert "passed to unknown code" in finding.proofs[3].claim


def test_an_access_order_beside_a_capped_map_is_named_with_the_line_of_the_cap(found):
    [finding] = found(
        app="""
        class Cache:
            def __init__(self):
                self._items = {}
                self._access_order = []

            def put(self, key, value):
                if len(self._items) >= 100:
                    self._items.pop(next(iter(self._items)))
                self._items[key] = value
                self._access_order.append(key)

        cache = Cache()
        """,
    )
    assert (finding.rule, finding.confidence) == ("FLD205", "medium")
    assert finding.symbol == "app.Cache._access_order"
    assert "keeps what line 9 removes from its sibling" in finding.message


def test_a_list_beside_a_map_without_a_bound_is_another_matter(found):
    code = """
    class Log:
        def __init__(self):
            self._seen = {}
            self._lines = []

        def note(self, key, value):
            self._seen[key] = value
            self._lines.append(key)

    log = Log()
    """
    assert {f.rule for f in found(app=code)} == {"FLD101"}
