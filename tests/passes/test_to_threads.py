# ruff: noqa: E501 -- stages and CUDA text are one statement a line
"""Element loops, copies and fills from `pipelined` text to one thread's code, run against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.passes.lowering import ceildiv, lower, random
from tests.simulated import run_threaded
from tilebench.errors import LayoutError, ResourceError
from tilebench.ir import Let, Store, parse_function, print_function, walk
from tilebench.language.words import registry
from tilebench.layout import Fragment, atom_layout, spread
from tilebench.passes.context import Context
from tilebench.passes.threads.to_threads import to_threads
from tilebench.targets.cuda.machines import machine_of

ADD = """\
@T.prim_func
def add(A: T.Tensor((64, 96), T.float32), B: T.Tensor((64, 96), T.float32), C: T.Tensor((64, 96), T.float32)):
    with T.Kernel(3, 4, threads=32) as (bx, by):
        for i, j in T.Parallel(16, 32, map=T.Fragment((16, 32), thread=((8, 1, 4), (4, 0, 1)), value=((4, 1, 1), (4, 0, 4))), vector=4):
            C[by * 16 + i, bx * 32 + j] = A[by * 16 + i, bx * 32 + j] + B[by * 16 + i, bx * 32 + j]
"""
ADD_THREADED = """\
@T.prim_func
def add(A: T.Tensor((64, 96), T.float32), B: T.Tensor((64, 96), T.float32), C: T.Tensor((64, 96), T.float32)):
    with T.Kernel(3, 4, threads=32) as (bx, by):
        tid: T.int32 = T.thread_id()
        tid_1_8: T.int32 = tid % 8
        tid_8_4: T.int32 = tid // 8
        for r0 in T.unroll(4):
            i: T.int32 = tid_8_4 + r0 * 4
            j: T.int32 = tid_1_8 * 4
            A_v = T.alloc_local((4,), T.float32)
            T.vector_load(A_v, A[by * 16 + i, bx * 32 + j : bx * 32 + j + 4])
            B_v = T.alloc_local((4,), T.float32)
            T.vector_load(B_v, B[by * 16 + i, bx * 32 + j : bx * 32 + j + 4])
            C_w = T.alloc_local((4,), T.float32)
            for e in T.unroll(4):
                C_w[e] = A_v[e] + B_v[e]
            T.vector_store(C[by * 16 + i, bx * 32 + j : bx * 32 + j + 4], C_w)
"""


def test_golden_add() -> None:
    function, _ = lower(ADD)
    assert print_function(function).text == ADD_THREADED


def test_places_point_at_the_tile_statement() -> None:
    function, _ = lower(ADD)
    made = [each for each in walk(function) if isinstance(each, (Store, Let)) and each.place is not None]
    assert {each.place.line for each in made if each.place} == {3, 4, 5}
    assert all(each.place is not None for each in walk(function) if isinstance(each, Store))


def copy_text(
    shape: tuple[int, int], tile: tuple[int, int], threads: int, a: str, s: str, c: str, layout: str = ""
) -> str:
    """Global to shared to a fragment to global, with casts on the way, and edges tested."""
    width = max(1, 16 // max(4 if each == "float32" else 2 if "16" in each else 1 for each in (a, s)))
    one = spread(tile, threads, width, 32)
    two = spread(tile, threads, 2, 32)
    held = tuple(n if n % t else None for n, t in zip(shape, tile, strict=True))
    edge = "" if held == (None, None) else f", {{}}_within={held}"
    box = f"by * {tile[0]} : by * {tile[0]} + {tile[0]}, bx * {tile[1]} : bx * {tile[1]} + {tile[1]}"
    return f"""@T.prim_func
