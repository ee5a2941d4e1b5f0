"""Valid kernels that a compiler may choke on: names used over and over, long sums, integers that wrap,
loops too long to be counted one by one.
"""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest

import tilebench
from tests.simulated import run_threaded
from tilebench.errors import ResourceError, remember_source
from tilebench.frontend import trace
from tilebench.ir.sizes import for_sizes
from tilebench.passes.analysis.count_work import count_work

ROUNDS = "for _ in [0] * 40:\n"
BITS = np.array([-(2**31), -(2**31) + 1, -7, -1, 0, 1, 7, 2**31 - 1], np.int32)


def kernel_of(body: str, head: str, grid: str = "1", block: str = "b") -> Any:
    text = "import tilebench.language as T; i, j = T.dynamic('i, j')\n\ndef kernel():\n    @T.prim_func\n"
    first = f"({block})[0]" if "," in grid else block
    text += f"    def main({head}):\n        with T.Kernel({grid}) as {block}:\n            bx = {first}\n"
    text += indent(dedent(body).strip(), " " * 12) + "\n    return main\n"
    remember_source("hostile", text)
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "hostile", "exec"), space)
    return space["kernel"]


def run(kernel: Any, **arrays: Any) -> tuple[dict[str, Any], str]:
    """What the simulator leaves in the arrays, after the CPU has passed its check; and the CUDA text."""
    jitted = tilebench.jit(kernel)
    jitted.using(target="cpu")().check(*arrays.values()).raise_if_wrong()
    compiled = jitted.using(target="cuda:sm_80")()
    text = compiled.stage("cuda")
    after = {name: array.copy() for name, array in arrays.items()}
    run_threaded(compiled.compilation.functions["threaded"], after, warp=32)
    return after, text


def code(text: str) -> str:
    """The kernel's own part of a CUDA text."""
    return text[text.index("main_(") :]


@pytest.mark.parametrize("seed", ['T.cast(bx, "int64") + 12345', 'T.cast(bx * 8 + i, "int64") + 12345'])
def test_a_hash_names_a_value_many_times(seed: str) -> None:
    """Written out, the last value would have 3^40 nodes."""
    inside = "bx * 8 + i" in seed
    steps = f"h = {seed}\n{ROUNDS}    h = (h ^ (h >> 7)) * 31 + (h & 255)\n"
    loop = "for i in T.Parallel(8):\n"
    store = f"C[bx * 8 + i] = h{'' if inside else ' + i'}\n"
    body = loop + indent(steps + store, "    ") if inside else steps + loop + "    " + store
    after, _ = run(kernel_of(body, 'C: T.Tensor((64,), "int64")', "8"), C=np.zeros(64, np.int64))
    want = (np.arange(64) if inside else np.repeat(np.arange(8), 8)) + 12345
    with np.errstate(over="ignore"):
        for _ in range(40):
            want = (want ^ (want >> 7)) * 31 + (want & 255)
    assert np.array_equal(after["C"], want if inside else want + np.arange(64) % 8)


def test_a_name_of_a_float_is_squared_again_and_again() -> None:
    body = f"for i in T.Parallel(64):\n    h = A[i]\n    {ROUNDS}        h = h * h + h * 0.5\n    C[i] = h\n"
    a = np.linspace(-0.4, 0.4, 64, dtype=np.float32)
    after, _ = run(
        kernel_of(body, 'A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")'), A=a, C=a.copy()
    )
    want = a.astype(np.float64)
    for _ in range(40):
        want = want * want + want * 0.5
    assert np.allclose(after["C"], want, rtol=1e-3, atol=1e-12)


def deep(value: str) -> Any:
    head = 'A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")'
    return tilebench.jit(kernel_of(f"for i in T.Parallel(64):\n    C[i] = {value}\n", head))


@pytest.mark.parametrize("value", [" + ".join(["A[i]"] * 2000), "A[i]" + " - 0.5 * A[i]" * 60])
def test_long_sums(value: str) -> None:
    a = np.ones(64, np.float32)
    deep(value).using(target="cpu")().check(a, a.copy()).raise_if_wrong()
    assert "T.thread_id()" in deep(value).using(target="cuda:sm_80")().stage("threaded")


@pytest.mark.parametrize(
    ("value", "wrapping", "want"),
    [
        ("x + 2147483647", "(int)((unsigned int)", BITS + np.int32(2**31 - 1)),
        ("x * x", "(int)((unsigned int)", BITS * BITS),
        ("-x", "0u - (unsigned int)", -BITS),
        ("x << 3", "(unsigned int)", BITS << 3),
        ("(x & 255) * 100 + 5", "", (BITS & 255) * 100 + 5),
    ],
)
def test_integers_of_data_wrap_on_a_card_too(value: str, wrapping: str, want: Any) -> None:
    """C leaves an overflow of int undefined; what is proved to stay inside is written plainly."""
    body = f"for i in T.Parallel(8):\n    x = A[i]\n    C[i] = {value}\n"
    kernel = kernel_of(body, 'A: T.Tensor((8,), "int32"), C: T.Tensor((8,), "int32")')
    with np.errstate(over="ignore"):
        after, text = run(kernel, A=BITS, C=BITS.copy())
    assert np.array_equal(after["C"], want)
    assert wrapping in code(text) if wrapping else "unsigned" not in code(text)


