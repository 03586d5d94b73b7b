"""The safe edits: each only makes sure that an intended removal does run.

An edit is made from the syntax tree, and refused with a reason where it could do anything else.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from floodline._python.assignments import classes_in
from floodline._python.mutations import SHRINKS
from floodline._python.names import dotted, last_name
from floodline.scan._findings.finding import Finding

STARTS = {"create_task", "ensure_future"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


class Edit(NamedTuple):
    """Replaces lines `first` to `last` (from 1) by new ones; if `last` is before, it inserts."""

    first: int
    last: int
    lines: tuple[str, ...]


class Refused(Exception):
    """A finding cannot be fixed safely; the message says why."""


class Source:
    """One file as text, lines and syntax tree."""

    def __init__(self, text: str, lines: list[str]) -> None:
        self.text = text
        self.lines = lines
        self.tree = ast.parse(text)

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The classes by their names; of several with the same name, the outermost and first."""
        return {node.name: node for node in reversed([*classes_in(self.tree)])}

    def blocks(self) -> Iterator[list[ast.stmt]]:
        """Yield every list of statements."""
        for node in ast.walk(self.tree):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    yield block

    def statement(self, line: int) -> tuple[list[ast.stmt], int]:
        """Return the block and the place in it of the simple statement that begins in a line."""
        for block in self.blocks():
            for number, statement in enumerate(block):
                if statement.lineno == line and not hasattr(statement, "body"):
                    self._alone(block, number)
                    return block, number
        raise Refused("the statement was not found; has the file changed?")

    def _alone(self, block: list[ast.stmt], number: int) -> None:
        statement = block[number]
        last = statement.end_lineno or statement.lineno
        before = self.lines[statement.lineno - 1].encode()[: statement.col_offset]
        after = self.lines[last - 1].encode()[statement.end_col_offset or 0 :].decode().strip()
        if before.strip() or (after and not after.startswith("#")):
            raise Refused("it shares its line with another statement")

    def indent(self, statement: ast.stmt) -> str:
        return self.lines[statement.lineno - 1].encode()[: statement.col_offset].decode()

    def function(self, statement: ast.stmt) -> ast.FunctionDef | ast.AsyncFunctionDef:
        """Return the innermost function around a statement."""
        found = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, FUNCTIONS) and any(part is statement for part in ast.walk(node))
        ]
        if not found:
            raise Refused("it is not in a function")
        return found[-1]

    def segment(self, node: ast.expr) -> str:
        return ast.get_source_segment(self.text, node) or ast.unparse(node)


def discard_when_done(source: Source, finding: Finding) -> list[Edit]:
    """Follow each `TASKS.add(task)` with `task.add_done_callback(TASKS.discard)`."""
    places = [text.rpartition(":")[::2] for text in finding.grows]
    if any(path != finding.path for path, _ in places):
        raise Refused("another file adds to it too")
    return [_discard(source, int(line)) for _, line in places]


def _discard(source: Source, line: int) -> Edit:
    block, number = source.statement(line)
    statement = block[number]
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "add"
        and len(call.args) == 1
        and not call.keywords
    ):
        raise Refused("only a set that is filled with add() can be fixed")
    held = dotted(call.func.value)
    if not held:
        raise Refused("the set is not a plain name")
    function = source.function(statement)
    made = _made(source, function, call.args[0])
    _only_counted(source, held.rpartition(".")[2], may_cancel=made != "submit")
    indent, text = source.indent(statement), call.args[0]
    last = statement.end_lineno or statement.lineno
    kept = [line.rstrip("\r\n") for line in source.lines[statement.lineno - 1 : last]]
    if isinstance(text, ast.Name):
        name = text.id
    else:
        name = "future" if made == "submit" else "task"
        if any(name in (getattr(n, "id", ""), getattr(n, "arg", "")) for n in ast.walk(function)):
            raise Refused(f"the name {name!r} is already taken")
        if len(kept) > 1:
            raise Refused("the call spans several lines")
        after = source.lines[last - 1].encode()[call.end_col_offset or 0 :].decode().rstrip("\r\n")
        kept = [f"{indent}{name} = {source.segment(text)}", f"{indent}{held}.add({name}){after}"]
    done = f"{indent}{name}.add_done_callback({held}.discard)"
    return Edit(statement.lineno, last, (*kept, done))


def _made(source: Source, function: ast.AST, value: ast.expr) -> str:
    """Return what starts the work; it must be certain to return a task or a future."""
    made = [value]
    if isinstance(value, ast.Name):
        made = [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == value.id for t in node.targets)
        ]
    names = {_starts(source, node) for node in made}
    if len(names) != 1 or "" in names:
        raise Refused("it is not certain to be an asyncio task or an executor future")
    return names.pop()


def _starts(source: Source, node: ast.expr) -> str:
    if not isinstance(node, ast.Call):
        return ""
    name, text = last_name(node.func), dotted(node.func)
    if name in STARTS:
        bare = text == name and _imported(source, name)
        return name if bare or text == f"asyncio.{name}" else ""
    if name == "submit" and isinstance(node.func, ast.Attribute):
        owner = dotted(node.func.value)
        for part in ast.walk(source.tree):
            if isinstance(part, ast.Assign) and owner in map(dotted, part.targets):
                made = part.value.func if isinstance(part.value, ast.Call) else part.value
                if last_name(made) in ("ThreadPoolExecutor", "ProcessPoolExecutor"):
                    return name
    return ""


def _imported(source: Source, name: str) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "asyncio"
        and any((alias.asname or alias.name) == name == alias.name for alias in node.names)
        for node in ast.walk(source.tree)
    )


