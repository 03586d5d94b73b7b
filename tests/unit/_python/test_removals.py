from __future__ import annotations

import ast

import pytest

from floodline._python.at_limit import AtLimit, taken
from floodline._python.removals import evicts, holds, only_logs, removes, removes_each

CALLEES = frozenset(("drop",))


def body(text):
    return ast.parse(text).body


@pytest.mark.parametrize(
    ("text", "takes", "takes_any"),
    [
        ("self.x.pop(key)", True, False),
        ("self.x.pop('key', None)", True, False),
        ("self.x.pop()", True, True),
        ("self.x.pop(0)", True, True),
        ("self.x.pop(-1)", True, True),
        ("self.x.pop(next(iter(self.x)))", True, True),
        ("self.x.pop(min(self.x, key=self.x.get))", True, True),
        ("self.x.pop(max(self.x))", True, False),
        ("self.x.popitem(last=False)", True, True),
        ("self.x.popleft()", True, True),
        ("self.x.clear()", True, True),
        ("self.x.discard(key)", True, False),
        ("self.x.difference_update(old)", True, False),
        ("self.x.get_nowait()", True, False),
        ("del self.x[key]", True, False),
        ("del self.x['key']", True, False),
        ("del self.x[0]", True, True),
        ("del self.x[3]", True, True),
        ("del self.x[:10]", True, True),
        ("del self.x", True, True),
        ("heapq.heappop(self.x)", True, True),
        ("heappop()", False, False),
        ("self.x = self.x[-9:]", True, True),
        ("self.x = {}", True, True),
        ("self.x = dict()", True, True),
        ("self.x = [1]", True, False),
        ("self.x = other", True, False),
        ("self.x = [v for v in self.x if v.new]", True, True),
        ("self.x = [v for v in self.x]", True, False),
        ("self.x[:] = []", True, True),
        ("self.x[key] = value", False, False),
        ("for key in old:\n    self.x.pop(key)", True, True),
        ("drop()", True, True),
        ("self.drop()", True, True),
        ("self.y.clear()", False, False),
        ("self.x.append(1)", False, False),
        ("self.x += [1]", False, False),
        ("log(self.x)", False, False),
    ],
)
def test_what_a_piece_of_source_takes_out(text, takes, takes_any):
    assert holds(body(text), removes, "x", CALLEES) is takes
    assert holds(body(text), evicts, "x", CALLEES) is takes_any


def test_a_loop_that_removes_nothing_is_no_sweep():
    (loop,) = body("for key in self.x:\n    print(key)")
    assert not removes_each(loop, "x")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pass", True),
        ("log.warning('full')", True),
        ("count += 1", True),
        ("self.full = True", True),
        ("print(len(self.x))", True),
        ("self.full = self.x", False),
        ("self.trim()", False),
        ("await log.info('x')", False),
        ("return", False),
        ("del self.x[0]", False),
        ("pass\nself.trim()", False),
    ],
)
def test_a_branch_that_only_tells_keeps_nothing_small(text, told):
    text = "\n    ".join(text.splitlines())
    assert only_logs(body(f"async def f():\n    {text}")[0].body) is told


def kind(text, given=""):
    function = ast.parse(f"{given}\n{text}")
    statement = function.body[-1]
    node = statement.value if isinstance(statement, ast.Expr) else statement
    return taken(node.targets[0] if isinstance(node, ast.Delete) else node, function)


@pytest.mark.parametrize(
    ("text", "which"),
    [
        ("x.clear()", AtLimit.ALL),
        ("x.popleft()", AtLimit.FIRST),
        ("heapq.heappop(x)", AtLimit.LEAST),
        ("x.popitem()", AtLimit.LAST),
        ("x.popitem(False)", AtLimit.FIRST),
        ("x.popitem(last=False)", AtLimit.FIRST),
        ("x.popitem(last=True)", AtLimit.LAST),
        ("x.pop()", AtLimit.LAST),
        ("x.pop(0)", AtLimit.FIRST),
        ("x.pop(-1)", AtLimit.LAST),
        ("x.pop(3)", AtLimit.SOME),
        ("x.pop(key)", AtLimit.SOME),
        ("x.pop(next(iter(x)))", AtLimit.FIRST),
        ("x.pop(list(x)[0])", AtLimit.FIRST),
        ("x.pop(list(x)[-1])", AtLimit.SOME),
        ("x.pop(order.pop(0))", AtLimit.FIRST),
        ("x.pop(order.pop())", AtLimit.SOME),
        ("x.pop(order.popleft())", AtLimit.FIRST),
        ("x.pop(min(x))", AtLimit.LEAST),
        ("x.pop(max(x))", AtLimit.SOME),
        ("x.pop(sorted(x, reverse=True)[0])", AtLimit.SOME),
        ("x.remove(y)", AtLimit.SOME),
        ("del x[0]", AtLimit.FIRST),
        ("del x[:9]", AtLimit.FIRST),
        ("del x[:]", AtLimit.ALL),
        ("del x[9:]", AtLimit.LAST),
        ("del x[1:9]", AtLimit.SOME),
        ("x = x[-9:]", AtLimit.FIRST),
        ("x = x[:9]", AtLimit.LAST),
        ("x = x[1:9]", AtLimit.SOME),
        ("x = []", AtLimit.ALL),
        ("x: dict = {}", AtLimit.ALL),
        ("x = set()", AtLimit.ALL),
        ("x = set(y)", AtLimit.SOME),
        ("x = [1]", AtLimit.SOME),
        ("f(x)", AtLimit.SOME),
    ],
)
def test_which_items_a_removal_takes(text, which):
    assert kind(text) is which


@pytest.mark.parametrize(
    ("given", "which"),
    [
        ("key = next(iter(x))", AtLimit.FIRST),
        ("key, _ = min(x.items())", AtLimit.LEAST),
        ("for key in list(x)[:9]: pass", AtLimit.FIRST),
        ("key = f()", AtLimit.SOME),
        ("other = next(iter(x))", AtLimit.SOME),
    ],
)
def test_a_local_name_is_followed_to_where_it_comes_from(given, which):
    assert kind("del x[key]", given) is which
