"""What an atomic found, atomic loads and stores, and the orders of memory that atomics give."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tests.language.test_atomic import COMBINED, DTYPES
from tests.passes.test_thread_groups import TARGETS, outputs
from tilebench.errors import TileError
from tilebench.ir import parse_function, print_function
from tilebench.language.words import registry
from tilebench.reference import check_function, run_bounded, run_reference
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.machines import machine_of

INTEGERS = [dtype for dtype in DTYPES if "int" in dtype]


def _kind(dtype: str) -> Any:
    return T.dtype(dtype).numpy


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", [*COMBINED, "or"])
def test_what_an_element_was_before(how: str, dtype: str) -> None:
    """One iteration an element: in global and in shared memory, behind a condition, and outside."""
    if how == "or" and dtype not in INTEGERS:
        pytest.skip("bits of integers")
    body = f"""
    S = T.alloc_shared((40,), "{dtype}")
    T.copy(A, S)
    for i in T.Parallel(40):
        P[i] = T.atomic_{how}(B[i], A[i], return_prev=True)
        if i % 3 != 0:
            Q[i] = T.atomic_{how}(S[i], B[39 - i] * 0 + 2, return_prev=True)
        R[i] = T.atomic_{how}(C[i - 8], A[i], return_prev=True)
    T.copy(S, U)
    """
    head = ", ".join(f'{name}: T.Tensor((40,), "{dtype}")' for name in "APQRU")
    head += f', B: T.Tensor((40,), "{dtype}"), C: T.Tensor((30,), "{dtype}")'
    body = body.replace("B[39 - i] * 0 + 2", "2")
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(0, 9, n).astype(_kind(dtype)) for n in (40, 40, 30))
    zeros = np.zeros(40, _kind(dtype))
    out = everywhere(body, head, A=a, B=b, C=c, P=zeros, Q=zeros, R=zeros, U=zeros)
    combined = np.bitwise_or if how == "or" else COMBINED[how]
    wide = (lambda x: x) if how == "or" else (lambda x: x.astype(np.float64))
    np.testing.assert_array_equal(out["P"], b)
    np.testing.assert_array_equal(wide(out["B"]), combined(wide(b), wide(a)))
    third = np.arange(40) % 3 != 0
    np.testing.assert_array_equal(out["Q"], np.where(third, a, zeros))
    two = combined(wide(a), wide(np.full(40, 2).astype(_kind(dtype))))
    np.testing.assert_array_equal(wide(out["U"]), np.where(third, two, wide(a)))
    # In front of an array counts from its end where the index is below zero for certain; here it may be.
    inside = np.r_[np.zeros(8), wide(c), np.zeros(2)]
    np.testing.assert_array_equal(wide(out["R"]), inside)


@pytest.mark.parametrize("how", ["add", "max", "min", "or", "load", "store"])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_card_has_code_for_every_dtype(how: str, arch: str) -> None:
    dtypes = INTEGERS if how == "or" else DTYPES
    head = ", ".join(f'A{k}: T.Tensor((64,), "{dtype}")' for k, dtype in enumerate(dtypes))
    lines = ["for i in T.Parallel(64):"]
    for k, dtype in enumerate(dtypes):
        lines.append(f'    s{k} = T.alloc_var("{dtype}")')
        if how == "load":
            lines.append(f"    s{k} = T.atomic_load(A{k}[i])")
        elif how == "store":
            lines.append(f'    T.atomic_store(A{k}[i], 3, memory_order="release")')
        else:
            lines.append(f'    s{k} = T.atomic_{how}(A{k}[i], 3, "acq_rel", True)')
        lines.append(f"    A{k}[63 - i] = s{k}" if how not in ("store",) else "")
    kernel = kernel_of("\n".join(lines), head).using(target=f"cuda:{arch}")()
    compile_cuda(kernel.stage("cuda"), machine_of(arch))


@tilebench.jit
def tickets(N, dtype, how):
    """Every element takes a number, of blocks and threads that come in any order."""

    @T.prim_func
    def main(C: T.Tensor((1,), dtype), P: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:
            for i in T.Parallel(256):
                if bx * 256 + i < N:
                    P[bx * 256 + i] = T.atomic_add(C[0], 1, return_prev=True)

    return main


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int32", "uint64", "float32", "float16", "bfloat16"])
def test_everybody_finds_another_number(dtype: str, target: str) -> None:
    n = {"float16": 2000, "bfloat16": 250}.get(dtype, 5000)
    kernel = tickets.using(target=target)(n, dtype, "add")
    c, o = np.zeros(1, _kind(dtype)), np.zeros(n, _kind(dtype))
    outputs(kernel, c, o)
    assert c[0] == n
    np.testing.assert_array_equal(np.sort(o.astype(np.float64)), np.arange(n))


def test_the_reference_knows_what_the_order_decides() -> None:
    """In any order the numbers are right, and no number may come twice."""
    function = tickets(600, "int32", "add").calls.traced.function
    before = {"C": np.zeros(1, np.int32), "P": np.zeros(600, np.int32)}
    shuffled = np.random.default_rng(0).permutation(600).astype(np.int32)
    report = check_function(function, before, {"C": np.full(1, 600, np.int32), "P": shuffled})
    assert report.ok
    assert report.output("P").any_order > 590
    assert report.output("C").any_order == 0
    assert "come in the order of atomics, and were compared in any order" in str(report)
    twice = shuffled.copy()
    twice[5] = twice[6]
    assert not check_function(function, before, {"C": np.full(1, 600, np.int32), "P": twice}).ok
    assert not check_function(function, before, {"C": np.full(1, 599, np.int32), "P": shuffled}).ok


def test_what_another_order_gives_another_value_is_left_open() -> None:
    """The first that comes writes its number: nobody can say which, so nothing is compared."""
    body = """
    for i in T.Parallel(64):
        if T.atomic_add(C[0], 1, return_prev=True) == 0:
            T.atomic_store(O[0], i)
    """
    function = kernel_of(
        body, 'C: T.Tensor((1,), "int32"), O: T.Tensor((2,), "int32")'
    )().calls.traced.function
    bounded = run_bounded(function, {"C": np.zeros(1, np.int32), "O": np.zeros(2, np.int32)})
    assert np.isposinf(bounded["O"].error[0])
    assert bounded["O"].error[1] == 0
    assert bounded["C"].error[0] == 0


def test_what_the_block_finds_all_its_threads_have() -> None:
    body = """
    first = T.atomic_add(C[0], 64, return_prev=True)
    for i in T.Parallel(64):
        O[first + i] = i
    for k in T.serial(3):
        again = T.atomic_max(C[1], k * 5, return_prev=True)
        for i in T.Parallel(64):
            P[k, i] = again + i
    """
    head = 'C: T.Tensor((2,), "int32"), O: T.Tensor((80,), "int32"), P: T.Tensor((3, 64), "int32")'
    out = everywhere(body, head, C=np.array([8, 3], np.int32), O=np.zeros(80, np.int32))
    np.testing.assert_array_equal(out["O"][8:72], np.arange(64))
    np.testing.assert_array_equal(out["P"], np.array([[3], [3], [5]]) + np.arange(64))
    assert out["C"].tolist() == [72, 10]


def test_a_fragment_that_several_threads_hold() -> None:
    """What one thread finds is the others' too: copies of the fragment do not part."""
    body = """
    F = T.alloc_fragment((8, 16), "int32")
    R = T.alloc_fragment((8,), "int32")
    for i, j in T.Parallel(8, 16):
        F[i, j] = i + j
    T.reduce_sum(F, R, dim=1)
    for i in T.Parallel(8):
        R[i] += T.atomic_add(C[i % 4], 8, return_prev=True)
    for i, j in T.Parallel(8, 16):
        F[i, j] = R[i] * 16 + j
    T.copy(F, O)
    """
    out = everywhere(
        body, 'C: T.Tensor((4,), "int32"), O: T.Tensor((8, 16), "int32")', C=np.zeros(4, np.int32)
    )
    rows = np.array([sum(range(i, i + 16)) + 8 * (i // 4) for i in range(8)])
    np.testing.assert_array_equal(out["O"], rows[:, None] * 16 + np.arange(16))


THREADS = """
tx = T.get_thread_binding()
bins = T.alloc_shared((4,), "int32")
place = T.alloc_var("int32")
T.clear(bins)
T.sync_threads()
for k in T.serial(2):
    if A[k * 128 + tx] >= 0:
        place = T.atomic_add(bins[A[k * 128 + tx]], 1, return_prev=True)
        T.sync_warp()
        if place < 100:
            O[A[k * 128 + tx] * 100 + place] = k * 128 + tx
T.sync_threads()
if tx < 4:
    N[tx] = bins[tx]
first = T.atomic_add(C[0], 7, return_prev=True)
if tx == 5:
    N[4] = first
"""


@pytest.mark.parametrize("road", ["cpu", "simulator"])
def test_code_of_threads_sorts_into_bins(road: str) -> None:
    from tests.roads import ROADS, jitted

    a = np.random.default_rng(4).integers(-1, 4, 256).astype(np.int32)
    arrays = {
        "A": a,
        "O": np.full(400, -1, np.int32),
        "N": np.zeros(5, np.int32),
        "C": np.full(1, 9, np.int32),
    }
    out = ROADS[road](jitted(THREADS, **arrays), arrays)
    np.testing.assert_array_equal(out["N"][:4], np.bincount(a[a >= 0], minlength=4))
    assert out["N"][4] == 9
    for value in range(4):
        found = out["O"][value * 100 : value * 100 + 100]
        np.testing.assert_array_equal(np.sort(found[found >= 0]), np.flatnonzero(a == value))


@pytest.mark.parametrize("count", [2, 4])
def test_neighbours_and_what_they_were(count: int) -> None:
    body = f"""
    for i in T.Parallel(8):
        old = T.atomic_addx{count}(C[i, 0], A[i, 0], return_prev=True)
        for k in T.serial({count}):
            O[i, k] = old[k]
    """
    head = ", ".join(f'{name}: T.Tensor((8, {count}), "float16")' for name in "ACO")
    rng = np.random.default_rng(5)
    a, c = (rng.integers(0, 9, (8, count)).astype(np.float16) for _ in range(2))
    out = everywhere(body, head, A=a, C=c)
    np.testing.assert_array_equal(out["O"], c)
    np.testing.assert_array_equal(out["C"], c + a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_loads_and_stores(dtype: str) -> None:
    body = f"""
    S = T.alloc_shared((64,), "{dtype}")
    for i in T.Parallel(64):
        T.atomic_store(S[i], T.atomic_load(A[i], memory_order="relaxed"), memory_order="relaxed")
        T.atomic_store(O[63 - i], T.atomic_load(S[i]))
        x = T.atomic_load(A[i - 4], "acquire")
        P[i] = x
    T.atomic_store(Q[1], T.atomic_load(A[5]))
    """
    head = ", ".join(f'{name}: T.Tensor((64,), "{dtype}")' for name in "AOPQ")
    a = np.arange(1, 65).astype(_kind(dtype))
    out = everywhere(body, head, A=a, O=a * 0, P=a * 0, Q=a * 0)
    np.testing.assert_array_equal(out["O"], a[::-1])
    np.testing.assert_array_equal(out["P"], np.r_[a[:4] * 0, a[:-4]])
    assert out["Q"][1] == a[5]


def _between_fences(memory_order: str, word: str) -> list[str]:
    body = f"for i in T.Parallel(64):\n    {word.format(order=memory_order)}"
    kernel = kernel_of(body, 'C: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")').using(
        target="cuda:sm_80"
    )()
    text = kernel.stage("cuda")
    compile_cuda(text, machine_of("sm_80"))
    own = text[text.index('extern "C"') :]
    found = re.findall(r"\b(tb_fence_sc|tb_fence|tb_atomic)(?:_(?:add|load|store))?\(", own)
    return list(found)


@pytest.mark.parametrize(
    ("word", "memory_order", "wanted"),
    [
        ("T.atomic_add(C[i], 1, '{order}')", "relaxed", ["tb_atomic"]),
        ("T.atomic_add(C[i], 1, '{order}')", "acquire", ["tb_atomic", "tb_fence"]),
        ("T.atomic_add(C[i], 1, '{order}')", "consume", ["tb_atomic", "tb_fence"]),
        ("T.atomic_add(C[i], 1, '{order}')", "release", ["tb_fence", "tb_atomic"]),
        ("T.atomic_add(C[i], 1, '{order}')", "acq_rel", ["tb_fence", "tb_atomic", "tb_fence"]),
        ("T.atomic_add(C[i], 1, '{order}')", "seq_cst", ["tb_fence_sc", "tb_atomic", "tb_fence"]),
        ("O[i] = T.atomic_load(C[i], '{order}')", "acquire", ["tb_atomic", "tb_fence"]),
        ("O[i] = T.atomic_load(C[i], '{order}')", "seq_cst", ["tb_fence_sc", "tb_atomic", "tb_fence"]),
        ("T.atomic_store(C[i], i, '{order}')", "release", ["tb_fence", "tb_atomic"]),
        ("T.atomic_store(C[i], i, '{order}')", "seq_cst", ["tb_fence_sc", "tb_atomic"]),
    ],
)
def test_orders_are_fences_on_a_card(word: str, memory_order: str, wanted: list[str]) -> None:
    assert _between_fences(memory_order, word) == wanted


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("T.atomic_add(C[i], 1, 'acq_rel')", "atomicrmw add ptr {}, i32 {} acq_rel"),
        ("O[i] = T.atomic_load(C[i], 'acquire')", "load atomic i32, ptr {} acquire"),
        ("O[i] = T.atomic_load(C[i])", "load atomic i32, ptr {} seq_cst"),
        ("T.atomic_store(C[i], i, 'release')", "store atomic i32 {}, ptr {} release"),
        ("T.atomic_max(F[i], 1, 'release')", "cmpxchg ptr {}, i32 {}, i32 {} release monotonic"),
    ],
)
def test_orders_are_instructions_on_a_processor(word: str, wanted: str) -> None:
    head = 'C: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32"), F: T.Tensor((64,), "float32")'
    text = kernel_of(f"for i in T.Parallel(64):\n    {word}", head).using(target="cpu")().stage("llvm")
    assert re.search(re.escape(wanted).replace(r"\{\}", r"\S+"), text)


def test_an_order_of_the_block_has_barriers() -> None:
    """What all threads did is handed on, and what they do comes behind; threads' own atomics have none."""
    body = """
    S = T.alloc_shared((64,), "int32")
    T.copy(A, S)
    T.atomic_add(C[0], 1, memory_order="acq_rel")
    T.copy(S, O)
    """
    head = 'A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32"), C: T.Tensor((1,), "int32")'
    text = kernel_of(body, head)().stage("tile")
    lines = [line.strip() for line in text.splitlines()]
    k = next(k for k, line in enumerate(lines) if "atomic_add" in line)
    assert lines[k - 1] == 'T.sync_threads(why="an atomic hands on what the block did")'
    assert lines[k + 1] == 'T.sync_threads(why="the block goes on behind an atomic")'
    everywhere(body, head)


def test_a_copy_does_not_run_ahead_of_an_atomic_that_orders() -> None:
    body = """
    S = T.alloc_shared((64,), "int32")
    for k in T.Pipelined(8, num_stages=3):
        ready = T.atomic_load(C[k], "acquire")
        T.copy(A[k * 64], S)
        for i in T.Parallel(64):
            O[k * 64 + i] = S[i] + ready
    """
    head = 'A: T.Tensor((512,), "int32"), O: T.Tensor((512,), "int32"), C: T.Tensor((8,), "int32")'
    everywhere(body, head)
    kernel = kernel_of(body, head).using(target="cuda:sm_80")()
    kernel.stage("threaded")
    assert "an atomic in the loop orders memory" in str(kernel.record().remarks)


def test_the_printed_form_is_read_again() -> None:
    body = """
    for i in T.Parallel(64):
        x = T.atomic_max(C[i], 3, memory_order="acq_rel", return_prev=True)
        T.atomic_store(C[x], T.atomic_load(O[i], memory_order="acquire"), memory_order="release")
    y = T.atomic_add(O[0], 1, return_prev=True)
    T.atomic_store(O[1], y)
    """
    kernel = kernel_of(body, 'C: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")')
    kernel = kernel.using(target="cuda:sm_80")()
    for name in ("tile", "bounded", "laid_out", "threaded"):
        kernel.stage(name)
        text = print_function(kernel.compilation.functions[name]).text
        assert '= T.atomic_max(C[i], 3, memory_order="acq_rel")' in text or name == "threaded"
        assert '= T.atomic_load(O[i], memory_order="acquire")' in text or name == "threaded"
        assert print_function(parse_function(text, registry())).text == text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "T.atomic_add(A[0:4, 0], O[0:4, 0], return_prev=True)",
            "T.atomic_add(return_prev=True) gives what one element was before, and these are tiles",
        ),
        ("T.atomic_add(A[0, 0], 1, 'strong')", "T.atomic_add has no memory_order='strong'"),
        ("x = T.atomic_load(A[0, 0], 'release')", "T.atomic_load has no memory_order='release'"),
        ("T.atomic_store(A[0, 0], 1, 'acq_rel')", "T.atomic_store has no memory_order='acq_rel'"),
        ("x = T.atomic_load(A[0:4, 0])", "T.atomic_load takes an element"),
        ("T.atomic_store(A[0:4, 0], O[0:4, 0])", "T.atomic_store takes an element and a value"),
        ("T.atomic_store(A, 1)", "T.atomic_store takes an element and a value"),
        (
            "x = T.alloc_var('float32')\ny = T.atomic_load(x)",
            "T.atomic_load works on tiles, x is a scalar",
        ),
        (
            "S = T.alloc_shared((8,), 'int8')\nx = T.atomic_load(S[0])",
            "T.atomic_load has no single step for int8",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(body: str, said: str) -> None:
    with pytest.raises(TileError) as caught:
        kernel_of(body)()
    assert str(caught.value.message) == said


ALIKE = {
    "a flag, by whoever finds something": """
        s = T.alloc_shared((1,), "int32")
        T.clear(s)
        for i in T.Parallel(128):
            if A[i] == 3:
                s[0] = 1
        O[0] = s[0]
    """,
    "a flag, by threads": """
        tx = T.get_thread_binding()
        s = T.alloc_shared((1,), "int32")
        if tx == 0:
            s[0] = 0
        T.sync_threads()
        if A[tx] == 3:
            s[0] = 1
        T.sync_threads()
        if tx == 0:
            O[0] = s[0]
    """,
    "each element by several": """
        s = T.alloc_shared((16,), "{dtype}")
        for i, j in T.Parallel(16, 8):
            s[i] = i % 7
        for i in T.Parallel(128):
            O[i] = s[i // 8]
    """,
    "a part of the number, by threads, in global memory": """
        tx = T.get_thread_binding()
        if A[tx // 16] > 0:
            O[tx // 16] = A[tx // 16] + 1
    """,
}


@pytest.mark.parametrize("dtype", ["int32", "float16", "float8_e4m3fn", "uint8", "int64"])
@pytest.mark.parametrize("case", ALIKE)
def test_stores_of_one_value_to_one_place_are_no_race(case: str, dtype: str) -> None:
    head = f'A: T.Tensor((128,), "int32"), O: T.Tensor((128,), "{dtype}")'
    a = np.random.default_rng(6).integers(-3, 4, 128).astype(np.int32)
    zeros = np.zeros(128, _kind(dtype))
    out = everywhere(ALIKE[case].format(dtype=dtype), head, A=a, O=zeros)["O"].astype(np.int64)
    if "flag" in case:
        assert out[0] == int((a == 3).any())
    elif "several" in case:
        np.testing.assert_array_equal(out, np.arange(128) // 8 % 7)
    else:
        np.testing.assert_array_equal(out[:8], np.where(a[:8] > 0, a[:8] + 1, 0))
    if dtype != "int32":
        return
    kernel = kernel_of(ALIKE[case].format(dtype=dtype), head).using(target="cuda:sm_80")()
    compile_cuda(kernel.stage("cuda"), machine_of("sm_80"))


@pytest.mark.parametrize("dtype", ["uint8", "bool", "float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_a_card_stores_narrow_elements_in_one_step(dtype: str) -> None:
    body = "for i, j in T.Parallel(16, 8):\n    O[i] = A[i]"
    head = f'A: T.Tensor((16,), "{dtype}"), O: T.Tensor((16,), "{dtype}")'
    everywhere(body, head)
    compile_cuda(kernel_of(body, head).using(target="cuda:sm_80")().stage("cuda"), machine_of("sm_80"))


def test_different_values_at_one_place_are_refused_by_the_reference() -> None:
    function = kernel_of("for i in T.Parallel(8):\n    O[0] = i", 'O: T.Tensor((1,), "int32")')().calls.traced
    with pytest.raises(TileError, match="different values"):
        run_reference(function.function, {"O": np.zeros(1, np.int32)})


def test_bits_and_greatest_of_integers_have_bounds_and_are_watched() -> None:
    """On every kind of numbers that the reference runs on."""
    body = """
    S = T.alloc_shared((8,), "int32")
    T.copy(A, S)
    for i in T.Parallel(8):
        O[i] = T.atomic_max(S[7 - i], A[i], return_prev=True) + T.atomic_or(S[7 - i], 1, return_prev=True)
    """
    head = 'A: T.Tensor((8,), "int32"), O: T.Tensor((8,), "int32")'
    function = kernel_of(body, head)().calls.traced.function
    a = np.arange(8, dtype=np.int32) * 3
    arrays = {"A": a, "O": np.zeros(8, np.int32)}
    found = run_reference(function, arrays, uninitialised="raise")["O"]
    np.testing.assert_array_equal(found, a[::-1] + np.maximum(a[::-1], a))
    bounded = run_bounded(function, arrays)["O"]
    np.testing.assert_array_equal(bounded.value, found)
    assert not bounded.error.any()


def test_an_element_may_do_all_that_it_does_before_the_next_comes() -> None:
    """Two atomics of each iteration at two places: what the second finds depends on how they interleave."""
    body = """
    S = T.alloc_shared((64,), "int32")
    T.clear(S)
    for i in T.Parallel(64):
        a = T.atomic_add(S[i], i, return_prev=True)
        b = T.atomic_add(S[i ^ 1], a, return_prev=True)
        O[i] = b
        P[i] = a * 0 + i
    """
    head = 'O: T.Tensor((64,), "int32"), P: T.Tensor((64,), "int32")'
    function = kernel_of(body, head)().calls.traced.function
    bounded = run_bounded(function, {"O": np.zeros(64, np.int32), "P": np.zeros(64, np.int32)})
    assert np.isposinf(bounded["O"].error).any()
    assert not bounded["P"].error.any()
