"""Changing trees: bottom-up rewriting and substitution. Unchanged subtrees stay shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .expr import Arith, Buffer, Expr, Load, Region, Var, add, compare, floordiv, mod, mul, sub
from .node import Node, map_children
from .stmt import Store

_FOLD: dict[str, Callable[[Expr, Expr], Expr]] = {
    "+": add, "-": sub, "*": mul, "//": floordiv, "%": mod,
}  # fmt: skip


def rewrite(node: Any, change: Callable[[Any], Any]) -> Any:
    """Apply `change` to every node, children first. `change` returns the node itself to keep it.

    For a statement it may return a tuple of statements, or None to drop it. New nodes without a
    place take that of the node they replace.
    """

    def step(at: Any) -> Any:
        below = map_children(at, step)
        new = change(below)
        if isinstance(new, Node) and new.place is None and at.place is not None:
            return new.at(at.place)
        return new

    return step(node)


def refold(expr: Expr) -> Expr:
    """Integer arithmetic folded again after its arguments changed."""
    if not isinstance(expr, Arith) or len(expr.args) < 2:
        return expr
    if expr.op in ("<", "<=", ">", ">=", "==", "!="):
        return compare(expr.op, *expr.args)
    if not expr.args[0].dtype.is_integer or expr.op not in _FOLD:
        return expr
    fold = _FOLD[expr.op]
    made = expr.args[0]
    for each in expr.args[1:]:
        made = fold(made, each)
    return made


def substitute(node: Any, values: Mapping[str, Expr]) -> Any:
    """The node with variables replaced by name; integer arithmetic is folded again."""

    def change(at: Any) -> Any:
        if isinstance(at, Var):
            return values.get(at.name, at)
        return refold(at) if isinstance(at, Arith) else at

    return rewrite(node, change) if values else node


def rename_buffers(node: Any, buffers: Mapping[str, Buffer]) -> Any:
    """The node with buffers replaced by name, in loads, stores and regions (not allocations)."""

    def change(at: Any) -> Any:
        if isinstance(at, (Load, Region, Store)) and at.buffer.name in buffers:
            return at.but(buffer=buffers[at.buffer.name])
        return at

    return rewrite(node, change) if buffers else node
