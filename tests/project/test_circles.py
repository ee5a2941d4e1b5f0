"""No circles of imports inside the package: a file can be read with nothing in mind but what is below it.

Imports inside functions count, for a circle that is only closed later is one all the same. Those under
`TYPE_CHECKING` do not: they are for the type checker and do not exist at run time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

Graph = Mapping[str, frozenset[str]]


def modules(root: Path) -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found: dict[str, Path] = {}
    for path in sorted((root / "tilebench").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def at_run_time(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports below a node, without those for the type checker alone."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        for other in node.orelse:
            yield from at_run_time(other)
        return
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from at_run_time(child)


def targets_of(module: str, path: Path, known: Mapping[str, Path]) -> frozenset[str]:
    """The modules of the package that one imports: a submodule where the name is one, else its package."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    for node in at_run_time(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            continue
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            found.add(inner if inner in known else base)
    return frozenset(each for each in found if each in known and each != module)


def graph_of(root: Path) -> dict[str, frozenset[str]]:
    """Who imports whom."""
    known = modules(root)
    return {name: targets_of(name, path, known) for name, path in known.items()}


def circles(graph: Graph) -> list[tuple[str, ...]]:
    """The strongly connected components of more than one module, sorted (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[tuple[str, ...]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            place = stack.index(name)
            component = stack[place:]
            del stack[place:]
            if len(component) > 1:
                found.append(tuple(sorted(component)))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return sorted(found)


def test_nothing_imports_in_a_circle() -> None:
    assert circles(graph_of(ROOT)) == []


def test_a_circle_is_seen_through_a_function_and_not_through_type_checking(tmp_path: Path) -> None:
    package = tmp_path / "tilebench" / "room"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("from .a import x\n")
    (package / "a.py").write_text("from .b import y\nx = 1\n")
    (package / "b.py").write_text("def later():\n    from . import c\n")
    (package / "c.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import x\n"
    )
    assert circles(graph_of(tmp_path)) == []
    (package / "c.py").write_text("def later():\n    from .a import x\n")
    assert circles(graph_of(tmp_path)) == [("tilebench.room.a", "tilebench.room.b", "tilebench.room.c")]
