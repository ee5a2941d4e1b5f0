"""Making a failing program short, by edits of its text: each keeps what fails and the oracle's approval.

The reference refuses a program without a meaning (a tile that nobody filled, a race, an index outside), so an
edit need not know the rules of the grammar: one that breaks them is undone. What is left is the program as a
person would have written it to show the fault.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.fuzz.program import Program
from tests.fuzz.writer import FLOATS, INTS

# Simpler values of a number, in order of preference. Nothing runs in a loop or grid of 0.
SMALLER = (1, 2, 4, 32)
PLAIN = {
    "schedule": {},
    "inputs": "uniform",
    "target": "cuda:sm_80",
    "aligned": True,
    "wide": False,
    "cpu": "cpu",
}
# Calls whose first arguments are no values that could stand for the call.
STRUCTURE = frozenset(
    {"Tensor", "StridedTensor", "Kernel", "Parallel", "serial", "unroll", "Pipelined", "dynamic", "copy"}
)
FRAME = (ast.Import, ast.Return, ast.FunctionDef)
# A change of a tree in place. Trees are made anew of the text for each, so nothing has to be undone.
Edit = Callable[[ast.Module], None]


def shrink(program: Program, fails: Callable[[Program], bool], tries: int = 400) -> Program:
    """A program that still fails and of which no single edit does, or the best after so many tries."""
    best = program
    for name, value in PLAIN.items():
        plainer = replace(best, **{name: value})
        if plainer != best and fails(plainer):
            best = plainer
    first, again = 0, True
    while again and tries > 0:
        again = False
        # After an edit that holds, the same number is the next one: what stood there is gone.
        for number, edit in list(enumerate(_edits(ast.parse(best.text))))[first:]:
            edited = _edited(best, edit)
            if edited == best:
                continue
            tries -= 1
            if fails(edited):
                best, first, again = edited, number, True
            if again or not tries:
                break
        else:
            # Once more from the start, unless the whole list has just been tried in vain.
            again, first = first > 0, 0
    return best


def _edited(program: Program, edit: Edit) -> Program:
    tree = ast.parse(program.text)
    edit(tree)
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    names |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    text = ast.unparse(tree).replace("\n@tilebench.jit", "\n\n@tilebench.jit", 1) + "\n"
    return replace(program, text=text, sizes={k: v for k, v in program.sizes.items() if k in names})


def _edits(tree: ast.Module) -> Iterator[Edit]:
    """Edits that make the program simpler, those that take most away first."""
    yield from _without_statements(tree)
    yield _without_parameters
    yield from _simpler_expressions(tree)
    yield from _smaller_numbers(tree)
    yield from _plainer_dtypes(tree)


def _node(tree: ast.Module, number: int) -> Any:
    """The node of that number in the order of `ast.walk`."""
    return next(node for k, node in enumerate(ast.walk(tree)) if k == number)


# -- statements


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


def _without_statements(tree: ast.Module) -> Iterator[Edit]:
    """Runs of statements left out, long ones first; then blocks replaced by what is in them."""
    bodies = list(_bodies(tree))
    for length in (8, 4, 2, 1):
        for number, body in enumerate(bodies):
            for first in range(0, len(body) - length + 1, length):
                if not any(isinstance(each, FRAME) for each in body[first : first + length]):
                    yield _changed_body(number, first, first + length, "")
    for number, body in enumerate(bodies):
        for at, statement in enumerate(body):
            if isinstance(statement, (ast.For, ast.If, ast.With)) and "T.Kernel(" not in ast.unparse(
                statement
            ):
                yield _changed_body(number, at, at + 1, "body")
                if getattr(statement, "orelse", None):
                    yield _changed_body(number, at, at + 1, "orelse")


def _changed_body(number: int, first: int, last: int, part: str) -> Edit:
    """An edit of one body: statements replaced by what `part` of the first holds, or by nothing."""

    def edit(tree: ast.Module) -> None:
        body = list(_bodies(tree))[number]
        body[first:last] = getattr(body[first], part) if part else []
        if not body:
            body.append(ast.Pass())

    return edit


def _without_parameters(tree: ast.Module) -> None:
    """Parameters that nothing names are left out."""
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            node.args = [each for each in node.args if each.arg in used]


# -- expressions


def _simpler_expressions(tree: ast.Module) -> Iterator[Edit]:
    """An expression replaced by one of its own parts or by 1; a keyword left out."""
    places = [
        (number, name, k)
        for number, node in enumerate(ast.walk(tree))
        for name, value in ast.iter_fields(node)
        for k, child in enumerate(value if isinstance(value, list) else [value])
        if isinstance(child, ast.expr)
    ]
    nodes = list(ast.walk(tree))
    for part in range(4):
        for number, name, k in places:
            if part < len(_parts(_child(nodes[number], name, k))):
                yield _replaced(number, name, k, part)
    for number, node in enumerate(nodes):
        if isinstance(node, ast.Call) and node.keywords:
            yield lambda again, number=number: _node(again, number).keywords.pop()


def _parts(node: Any) -> list[ast.expr]:
    """What could stand in the place of an expression."""
    match node:
        case ast.BinOp():
            return [node.left, node.right, ast.Constant(1)]
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.UnaryOp():
            return [node.operand]
        case ast.Compare():
            return [node.left]
        case ast.BoolOp():
            return node.values
        case ast.Subscript():
            return [ast.Constant(1)]
        case ast.Call(func=ast.Attribute(attr=word)) if word not in STRUCTURE:
            return node.args[:3]
        case _:
            return []


def _child(node: Any, name: str, k: int) -> Any:
    value = getattr(node, name)
    return value[k] if isinstance(value, list) else value


def _replaced(number: int, name: str, k: int, part: int) -> Edit:
    def edit(tree: ast.Module) -> None:
        node = _node(tree, number)
        simpler = _parts(_child(node, name, k))[part]
        value = getattr(node, name)
        if isinstance(value, list):
            value[k] = simpler
        else:
            setattr(node, name, simpler)

    return edit


# -- numbers and dtypes


def _smaller_numbers(tree: ast.Module) -> Iterator[Edit]:
    """A number replaced by a smaller one: everywhere at once, for shapes have to agree, then in one place."""
    nodes = list(ast.walk(tree))
    found = {n.value for n in nodes if isinstance(n, ast.Constant) and type(n.value) is int}
    for number in sorted(found, reverse=True):
        for smaller in [*(each for each in SMALLER if each < number), *([number - 1] if number > 2 else [])]:
            yield lambda again, old=number, new=smaller: _everywhere(again, old, new)
    for smaller in (0, *SMALLER):
        for number, node in enumerate(nodes):
            if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value > smaller:
                yield lambda again, number=number, new=smaller: setattr(_node(again, number), "value", new)


def _plainer_dtypes(tree: ast.Module) -> Iterator[Edit]:
    found = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    for dtype in sorted(found & {*FLOATS, *INTS, "bool"} - {"float32", "int32"}):
        for plainer in ("float32", "int32"):
            yield lambda again, old=dtype, new=plainer: _everywhere(again, old, new)


def _everywhere(tree: ast.Module, old: Any, new: Any) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is type(old) and node.value == old:
            node.value = new
