"""Drawn schedules of every operator: right in the simulator, or refused at a line with a reason.

`python -m tests.library.drawn matmul 0 200` runs those of 200 seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from tests.library.cases import (
    ALONE,
    BYTES,
    EIGHT_BIT_FLOATS,
    FLOATS,
    RESULTS,
    LibraryCase,
    batched,
    grouped,
    of_bytes,
    product,
    rows,
    scaled,
    scores,
    sizes_of,
    wrong,
)
from tests.simulated import run_threaded
from tilebench.errors import InternalError, TileError
from tilebench.ir.dtypes import dtype_of
from tilebench.ir.sizes import for_sizes
from tilebench.library.calls import view_of

TARGETS = ("cuda:sm_75", "cuda:sm_80", "cuda:sm_89", "cuda:sm_90a")
THREADS = (32, 64, 128, 256)
Choices = Mapping[str, Sequence[Any]]
OF_ROWS: Choices = {"block_M": (1, 2, 4, 8), "block_N": (16, 64, 96, 256), "threads": THREADS}
IN_TURNS: Choices = {**OF_ROWS, "turns": (1, 2, 3), "num_stages": (0, 0, 2, 3)}
PRODUCT: Choices = {
    "block_M": (16, 32, 48, 64), "block_N": (8, 16, 32, 40, 64), "block_K": (8, 16, 24, 32),
    "num_stages": (0, 1, 2, 3, 4), "threads": THREADS, "panels": (0, 2),
}  # fmt: skip
OF_BYTES: Choices = {**PRODUCT, "block_K": (16, 32, 64)}
# What the schedule files choose, by operator.
CHOICES: Mapping[str, Choices] = {
    "add": {"block": (32, 96, 256, 2048), "threads": THREADS},
    "bias_gelu": {**OF_ROWS, "flat": (0, 1)},
    **dict.fromkeys(("softmax", "rms_norm", "layer_norm", "row_reduce"), IN_TURNS),
    "column_reduce": {**OF_ROWS, "splits": (1, 2, 3, 8), "num_stages": (0, 0, 2, 3), "fold": (1, 1, 4, 8)},
    "transpose": {
        "block_M": (16, 32, 64), "block_N": (16, 32, 128), "threads": THREADS, "side": (0, 0, 4, 8),
    },
    "gemv": {"block_M": (1, 2, 4, 16), "block_K": (32, 100, 256), "threads": THREADS},
    "matmul": PRODUCT,
    "batched_matmul": PRODUCT,
    "grouped_matmul": PRODUCT,
    **dict.fromkeys(("scaled_matmul", "int_matmul"), OF_BYTES),
    "attention": {
        "block_M": (16, 32, 64), "block_N": (16, 32, 64), "num_stages": (0, 1, 2, 3),
        "threads": (32, 64, 128), "held": (False, True),
    },
}  # fmt: skip


def drawn_case(name: str, random: Random) -> LibraryCase:
    """A small problem of an operator."""
    dtype = random.choice(FLOATS)
    m, n = random.choice((1, 3, 9, 33)), random.choice((1, 8, 31, 64, 100, 257))
    if name == "add":
        return LibraryCase("add", {"n": m * n}, dtype)
    if name == "gemv":
        return LibraryCase("gemv", {"M": m, "K": n}, dtype)
    if name == "matmul":
        orders = {"a_order": random.randrange(2), "b_order": random.randrange(2)}
        activation = random.choice(("none", "none", "relu", "gelu", "gelu_tanh"))
        absent = random.choice((ALONE, ("bias",), ("residual",), ()))
        sizes = random.choice((16, 33, 70)), random.choice((8, 40, 63)), random.choice((1, 16, 31, 100))
        return product(dtype, *sizes, absent, activation=activation, **orders)
    if name in ("batched_matmul", "grouped_matmul"):
        sizes = random.choice((16, 33, 70)), random.choice((8, 40, 63)), random.choice((1, 16, 31, 100))
        order, count = random.randrange(2), random.choice((1, 3))
        if name == "grouped_matmul":
            return grouped(dtype, count, *sizes, b_order=order)
        return batched(dtype, count, *sizes, a_order=random.randrange(2), b_order=order)
    if name in ("scaled_matmul", "int_matmul"):
        return _drawn_bytes(name, random)
    if name == "attention":
        heads = random.choice(((1, 1), (2, 1)))
        lengths = random.choice((5, 33, 64)), random.choice((7, 64, 70))
        turned = {f"{array}_order": random.randrange(2) for array in ("k", "v")}
        turned |= dict.fromkeys(("q_order", "o_order"), random.randrange(2))
        turned |= {side: random.choice((-1, -1, 0, 9, 40)) for side in ("left", "right")}
        return scores(dtype, heads, *lengths, random.choice((16, 64)), causal=random.random() < 0.5, **turned)
    options: dict[str, Any] = {}
    if name.endswith("_reduce"):
        options = {"kind": random.choice(("sum", "max", "min"))}
    absent = ("weight",) if name == "rms_norm" and random.random() < 0.3 else ()
    return rows(name, dtype, m, n, absent, **options)


def _drawn_bytes(name: str, random: Random) -> LibraryCase:
    """A small product of 8-bit numbers."""
    sizes = random.choice((16, 33, 70)), random.choice((8, 40, 63)), random.choice((1, 16, 31, 100, 160))
    orders = {"a_order": random.randrange(2), "b_order": random.randrange(2)}
    kinds = random.choice((BYTES, EIGHT_BIT_FLOATS)) if name == "scaled_matmul" else BYTES
    dtype, other = random.choice(kinds), random.choice(kinds)
    if name == "int_matmul":
        return of_bytes(dtype, *sizes, other, **orders)
    absent = random.choice(((), (), ("scale_a",), ("scale_a", "scale_b")))
    options = {"out_dtype": random.choice(RESULTS), "fast_accum": random.random() < 0.5}
    return scaled(dtype, *sizes, other, absent, random.random() < 0.5, **orders, **options)


def found_wrong(case: LibraryCase, choices: Mapping[str, Any], target: str) -> str:
    """What is wrong about the kernel; empty where it is right, or refused as a kernel may be."""
    problem, operator = case.problem, case.operator
    sizes = {dim: None if dim in operator.symbolic else size for dim, size in problem.sizes.items()}
    values = {**sizes, "dtype": problem.dtype, **problem.options, **operator.fixed, **choices}
    known = operator.kernel.signature.parameters
    try:
        function = operator.kernel.using(target=target)
        kernel = function.kernel((), {k: v for k, v in values.items() if k in known})
        kernel.stage("cuda")
    except InternalError:
        raise
    except TileError as error:
        return "" if error.place is not None else f"refused without a place: {error.message}"
    arrays, out = case.arrays(), case.result()
    seen = {**arrays, operator.result.name: out}
    shapes = operator.seen(problem, kernel.parameters)
    views = {a.name: view_of(a, problem, None, shapes)(seen[a.name]) for a in case.viewed}
    for record in kernel.arguments:
        if record.name not in views:
            views[record.name] = np.zeros(record.extents, dtype_of(record.dtype).numpy)
    threaded = for_sizes(kernel.compilation.functions["threaded"], sizes_of(kernel, views))
    run_threaded(threaded, views, warp=32)
    return wrong(out, case.exact(arrays))


def campaign(name: str, first: int, count: int) -> list[str]:
    """The drawn schedules that went wrong, each with its seed."""
    found: list[str] = []
    for seed in range(first, first + count):
        random = Random(f"{name} {seed}")
        case, target = drawn_case(name, random), random.choice(TARGETS)
        choices = {choice: random.choice(values) for choice, values in CHOICES[name].items()}
        try:
            what = found_wrong(case, choices, target)
        except Exception as error:  # a fault, or the simulator's refusal: the campaign goes on
            what = f"{type(error).__name__}: {error}"
        if what:
            found.append(f"{seed} {case} {target} {choices}: {what}")
    return found


if __name__ == "__main__":
    import sys

    for line in campaign(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])):
        print(line, flush=True)
