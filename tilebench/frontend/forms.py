"""Which of the two forms a jit function has, from its syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Literal

from .source import source_of

Form = Literal["lazy", "eager"]


def form_of(function: Callable[..., Any]) -> Form:
    """`lazy`: a plain Python function that returns a `@T.prim_func`; `eager`: the kernel itself.

    Eager is what opens `with T.Kernel(...)` in its own body. Nothing is called to find out.
    """
    return form_of_node(source_of(function).node)


def form_of_node(node: ast.FunctionDef) -> Form:
    """The form of a function's syntax tree."""
    stack: list[ast.AST] = list(node.body)
    while stack:
        inner = stack.pop()
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(inner, ast.With) and any(_opens_kernel(item.context_expr) for item in inner.items):
            return "eager"
        stack.extend(ast.iter_child_nodes(inner))
    return "lazy"


def _opens_kernel(call: ast.expr) -> bool:
    if not isinstance(call, ast.Call):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name == "Kernel"