def move(A: T.Tensor({shape}, T.{a}), C: T.Tensor({shape}, T.{c})):
    with T.Kernel({ceildiv(shape[1], tile[1])}, {ceildiv(shape[0], tile[0])}, threads={threads}) as (bx, by):
        A_s = T.alloc_shared({tile}, T.{s}, layout={layout or f"T.SharedLayout({tile}, ({tile[1]}, 1))"})
        x = T.alloc_fragment({tile}, T.{c}, layout={two})
        T.copy(A[{box}], A_s{edge.format("src")}, map={one})
        T.copy(A_s, x, map={two})
        T.copy(x, C[{box}]{edge.format("dst")}, map={two})
"""


DTYPES: dict[str, Any] = {"bfloat16": ml_dtypes.bfloat16}


@settings(max_examples=40)
@given(
    shape=st.tuples(st.integers(1, 70), st.integers(1, 90)),
    tile=st.tuples(st.integers(2, 40), st.integers(2, 48)),
    threads=st.sampled_from([32, 64, 128]),
    dtypes=st.sampled_from([("float32",) * 3, ("float16",) * 3, ("float16", "float32", "float16"),
                            ("float32", "bfloat16", "float32"), ("int8", "int8", "int32")]),
)  # fmt: skip
def test_copies_of_any_size(
    shape: tuple[int, int], tile: tuple[int, int], threads: int, dtypes: tuple[str, str, str]
) -> None:
    a, s, c = (np.dtype(DTYPES.get(each, each)) for each in dtypes)
    source, out = random(shape, a), np.full(shape, 99, c)
    function, _ = lower(copy_text(shape, tile, threads, *dtypes))
    run_threaded(function, {"A": source, "C": out}, warp=32)
    assert np.array_equal(out, source.astype(s).astype(c))


@pytest.mark.parametrize(
    "layout",
    ["T.SharedLayout((32, 32), (32, 1), swizzle=T.Swizzle(2, 3, 3))", "T.SharedLayout((32, 32), (40, 1))",
     "T.SharedLayout((32, 32), (1, 32))", "T.SharedLayout((32, 32), (1, 33))",
     "T.SharedLayout((32, (16, 2)), (16, (1, 512)), swizzle=T.Swizzle(1, 3, 3))",
     "T.SharedLayout(((4, 8), (8, 4)), ((8, 256), (1, 32)))"],
)  # fmt: skip
def test_shared_layouts_keep_vectors_where_they_can(layout: str) -> None:
    text = copy_text((64, 64), (32, 32), 64, "float16", "float16", "float16", layout)
    function, _ = lower(text)
    source, out = random((64, 64), np.float16), np.zeros((64, 64), np.float16)
    run_threaded(function, {"A": source, "C": out}, warp=32)
    assert np.array_equal(out, source)
    shown = print_function(function).text
    assert ("T.vector_store(A_s" in shown) == ("(32, 32), (1, " not in layout)


def test_panels_are_found_by_digits_only_where_nothing_is_proved() -> None:
    text = copy_text((64, 64), (32, 64), 64, "float16", "float16", "float16",
                     f"{atom_layout((32, 64), 16, 64)}")  # fmt: skip
    function, _ = lower(text)
    source, out = random((64, 64), np.float16), np.zeros((64, 64), np.float16)
    run_threaded(function, {"A": source, "C": out}, warp=32)
    assert np.array_equal(out, source)
    shown = print_function(function).text
    assert "T.vector_store(A_s" in shown
    assert "tid_1_8 * 8 % 32" in shown
    assert "tid_1_8 * 8 // 32 * 1024" in shown


def test_a_layout_that_is_smaller_than_its_buffer_is_refused_at_its_line() -> None:
    text = copy_text((64, 64), (32, 32), 64, "float16", "float16", "float16",
                     "T.SharedLayout((32, (16, 1)), (16, (1, 512)))")  # fmt: skip
    with pytest.raises(LayoutError, match=r"A_s of extents \(32, 32\) has a layout of \(32, 16\)") as caught:
        lower(text)
    assert caught.value.place is not None
    assert caught.value.place.line == 4
    with pytest.raises(LayoutError, match="share an offset") as caught:
        lower(text.replace("(16, 1)), (16, (1, 512))", "32), (16, 1)"))
    assert caught.value.place is not None
    assert caught.value.place.line == 4


def test_ghosts_and_threads_left_over_write_nothing_twice() -> None:
    # 5 x 6 elements on 128 threads: 96 threads repeat others, some elements of the mapping do not exist.
    fragment = Fragment((5, 6), ((8, 1, 1), (4, 0, 1), (4, -1, 0)), ((2, 0, 4),))
    text = f"""@T.prim_func
