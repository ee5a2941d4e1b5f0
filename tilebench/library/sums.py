"""Sums and extremes of rows and of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .calls import call
from .definition import FLOATS, ArrayArgument, Effort, Operator, OptionArgument, Problem, size_of
from .kernels.reductions import column_reduce_kernel, row_reduce_kernel
from .near import Exact, near

KINDS = ("sum", "max", "min")


def exact_reduction(axis: int) -> Callable[[Any, Mapping[str, Any], Problem], Exact]:
    def exact(xp: Any, a: Mapping[str, Any], problem: Problem) -> Exact:
        kind = problem.options["kind"]
        if kind == "sum":
            return near(xp, a["x"]).sum(axis).exact()
        return Exact((xp.amax if kind == "max" else xp.amin)(a["x"], axis))

    return exact


def reduction_effort(result: str) -> Callable[[Problem], Effort]:
    def effort(problem: Problem) -> Effort:
        elements = problem.sizes["M"] * problem.sizes["N"]
        return Effort(elements, (elements + problem.sizes[result]) * size_of(problem))

    return effort


def folded(problem: Problem, parameters: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]]:
    """The whole array as one row, where the kernel takes several of its rows as one."""
    return {"x": (problem.sizes["M"] * problem.sizes["N"],)} if parameters.get("fold", 1) > 1 else {}


KIND = OptionArgument("kind", "sum", KINDS)


ROW_REDUCE = Operator(
    "row_reduce", row_reduce_kernel, (ArrayArgument("x", ("*M", "N"), FLOATS),), ArrayArgument("y", ("*M",)),
    exact_reduction(-1), reduction_effort("M"), (KIND,), symbolic=("M",),
)  # fmt: skip


COLUMN_REDUCE = Operator(
    "column_reduce", column_reduce_kernel, (ArrayArgument("x", ("M", "N"), FLOATS),),
    ArrayArgument("y", ("N",)), exact_reduction(0), reduction_effort("N"), (KIND,), symbolic=("M",),
    seen=folded,
)  # fmt: skip


def row_reduce(x: Any, kind: str = "sum", *, out: Any = None) -> Any:
    """The sum, "max" or "min" of x along the last axis.

    x: (..., N) of float16, bfloat16 or float32; the result (...) has the dtype of x. Sums are float32 and
    rounded once. A NaN in a row makes its result NaN.
    """
    return call(ROW_REDUCE, x, out=out, kind=kind)


def column_reduce(x: Any, kind: str = "sum", *, out: Any = None) -> Any:
    """The sum, "max" or "min" of x (M, N) along the first axis: (N,). As `row_reduce` otherwise."""
    return call(COLUMN_REDUCE, x, out=out, kind=kind)
