"""A part of a tile whose bounds are bounds of a thread's registers: a shorter loop, and no test.

`for r1 in T.unroll(32): if j >= 64 and j < 128: ...` with `j = tid % 4 * 2 + r1 * 8` is what a part of 64 of
256 columns is for a thread. All threads answer alike, since the 8 columns of one r1 lie on one side of each
bound: the loop is over `r1 = 8 .. 15` alone. Compilers behind keep such tests: 256 stores in place of 64.
"""

from __future__ import annotations

from ...ir import Arith, Const, Expr, If, Stmt, Var, all_of
from ...ir.facts import conjuncts
from ...layout import Fragment

# The values of a digit that a loop keeps: first and end, by the number of the digit.
Kept = dict[int, tuple[int, int]]


def kept_digits(
    mapping: Fragment, names: tuple[Var, ...], body: tuple[Stmt, ...]
) -> tuple[Kept, tuple[Stmt, ...]]:
    """What a condition around the whole body leaves of the value digits, and the body without what that says.

    Tests of one coordinate against a constant that is a multiple of the step of its outermost digit, where
    all other digits together stay below that step. Nothing is left out where a loop would be empty.
    """
    if len(body) != 1 or not isinstance(body[0], If) or body[0].orelse:
        return {}, body
    condition = body[0]
    kept: Kept = {}
    left: list[Expr] = []
    for test in conjuncts(condition.condition):
        found = _digit_of(test, mapping, names)
        if found is None:
            left.append(test)
            continue
        number, low, high = found
        first, end = kept.get(number, (0, mapping.value_digits[number].modulus))
        kept[number] = max(first, low), min(end, high)
    if not kept or any(end <= first for first, end in kept.values()):
        return {}, body
    return kept, (condition.but(condition=all_of(left)),) if left else condition.then


def _digit_of(test: Expr, mapping: Fragment, names: tuple[Var, ...]) -> tuple[int, int, int] | None:
    """The digit that a test is about, with the values (first, end) where it holds."""
    if not isinstance(test, Arith) or test.op not in ("<", ">=") or len(test.args) != 2:
        return None
    name, bound = test.args
    if name not in names or not isinstance(bound, Const):
        return None
    dim = names.index(name)  # type: ignore[arg-type]
    outer = _outermost(mapping, dim)
    if outer is None:
        return None
    digit = mapping.value_digits[outer]
    if bound.value % digit.step or not 0 <= bound.value <= digit.modulus * digit.step:
        return None
    at = bound.value // digit.step
    return (outer, 0, at) if test.op == "<" else (outer, at, digit.modulus)


def _outermost(mapping: Fragment, dim: int) -> int | None:
    """The number of the value digit whose step is more than all others of its dimension add up to."""
    own = [(digit.step, k) for k, digit in enumerate(mapping.value_digits) if digit.dim == dim and k > 0]
    if not own:
        return None
    step, number = max(own)
    others = [digit for k, digit in enumerate(mapping.value_digits) if k != number]
    rest = sum((d.modulus - 1) * d.step for d in (*mapping.thread_digits, *others) if d.dim == dim)
    return number if rest < step else None
