"""Every operator on the reference, the CPU and the simulator against float64, and as code for four cards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.library.cases import (
    ALONE,
    CASES,
    FLOATS,
    LibraryCase,
    batched,
    grouped,
    of_bytes,
    product,
    scaled,
    scores,
    sizes_of,
    wrong,
)
from tests.simulated import run_threaded
from tilebench.ir.dtypes import dtype_of
from tilebench.ir.sizes import for_sizes
from tilebench.library import kernel_for
from tilebench.library.calls import call, view_of
from tilebench.library.schedules import schedule_file
from tilebench.reference import run_reference
from tilebench.schedule import Schedule
from tilebench.schedule.files import Rule

CASE = [pytest.param(case, id=str(case)) for case in CASES]
CARDS = ("sm_75", "sm_80", "sm_89", "sm_90a")
# Of each operator one problem for each card, with all that it can do.
ROWS = ("bias_gelu", "softmax", "rms_norm", "layer_norm", "row_reduce", "column_reduce", "transpose")
HEADS = {"B": 4, "H": 32, "SQ": 4096, "D": 64, "KV": 8, "SK": 4096}
WINDOWS = ({"causal": True, "left": 1000}, {"left": 500, "right": 500})
LARGE = (
    LibraryCase("add", {"n": 1 << 24}),
    *(LibraryCase(name, {"M": 4096, "N": n}) for name in ROWS for n in (1003, 8192)),
    *(LibraryCase(name, {"M": 4096, "N": 32768}) for name in ("softmax", "layer_norm")),
    LibraryCase("softmax", {"M": 4096, "N": 100_000}),
    LibraryCase("layer_norm", {"M": 4096, "N": 100_000}),
    LibraryCase("rms_norm", {"M": 4096, "N": 100_000}, "float32"),
    LibraryCase("gemv", {"M": 8192, "K": 8192}),
    *(product(dtype, 4096, 4096, 4096, ALONE, b_order=1) for dtype in FLOATS),
    *(product("float16", m, 8192, 8192, ALONE, b_order=1) for m in (16, 128)),
    *(product("bfloat16", 1000, n, 1536, (), activation="gelu") for n in (1000, 1160, 2000)),
    *(scaled("float8_e4m3fn", 4096, 4096, 4096, each=each, fast_accum=not each) for each in (False, True)),
    scaled("int8", 4096, 4096, 4096, out_dtype="float16"),
    of_bytes("int8", 4096, 4096, 4096),
    batched("float16", 16, 2048, 2048, 2048, b_order=1),
    grouped("bfloat16", 8, 8192, 4096, 4096, b_order=1),
    product("float16", 1000, 1001, 1003, (), activation="gelu"),
    *(
        LibraryCase("attention", {**HEADS, "D": d}, options=seen)
        for d in (64, 96, 128, 256) for seen in (*({"causal": c} for c in (False, True)), *WINDOWS)
    ),
)  # fmt: skip
LARGE_CASE = [pytest.param(case, arch, id=f"{case}-{arch}") for case in LARGE for arch in CARDS]


@pytest.mark.parametrize("case", CASE)
def test_cpu(case: LibraryCase) -> None:
    """Called as a program does it; the result goes into poison."""
    arrays = case.arrays()
    before = {name: array.copy() for name, array in arrays.items()}
    out = case.result()
    given = [arrays.get(argument.name) for argument in case.operator.arguments]
    options = {option.name: case.problem.options[option.name] for option in case.operator.options}
    assert call(case.operator, *given, out=out, **options) is out
    assert wrong(out, case.exact(arrays)) == ""
    assert all(before[name].tobytes() == array.tobytes() for name, array in arrays.items())
    again = call(case.operator, *given, **options)
    assert again.tobytes() == out.tobytes()


def on_kernel(case: LibraryCase, target: str, run: Any) -> None:
    """The case's kernel for a target, run by `run(kernel, arrays, sizes)` on arrays as it sees them."""
    run_on(case, kernel_for(case.operator, case.problem, target), run)


def run_on(case: LibraryCase, kernel: Any, run: Any) -> None:
    """The same of one that is there."""
    problem, operator = case.problem, case.operator
    arrays, out = case.arrays(), case.result()
    seen = {**arrays, operator.result.name: out}
    shapes = operator.seen(problem, kernel.parameters)
    views = {a.name: view_of(a, problem, None, shapes)(seen[a.name]) for a in case.viewed}
    for record in kernel.arguments:
        if record.name not in views:  # of a kernel that several share: one that this one does not touch
            views[record.name] = np.zeros(record.extents, dtype_of(record.dtype).numpy)
    run(kernel, views, sizes_of(kernel, views))
    assert np.shares_memory(views[operator.result.name], out)
    assert wrong(out, case.exact(arrays)) == ""


