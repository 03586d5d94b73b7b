"""Reads what the source of an imported module defines and assigns.

Files are read and parsed, never imported or run.
"""

from __future__ import annotations

import ast
import sys
from types import FunctionType
from typing import Any

from floodline._python.assignments import targets
from floodline._python.names import Function
from floodline.leaks._objects.anatomy import derives, names_of_module, names_of_type, unwrapped
from floodline.leaks._source.excerpt import tree_about


def file_of_module(name: str) -> str | None:
    """Return the source file of an imported module, None if it has none."""
    module = sys.modules.get(name)
    if type(module) is not type(sys):
        return None
    names = names_of_module(module)
    # a script that has ended, while its threads go on, has no `__file__` any more
    file = dict.get(names, "__file__") or _file_of_code(names)
    return file if type(file) is str and file.endswith(".py") else None


def _file_of_code(names: dict[str, Any]) -> str | None:
    """Return the file of a function or method that a module defines."""
    for value in list(dict.values(names)):
        held = names_of_type(value).values() if derives(type(value), type) else (value,)
        for one in map(unwrapped, list(held)):
            if type(one) is FunctionType and one.__globals__ is names:
                return one.__code__.co_filename
    return None


def tree_of(module: str, word: str) -> ast.Module | None:
    """Return the parts of an imported module's source that mention a word, parsed."""
    file = file_of_module(module)
    return tree_about(file, word) if file else None


def find(tree: ast.AST, qualname: str) -> ast.AST | None:
    """Return the class or function with that qualified name."""
    at: ast.AST | None = tree
    for name in qualname.replace("<locals>.", "").split("."):
        inner = ast.walk(at) if at is not None else iter(())
        defined = (n for n in inner if isinstance(n, (ast.ClassDef, Function)))
        at = next((node for node in defined if node.name == name), None)
    return at


def class_assigns(module: str, qualname: str, attr: str) -> bool:
    """Return True if the source of a class assigns an attribute, in its body or to `self`."""
    tree = tree_of(module, attr)
    node = find(tree, qualname) if tree else None
    return isinstance(node, ast.ClassDef) and assigns(node, attr)


def assigns(node: ast.ClassDef, attr: str) -> bool:
    """Return True if a class assigns an attribute, in its body or to `self`."""
    if any(attr in _targets(statement) for statement in node.body):
        return True
    names = {f"self.{attr}", f"cls.{attr}", f"{node.name}.{attr}"}
    return any(names & _targets(inner) for inner in ast.walk(node) if isinstance(inner, ast.stmt))


def module_assigns(module: str, name: str) -> bool:
    """Return True if a module's own source creates a global, rather than importing it."""
    tree = tree_of(module, name)
    if tree is None:
        return False
    return any(
        name in _targets(node) or getattr(node, "name", None) == name
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
    )


def _targets(node: ast.stmt) -> set[str]:
    flat = [part for target in targets(node) for part in getattr(target, "elts", [target])]
    return {ast.unparse(part) for part in flat if isinstance(part, (ast.Name, ast.Attribute))}