def ghosts(A: T.Tensor((5, 6), T.float32), C: T.Tensor((5, 6), T.float32)):
    with T.Kernel(1, threads=128) as bx:
        x = T.alloc_fragment((5, 6), T.float32, layout={fragment})
        for i, j in T.Parallel(5, 6, map={fragment}):
            x[i, j] = A[i, j] * T.float32(2)
            C[i, j] = x[i, j] + T.float32(1)
"""
    function, _ = lower(text)
    a, c = random((5, 6), np.float32), np.zeros((5, 6), np.float32)
    run_threaded(function, {"A": a, "C": c}, warp=32)
    assert np.array_equal(c, a * 2 + 1)
    assert "tid_32_4 == 0" in print_function(function).text


def test_a_condition_that_cuts_through_a_vector() -> None:
    # The row is longer than what is computed, so vectors are aligned but the bound is odd.
    fragment = Fragment((4, 32), ((8, 1, 4), (4, 0, 1)), ((4, 1, 1),))
    text = f"""@T.prim_func
def cut(A: T.Tensor((4, 32), T.float32), C: T.Tensor((4, 32), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        for i, j in T.Parallel(4, 32, map={fragment}):
            if j < 29:
                C[i, j] = T.if_then_else(j >= 3, A[i, j], T.float32(0)) + T.float32(1)
"""
    function, _ = lower(text)
    a, c = random((4, 32), np.float32), np.full((4, 32), 7, np.float32)
    run_threaded(function, {"A": a, "C": c}, warp=32)
    wanted = np.full((4, 32), 7, np.float32)
    wanted[:, :29] = np.where(np.arange(29) >= 3, a[:, :29], 0) + 1
    assert np.array_equal(c, wanted)
    shown = print_function(function).text
    assert "T.vector_load" in shown
    assert "T.vector_store" in shown


EDGES = ["j < 29", "j <= 28", "j <= 27", "29 - j > 0", "28 - j >= 0", "31 - j > 2", "j >= 3", "j > 3", "3 - j < 0",
         "4 - j <= 0", "j * 2 <= 57", "57 - j * 2 > 0", "j * 2 >= 7", "7 - j * 2 < 1"]  # fmt: skip


@pytest.mark.parametrize("edge", EDGES)
def test_a_guard_holds_for_each_element_of_a_vector(edge: str) -> None:
    """Guards that rise and fall along a vector, on both sides of a multiple of its width."""
    fragment = Fragment((4, 32), ((8, 1, 4), (4, 0, 1)), ((4, 1, 1),))
    text = f"""@T.prim_func
def cut(A: T.Tensor((4, 32), T.float32), B: T.Tensor((4, 32), T.float32), C: T.Tensor((4, 32), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        for i, j in T.Parallel(4, 32, map={fragment}):
            B[i, j] = T.if_then_else({edge}, A[i, j], T.float32(0)) + T.if_then_else(j < 30, A[i, j], T.float32(0))
            if {edge}:
                C[i, j] = A[i, j]
"""
    function, _ = lower(text)
    a, b, c = random((4, 32), np.float32), np.zeros((4, 32), np.float32), np.full((4, 32), 7, np.float32)
    run_threaded(function, {"A": a, "B": b, "C": c}, warp=32)
    inside = eval(edge, {}, {"j": np.arange(32)})  # noqa: S307
    assert np.array_equal(c, np.where(inside, a, 7))
    assert np.array_equal(b, np.where(inside, a, 0) + np.where(np.arange(32) < 30, a, 0))


def test_replicas_compute_what_only_one_of_them_stores() -> None:
    whole = Fragment((4,), ((32, -1, 0),), ((4, 0, 1),))
    rows = Fragment((8, 4), ((8, 0, 1), (4, -1, 0)), ((4, 1, 1),))
    text = f"""@T.prim_func
def replicas(A: T.Tensor((4,), T.float32), B: T.Tensor((4,), T.float32), C: T.Tensor((8, 4), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        x = T.alloc_fragment((4,), T.float32, layout={whole})
        for i in T.Parallel(4, map={whole}):
            x[i] = A[i] + T.float32(1)
            B[i] = x[i]
        for k, n in T.Parallel(8, 4, map={rows}):
            C[k, n] = x[n]
"""
    function, _ = lower(text)
    a, b, c = random((4,), np.float32), np.zeros((4,), np.float32), np.zeros((8, 4), np.float32)
    run_threaded(function, {"A": a, "B": b, "C": c}, warp=32)
    assert np.array_equal(b, a + 1)
    assert np.array_equal(c, np.tile(a + 1, (8, 1)))


def test_rows_of_odd_length_are_read_one_by_one() -> None:
    shown = print_function(lower(copy_text((33, 31), (16, 16), 32, "float32", "float32", "float32"))[0]).text
    assert "T.vector_load(A_v" not in shown
    assert "T.vector_store(A_s" in shown


def test_a_buffer_read_and_written_in_one_body() -> None:
    fragment = Fragment((64,), ((32, 0, 2),), ((2, 0, 1),))
    text = f"""@T.prim_func
def twice(A: T.Tensor((64,), T.float32), B: T.Tensor((64,), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(64, map={fragment}):
            A[i] = A[i] + T.float32(1)
            B[i] = A[i] * T.float32(3)
"""
    function, _ = lower(text)
    a, b = random((64,), np.float32), np.zeros((64,), np.float32)
    wanted = a + 1
    run_threaded(function, {"A": a, "B": b}, warp=32)
    assert np.array_equal(a, wanted)
    assert np.array_equal(b, wanted * 3)


def test_gathers_inner_loops_and_variables() -> None:
    fragment = Fragment((40,), ((32, 0, 1),), ((2, 0, 32),))
    text = f"""@T.prim_func
def gather(I: T.Tensor((40,), T.int32), A: T.Tensor((7, 40), T.float32), C: T.Tensor((40,), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(40, map={fragment}):
            row: T.int32 = I[i]
            total = T.alloc_var(T.float32, init=T.float32(0))
            for k in T.serial(row + 1):
                total = total + A[k, i]
            if row >= 0 and row < 7:
                C[i] = total * T.float32(0.5)
            else:
                C[i] = T.float32(-1)
"""
    function, _ = lower(text)
    index = np.random.default_rng(0).integers(0, 7, 40).astype(np.int32)
    a, c = random((7, 40), np.float32), np.zeros((40,), np.float32)
    run_threaded(function, {"I": index, "A": a, "C": c}, warp=32)
    wanted = np.array([a[: index[i] + 1, i].sum() * 0.5 for i in range(40)])
    assert np.allclose(c, wanted, atol=1e-6)


def test_one_value_a_row_beside_a_tile() -> None:
    tile = Fragment((8, 16), ((4, 1, 4), (8, 0, 1)), ((4, 1, 1),))
    row = tile.reduce(1)
    text = f"""@T.prim_func
def scale(A: T.Tensor((8, 16), T.float32), S: T.Tensor((8,), T.float32), C: T.Tensor((8, 16), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        x = T.alloc_fragment((8, 16), T.float32, layout={tile})
        s = T.alloc_fragment((8,), T.float32, layout={row})
        T.copy(A, x, map={tile})
        T.copy(S, s, map={row})
        for i, j in T.Parallel(8, 16, map={tile}):
            x[i, j] = x[i, j] * s[i]
        T.copy(x, C, map={tile})
"""
    function, _ = lower(text)
    a, s, c = random((8, 16), np.float32), random((8,), np.float32, 1), np.zeros((8, 16), np.float32)
    run_threaded(function, {"A": a, "S": s, "C": c}, warp=32)
    assert np.array_equal(c, a * s[:, None])


def test_a_layout_that_does_not_agree_is_refused_with_both() -> None:
    mine, other = Fragment((8, 16), ((4, 1, 4), (8, 0, 1)), ((4, 1, 1),)), spread((8, 16), 32, 1, 32)
    text = f"""@T.prim_func
def wrong(A: T.Tensor((8, 16), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        x = T.alloc_fragment((8, 16), T.float32, layout={mine})
        T.copy(A, x, map={other})
"""
    with pytest.raises(LayoutError, match="does not hold the element of x"):
        lower(text)


def test_block_statements_store_once_and_panels_visit_every_block() -> None:
    text = """@T.prim_func
def visit(C: T.Tensor((5, 7), T.int32)):
    with T.Kernel(7, 5, threads=32, order=T.Panels(2)) as (bx, by):
        C[by, bx] = by * 7 + bx
"""
    function, _ = lower(text)
    c = np.full((5, 7), -1, np.int32)
    run_threaded(function, {"C": c}, warp=32)
    assert np.array_equal(c, np.arange(35).reshape(5, 7))
    # Neighbours in launch order stay in two rows of blocks and turn round at the end of a panel.
    order: list[tuple[int, int]] = []
    for block in range(35):
        one = np.full((5, 7), -1, np.int32)
        run_threaded(function, {"C": one}, blocks=[(block % 7, block // 7, 0)], warp=32)
        order.append(tuple(int(x[0]) for x in np.nonzero(one >= 0)))  # type: ignore[arg-type]
    assert {y for y, _ in order[:14]} == {0, 1}
    assert sorted(order) == [(y, x) for y in range(5) for x in range(7)]
    assert order[13][1] == 6
    assert order[14] == (2, 6)


def test_more_registers_than_a_thread_has_stay_in_rolled_loops() -> None:
    fragment = spread((32, 4096), 32, 4, 32)
    text = f"""@T.prim_func
def large(A: T.Tensor((32, 4096), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        x = T.alloc_fragment((32, 4096), T.float32, layout={fragment})
        T.fill(x, T.float32(3), map={fragment})
        T.copy(x, A, map={fragment})
"""
    function, _ = lower(text)
    shown = print_function(function).text
    assert "for r0 in T.serial(4096):" in shown
    assert "T.unroll(32)" not in shown
    a = np.zeros((32, 4096), np.float32)
    run_threaded(function, {"A": a}, warp=32)
    assert (a == 3).all()


def test_a_mapping_that_is_missing_and_too_many_threads() -> None:
    text = ADD.replace(
        ", map=T.Fragment((16, 32), thread=((8, 1, 4), (4, 0, 1)), value=((4, 1, 1), (4, 0, 4)))", ""
    )
    with pytest.raises(LayoutError, match="no thread mapping"):
        lower(text)
    function = parse_function(ADD.replace("threads=32", "threads=2048"), registry())
    with pytest.raises(ResourceError, match="2048 threads"):
        to_threads(function, Context(machine_of("sm_80")))


def test_a_name_that_is_used_by_two_loops_of_one_element_each() -> None:
    fragment = Fragment((32,), ((32, 0, 1),))
    text = f"""@T.prim_func
def names(A: T.Tensor((32,), T.float32), C: T.Tensor((32,), T.float32)):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(32, map={fragment}):
            C[i] = A[i] + T.float32(1)
        for i in T.Parallel(32, map={fragment}):
            C[i] = C[i] * T.float32(2)
        for k in T.serial(2):
            for i in T.Parallel(32, map={fragment}):
                C[i] = C[i] + A[31 - i]
"""
    function, _ = lower(text)
    a, c = random((32,), np.float32), np.zeros((32,), np.float32)
    wanted = (a + 1) * 2 + a[::-1] + a[::-1]
    run_threaded(function, {"A": a, "C": c}, warp=32)
    assert np.allclose(c, wanted, atol=1e-6)
