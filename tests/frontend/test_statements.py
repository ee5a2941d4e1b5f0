"""What single statements and expressions become."""

from __future__ import annotations

import pytest

from tests.frontend.cell import refused, stage, trace_body
from tilebench.errors import DTypeError, LanguageError, ShapeError
from tilebench.language.lowered.decisions import ROW_BY_ROW


def test_let_keeps_the_dtype_of_its_value() -> None:
    assert stage("""
        row = bx * 64
        half = row // 2 + 0
        big = row > 10
        B[row, half] = big
    """) == (
        "row: T.int32 = bx * 64\n"
        "half: T.int32 = row // 2\n"
        "big: T.bool = row > 10\n"
        "B[row, half] = T.cast(big, T.float32)\n"
    )


def test_promotion() -> None:
    assert stage("""
        for i, j in T.Parallel(64, 64):
            B[i, j] = A[i, j] * 2 + B[i, j]
            B[i, j] = i * 0.5 + I[i]
            A[i, j] = A[i, j] / 3 - 1.5
    """) == (
        "for i, j in T.Parallel(64, 64):\n"
        "    B[i, j] = T.cast(A[i, j] * T.float16(2), T.float32) + B[i, j]\n"
        "    B[i, j] = T.cast(i, T.float32) * T.float32(0.5) + T.cast(I[i], T.float32)\n"
        "    A[i, j] = T.cast(T.cast(A[i, j] / T.float16(3), T.float32) - T.float32(1.5), T.float16)\n"
    )


def test_store_converts_to_the_buffers_dtype() -> None:
    assert stage("""
        for i, j in T.Parallel(64, 64):
            A[i, j] = B[i, j]
            I[i] = B[i, j] + 1
            I[i] = 2.75
            A[i, j] = i < j
    """) == (
        "for i, j in T.Parallel(64, 64):\n"
        "    A[i, j] = T.cast(B[i, j], T.float16)\n"
        "    I[i] = T.cast(B[i, j] + T.float32(1), T.int32)\n"
        "    I[i] = 2\n"
        "    A[i, j] = T.cast(i < j, T.float16)\n"
    )


def test_conditions() -> None:
    assert stage("""
        for i, j in T.Parallel(64, 64):
            if 0 <= i < 10 and (j > 3 or not j == 2) and flag:
                B[i, j] = 1 if I[i] else -B[i, j]
            elif flag and False:
                B[i, j] = 7
            else:
                B[i, j] = T.if_then_else(flag, 2, 3)
    """) == (
        "for i, j in T.Parallel(64, 64):\n"
        "    if (i >= 0 and i < 10) and (j > 3 or not j == 2):\n"
        "        B[i, j] = T.if_then_else(I[i] != 0, T.float32(1), -B[i, j])\n"
        "    else:\n"
        "        B[i, j] = T.float32(2)\n"
    )


def test_alloc_var_is_stored_to_and_read_when_it_is_used() -> None:
    assert stage("""
        x = T.alloc_var("int32", init=3)
        y = T.alloc_var(T.int32)
        y = 4
        x, y = y, x
        before = x
        x += 1
        T.clear(x)
        I[before] = x
    """) == (
        "x = T.alloc_var(T.int32, init=3)\n"
        "y = T.alloc_var(T.int32, init=0)\n"
        "y = 4\n"
        "y_before: T.int32 = y\n"
        "x_before: T.int32 = x\n"
        "x = y_before\n"
        "y = x_before\n"
        "before: T.int32 = x\n"
        "x = x + 1\n"
        "x = 0\n"
        "I[before] = x\n"
    )


def test_elements_swap() -> None:
    assert stage("""
        s = T.alloc_shared((8,), "int32")
        s[0], s[1] = s[1] + 1, s[0]
    """) == (
        "s = T.alloc_shared((8,), T.int32)\n"
        "value_before: T.int32 = s[1] + 1\n"
        "s_before: T.int32 = s[0]\n"
        "s[0] = value_before\n"
        "s[1] = s_before\n"
    )


def test_loops() -> None:
    assert stage("""
        n = I[0]
        for i in range(n):
            for j, k in T.grid(2, 3):
                I[i] = j * k
        for i in T.serial(1, 9, 2):
            for u in T.unroll(4):
                for v in T.vectorized(8):
                    I[i + u * 8 + v] = 0
        for size in [1, 2]:
            for name, scale in {"a": 3}.items():
                I[size] = scale
    """) == (
        "n: T.int32 = I[0]\n"
        "for i in T.serial(n):\n"
        "    for j in T.serial(2):\n"
        "        for k in T.serial(3):\n"
        "            I[i] = j * k\n"
        "for i__2 in T.serial(9, start=1, step=2):\n"
        "    for u in T.unroll(4):\n"
        "        for v in T.vectorized(8):\n"
        "            I[i__2 + u * 8 + v] = 0\n"
        "I[1] = 3\n"
        "I[2] = 3\n"
    )


