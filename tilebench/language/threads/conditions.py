"""For which threads of a block a condition on their numbers holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir import Arith, Call, Cast, Const, Expr, Load, Var, walk
from ...ir.arith import evaluate
from ...ir.expr import COMPARE, LOGIC

_WARP = 32
# Values for what is the same in all threads: a condition that is one of warps is so for each of them.
_SAMPLES = (0, 1, 5, 37)


def holds(test: Expr, values: Mapping[str, Any]) -> Any:
    """Where a condition on integers holds, as an array of bools; None where it is not one of integers."""
    import numpy as np

    if isinstance(test, Arith) and test.op in LOGIC:
        parts = [holds(each, values) for each in test.args]
        if any(part is None for part in parts):
            return None
        if test.op == "not":
            return np.logical_not(parts[0])
        return (
            np.all(np.broadcast_arrays(*parts), axis=0)
            if test.op == "and"
            else np.any(np.broadcast_arrays(*parts), axis=0)
        )
    if (
        isinstance(test, Arith)
        and test.op in COMPARE
        and not any(isinstance(part, (Load, Call, Cast)) for part in walk(test))
    ):
        a, b = (evaluate(each, values) for each in test.args)
        return np.asarray(
            {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[test.op]
        )
    return np.asarray(test.value) if isinstance(test, Const) else None


def _numbers(extents: Sequence[int], coordinates: Sequence[Var]) -> dict[str, Any]:
    import numpy as np

    grid = np.indices(tuple(extents)).reshape(len(extents), -1)
    return {var.name: each for var, each in zip(coordinates, grid, strict=True)}


def range_of(condition: Expr, extents: Sequence[int], coordinates: Sequence[Var]) -> tuple[int, int] | None:
    """The first thread for which a condition holds, and the one behind the last; None for no one range."""
    import numpy as np

    names = {part.name for part in walk(condition) if isinstance(part, Var)}
    numbers = _numbers(extents, coordinates)
    found = holds(condition, numbers) if names <= numbers.keys() else None
    if found is None:
        return None
    where: Any = np.flatnonzero(np.broadcast_to(found, (int(np.prod(tuple(extents))),)))
    if not len(where) or where[-1] - where[0] + 1 != len(where):
        return None
    return int(where[0]), int(where[-1]) + 1


def how_many(condition: Expr, extents: Sequence[int], coordinates: Sequence[Var]) -> int | None:
    """For how many threads a condition on their numbers holds; None where something else decides it."""
    import numpy as np

    names = {part.name for part in walk(condition) if isinstance(part, Var)}
    numbers = _numbers(extents, coordinates)
    found = holds(condition, numbers) if names <= numbers.keys() else None
    return None if found is None else int(np.broadcast_to(found, (int(np.prod(tuple(extents))),)).sum())


def same_in_warps(condition: Expr, extents: Sequence[int], coordinates: Sequence[Var]) -> bool:
    """Whether a condition holds for all threads of each warp, or for none."""
    import numpy as np

    numbers = _numbers(extents, coordinates)
    count = int(np.prod(tuple(extents)))
    others = sorted({part.name for part in walk(condition) if isinstance(part, Var)} - numbers.keys())
    for sample in _SAMPLES if others else _SAMPLES[:1]:
        found = holds(condition, {**numbers, **{name: sample + k for k, name in enumerate(others)}})
        if found is None or count % _WARP:
            return False
        rows: Any = np.broadcast_to(found, (count,)).reshape(-1, _WARP)
        if not bool(np.all(rows == rows[:, :1])):
            return False
    return True
