"""Running a kernel with error bounds: what a correct target may return, element by element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ir import Function
from ..language.structure import KernelLaunch
from ..passes.analysis.reads_writes import reads_and_writes
from .numbers import BoundedNumbers
from .orders import orders_of
from .run import Arrays, execute


@dataclass(frozen=True)
class Bounded:
    """One output: `value` in float64 (integers too; int64 keeps its dtype) and its absolute `error`.

    `known` marks the elements that were worked out, None for all. `stored` marks those that some store
    reached, in doubt too; None for an array that the kernel also reads, which keeps what it held. `either`
    marks those that are another in another order of atomics: what is right is that all of them together are
    these values, in whichever order (None: there are no such elements). `blocks` has the number of the block,
    from 1, that stored each element last (0: none).

    An error of infinity says that any value is right there: the result depends on rounding without
    limit (an overflow that may or may not happen, a division by what may be zero).
    """

    value: NDArray[Any]
    error: NDArray[np.float64]
    known: NDArray[np.bool_] | None = None
    stored: NDArray[np.bool_] | None = None
    either: NDArray[np.bool_] | None = None
    blocks: NDArray[np.int32] | None = None


def sample(function: Function, blocks: int | None, seed: int = 0) -> frozenset[int] | None:
    """Numbers of the blocks to run: the first, the last and random ones, `blocks` in all.

    None, which is all of them, where there are no more, and where blocks may need each other: several
    launches, or a parameter that is read and written.
    """
    total = apart(function)
    if blocks is None or total <= blocks:
        return None
    picked = np.random.default_rng(seed).permutation(np.arange(1, max(total - 1, 1)))
    return frozenset([0, total - 1, *(int(each) for each in picked[: max(blocks - 2, 0)])])


def apart(function: Function) -> int:
    """How many blocks a function has that can be run one without another; 0 where they need each other."""
    launches = [each for each in function.body if isinstance(each, KernelLaunch)]
    reads, writes = reads_and_writes(function)
    if len(function.body) != 1 or len(launches) != 1 or not set(reads).isdisjoint(writes):
        return 0
    return math.prod(launches[0].blocks)


def run_bounded(
    function: Function, arrays: Arrays, *, blocks: int | None = None, seed: int = 0,
    only: frozenset[int] | None = None,
) -> dict[str, Bounded]:  # fmt: skip
    """Run a function with a running error bound beside every value; arguments as for `run_reference`.

    `value` is the result without the roundings of the declared dtypes, and every target that rounds
    each operation once (in the declared dtype or a wider one), sums in any order and meets the
    accuracy of `language.meaning.SCALARS` is within `error` of it. Inputs count as exact. With
    `blocks` only that many blocks are run (see `sample`), for results too large to redo whole; `only` are
    the numbers of those to run. The
    formulas are in `language.meanings` and `language.tracing.operators`, after
    Higham, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4.
    """
    only = only if only is not None else sample(function, blocks, seed)
    reads, written = reads_and_writes(function)
    shapes = {each.name: each.extents for each in function.arrays}
    stored = {name: np.zeros(shapes[name], np.bool_) for name in written if name not in reads}
    by = {name: np.zeros(shapes[name], np.int32) for name in written}
    runs = [
        execute(function, arrays, BoundedNumbers(), only, stored, order, by) for order in orders_of(function)
    ]
    # Where only some blocks run, what they store is what is known.
    known = {} if only is None else stored
    return {
        name: of_orders(
            [run[name] for run in runs], Bounded(
                runs[0][name].value, runs[0][name].error, known.get(name), stored.get(name), blocks=by[name]
            )
        )
        for name in written
    }  # fmt: skip


def of_orders(runs: Sequence[Any], first: Bounded) -> Bounded:
    """What is right where runs in several orders may differ.

    Where the elements that differ are the same values in each run, they are so in any order of atomics. Where
    they are not, any value is right: the kernel leaves them open.
    """
    either = np.zeros(first.value.shape, np.bool_)
    for run in runs[1:]:
        either |= _differ(first.value, first.error, run.value, run.error)
    if not either.any():
        return first
    lists = [_ascending(run.value[either], run.error[either]) for run in runs]
    if not any(_differ(*lists[0], *other).any() for other in lists[1:]):
        return replace(first, either=either)
    return replace(first, error=np.where(either, np.inf, first.error))


def _ascending(value: Any, error: Any) -> tuple[Any, Any]:
    order: Any = np.argsort(value)
    return value[order], error[order]


def _differ(a: Any, a_error: Any, b: Any, b_error: Any) -> Any:
    with np.errstate(invalid="ignore"):
        apart = np.abs(a.astype(np.float64) - b.astype(np.float64)) > a_error + b_error
        same = (a == b) | ((a != a) & (b != b))
    # Integers are compared as such, and a NaN is in no distance.
    exact: Any = (a_error + b_error == 0) & ~same
    return (apart & ~same) | exact | ((a != a) != (b != b))