def test_python_values_are_worked_out_while_tracing() -> None:
    assert stage("""
        tiles = [T.alloc_shared((8, 8 * k), "float16") for k in range(1, 4) if k != 2]
        sizes = {"wide": tiles[-1].shape[1], **{"rank": tiles[0].ndim}}
        add = lambda value, n: value + n
        for i in T.serial(sizes["wide"]):
            I[i] = add(i, sizes["rank"]) + len(f"{sizes['wide']:>4}") + min(i, 2) + abs(-i)
        T.fill(tiles[0], T.infinity(tiles[0].dtype))
    """) == (
        "tiles = T.alloc_shared((8, 8), T.float16)\n"
        "tiles__2 = T.alloc_shared((8, 24), T.float16)\n"
        "for i in T.serial(24):\n"
        "    I[i] = i + T.min(i, 2) + T.abs(-i) + 6\n"
        'T.fill(tiles, T.float16("inf"))\n'
    )


def test_allocations_are_named_after_what_they_are_assigned_to() -> None:
    assert stage("""
        a, b = T.alloc_shared((8,), "int32"), T.alloc_local((4,), "int32")
        c: T.int32 = bx
        d = e = T.alloc_fragment(16, "float32")
        T.fill(T.alloc_shared((1, 2), T.bool), True)
    """) == (
        "a = T.alloc_shared((8,), T.int32)\n"
        "b = T.alloc_local((4,), T.int32)\n"
        "c: T.int32 = bx\n"
        "d = T.alloc_fragment((16,), T.float32)\n"
        "shared = T.alloc_shared((1, 2), T.bool)\n"
        "T.fill(shared, True)\n"
    )


def test_regions() -> None:
    assert stage("""
        s = T.alloc_shared((64, 32), "float16")
        r = bx * 64
        T.copy(A[r : r + 64, -32:], s)
        T.copy(s[-1, :], A[r, 0])
        T.copy(A[r, 3 : 3 + 32], s[0:1, 0:32])
        T.copy(A[..., 0:32][0], s) if False else T.clear(s[1:2, ...])
    """) == (
        "s = T.alloc_shared((64, 32), T.float16)\n"
        "r: T.int32 = bx * 64\n"
        "T.copy(A[r : r + 64, 224 : 256], s)\n"
        "T.copy(s[63, :], A[r, 0])\n"
        "T.copy(A[r, 3 : 35], s[0, :])\n"
        "T.fill(s[1, :], T.float16(0))\n"
    )


def test_copy_between_elements_is_a_store() -> None:
    assert stage("T.copy(A[bx, 0], B[bx, by])") == "B[bx, by] = T.cast(A[bx, 0], T.float32)\n"


def test_gemm_takes_head_addresses_and_conditions() -> None:
    assert stage("""
        a = T.alloc_shared((64, 32), "float16")
        c = T.alloc_fragment((64, 128), "float32")
        for k in T.Pipelined(2, 8, num_stages=2):
            T.gemm(a, A[bx * 128, k * 32], c, False, True, T.GemmWarpPolicy.FullCol, k == 2)
    """) == (
        "a = T.alloc_shared((64, 32), T.float16)\n"
        "c = T.alloc_fragment((64, 128), T.float32)\n"
        "for k in T.Pipelined(8, start=2, num_stages=2):\n"
        "    T.gemm(a, A[bx * 128 : bx * 128 + 128, k * 32 : k * 32 + 32], c, transpose_B=True, "
        'policy="full_col", clear_accum=k == 2)\n'
    )


def test_reductions_name_their_dimension() -> None:
    assert stage("""
        x = T.alloc_fragment((8, 4, 2), "float32")
        kept = T.alloc_fragment((1, 4, 2), "float32")
        last = T.alloc_fragment((8, 4), "float32")
        T.reduce_min(x, kept, dim=0)
        T.reduce_max(x, last, dim=2, clear=False)
    """).splitlines()[3:] == ["T.reduce_min(x, kept, dim=0)", "T.reduce_max(x, last, clear=False)"]


def test_hints() -> None:
    text = stage("""
        T.use_swizzle(8, order="column")
        s = T.alloc_shared((64, 32), "float16")
        T.swizzle(s, False)
        T.copy(A[0, 0], s, coalesced_width=2)
    """)
    assert text.splitlines() == [
        "s = T.alloc_shared((64, 32), T.float16, swizzle=False)",
        "T.copy(A[0, 0], s, coalesced_width=2)",
    ]
    launch = trace_body("T.use_swizzle(8, order='column')").function.body[0]
    assert repr(getattr(launch, "order", None)) == "Panels(size=8, axis='column')"
    off = trace_body("T.use_swizzle(8, enable=False)").function.body[0]
    assert getattr(off, "order", None) == ROW_BY_ROW


