"""Trees and the buffers and variables they mention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....ir import (
    AllocStmt,
    Arith,
    Buffer,
    Call,
    Expr,
    Load,
    Node,
    Stmt,
    Store,
    Var,
    children,
    map_children,
    walk,
)
from ..llvm import bytes_of
from ..numbers.convert import COMPUTE


def reads_var(expr: Node, names: set[str]) -> bool:
    """Whether an expression mentions one of the variables."""
    return any(isinstance(node, Var) and node.name in names for node in walk(expr))


def loads_memory(expr: Node) -> bool:
    """Whether an expression reads an element of a buffer."""
    return any(isinstance(node, Load) for node in walk(expr))


def swap_buffers(node: Any, buffers: Mapping[str, Buffer]) -> Any:
    """The node with every access to a buffer of that name going to the one given for it."""

    def step(old: Any) -> Any:
        new = map_children(old, step)
        buffer = getattr(new, "buffer", None)
        if isinstance(buffer, Buffer) and buffer.name in buffers and not isinstance(new, AllocStmt):
            return new.but(buffer=buffers[buffer.name])
        return new

    return step(node)


def _is_lazy(node: Call | Arith) -> bool:
    """Whether arguments after the first are looked at only under a condition."""
    return node.word == "if_then_else" if isinstance(node, Call) else node.op in ("and", "or")


def sure_loads(expr: Expr) -> list[Load]:
    """The loads of an expression that no condition guards."""
    loads: list[Load] = []
    stack: list[Node] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Load):
            loads.append(node)
        elif isinstance(node, (Call, Arith)) and _is_lazy(node):
            stack.append(node.args[0])
        else:
            stack.extend(children(node))
    return loads


def value_bytes(nodes: tuple[Stmt, ...] | list[Stmt]) -> int:
    """The widest element that the statements compute with; index arithmetic is left out."""
    widest = 1
    stack: list[Node] = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, Load):
            widest = max(widest, _computed_bytes(node.dtype.name))
            continue
        if isinstance(node, Store):
            widest = max(widest, _computed_bytes(node.buffer.dtype.name))
            stack.append(node.value)
            continue
        if isinstance(node, Arith) and node.dtype.kind == "bool" and node.args[0].dtype.name == "int32":
            stack.extend(each for each in node.args if loads_memory(each))
            continue
        if isinstance(node, Expr) and not isinstance(node, Var):
            widest = max(widest, _computed_bytes(node.dtype.name))
        stack.extend(children(node))
    return widest


def _computed_bytes(dtype: str) -> int:
    return bytes_of(COMPUTE[dtype])
