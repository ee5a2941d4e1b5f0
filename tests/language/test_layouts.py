"""Layouts that a kernel gives: of tiles they change no result, of arrays the places of elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import everywhere, kernel_of
from tests.passes.test_thread_groups import TARGETS, outputs
from tests.simulated import run_threaded
from tilebench.errors import TileError
from tilebench.ir import parse_function, print_function
from tilebench.ir.sizes import for_sizes
from tilebench.kernel.calls.variants import Variant, under
from tilebench.kernel.edited import compile_from
from tilebench.language import layouts as made
from tilebench.language.layouts import make_linear_layout, make_swizzled_layout
from tilebench.language.words import registry
from tilebench.passes.bounded.open_placed import open_placed
from tilebench.passes.context import Context
from tilebench.reference import run_reference
from tilebench.targets.cuda.machines import machine_of

SQUARE = np.arange(4096, dtype=np.float32).reshape(64, 64)
ROWS, COLUMNS = np.indices((64, 64))


TILES = "S = T.alloc_shared((8, 8), 'float32')\nF = T.alloc_fragment((8, 8), 'float32')\n"


def told(kernel: Any) -> list[str]:
    """The notes among the remarks of a kernel's compilation."""
    return [each.message for each in kernel.record().remarks if each.pass_name == "tell_notes"]


# -- arrays


