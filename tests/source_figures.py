"""Prints figures of a source tree, for a comparison of before and after.

python tests/source_figures.py [PACKAGE ...]

A package is the folder of one, `src/floodline` by default. The complexity of a function is the
number of ways to branch in it: statements, handlers, conditions and their `and`s and `or`s, and
comprehensions; functions inside it count on their own.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

COMPLEX = 20
Function = ast.FunctionDef | ast.AsyncFunctionDef


def loaded_by(tree: ast.Module) -> set[str]:
    """Return what is imported where a module is: not in functions, or for type checkers."""
    found, waiting = set(), list[ast.AST](tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif not isinstance(node, Function) and "TYPE_CHECKING" not in _condition(node):
            waiting += ast.iter_child_nodes(node)
    return found


def _condition(node: ast.AST) -> str:
    return ast.unparse(node.test) if isinstance(node, ast.If) else ""


def functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def complexity(function: Function) -> int:
    """Return one more than the branches of a function."""
    found, waiting = 1, list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function):
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            found += 1 + len(node.ifs)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            found += 1 + bool(node.orelse)
        elif isinstance(node, ast.Try):
            found += len(node.handlers) + bool(node.orelse)
        elif isinstance(node, ast.If | ast.IfExp | ast.Assert | ast.match_case):
            found += 1
    return found


def in_cycles(loaded: dict[str, set[str]]) -> set[str]:
    """Return the modules that import themselves, by others; a name is of a module, or one."""
    left = {
        module: {name if name in loaded else name.rpartition(".")[0] for name in names}
        for module, names in loaded.items()
    }
    while True:
        wanted = set().union(*left.values())
        kept = {module for module in left if left[module] & left.keys() and module in wanted}
        if kept == left.keys():
            return kept
        left = {module: left[module] for module in kept}


def complex_functions(trees: dict[Path, ast.Module]) -> dict[str, int]:
    """Return the functions that branch too often, by path and name, with their complexity."""
    found: Counter[str] = Counter()
    for path, tree in trees.items():
        for one in functions(tree):
            name = f"{path.as_posix()}:{one.name}"  # of several with one name, the worst counts
            found[name] = max(found[name], complexity(one))
    return {name: number for name, number in found.items() if number > COMPLEX}


def trees_of(package: Path) -> dict[Path, ast.Module]:
    """Parse every module of a package."""
    return {
        path.relative_to(package): ast.parse(path.read_bytes())
        for path in sorted(package.rglob("*.py"))
    }


def figures(package: Path) -> Iterator[str]:
    trees = trees_of(package)
    lengths = [len((package / path).read_bytes().splitlines()) for path in trees]
    sizes = [(f.end_lineno or 0) - f.lineno + 1 for t in trees.values() for f in functions(t)]
    yield f"modules: {len(trees)}, median {median(lengths):.0f} lines, longest {max(lengths)}"
    yield f"functions: {len(sizes)}, median {median(sizes):.0f} lines, longest {max(sizes)}"
    folder, full = Counter(path.parent for path in trees).most_common(1)[0]
    yield f"largest folder: {full} modules ({folder.as_posix()})"
    parts = {path: (package.name, *path.with_suffix("").parts) for path in trees}
    names = {path: ".".join(parts[path]).removesuffix(".__init__") for path in trees}
    loaded = {names[path]: loaded_by(tree) for path, tree in trees.items()}
    yield f"modules in import cycles: {len(in_cycles(loaded))}"
    many = complex_functions(trees)
    yield f"functions with a complexity above {COMPLEX}: {len(many)}"
    for name, number in sorted(many.items(), key=lambda found: -found[1]):
        yield f"  {number} {name}"


def main() -> None:
    for package in sys.argv[1:] or [str(Path(__file__).parents[1] / "src" / "floodline")]:
        sys.stdout.write("\n".join([package, *figures(Path(package)), ""]))


if __name__ == "__main__":
    main()
