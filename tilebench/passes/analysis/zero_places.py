"""Which fragments are zero at the places behind and in front of their rows, so that sums need no mask.

Reads of memory give zero there. What is made of zeros alone, by products with numbers, sums and casts, is
zero again; everything else is not known to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from ...ir import Arith, Buffer, Call, Cast, Const, Expr, If, Let, Load, Stmt, Store, Var
from ...language.copy import Copy, Fill
from ...language.structure import Parallel
from .accesses import MEMORY
from .body_accesses import BodyAccesses
from .sites import Site


def zero_places(sites: Sequence[Site], names: Iterable[str]) -> set[str]:
    """Those of the fragments `names`, filled by these statements, that are zero outside of their rows."""
    zero = set(names)
    while True:
        other = {name for site in sites for name in _filled_otherwise(site, zero)} & zero
        if not other:
            return zero
        zero -= other


def _filled_otherwise(site: Site, zero: set[str]) -> set[str]:
    """Fragments that a statement may fill with something else, where those of `zero` are zero."""
    node: Any = site.node
    match node:
        case Fill():
            return set() if _is_zero(node.value, zero, Var(""), {}) else {node.dst.buffer.name}
        case Copy():
            return set() if _is_zero_buffer(node.src.buffer, zero) else {node.dst.buffer.name}
        case Parallel():
            touched = BodyAccesses.of(node.body)
            if touched.outside or touched.stores.intersection(MEMORY):
                # Nothing is done there at all.
                return {touch.buffer.name for touch in site.touches if touch.written}
            return _stored_otherwise(node.body, zero, node.vars[-1], {})
        case _:
            return {touch.buffer.name for touch in site.touches if touch.written}


def _is_zero_buffer(buffer: Buffer, zero: set[str]) -> bool:
    return buffer.scope in MEMORY or buffer.name in zero


def _stored_otherwise(body: Sequence[Stmt], zero: set[str], last: Var, named: Mapping[str, bool]) -> set[str]:
    found: set[str] = set()
    known = dict(named)
    for statement in body:
        match statement:
            case Let():
                known[statement.var.name] = _is_zero(statement.value, zero, last, known)
            case Store():
                if not _is_zero(statement.value, zero, last, known):
                    found.add(statement.buffer.name)
            case If():
                for part in (statement.then, statement.orelse):
                    found |= _stored_otherwise(part, zero, last, known)
            case _:
                found |= zero
    return found


def _is_zero(value: Expr, zero: set[str], last: Var, named: Mapping[str, bool]) -> bool:
    """Whether a value is zero where all that is read of memory and of these fragments is."""

    def of(expr: Expr) -> bool:
        return _is_zero(expr, zero, last, named)

    match value:
        case Const():
            return value.value == 0
        case Var():
            return named.get(value.name, False)
        case Load():
            if value.buffer.scope in MEMORY:
                return True
            return value.buffer.name in zero and value.index[-1] == last
        case Cast():
            return of(value.value)
        case Arith() if value.op == "*":
            # Zero times infinity is none.
            return any(map(of, value.args)) and all(of(arg) or _is_finite(arg) for arg in value.args)
        case Arith() if value.op in ("+", "-"):
            return all(map(of, value.args))
        case Call() if value.word == "if_then_else":
            return all(map(of, value.args[1:]))
        case Call() if value.word in ("abs", "max", "min"):
            return all(map(of, value.args))
        case _:
            return False


def _is_finite(value: Expr) -> bool:
    return isinstance(value, Const) and isfinite(value.value)