def test_the_elements_of_arrays_lie_where_their_layouts_say() -> None:
    before = np.full((64, 64), -1, np.float32)
    found = everywhere(
        """
        T.annotate_layout({A: T.Layout(A.shape, lambda i, j: [j // 8, i, j % 8])})
        T.annotate_layout({O: lambda i, j: (j, i ^ (j % 8))})
        S = T.alloc_shared((70, 64), "float32")
        F = T.alloc_fragment((64, 64), "float32")
        T.copy(A[0:70, 0:64], S)
        for i, j in T.Parallel(64, 64):
            F[i, j] = S[i, j] * 2 + A[i, j]
        T.clear(O[0:8, :])
        T.copy(F[:, 0:32], O[8:72, 0:32])
        T.atomic_add(O[9, 40], 3.0)
        """,
        A=SQUARE,
        O=before,
    )
    read = SQUARE.reshape(-1)[(COLUMNS // 8 * 64 + ROWS) * 8 + COLUMNS % 8]
    said = np.full((64, 64), -1, np.float32)
    said[:8] = 0
    said[8:, :32] = 3 * read[:56, :32]
    said[9, 40] += 3
    lying = np.empty(4096, np.float32)
    lying[COLUMNS * 64 + (ROWS ^ (COLUMNS % 8))] = said
    np.testing.assert_array_equal(found["O"].reshape(-1), lying)


@pytest.mark.parametrize("heads", [4, 3])
def test_the_order_of_attention_backward(heads: int) -> None:
    found = everywhere(
        """
        T.annotate_layout({A: T.Layout(A.shape, lambda b, l, h, d:
            [b, l // 8, h, d // 8, d % 2, 4 * (l % 8) + (d % 8) // 2])})
        for h in T.serial(A.shape[2]):
            T.copy(A[1, 3:35, h, :], O[1, 3:35, h, :])
        """,
        head=f'A: T.Tensor((2, 32, {heads}, 16), "float32"), O: T.Tensor((2, 32, {heads}, 16), "float16")',
    )
    shape = (2, 32, heads, 16)
    b, s, h, d = np.indices(shape)
    number = ((((b * 4 + s // 8) * heads + h) * 2 + d // 8) * 2 + d % 2) * 32 + s % 8 * 4 + d % 8 // 2
    seen = found["A"].reshape(-1)[number].astype(np.float16)
    np.testing.assert_array_equal(found["O"][1, 3:], seen[1, 3:])


@tilebench.jit
def turned():
    N = T.dynamic("N")

    @T.prim_func
    def main(A: T.Tensor((4, N, 8), "float32"), B: T.Tensor((4, N, 8), "float32")):
        with T.Kernel(T.ceildiv(N, 4), 4, threads=32) as (bx, by):
            T.annotate_layout({A: T.Layout(A.shape, lambda i, j, k: [j, i, k])})
            tile = T.alloc_shared((4, 8), "float32")
            T.copy(A[by, bx * 4 : (bx + 1) * 4, :], tile)
            T.copy(tile, B[by, bx * 4 : (bx + 1) * 4, :])

    return main


@pytest.mark.parametrize("n", [1, 7, 16])
def test_sizes_of_a_launch(n: int) -> None:
    a = np.random.default_rng(n).standard_normal((4, n, 8), dtype=np.float32)
    wanted = a.reshape(n, 4, 8).transpose(1, 0, 2)
    on_host = np.zeros_like(a)
    turned.using(target="cpu")()(a, on_host)
    np.testing.assert_array_equal(on_host, wanted)
    kernel = turned.using(target="cuda:sm_80")()
    kernel.stage("cuda")
    simulated = np.zeros_like(a)
    function = for_sizes(kernel.compilation.functions["threaded"], {"N": n})
    run_threaded(function, {"A": a, "B": simulated}, warp=32)
    np.testing.assert_array_equal(simulated, wanted)
    reference = run_reference(
        for_sizes(kernel.compilation.reference, {"N": n}), {"A": a, "B": np.zeros_like(a)}
    )
    np.testing.assert_array_equal(reference["B"], wanted)


def test_a_check_of_a_result_sees_the_array_as_it_lies() -> None:
    kernel = kernel_of(
        "T.annotate_layout({O: lambda i, j: (j, i)})\nfor i, j in T.Parallel(64, 64):\n    O[i, j] = A[i, j]"
    ).using(target="cpu")()
    report = kernel.check(SQUARE, np.zeros((64, 64), np.float32))
    assert report.ok
    part = kernel_of("T.annotate_layout({O: lambda i, j: (j, i)})\nT.copy(A[0:8, :], O[0:8, :])").using(
        target="cpu"
    )()
    assert part.check(SQUARE, np.zeros((64, 64), np.float32)).output("O").outside == 0


def test_the_layout_stands_in_the_text() -> None:
    kernel = kernel_of("T.annotate_layout({A: lambda i, j: (j, i)})\nT.copy(A, O)").using(
        target="cuda:sm_80"
    )()
    text = kernel.stage("tile")
    assert "        for i0, i1 in T.annotate_layout(A):\n            T.lies_at(i1, i0)\n" in text
    assert "O[i, j] = A[j, i]" in kernel.stage("bounded")
    edited = compile_from("tile", text.replace("lies_at(i1, i0)", "lies_at(i0, i1)"), target="cuda:sm_80")
    assert "O[i, j] = A[i, j]" in edited.stage("bounded")
    for wrong, said in (
        ("lies_at(i0, i0)", "this layout is no permutation of the array"),
        ("lies_at(i0)", "this layout is no permutation of the array"),
    ):
        with pytest.raises(TileError, match=said):
            compile_from("tile", text.replace("lies_at(i1, i0)", wrong), target="cuda:sm_80").stage("bounded")
    one = text.replace("i0, i1 in", "i0 in").replace("lies_at(i1, i0)", "lies_at(i0)")
    with pytest.raises(TileError, match="the layout of A has 1 variables, and A 2 dimensions"):
        compile_from("tile", one, target="cuda:sm_80").stage("bounded")


# -- tiles


def test_layouts_of_tiles_change_no_result() -> None:
    body = """
        S = T.alloc_shared((64, 64), "float32")
        R = T.alloc_shared((64, 64), "float32")
        F = T.alloc_fragment((64, 64), "float32")
        G = T.alloc_fragment((64, 64), "float32")
        m = T.alloc_fragment((64,), "float32")
        T.annotate_layout({
            S: lambda i, j: (j, i ^ (j % 8)), R: T.Layout((64, 64), lambda i, j: i * 72 + j),
            F: T.Fragment((64, 64), lambda i, j: (i + j // 32 * 64, j % 32)),
            G: T.Fragment((64, 64), lambda i, j, rep: (i // 2 + rep * 32, i % 2 * 64 + j), replicate=4),
        })
        T.copy(A, S)
        T.copy(S, F)
        T.copy(F, G)
        for i, j in T.Parallel(64, 64):
            F[i, j] = F[i, j] + G[i, j]
        T.reduce_sum(F, m, dim=1)
        T.copy(F, R)
        for i, j in T.Parallel(64, 64):
            O[i, j] = R[j, i] + m[i]
        """
    found = everywhere(body, A=SQUARE)
    np.testing.assert_array_equal(found["O"], 2 * SQUARE.T + 2 * SQUARE.sum(1)[:, None])
    text = kernel_of(body).using(target="cuda:sm_80")().stage("laid_out")
    for said in (
        "S = T.alloc_shared(",
        "S_swizzle = T.SharedLayout((64, 64), (1, 64), swizzle=T.Swizzle(3, 0, 6))\n",
        "R = T.alloc_shared(",
        "layout=T.SharedLayout((64, 64), (72, 1)))",
        "F_frag = T.Fragment((64, 64), thread=((64, 0, 1), (2, 1, 32)), value=((32, 1, 1),))\n",
        "G_frag = T.Fragment((64, 64), thread=((32, 0, 2), (4, -1, 0)), value=((64, 1, 1), (2, 0, 1)))\n",
    ):
        assert said in text


def test_an_accumulator_in_another_layout_than_its_product_is_converted() -> None:
    a = np.random.default_rng(0).integers(-3, 4, (64, 64)).astype(np.float32)
    body = """
        S = T.alloc_shared((64, 64), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        T.annotate_layout({acc: lambda i, j: (i + j // 32 * 64, j % 32)})
        T.copy(A, S)
        T.clear(acc)
        for k in T.serial(2):
            T.gemm(S, S, acc)
        T.copy(acc, O)
        """
    found = everywhere(body, A=a)
    np.testing.assert_array_equal(found["O"], 2 * (a @ a))
    kernel = kernel_of(body).using(target="cuda:sm_80")()
    assert "T.convert_layout(acc, acc_as, by=" in kernel.stage("laid_out")
    assert "T.convert_layout(acc_as, acc, by=" in kernel.stage("laid_out")


def test_a_part_of_the_threads_has_copies_in_the_others() -> None:
    found = everywhere(
        """
        F = T.alloc_fragment((64, 64), "float32")
        T.annotate_layout({F: lambda i, j: (i % 32, i // 32 * 64 + j)})
        T.copy(A, F)
        for i, j in T.Parallel(64, 64):
            T.atomic_add(O[i, j], F[i, j])
        """,
        A=SQUARE,
        O=np.ones((64, 64), np.float32),
    )
    np.testing.assert_array_equal(found["O"], SQUARE + 1)


@pytest.mark.parametrize(
    "name",
    ["make_full_bank_swizzled_layout", "make_half_bank_swizzled_layout", "make_quarter_bank_swizzled_layout",
     "make_wgmma_swizzled_layout", "make_volta_swizzled_layout", "make_linear_layout"],
)  # fmt: skip
def test_swizzles_by_name(name: str) -> None:
    body = f"S = T.alloc_shared((64, 64), 'float32')\nT.annotate_layout({{S: {name}(S)}})\nT.copy(A, S)\n"
    kernel = kernel_of(body + "for i, j in T.Parallel(64, 64):\n    O[i, j] = S[j, i]")
    kernel.function.__globals__[name] = getattr(made, name)
    for target in TARGETS:
        o = np.zeros((64, 64), np.float32)
        outputs(kernel.using(target=target)(), SQUARE, o)
        np.testing.assert_array_equal(o, SQUARE.T)


def test_fragments_by_name() -> None:
    for fragment in (made.make_gemm_fragment_8x8(), made.make_gemm_fragment_8x8_transposed()):
        spread = fragment.spread()
        assert spread is not None
        assert (spread.threads, spread.values) == (32, 2)


def test_what_is_no_digits_is_told_and_chosen_by_the_compiler() -> None:
    body = """
        S = T.alloc_shared((64, 64), "float32")
        F = T.alloc_fragment((64, 64), "float32")
        T.annotate_layout({S: lambda i, j: (i, (j + i) % 64), F: lambda i, j: (i * 2 + j % 2, 31 - j // 2)})
        T.copy(A, S)
        T.copy(S, F)
        T.copy(F, O)
        """
    np.testing.assert_array_equal(everywhere(body, A=SQUARE)["O"], SQUARE)
    assert told(kernel_of(body).using(target="cuda:sm_80")()) == [
        "the layout of S has no shape and strides: the compiler chooses one",
        "the layout of F is no digits of threads and values: the compiler chooses one",
    ]


@tilebench.jit
def hinted(layout):
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16")):
        with T.Kernel(1, threads=64) as bx:
            S = T.alloc_shared((64, 32), "float16")
            T.annotate_layout({S: layout(S)})
            T.copy(A, S)
            for i, j in T.Parallel(32, 64):
                B[i, j] = S[j, i]

    return main


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("layout", [make_swizzled_layout, make_linear_layout])
def test_hints_change_no_result(layout: Any, target: str) -> None:
    a = np.arange(2048, dtype=np.float16).reshape(64, 32)
    b = np.zeros((32, 64), np.float16)
    kernel = hinted.using(target=target)(layout)
    outputs(kernel, a, b)
    np.testing.assert_array_equal(b, a.T)
    assert f"swizzle={layout is make_swizzled_layout}" in kernel.stage("tile")


# -- the object


def test_a_layout_answers_questions() -> None:
    layout = T.Layout((8, 6), lambda i, j: [j // 2, i, j % 2])
    assert layout.get_input_shape() == [8, 6]
    assert layout.get_output_shape() == [3, 8, 2]
    assert [str(part) for part in layout.index] == ["i1 // 2", "i0", "i1 % 2"]
    assert [str(part) for part in layout.map_forward_index([3, 5])] == ["2", "3", "1"]


WRONG = [
    ("{A: lambda i, j: (i, i)}", "this layout is no permutation of the array: .* or there are gaps"),
    ("{A: T.Layout((8, 8), lambda i, j: (i, j))}", r"a layout of shape \(8, 8\) does not fit A"),
    ("{A: make_swizzled_layout(A)}", "this is no layout for A, which is in global memory"),
    ("{S: 3}", "this is no layout for S, which is in shared memory"),
    ("{F: T.Layout((8, 8), lambda i, j: (i, j))}", "this is no layout for F, which is in fragment memory"),
    ("{S: lambda i, j: (i, j * 0)}", "two elements of S lie in one place in this layout"),
    ("{S: lambda i, j: (i, j), F: lambda i, j: (i * 1.5, j)}", "a layout gives whole numbers, found float32"),
    ("make_swizzled_layout(S)", r"T\.annotate_layout takes \{buffer: layout\}"),
    ("{3: 4}", "T.annotate_layout names a buffer"),
]  # fmt: skip


@pytest.mark.parametrize(("hints", "said"), WRONG)
def test_what_is_refused(hints: str, said: str) -> None:
    kernel = kernel_of(TILES + f"T.annotate_layout({hints})")
    kernel.function.__globals__["make_swizzled_layout"] = make_swizzled_layout
    with pytest.raises(TileError, match=said):
        kernel()


@pytest.mark.parametrize(
    ("name", "one", "two"),
    [("A", "(j, i)", "(i, j)"), ("S", "(j, i)", "(i, j)"), ("F", "(i, j)", "(i * 2 + j % 2, j // 2)")],
)
def test_two_layouts_of_one_buffer_are_an_error_at_both_lines(name: str, one: str, two: str) -> None:
    kernel = kernel_of(
        TILES
        + f"T.annotate_layout({{{name}: lambda i, j: {one}}})\n" * 2
        + f"T.annotate_layout({{{name}: lambda i, j: {two}}})"
    )
    with pytest.raises(TileError) as refused:
        kernel()
    text = str(refused.value)
    assert text.splitlines()[0] == f"layout error: {name} is given two different layouts"
    assert text.count("T.annotate_layout(") == 2
    assert "the other one is given here" in text


def test_threads_that_do_not_divide_the_block() -> None:
    kernel = kernel_of(
        "F = T.alloc_fragment((8, 12), 'float32')\n"
        "T.annotate_layout({F: lambda i, j: (i * 12 + j, 0)})\nT.clear(F)"
    )
    with pytest.raises(TileError, match="the layout of F is one for 96 threads, and 128 share it out"):
        kernel.using(target="cuda:sm_80")().stage("laid_out")


def test_other_operations_take_tiles() -> None:
    text = (
        kernel_of("T.annotate_layout({A: lambda i, j: (j, i)})\nT.copy(A, O)")
        .using(target="cpu")()
        .stage("tile")
    )
    edited = text.replace("T.copy(A, O)", "T.cumsum(A, O)")
    with pytest.raises(
        TileError, match=r"T\.cumsum does not work on A, whose elements lie in an order of their own"
    ):
        open_placed(parse_function(edited, registry()), Context(machine_of("sm_80")))


@tilebench.jit
def there_and_back():
    @T.prim_func
    def main(
        A: T.Tensor((8, 16), "float32"), B: T.Tensor((8, 16), "float32"), C: T.Tensor((8, 16), "float32")
    ):
        with T.Kernel(1, threads=32) as bx:
            T.annotate_layout({B: lambda i, j: (j, i)})
            T.copy(A, B)
            T.atomic_add(B[3, 5], 1.0)
        with T.Kernel(1, threads=32) as bx:
            T.copy(B, C)

    return main


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_a_layout_is_one_kernels_of_a_function_of_several(target: str) -> None:
    a = np.arange(128, dtype=np.float32).reshape(8, 16)
    kernel = there_and_back.using(target=target)()
    given = {"A": a, "B": np.zeros_like(a), "C": np.zeros_like(a)}
    found = run_reference(kernel.compilation.reference, given)
    wanted = a.copy()
    wanted[3, 5] += 1
    np.testing.assert_array_equal(found["C"].reshape(16, 8).T, wanted)
    if target == "cpu":
        kernel(*given.values())
        np.testing.assert_array_equal(given["C"], found["C"])
        np.testing.assert_array_equal(given["B"], found["C"])
    else:
        text = kernel.stage("bounded")
        assert "T.atomic_add(B[2, 11], T.float32(1))" in text
        assert "T.copy(B, C)" in text


def test_arrays_at_any_address_have_layouts_too() -> None:
    kernel = kernel_of("T.annotate_layout({A: lambda i, j: (j, i)})\nT.copy(A, O)").using(
        target="cuda:sm_80"
    )()
    traced = kernel.compilation.functions["tile"]
    general = under(traced, Variant(aligned=False), machine_of("sm_80"))
    assert parse_function(print_function(general).text, registry()) == general


def test_views_lie_where_their_buffers_do() -> None:
    found = everywhere(
        "V = T.reshape(A, (32, 128))\nT.annotate_layout({A: lambda i, j: (j, i)})\n"
        "T.copy(V[0:8, 0:64], O[0:8, :])"
    )
    np.testing.assert_array_equal(found["O"][:8], found["A"].T.reshape(32, 128)[:8, :64])
    body = (
        "S = T.alloc_shared((8, 8), 'float32')\nV = T.view(S, (64,))\n"
        "T.annotate_layout({V: lambda i: i})\nT.clear(S)"
    )
    assert told(kernel_of(body).using(target="cpu")()) == [
        "V is a view of S and lies where that does: the layout chooses nothing here"
    ]
    for word, value in (("annotate_layout", "lambda i: i"), ("annotate_safe_value", "1")):
        kernel = kernel_of(f"V = T.reshape(A, (4096,))\nT.{word}({{V: {value}}})")
        with pytest.raises(TileError, match="V is a view of A"):
            kernel()