def _only_counted(source: Source, name: str, *, may_cancel: bool) -> None:
    """Refuse if anything reads the set: it would no longer see what is done."""
    for node, above in _uses(source.tree, name):
        if isinstance(node.ctx, ast.Store):
            value = above.value if isinstance(above, ast.Assign | ast.AnnAssign) else None
            if not (isinstance(value, ast.Call) and last_name(value.func) == "set"):
                raise Refused(f"line {node.lineno} does not assign a new set to {name}")
        elif not (_counts(above) or (may_cancel and _cancels(above, node))):
            raise Refused(f"line {node.lineno} reads {name} and would miss what is done")


def _counts(above: ast.AST) -> bool:
    adds = isinstance(above, ast.Attribute) and above.attr == "add"
    return adds or (isinstance(above, ast.Call) and last_name(above.func) == "len")


def _uses(tree: ast.AST, name: str) -> Iterator[tuple[ast.Name | ast.Attribute, ast.AST]]:
    for above in ast.walk(tree):
        for node in ast.iter_child_nodes(above):
            if isinstance(node, ast.Name | ast.Attribute) and last_name(node) == name:
                yield node, above


def _cancels(above: ast.AST, node: ast.expr) -> bool:
    """Return True for `for task in tasks: task.cancel()`, which leaves done tasks as they are."""
    if not (isinstance(above, ast.For) and above.iter is node and len(above.body) == 1):
        return False
    only = above.body[0]
    called = (
        only.value.func if isinstance(only, ast.Expr) and isinstance(only.value, ast.Call) else None
    )
    return isinstance(called, ast.Attribute) and called.attr == "cancel"


def remove_in_finally(source: Source, finding: Finding) -> list[Edit]:
    """Put what is between adding and removing into `try`, and the removal into `finally`."""
    path, _, line = finding.shrinks[0].rpartition(":")
    block, start = source.statement(finding.line)
    other, end = source.statement(int(line)) if path == finding.path else ([], 0)
    if other is not block or end <= start + 1:
        raise Refused("the removal is not in the same block")
    added, between, removed = block[start], block[start + 1 : end], block[end]
    held, key = _removed(removed)
    if _added(added) != (held, ast.unparse(key)):
        raise Refused("what is removed is not what was added")
    _leaves_alone(between, held, key)
    if not _is_quiet(removed) and _removals(source.tree, held) > 1:
        raise Refused("something else may have removed it: pop(key, None) or discard() would do")
    first = (added.end_lineno or added.lineno) + 1
    if _has_long_strings(between):
        raise Refused("a string that spans several lines cannot be indented")
    indent = source.indent(added)
    step = "\t" if "\t" in indent else "    "
    last = removed.end_lineno or removed.lineno
    body = [_deeper(text, step) for text in source.lines[first - 1 : removed.lineno - 1]]
    tail = [_deeper(text, step) for text in source.lines[removed.lineno - 1 : last]]
    return [Edit(first, last, (f"{indent}try:", *body, f"{indent}finally:", *tail))]


def _deeper(line: str, step: str) -> str:
    text = line.rstrip("\r\n")
    return step + text if text.strip() else text


def _removed(statement: ast.stmt) -> tuple[str, ast.expr]:
    """Return the container and the key of a removal whose result is not used."""
    if isinstance(statement, ast.Delete) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Subscript):
            return ast.unparse(target.value), target.slice
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
        return ast.unparse(call.func.value), call.args[0]
    raise Refused("the result of the removal is used")


def _added(statement: ast.stmt) -> tuple[str, str]:
    """Return the container and the key of what a statement adds."""
    if isinstance(statement, ast.Assign):
        target: ast.expr = statement.targets[-1]
        if isinstance(target, ast.Subscript):
            return ast.unparse(target.value), ast.unparse(target.slice)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
        return ast.unparse(call.func.value), ast.unparse(call.args[0])
    return "", ""


def _is_quiet(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and (
        last_name(call.func) == "discard" or len(call.args) + len(call.keywords) > 1
    )


def _leaves_alone(between: list[ast.stmt], held: str, key: ast.expr) -> None:
    names = {n.id for n in ast.walk(key) if isinstance(n, ast.Name)} | {held.partition(".")[0]}
    for statement in between:
        for node, in_loop in _inside(statement, in_loop=False):
            if isinstance(node, ast.Return):
                raise Refused(f"line {node.lineno} returns and may keep the entry on purpose")
            if isinstance(node, ast.Break | ast.Continue) and not in_loop:
                raise Refused(
                    f"line {node.lineno} leaves the block and may keep the entry on purpose"
                )
            if _binds(node, names, held):
                raise Refused(f"line {getattr(node, 'lineno', 0)} changes {ast.unparse(node)}")
        if _removals(statement, held):
            raise Refused("something in between may remove it too")


def _binds(node: ast.AST, names: set[str], held: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id in names and not isinstance(node.ctx, ast.Load)
    stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    return stored and ast.unparse(node) == held


def _inside(node: ast.AST, *, in_loop: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Yield what runs when a statement runs: functions that it defines run elsewhere."""
    yield node, in_loop
    if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
        for below in ast.iter_child_nodes(node):
            yield from _inside(below, in_loop=in_loop or isinstance(node, LOOPS))


def _removals(tree: ast.AST, held: str) -> int:
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Delete):
            found += sum(
                isinstance(t, ast.Subscript) and ast.unparse(t.value) == held for t in node.targets
            )
        elif isinstance(node, ast.Attribute) and node.attr in SHRINKS:
            found += ast.unparse(node.value) == held
    return found


def _has_long_strings(between: list[ast.stmt]) -> bool:
    return any(
        isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno
        for statement in between
        for node in ast.walk(statement)
    )


FIXES: dict[str, Callable[[Source, Finding], list[Edit]]] = {
    "FLD109": remove_in_finally,
    "FLD401": discard_when_done,
    "FLD402": discard_when_done,
}
