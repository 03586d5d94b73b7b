"""Which number an expression of a limit is: a constant, a default, or what `make` passes."""

from __future__ import annotations

import ast

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Numbers:
    """The numbers of one file, as `make` would have them if it is given."""

    def __init__(self, tree: ast.Module, make: str | None) -> None:
        self._tree = tree
        self._make = _call(make)

    def of(self, node: ast.expr | None, owner: ast.ClassDef | None, depth: int = 0) -> int | None:
        """Return the number, or None if it is not known here."""
        if node is None or depth > 5:
            return None
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.of(node.operand, owner, depth + 1)
            return None if inner is None else -inner
        if isinstance(node, ast.BinOp):
            return self._calculated(node, owner, depth)
        if isinstance(node, ast.Name):
            return self._named(node.id, owner, depth)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self._attribute(node, owner, depth)
        return None

    def _calculated(self, node: ast.BinOp, owner: ast.ClassDef | None, depth: int) -> int | None:
        left = self.of(node.left, owner, depth + 1)
        right = self.of(node.right, owner, depth + 1)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Add):
            return left + right
        return left - right if isinstance(node.op, ast.Sub) else None

    def _named(self, name: str, owner: ast.ClassDef | None, depth: int) -> int | None:
        """A parameter of the constructor hides a constant of the module."""
        if owner is not None and name in _parameters(owner):
            return self.of(self._argument(name, owner), None, depth + 1)
        values = _assigned(self._tree.body, name)
        return self.of(values[0], owner, depth + 1) if len(values) == 1 else None

    def _attribute(self, node: ast.Attribute, owner: ast.ClassDef | None, depth: int) -> int | None:
        assert isinstance(node.value, ast.Name)
        if node.value.id not in ("self", "cls"):
            owner = class_of(self._tree, node.value.id)
        if owner is None:
            return None
        values = _set_on_self(owner, node.attr) or _assigned(owner.body, node.attr)
        return self.of(values[0], owner, depth + 1) if len(values) == 1 else None

    def _argument(self, name: str, owner: ast.ClassDef) -> ast.expr | None:
        """What `make` gives for a parameter of the constructor, else the default."""
        made = self._make
        if made is not None and isinstance(made.func, ast.Name) and made.func.id == owner.name:
            place = list(_parameters(owner)).index(name)
            if place < len(made.args):
                return made.args[place]
            for keyword in made.keywords:
                if keyword.arg == name:
                    return keyword.value
        return _parameters(owner)[name]


def class_of(tree: ast.Module, name: str) -> ast.ClassDef | None:
    """Return the class of that name, wherever in the file; the scan names nested ones so too."""
    classes = (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))
    return next((n for n in classes if n.name == name), None)


def _call(make: str | None) -> ast.Call | None:
    node = ast.parse(make.strip(), mode="eval").body if make else None
    return node if isinstance(node, ast.Call) else None


def _parameters(owner: ast.ClassDef) -> dict[str, ast.expr | None]:
    """The constructor's parameters without `self`, in order, with their defaults."""
    for statement in owner.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            given = statement.args
            names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
            missing: list[ast.expr | None] = [None] * (len(names) - len(given.defaults))
            found = dict(zip(names, [*missing, *given.defaults], strict=True))
            found.update(zip((a.arg for a in given.kwonlyargs), given.kw_defaults, strict=True))
            return dict(list(found.items())[1:])
    return {}


def _assigned(body: list[ast.stmt], name: str) -> list[ast.expr]:
    return [
        statement.value
        for statement in body
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None
        for target in targets(statement)
        if isinstance(target, ast.Name) and target.id == name
    ]


def _set_on_self(owner: ast.ClassDef, attribute: str) -> list[ast.expr]:
    return [
        node.value
        for node in ast.walk(owner)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in targets(node)
        if isinstance(target, ast.Attribute)
        and target.attr == attribute
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    ]


def targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    """Return what a statement assigns to."""
    return node.targets if isinstance(node, ast.Assign) else [node.target]