def test_a_grid_can_be_bound_as_a_list() -> None:
    cell = "with T.Kernel(4, 2) as b:\n            I[b[0]] = b[1]\n"
    from tests.frontend.cell import HEAD, run_cell
    from tilebench.frontend import trace
    from tilebench.ir import print_function

    text = HEAD.replace("with T.Kernel(4, 2, threads=64) as (bx, by):\n", cell) + "    return main\n"
    lines = print_function(trace(run_cell(text)["kernel"]).function).text.splitlines()
    assert lines[2:] == ["    with T.Kernel(4, 2) as (b_0, b_1):", "        I[b_0] = b_1"]


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("x = 1.5\nfor i in T.serial(4):\n    x = x + i", LanguageError, "x is bound outside this loop"),
        ("for i in T.serial(4):\n    pass\nI[i] = 0", LanguageError, "i is bound inside a loop or branch"),
        ("x, y = bx, by, 1", LanguageError, "2 names for 3 values"),
        ("x, y = bx", LanguageError, "a single value cannot be taken apart"),
        ("for x in bx:\n    pass", LanguageError, "this cannot be looped over"),
        ("I[0] = A[0, 0] % 2", DTypeError, "% takes integers, found float16"),
        ("I[0] = bx // 0", LanguageError, "division by zero: // 0"),
        ("I[0] = ~B[0, 0]", DTypeError, "~ takes integers, found float32"),
        ("I[0] = 2**40", DTypeError, "1099511627776 is outside the range of int32"),
        ("I[0] = None", LanguageError, "NoneType is no value of a kernel"),
        ("I[0] = A", LanguageError, "A is a tile, a single value is needed here"),
        ("I[0] = T.infinity('int32')", DTypeError, "int32 has no infinity"),
        ("if A:\n    pass", LanguageError, "A is a tile and has no truth value"),
        ("assert M == 3, 'M is three'", LanguageError, "the assertion failed: M is three"),
        ("x = 3\nx.y = 4", LanguageError, "an attribute cannot be assigned"),
        ("I[0:2] += 1", LanguageError, "I is a tile: operators work on its elements"),
        ("with open('x') as f:\n    pass", LanguageError, "`with` opens T.Kernel(...), or in it T"),
        ("for i in T.serial(4, step=0):\n    pass", ShapeError, "the step of T.serial is 0"),
        ("for i in T.serial(4):\n    pass\nelse:\n    pass", LanguageError, "a loop of the language has no"),
        ("T.use_swizzle(8, order='col')", Exception, "T.use_swizzle has no order 'col'"),
        ("T.swizzle(A)", LanguageError, "T.swizzle takes a buffer made by T.alloc_shared"),
        ("s = T.alloc_shared((8, 8), 'int8')\nT.clear(s[0:9, :])", ShapeError, "leaves dimension 0 of s"),
        ("x: T.Tensor((3,), 'float16')", LanguageError, "a bare annotation declares a tensor"),
        ("nothing", LanguageError, "the name nothing is not defined"),
        ("T.copy(A, A, eviction_policy='x')", LanguageError, "T.copy has no eviction_policy 'x'"),
        ("T.alloc_shared()", LanguageError, "missing 2 required positional arguments"),
        ("T.alloc_shared((4,), None)", DTypeError, "None is no dtype"),
        ("T.alloc_shared((4,), A)", DTypeError, "A[256, 256]: float16 in global memory is no dtype"),
        ("T.copy(T, A)", LanguageError, "T.copy works on buffers and regions, found module"),
        ("T.ceildiv(A, 2)", LanguageError, "A is a tile, a single value is needed here"),
        ("M[bx] += 1", LanguageError, "TypeError: 'int' object is not subscriptable"),
        ("I[0] = [1, 2][3]", LanguageError, "IndexError: list index out of range"),
    ],
)  # fmt: skip
def test_refused(body: str, kind: type[Exception], message: str) -> None:
    error = refused(body)
    assert isinstance(error, kind)
    assert message in error.message
    assert error.place is not None
    assert error.place.file == "cell"
    assert error.title != "internal error"


def test_a_condition_in_a_helper_is_explained_at_both_lines() -> None:
    error = refused("I[0] = pick(bx)", before="def pick(x):\n    if x:\n        return 1\n    return 2\n")
    assert error.place is not None
    assert [(each.function, each.text.strip()) for each in error.place.chain] == [
        ("pick", "if x:"),
        ("main", "I[0] = pick(bx)"),
    ]
