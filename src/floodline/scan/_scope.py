"""The names of one Python function: what each local refers to, and where its value comes from."""

from __future__ import annotations

import ast

from floodline.scan._expressions import FRESH, THROUGH, dotted, last_name, most_open

INSIDE = {"get", "setdefault", "pop", "values", "items", "__getitem__", "popitem"}
OF_TYPES = {"__class__", "__name__", "__qualname__", "__module__", "__doc__"}
Found = tuple[str, int]


class Scope:
    """One function (or the module, or the body of a class) while it is read."""

    __slots__ = (
        "annotations", "clients", "globals", "kinds", "name", "origins", "outer", "owner",
        "parameters", "refs", "selves", "stored", "types", "waiters",
    )  # fmt: skip

    def __init__(self, name: str, owner: str, outer: Scope | None) -> None:
        self.name = name
        self.owner = owner
        self.outer = outer
        self.parameters: dict[str, int] = {}
        self.annotations: dict[str, str] = {}
        self.globals: set[str] = set()
        self.refs: dict[str, Found] = {}
        self.origins: dict[str, str] = {}
        self.types: dict[str, str] = {}
        self.stored: dict[str, str] = {}
        self.clients: dict[str, ast.expr] = {}
        self.selves: set[str] = set()  # other names of the instance, in `__new__`
        self.waiters: dict[str, str] = {}  # a local that an answer is waited for, and its container
        self.kinds: set[str] = set()  # locals that are containers made here

    def holder_of(self, name: str) -> Scope | None:
        """Return the scope that has this name as a local, `None` for a global."""
        scope: Scope | None = self
        while scope is not None and scope.name:
            if name in scope.globals:
                return None
            if name in scope.parameters or name in scope.origins or name in scope.kinds:
                return scope
            scope = scope.outer
        return None

    def reference(self, node: ast.expr) -> Found | None:
        """Return which container an expression means and how deep inside it, if that is known."""
        kind = type(node)
        if kind is ast.Name:
            return self._name(node.id)  # type: ignore[attr-defined]  # kind says so
        if kind is ast.Attribute:
            return self._attribute(node)  # type: ignore[arg-type]  # kind says so
        if kind is ast.Constant:
            return None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return None  # a copy
        if isinstance(node, ast.Subscript):
            below = self.reference(node.value)
            return (below[0], below[1] + 1) if below else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in INSIDE:
                below = self.reference(node.func.value)
                return (below[0], below[1] + 1) if below else None
        elif isinstance(node, ast.NamedExpr):
            return self.reference(node.value)
        return None

    def _name(self, name: str) -> Found | None:
        if name in ("self", "cls") and self.owner:
            return "s:", 0
        holder = self.holder_of(name)
        if holder is None:
            return f"g:{name}", 0
        if name in holder.refs:
            return holder.refs[name]
        return f"l:{holder.name}:{name}", 0

    def _attribute(self, node: ast.Attribute) -> Found | None:
        base = self.base(node.value)
        return (f"s:{node.attr}" if base == "self" else f"o:{base}|{node.attr}", 0)

    def base(self, node: ast.expr) -> str:
        """Return whose attribute is meant: `self`, `self.a`, `g:NAME`, `T:Class` or `?`."""
        if self.selves and ast.unparse(node) in self.selves:
            return "self"
        if isinstance(node, ast.Name):
            if node.id in ("self", "cls") and self.owner:
                return "self"
            holder = self.holder_of(node.id)
            if holder is None:
                return f"g:{node.id}"
            known = holder.types.get(node.id) or holder.annotations.get(node.id)
            if known:
                return f"T:{known}"
            ref = holder.refs.get(node.id)
            return f"self.{ref[0][2:]}" if ref and ref[0][:2] == "s:" and not ref[1] else "?"
        if isinstance(node, ast.Attribute):
            if node.attr == "__class__" and self.base(node.value) == "self":
                return "self"
            text = dotted(node)
            if text.startswith(("self.", "cls.")) and self.owner and text.count(".") == 1:
                return f"self.{node.attr}"
            return f"g:{text}" if text and self.holder_of(text.partition(".")[0]) is None else "?"
        if isinstance(node, ast.Call):
            if last_name(node.func) == "type" and len(node.args) == 1:
                return self.base(node.args[0])
            return f"C:{last_name(node.func)}"
        return "?"

    def origin(self, node: ast.expr | None) -> str:
        """Return where the value of an expression comes from."""
        kind = type(node)
        if node is None or kind is ast.Constant or kind is ast.Compare:
            return "const"
        if kind is ast.Name:
            return self._origin_of_name(node.id)  # type: ignore[attr-defined]  # kind says so
        if kind is ast.Attribute:
            return self._origin_of_attribute(node)  # type: ignore[arg-type]  # kind says so
        if kind is ast.Call:
            return self._origin_of_call(node)  # type: ignore[arg-type]  # kind says so
        if isinstance(node, ast.Subscript):
            below = self.origin(node.value)
            return "attr:item" if below == "unknown" else below
        if isinstance(node, ast.Await | ast.Starred | ast.NamedExpr | ast.FormattedValue):
            return self.origin(node.value)
        if isinstance(node, ast.JoinedStr | ast.BoolOp):
            return most_open([self.origin(part) for part in node.values])
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return most_open([self.origin(part) for part in node.elts])
        if isinstance(node, ast.BinOp):
            return most_open([self.origin(node.left), self.origin(node.right)])
        if isinstance(node, ast.IfExp):
            return most_open([self.origin(node.body), self.origin(node.orelse)])
        return "unknown"

    def _origin_of_name(self, name: str) -> str:
        if name == "self":
            return "fresh:self"
        if name == "cls":
            return "type"
        holder = self.holder_of(name)
        if holder is None:
            return f"global:{name}"
        if name in holder.origins:
            return holder.origins[name]
        if holder is not self:
            return "unknown"
        return f"param:{holder.parameters[name]}" if name in holder.parameters else "unknown"

    def _origin_of_attribute(self, node: ast.Attribute) -> str:
        if node.attr in OF_TYPES:
            return "type"
        if isinstance(node.value, ast.Name):
            base = node.value.id
            if base in ("self", "cls") and self.owner:
                return f"self:{node.attr}"
            if self.holder_of(base) is None:
                return f"enum:{base}.{node.attr}"
        inner = self.origin(node.value)
        if inner.startswith("param:"):
            return f"{inner}.{node.attr}"
        return inner if inner.startswith(("type", "enum")) else f"attr:{node.attr}"

    def _origin_of_call(self, node: ast.Call) -> str:
        name = last_name(node.func)
        if name in ("type", "bool", "isinstance", "len"):
            return "type"
        if name == "next" and not (
            node.args and isinstance(node.args[0], ast.Name | ast.Attribute)
        ):
            return "unknown"
        if name in FRESH:
            return f"fresh:{name}()"
        if name in THROUGH:
            parts = [self.origin(item) for item in node.args]
            if isinstance(node.func, ast.Attribute):
                parts.append(self.origin(node.func.value))
            return most_open(parts)
        return f"call:{name}"
