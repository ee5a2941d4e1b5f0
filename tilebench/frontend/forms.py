"""Which of the two forms a jit function has, from its syntax alone."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from .source import source_of

Form = Literal["lazy", "eager"]


def form_of(function: Callable[..., Any]) -> Form:
    """`lazy`: a plain Python function that returns a `@T.prim_func`; `eager`: the kernel itself.

    Nothing is called to find out.
    """
    return form_of_node(source_of(function).node)


def form_of_node(node: ast.FunctionDef) -> Form:
    """The form of a function's syntax tree.

    One that defines a `@T.prim_func` is lazy. Else `with T.Kernel`, `T.const`, the bare annotation of a
    parameter or one of `T.Tensor` in the signature says that the body is the kernel, also where others of
    them are missing (a macro may open the kernel).
    """
    own = list(_own_statements(node))
    if any(isinstance(inner, ast.FunctionDef) and _is_prim_func(inner) for inner in own):
        return "lazy"
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    eager = {each.arg for each in arguments}.intersection(bare_names(node.body))
    eager = eager or any(is_array(each.annotation) for each in arguments)
    eager = eager or any(_is_word(inner) for inner in own)
    return "eager" if eager else "lazy"


def _own_statements(node: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function's body, without what stands inside other functions and classes."""
    stack: list[ast.AST] = list(node.body)
    while stack:
        inner = stack.pop()
        yield inner
        if not isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(inner))


def _is_prim_func(node: ast.FunctionDef) -> bool:
    marks = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return any(called_name(mark) == "prim_func" for mark in marks)


def _is_word(node: ast.AST) -> bool:
    """Whether a node opens a kernel or names constants."""
    if isinstance(node, ast.With):
        opened = [item.context_expr for item in node.items]
        return any(_calls(call, word) for call in opened for word in ("Kernel", "ClusterKernel"))
    return _calls(node, "const")


def _calls(node: ast.AST, word: str) -> bool:
    return isinstance(node, ast.Call) and called_name(node.func) == word


def called_name(function: ast.expr | None) -> str:
    """The last name of what is called: `Kernel` of `T.Kernel`; empty for anything else."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def is_array(annotation: ast.expr | None) -> bool:
    """Whether an annotation in a signature is `T.Tensor(...)` or its kin."""
    head = annotation.func if isinstance(annotation, ast.Call) else getattr(annotation, "value", None)
    named = called_name(head) in ("Tensor", "StridedTensor")
    return named and isinstance(annotation, (ast.Call, ast.Subscript))


def is_bare(statement: ast.stmt) -> bool:
    """Whether a statement is `A: T.Tensor(...)`, without a value."""
    return (
        isinstance(statement, ast.AnnAssign)
        and statement.value is None
        and isinstance(statement.target, ast.Name)
    )


def bare_names(body: Iterable[ast.stmt]) -> list[str]:
    """The names that a body annotates without a value."""
    return [statement.target.id for statement in body if is_bare(statement)]  # type: ignore[attr-defined]
