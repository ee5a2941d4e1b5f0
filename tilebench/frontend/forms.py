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
        at = stack.pop()
        if isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(at, ast.With) and any(_opens_kernel(item.context_expr) for item in at.items):
            return "eager"
        stack.extend(ast.iter_child_nodes(at))
    return "lazy"


def _opens_kernel(at: ast.expr) -> bool:
    if not isinstance(at, ast.Call):
        return False
    name = at.func.attr if isinstance(at.func, ast.Attribute) else getattr(at.func, "id", "")
    return name == "Kernel"
