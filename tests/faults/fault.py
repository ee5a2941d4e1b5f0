"""A deliberate fault: a switch that breaks one thing in the compiler, and the tests that must see it.

A fault names a function, a method, a class or a module and changes what is written there as a tree, not
as text: `old` is the code that is looked for and `new` what stands in its place, so that line breaks,
quotes and comments do not matter. A name such as `_a` in `old` stands for any expression and may be used
in `new`: `_a <= _b` -> `_a < _b`. A fault whose place is gone, or is found twice, is an error and never
a fault that does nothing.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
_WILD = re.compile(r"_[a-z]")
Place = tuple[ast.AST, str, "int | slice | None"]


class FaultError(Exception):
    """A fault that no longer says what it means: its place is gone, or its new code uses unknown names."""


@dataclass(frozen=True)
class Fault:
    """One switch.

    `where` is `module:Class.method`, `module:function`, `module:Class` or `module:` for the whole module.
    `old` is one expression or some statements in a row, found there exactly once; empty, it is the whole
    body of the function. `new` replaces it; empty or `pass`, the statements go. `tests` are the tests that
    see it, as pytest takes them; parameters in brackets may be left out.
    """

    name: str
    breaks: str
    where: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def module(self) -> str:
        """The dotted name of the module."""
        return self.where.partition(":")[0]

    @property
    def path(self) -> Path:
        """The file of the module, found without importing it."""
        stem = ROOT.joinpath(*self.module.split("."))
        return stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")

    def applied(self, source: str) -> ast.Module:
        """The module's tree with the fault in it. Raises `FaultError` where it does not apply."""
        tree = ast.parse(source)
        target = self._target(tree)
        if self.old:
            self._replace(target)
        else:
            if not isinstance(target, (ast.FunctionDef, ast.AsyncFunctionDef)):
                raise FaultError(f"{self.name}: only a function has a body to replace, not {self.where}")
            target.body = ast.parse(self.new).body
        unknown = {name for name in _names_used(self.new) if not _WILD.fullmatch(name)}
        unknown -= {*dir(builtins), *re.findall(r"[A-Za-z_]\w*", source)}
        if unknown:
            raise FaultError(f"{self.name}: its new code uses {', '.join(sorted(unknown))}, unknown there")
        return ast.fix_missing_locations(tree)

    def _target(self, tree: ast.Module) -> Any:
        at: Any = tree
        for part in filter(None, self.where.partition(":")[2].split(".")):
            inside = [scope for scope in _scopes(at) if scope.name == part]
            if len(inside) != 1:
                raise FaultError(f"{self.name}: {self.where} is there {len(inside)} times ({part})")
            at = inside[0]
        return at

    def _replace(self, target: ast.AST) -> None:
        old, new = ast.parse(self.old).body, ast.parse(self.new).body
        whole = not (_is_expression(old) and _is_expression(new))
        pattern: Any = old if whole else old[0].value  # type: ignore[attr-defined]
        found = [
            (place, bound)
            for place in _places(target, len(old) if whole else 0)
            if (bound := _bindings(pattern, place)) is not None
        ]
        if len(found) != 1:
            raise FaultError(f"{self.name}: `{self.old}` is in {self.where} {len(found)} times, not once")
        (parent, field, at), bound = found[0]
        if whole:
            value: Any = [_Fill(bound).visit(statement) for statement in new] or [ast.Pass()]
        else:
            value = _Fill(bound).visit(new[0].value)  # type: ignore[attr-defined]
        if at is None:
            setattr(parent, field, value)
        else:
            getattr(parent, field)[at] = value


def _scopes(at: ast.AST) -> Iterator[Any]:
    """The functions and classes of a scope, and not those inside them."""
    for node in ast.iter_child_nodes(at):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node
        else:
            yield from _scopes(node)


def _is_expression(body: list[ast.stmt]) -> bool:
    return len(body) == 1 and isinstance(body[0], ast.Expr)


def _places(target: ast.AST, run: int) -> Iterator[Place]:
    """Where code could stand: every run of so many statements, or for 0 every expression."""
    for parent in ast.walk(target):
        for field, value in ast.iter_fields(parent):
            if not run and isinstance(value, ast.expr):
                yield parent, field, None
            elif isinstance(value, list) and not run:
                yield from ((parent, field, k) for k, n in enumerate(value) if isinstance(n, ast.expr))
            elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield from ((parent, field, slice(k, k + run)) for k in range(len(value) - run + 1))


def _bindings(pattern: Any, place: Place) -> dict[str, ast.expr] | None:
    """What the names `_a` stand for where the code is the pattern; None where it is not."""
    parent, field, at = place
    value = getattr(parent, field)
    bound: dict[str, ast.expr] = {}
    return bound if _matches(pattern, value if at is None else value[at], bound) else None


def _matches(pattern: Any, code: Any, bound: dict[str, ast.expr]) -> bool:
    if isinstance(pattern, ast.Name) and _WILD.fullmatch(pattern.id) and isinstance(code, ast.expr):
        known = bound.setdefault(pattern.id, code)
        return known is code or _matches(known, code, {})
    if isinstance(pattern, list):
        return (
            isinstance(code, list)
            and len(code) == len(pattern)
            and all(_matches(a, b, bound) for a, b in zip(pattern, code, strict=True))
        )
    if not isinstance(pattern, ast.AST):
        return type(pattern) is type(code) and pattern == code
    if type(pattern) is not type(code):
        return False
    fields = [name for name in pattern._fields if name not in ("ctx", "type_comment")]
    return all(_matches(getattr(pattern, f, None), getattr(code, f, None), bound) for f in fields)


class _Fill(ast.NodeTransformer):
    def __init__(self, bound: Mapping[str, ast.expr]) -> None:
        self.bound = bound

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.bound.get(node.id, node)


def _names_used(code: str) -> set[str]:
    """The names that code uses and does not bind itself."""
    names = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
    return {n.id for n in names} - {n.id for n in names if isinstance(n.ctx, ast.Store)}