@pytest.mark.parametrize("case", CASE)
def test_reference(case: LibraryCase) -> None:
    def run(kernel: Any, seen: dict[str, Any], sizes: dict[str, int]) -> None:
        after = run_reference(for_sizes(kernel.meaning, sizes), seen)
        seen[case.operator.result.name][...] = after[case.operator.result.name]

    on_kernel(case, "cpu", run)


def simulated(kernel: Any, seen: dict[str, Any], sizes: dict[str, int]) -> None:
    kernel.stage("cuda")
    run_threaded(for_sizes(kernel.compilation.functions["threaded"], sizes), seen, warp=32)


@pytest.mark.parametrize("case", CASE)
def test_simulator(case: LibraryCase) -> None:
    on_kernel(case, "cuda:sm_80", simulated)


@pytest.mark.parametrize(
    "case",
    [
        scaled("float8_e5m2", 130, 24, 272, "float8_e4m3fn"),
        scaled("float8_e4m3fn", 1, 260, 144, each=False, fast_accum=True, out_dtype="float16"),
        scaled("int8", 70, 60, 144, "uint8", ("scale_b",)),
        of_bytes("uint8", 130, 40, 16),
        batched("float16", 2, 130, 264, 72, b_order=1),
        batched("bfloat16", 2, 70, 72, 64, a_order=0),
        grouped("float16", 3, 260, 40, 72, b_order=1),
        grouped("bfloat16", 5, 70, 264, 40),
        scores("float16", (2, 1), 140, 250, 64, left=30, right=20),
        scores("bfloat16", (2, 1), 140, 170, 256, causal=True),
        scores("float16", (1, 1), 200, 200, 192, causal=True, left=50),
    ],
    ids=str,
)
def test_products_by_warp_groups(case: LibraryCase) -> None:
    def run(kernel: Any, seen: dict[str, Any], sizes: dict[str, int]) -> None:
        assert "T.wgmma(" in kernel.stage("threaded")
        simulated(kernel, seen, sizes)

    on_kernel(case, "cuda:sm_90a", run)


RULES = schedule_file("matmul", "cuda:sm_90a").rules


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.number}")
def test_rules_for_large_products_are_right_for_small_ones(rule: Rule) -> None:
    """Each schedule of Hopper's file, in the simulator: of few tiles, which two blocks take in turn."""
    dtype = next(
        (d for d, bits in (("float16", 16), ("float32", 32)) if f"bits == {bits}" in rule.when), "float64"
    )
    rows = 16 if "M <= 16" in rule.when else 264
    both = "b_order == 1 and" not in rule.when and dtype == "float16" and rows > 16
    orders = [(0, 1), (1, 0)] if both else [(0, 1)]
    for a_order, b_order in orders:
        rest = () if b_order else ALONE
        k = 2 * rule.schedule.params["block_K"] + 8
        case = product(dtype, rows, 264, k, rest, a_order=a_order, b_order=b_order, activation="relu")
        persistent = any(d.name == "persistent" for d in rule.schedule.directives)
        schedule = Schedule.of(**({"persistent": 2} if persistent else {})).over(rule.schedule)
        values = {**case.problem.sizes, "dtype": dtype, **case.problem.options}
        known = case.operator.kernel.signature.parameters
        function = case.operator.kernel.using(target="cuda:sm_90a", schedule=schedule)
        kernel = function.kernel((), {name: value for name, value in values.items() if name in known})
        run_on(case, kernel, simulated)


# Of the rules for large products of bytes, from the third on.
RULED = (
    scaled("float8_e4m3fn", 70, 40, 144, fast_accum=True),
    scaled("float8_e4m3fn", 70, 40, 400),
    scaled("float8_e5m2", 70, 40, 272, each=False),
)


@pytest.mark.parametrize(("number", "case"), [*enumerate(RULED, 2)], ids=str)
def test_rules_of_large_products_of_bytes(number: int, case: LibraryCase) -> None:
    """What problems of other sizes are given: as one tile here."""
    rule = schedule_file("scaled_matmul", "cuda:sm_90a").rules[number]
    problem = case.problem
    assert rule.holds(
        {**problem.values, "M": 8192, "N": 8192 if number == 4 else 1024, "target": "", "aligned": True}
    )
    values = {**problem.sizes, "dtype": problem.dtype, **problem.options}
    function = case.operator.kernel.using(target="cuda:sm_90a", schedule=rule.schedule)
    run_on(case, function.kernel((), values), simulated)


@pytest.mark.parametrize(("case", "arch"), LARGE_CASE)
def test_code(case: LibraryCase, arch: str) -> None:
    """NVRTC takes the text, the block fits the card, and registers are not spilled."""
    found = kernel_for(case.operator, case.problem, f"cuda:{arch}").resources
    assert (found.spill_store_bytes, found.local_bytes) == (0, 0)
    assert found.blocks_per_sm