def test_index_arithmetic_of_panels_is_proved_to_stay_inside() -> None:
    body = "T.use_swizzle(3)\nfor i in T.Parallel(64):\n    C[b[1], bx * 64 + i] = 1.0\n"
    kernel = kernel_of(body, 'C: T.Tensor((16, 1100), "float32")', "18, 16")
    assert "unsigned" not in code(tilebench.jit(kernel).using(target="cuda:sm_80")().stage("cuda"))


def test_products_of_narrow_integers_are_no_overflow_of_int() -> None:
    a = np.array([65535, 60000, 0, 3], np.uint16)
    kernel = kernel_of(
        "for i in T.Parallel(4):\n    C[i] = A[i] * A[i]\n",
        'A: T.Tensor((4,), "uint16"), C: T.Tensor((4,), "uint16")',
    )
    after, text = run(kernel, A=a, C=a.copy())
    assert np.array_equal(after["C"], a * a)
    assert "(unsigned short)((unsigned int)" in code(text)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8"])
def test_a_constant_is_taken_off(dtype: str) -> None:
    a = np.array([0, 1, 2, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    kernel = kernel_of(
        "for i in T.Parallel(5):\n    C[i] = A[i] - 1 + 100 + 100\n",
        f'A: T.Tensor((5,), "{dtype}"), C: T.Tensor((5,), "{dtype}")',
    )
    after, _ = run(kernel, A=a, C=a.copy())
    hundred = np.array(100, dtype)
    assert np.array_equal(after["C"], a - np.array(1, dtype) + hundred + hundred)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_integer_powers(dtype: str) -> None:
    a = np.arange(7).astype(dtype)
    kernel = kernel_of(
        "for i in T.Parallel(7):\n    C[i] = A[i] ** 5 + T.pow(A[i], 2) + A[i] ** 0\n",
        f'A: T.Tensor((7,), "{dtype}"), C: T.Tensor((7,), "{dtype}")',
    )
    after, _ = run(kernel, A=a, C=a.copy())
    assert np.array_equal(after["C"], (a.astype(np.int64) ** 5 + a.astype(np.int64) ** 2 + 1).astype(dtype))


def test_work_of_a_loop_of_two_billion_turns_is_counted_at_once() -> None:
    body = "for r in T.serial(2000000000):\n    for i in T.Parallel(8):\n        C[i] = C[i] + 1.0\n"
    work = count_work(trace(kernel_of(body, 'C: T.Tensor((8,), "float32")'), {}).function)
    assert work.flops == 2e9 * 8
    assert not work.exact


@pytest.mark.parametrize(("grid", "fits"), [("65536", True), ("1, 65535", True), ("1, 65536", False)])
def test_a_grid_that_a_card_cannot_launch_is_refused(grid: str, fits: bool) -> None:
    kernel = kernel_of("for i in T.Parallel(8):\n    C[i] = 1.0\n", 'C: T.Tensor((8,), "float32")', grid)
    compiled = tilebench.jit(kernel).using(target="cuda:sm_80")()
    if fits:
        assert "T.Kernel(" in compiled.stage("scheduled")
    else:
        with pytest.raises(ResourceError, match="dimension 1 of the grid has 65536 blocks"):
            compiled.stage("scheduled")


COPIES = {
    "a loop's variable": (
        "for j in T.serial(3):\n    T.copy(A[bx * 8, j * 16], X)\n    T.copy(X, B[bx * 8, j * 16])\n",
        "20", "40", "3", "b",
    ),
    "the numbers of a block": (
        "T.copy(A[i * 8, j * 16], X)\nT.copy(X, B[i * 8, j * 16])\n",
        "20", "40", "3, 3", "(i, j)",
    ),
    "sizes": (
        "T.copy(A[y * 8, x * 16], X)\nT.copy(X, B[y * 8, x * 16])\n",
        "i", "j", "T.ceildiv(j, 16), T.ceildiv(i, 8)", "(x, y)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", list(COPIES))
def test_names_of_coordinates_are_taken_by_the_kernel(case: str) -> None:
    """A copy's coordinates are i and j, unless these stand for something else there."""
    body, rows, columns, grid, block = COPIES[case]
    head = ", ".join(f"{name}: T.Tensor(({rows}, {columns}), 'float32')" for name in "AB")
    kernel = kernel_of("X = T.alloc_shared((8, 16), 'float32')\n" + body, head, grid, block)
    a = np.arange(800, dtype=np.float32).reshape(20, 40)
    arrays = {"A": a, "B": np.zeros_like(a)}
    compiled = tilebench.jit(kernel).using(target="cuda:sm_80")()
    compiled.stage("cuda")
    function = compiled.compilation.functions["threaded"]
    run_threaded(for_sizes(function, {"i": 20, "j": 40}) if case == "sizes" else function, arrays, warp=32)
    assert np.array_equal(arrays["B"], a)
