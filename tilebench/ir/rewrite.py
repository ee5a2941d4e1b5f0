"""Changing trees: bottom-up rewriting and substitution. Unchanged subtrees stay shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from .expr import COMPARE, Arith, Buffer, Expr, Load, Region, Var, add, compare, floordiv, mod, mul, sub
from .node import Node, map_children

_FOLD: dict[str, Callable[[Expr, Expr], Expr]] = {
    "+": add, "-": sub, "*": mul, "//": floordiv, "%": mod,
}  # fmt: skip


def rewrite(node: Any, change: Callable[[Any], Any]) -> Any:
    """Apply `change` to every node, children first. `change` returns the node itself to keep it.

    For a statement it may return a tuple of statements, or None to drop it. New nodes without a
    place take that of the node they replace.
    """

    def step(old: Any) -> Any:
        below = map_children(old, step)
        new = change(below)
        if isinstance(new, Node) and new.place is None and old.place is not None:
            return new.at(old.place)
        return new

    return step(node)


def refold(expr: Expr) -> Expr:
    """Integer arithmetic folded again after its arguments changed."""
    return folded(expr, expr.args) if isinstance(expr, Arith) else expr


def folded(expr: Arith, args: tuple[Expr, ...]) -> Expr:
    """An operator on other arguments, integer arithmetic folded."""
    op = expr.op
    if len(args) > 1:
        if op in COMPARE:
            return compare(op, *args)
        if op in _FOLD and args[0].dtype.is_integer:
            return add(*args) if op == "+" else reduce(_FOLD[op], args)
    return expr if args is expr.args else Arith(op, args, place=expr.place)


def substitute(node: Any, values: Mapping[str, Expr]) -> Any:
    """The node with variables replaced by name; integer arithmetic is folded again."""

    def change(old: Any) -> Any:
        if isinstance(old, Var):
            return values.get(old.name, old)
        return refold(old) if isinstance(old, Arith) else old

    return rewrite(node, change) if values else node


def rename_buffers(node: Any, buffers: Mapping[str, Buffer]) -> Any:
    """The node with buffers replaced by name, wherever one is named (allocations are not)."""

    def change(old: Any) -> Any:
        if isinstance(old, (Load, Region)):
            return old.but(buffer=buffers[old.buffer.name]) if old.buffer.name in buffers else old
        for mark in old.effect_marks:
            named = getattr(old, mark.name)
            if isinstance(named, Buffer) and named.name in buffers:
                old = old.but(**{mark.name: buffers[named.name]})
        return old

    return rewrite(node, change) if buffers else node
