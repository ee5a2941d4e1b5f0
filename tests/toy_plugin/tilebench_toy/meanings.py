"""Step 4, its first half: what the words and functions of `words.py` do in the simulator.

A meaning is called with all threads of some blocks at once. `lanes.read` gives an array (elements,
threads) and `lanes.write` takes one; both check bounds, races, and registers that nobody wrote.
`mask` says which threads take part (None: all).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilebench.simulator.refusal import refuse

from .words import ToyAxpy, ToyCommit, ToyCopyAhead, ToyMma, ToyWait, ToyWarpSum


def ramp(x: Any) -> Any:
    """`T.toy_ramp` of arrays."""
    return np.clip(x, np.float32(0), np.float32(1))


FUNCTIONS = {"toy_ramp": ramp}


def axpy(lanes: Any, statement: ToyAxpy, mask: Any) -> None:
    """Each thread's own y += a * x."""
    y, x = lanes.read(statement.y, mask), lanes.read(statement.x, mask)
    lanes.write(statement.y, y + lanes.value(statement.a, mask) * x, mask)


def warp_sum(lanes: Any, statement: ToyWarpSum, mask: Any) -> None:
    """The sum over a warp, for each of its threads; all of them have to be there."""
    if lanes.threads % lanes.warp or lanes.whole_warps(mask) is None:
        refuse("not all threads of a warp take part in T.toy_warp_sum", statement)
    value = lanes.read(statement.value, mask)
    warps = value.reshape(-1, lanes.warp)
    sums = warps.sum(axis=1, keepdims=True).repeat(lanes.warp, axis=1)
    lanes.write(statement.value, sums.reshape(value.shape), mask)


def mma(lanes: Any, statement: ToyMma, mask: Any) -> None:
    """The product of a warp; all of its threads have to be there."""
    if lanes.threads % lanes.warp or lanes.whole_warps(mask) is None:
        refuse("not all threads of a warp take part in T.toy_mma", statement)
    # (registers, threads) to (warps, rows, columns): a row is two threads of two registers.
    c, a, b = (
        lanes.read(region, mask).T.reshape(-1, 4, 4) for region in (statement.c, statement.a, statement.b)
    )
    lanes.write(statement.c, (c + a @ b).astype(np.float32).reshape(-1, 2).T, mask)


def copy_ahead(lanes: Any, statement: ToyCopyAhead, mask: Any) -> None:
    """A write that is in flight until its group has been waited for."""

    def perform() -> None:
        lanes.write(statement.dst, lanes.read(statement.src, mask), mask)

    lanes.issue(statement.token, statement, mask, perform)


def commit(lanes: Any, statement: ToyCommit, mask: Any) -> None:
    """The threads' groups are closed."""
    lanes.commit(statement.token, mask)


def wait(lanes: Any, statement: ToyWait, mask: Any) -> None:
    """The threads wait for their own groups."""
    lanes.wait(statement.token, statement.pending, statement, mask)
