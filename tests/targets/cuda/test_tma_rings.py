"""Copies in boxes as a schedule asks for them: rings on barriers, edges, refusals, and code for a card."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.everywhere import arrays_of, kernel_of
from tests.simulated import card_words, run_threaded
from tilebench.errors import IRError, LayoutError, ScheduleError
from tilebench.ir import parse_function
from tilebench.ir.sizes import for_sizes
from tilebench.kernel.edited import compile_from
from tilebench.reference import run_reference
from tilebench.schedule import Schedule
from tilebench.simulator import SimulationError

RING = """
S = T.alloc_shared({box}, "{dtype}")
for k in T.Pipelined({turns}, num_stages={stages}):
    T.copy(A[{at}], S)
    T.copy(S, O[k * {rows}, 0])
"""


def by_boxes(body: str, head: str, *names: str, threads: int = 128, **choices: Any) -> Any:
    """A kernel of one block, on the card that has boxes, whose copies into these tiles go in them."""
    named = {name: {"instruction": "tma"} for name in names}
    schedule = Schedule.of(copy=named, **choices)
    kernel = kernel_of(body, head, threads).using(target="cuda:sm_90a", schedule=schedule)()
    kernel.stage("threaded")
    return kernel


def run(kernel: Any) -> None:
    """The simulator gives what the reference gives."""
    function, threaded = kernel.compilation.reference, kernel.compilation.functions["threaded"]
    arrays = arrays_of(function)
    wanted = {**arrays, **run_reference(function, {name: each.copy() for name, each in arrays.items()})}
    run_threaded(threaded, arrays, warp=32)
    for name, array in wanted.items():
        np.testing.assert_array_equal(arrays[name].view(np.uint8), array.view(np.uint8), err_msg=name)


def ring(
    rows: int, columns: int, box: tuple[int, int], dtype: str, at: int | str, stages: int, turns: int = 4
) -> tuple[str, str]:
    m, n = box
    head = f'A: T.Tensor(({rows}, {columns}), "{dtype}"), O: T.Tensor(({turns * m}, {n}), "{dtype}")'
    where = f"k * {m}, {at}"
    return RING.format(box=box, dtype=dtype, turns=turns, stages=stages, at=where, rows=m), head


CASES = [
    (64, 64, (16, 64), "float16", 0, 3),
    (50, 72, (16, 64), "float16", 24, 2),
    (50, 72, (16, 64), "bfloat16", -8, 4),
    (64, 128, (16, 128), "float16", 0, 3),
    (100, 96, (24, 96), "float16", 0, 3),
    (61, 40, (16, 32), "float32", 12, 3),
    (64, 512, (16, 512), "int8", 0, 2),
    (64, 48, (16, 48), "float8_e4m3fn", 0, 3),
    (20, 16, (8, 16), "float64", 0, 2),
    (64, 64, (16, 32), "uint32", 40, 3),
]


@pytest.mark.parametrize(("rows", "columns", "box", "dtype", "at", "stages"), CASES)
def test_a_ring_of_boxes_brings_what_the_reference_has(
    rows: int, columns: int, box: tuple[int, int], dtype: str, at: int, stages: int
) -> None:
    kernel = by_boxes(*ring(rows, columns, box, dtype, at, stages), "S")
    assert 'by=T.Instr("tma", box=' in kernel.stage("laid_out")
    assert "T.tma_load(" in kernel.stage("threaded")
    run(kernel)


@pytest.mark.parametrize("turns", [1, 2, 3, 7])
def test_a_loop_shorter_and_longer_than_its_stages(turns: int) -> None:
    run(by_boxes(*ring(112, 64, (16, 64), "float16", 0, 4, turns), "S"))


RANKS = [
    ("(300,)", "(64,)", "k * 64", "k * 64", "(256,)"),
    ("(4, 40, 64)", "(1, 16, 64)", "k, 3, 0", "k * 16, 0", "(64, 64)"),
    ("(4, 9, 6, 32)", "(4, 3, 32)", "k, 6, 1, 0", "k * 4, 0, 0", "(16, 3, 32)"),
    ("(2, 4, 3, 8, 16)", "(3, 8, 16)", "1, k, 0, 0, 0", "k * 3, 0, 0", "(12, 8, 16)"),
]


@pytest.mark.parametrize(("shape", "box", "at", "to", "out"), RANKS)
def test_arrays_of_one_to_five_dimensions(shape: str, box: str, at: str, to: str, out: str) -> None:
    head = f'A: T.Tensor({shape}, "float32"), O: T.Tensor({out}, "float32")'
    body = f"""
S = T.alloc_shared({box}, "float32")
for k in T.Pipelined(4, num_stages=3):
    T.copy(A[{at}], S)
    T.copy(S, O[{to}])
"""
    kernel = by_boxes(body, head, "S")
    assert "T.tma_load(" in kernel.stage("threaded")
    run(kernel)
    assert f"UTMALDG.{shape.count(',') + (shape != '(300,)')}D" in kernel.stage("sass")


PRODUCT = """
A_s = T.alloc_shared((64, 64), "float16")
B_s = T.alloc_shared((64, 64), "float16")
C_l = T.alloc_fragment((64, 64), "float32")
C_s = T.alloc_shared((64, 64), "float32")
for t in T.serial(2):
    T.clear(C_l)
    for ko in T.Pipelined(5, num_stages=3):
        T.copy(A[t * 64, ko * 64], A_s)
        T.copy(B[0, ko * 64], B_s)
        T.gemm(A_s, B_s, C_l, transpose_B=True)
    T.copy(C_l, C_s)
    T.copy(C_s, O[t * 64, 0])
"""
OPERANDS = (
    'A: T.Tensor((100, 300), "float16"), B: T.Tensor((50, 300), "float16"), O: T.Tensor((128, 64), "float32")'
).replace("300", "304")


@pytest.mark.parametrize("instruction", ["mma", "wgmma"])
def test_a_product_whose_ring_goes_on_through_an_outer_loop(instruction: str) -> None:
    kernel = by_boxes(PRODUCT, OPERANDS, "A_s", "B_s", gemm={"C_l": {"instruction": instruction}})
    text = kernel.stage("pipelined")
    assert "T.mbarrier_wait(ko_full.version((t * 5 + ko) % 3), (t * 5 + ko) % 6 // 3)" in text
    arrays = {p.name: np.zeros(p.extents, p.dtype.numpy) for p in kernel.compilation.reference.arrays}
    rng = np.random.default_rng(0)
    for name in "AB":
        arrays[name][...] = rng.integers(-3, 4, arrays[name].shape)
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    wanted = np.zeros((128, 64), np.float32)
    wanted[:100, :50] = arrays["A"].astype(np.float32) @ arrays["B"].T.astype(np.float32)
    np.testing.assert_array_equal(arrays["O"], wanted)
    sass = kernel.stage("sass")
    assert "UTMALDG.2D" in sass
    assert "SYNCS.PHASECHK" in sass
    assert ("HGMMA" if instruction == "wgmma" else "HMMA") in sass
    assert kernel.compilation.build.resources.spill_store_bytes == 0


@pytest.mark.parametrize("length", ["4", "t"])
@pytest.mark.parametrize("condition", ["t != 1", "t > 9"])
def test_phases_are_counted_where_loops_do_not_say_them(length: str, condition: str) -> None:
    body = f"""
S = T.alloc_shared((8, 64), "float16")
T.clear(S)
for t in T.serial(5):
    if {condition}:
        for k in T.Pipelined({length}, num_stages=3):
            T.copy(A[t * 16 + k * 8, 0], S)
            T.copy(S, O[t * 16 + k * 8, 0])
"""
    head = 'A: T.Tensor((128, 64), "float16"), O: T.Tensor((128, 64), "float16")'
    kernel = by_boxes(body.replace("T.clear(S)\n", ""), head, "S")
    assert "k_filled = k_filled + " in kernel.stage("pipelined")
    run(kernel)


def test_two_loops_in_turn_and_a_copy_alone() -> None:
    body = """
Q = T.alloc_shared((32, 64), "float16")
S = T.alloc_shared((16, 64), "float16")
for t in T.serial(3):
    T.copy(A[t * 32, 0], Q)
    T.copy(Q, O[t * 32, 0])
    for k in T.Pipelined(2, num_stages=2):
        T.copy(A[k * 16 + 8, 0], S)
        T.copy(S, P[t * 32 + k * 16, 0])
    for k in T.Pipelined(3, num_stages=3):
        T.copy(A[k * 16, 0], S)
        T.copy(S, R[t * 48 + k * 16, 0])
"""
    head = ", ".join(f'{name}: T.Tensor(({rows}, 64), "float16")'
                     for name, rows in (("A", 96), ("O", 96), ("P", 96), ("R", 144)))  # fmt: skip
    kernel = by_boxes(body, head, "Q", "S#1", "S#2")
    assert "T.mbarrier_wait(Q_full.version(0), t % 2)" in kernel.stage("pipelined")
    run(kernel)


def test_stages_of_a_kernels_own() -> None:
    body = """
S = T.alloc_shared((16, 64), "float16")
U = T.alloc_shared((16, 64), "float16")
for t in T.serial(2):
    for k in T.Pipelined(6, stage=[0, 1, 2], order=[2, 1, 0]):
        T.copy(A[k * 16, 0], S)
        T.copy(S, U)
        T.copy(U, O[t * 96 + k * 16, 0])
"""
    head = 'A: T.Tensor((90, 64), "float16"), O: T.Tensor((192, 64), "float16")'
    kernel = by_boxes(body, head, "S")
    assert "with T.stage(2):" in kernel.stage("bounded")
    assert "T.tma_load(" in kernel.stage("threaded")
    run(kernel)


@tilebench.jit
def rows_of_a_launch():
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m, 64), "float16"), B: T.Tensor((m, 64), "float16")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((16, 64), "float16")
            for k in T.Pipelined(T.ceildiv(m, 16), num_stages=3):
                T.copy(A[k * 16, 0], S)
                T.copy(S, B[k * 16, 0])

    return main


def test_a_number_of_turns_that_a_launch_brings() -> None:
    schedule = Schedule.of(copy={"S": {"instruction": "tma"}})
    made = rows_of_a_launch.using(target="cuda:sm_90a", schedule=schedule)()
    assert "T.tma_load(" in made.stage("threaded")
    assert "// A_map is of A: float16 (m, 64), strides (64, 1), boxes of 16 x 64" in made.stage("cuda")
    for rows in (0, 1, 16, 50, 90):
        a, b = np.ones((rows, 64), np.float16), np.zeros((rows, 64), np.float16)
        sized = for_sizes(made.compilation.functions["threaded"], {"m": rows})
        run_threaded(sized, {"A": a, "B": b}, warp=32)
        np.testing.assert_array_equal(b, a)


def told(kernel: Any) -> list[str]:
    return [r.message for r in kernel.compilation.context.remarks if r.message.startswith("tma does not")]


@pytest.mark.parametrize(
    ("rows", "columns", "box", "dtype", "at", "why"),
    [
        (50, 61, (16, 64), "float16", 0, "a stride of A is 122 bytes, no multiple of 16"),
        (50, 64, (16, 60), "float16", 0, "its rows have 120 bytes, no multiple of 16"),
        (64, 64, (16, 64), "int4", 0, "elements of 4 bits share bytes"),
        (
            61,
            40,
            (16, 32),
            "float32",
            3,
            "its rows start at element 3 of A's, which is not a multiple of 4 (16 bytes)",
        ),
        (
            50,
            72,
            (16, 64),
            "bfloat16",
            "k * 4 + 4",
            "its rows start at element k * 4 + 4 of A's, which is not known to be a multiple of 8 (16 bytes)",
        ),
        (
            50,
            72,
            (16, 64),
            "bfloat16",
            "k * 8 + 4",
            "its rows start at element k * 8 + 4 of A's, which is not a multiple of 8 (16 bytes)",
        ),
    ],
)
def test_what_boxes_do_not_take_goes_by_another_instruction(
    rows: int, columns: int, box: tuple[int, int], dtype: str, at: int | str, why: str
) -> None:
    kernel = by_boxes(*ring(rows, columns, box, dtype, at, 3), "S")
    assert told(kernel) == [f"tma does not take this copy: {why}"]
    assert "T.tma_load" not in kernel.stage("threaded")
    run(kernel)


def test_what_cannot_go_in_boxes_goes_on_by_itself_otherwise() -> None:
    body, head = ring(50, 64, (16, 64), "float16", 0, 3)
    layout = "T.annotate_layout({S: T.Layout((16, 64), lambda i, j: i * 72 + j)})\nfor k"
    kernel = by_boxes(body.replace("for k", layout), head, "S")
    assert told(kernel) == [
        "tma does not take this copy: a box would start at byte 144 of S, no multiple of 128"
    ]
    assert "T.cp_async(" in kernel.stage("threaded")
    run(kernel)


def test_a_card_that_has_none_says_what_it_has() -> None:
    body, head = ring(64, 64, (16, 64), "float16", 0, 3)
    schedule = Schedule.of(copy={"S": {"instruction": "tma"}})
    with pytest.raises(ScheduleError) as caught:
        kernel_of(body, head).using(target="cuda:sm_80", schedule=schedule)().stage("laid_out")
    assert caught.value.message == "cuda:sm_80 has no copy instruction tma"


def test_nobody_gets_boxes_whose_tiles_threads_read() -> None:
    body, head = ring(64, 64, (16, 64), "float16", 0, 3)
    text = kernel_of(body, head).using(target="cuda:sm_90a")().stage("threaded")
    assert "T.cp_async(" in text
    assert not any(word in text for word in ("T.tma_load", "T.mbarrier", "T.fence"))
    named = Schedule.of(gemm={"C_l": {"instruction": "mma"}})
    product = kernel_of(PRODUCT, OPERANDS).using(target="cuda:sm_90a", schedule=named)()
    assert 'by=T.Instr("mma")' in product.stage("laid_out")
    assert "tma" not in product.stage("threaded")


def test_boxes_and_other_copies_share_a_ring() -> None:
    kernel = by_boxes(PRODUCT, OPERANDS, "A_s", gemm={"C_l": {"instruction": "mma"}})
    text = kernel.stage("threaded")
    assert "T.tma_load(A_s" in text
    assert "T.cp_async(B_s" in text
    run_threaded(
        kernel.compilation.functions["threaded"],
        {p.name: np.zeros(p.extents, p.dtype.numpy) for p in kernel.compilation.reference.arrays},
        warp=32,
    )


def test_what_threads_wrote_to_its_bytes_passes_a_fence_first() -> None:
    body = """
X = T.alloc_shared((16, 64), "float16")
T.copy(A[0, 0], X)
for i, j in T.Parallel(16, 64):
    P[i, j] = X[15 - i, j]
S = T.alloc_shared((16, 64), "float16")
for k in T.Pipelined(4, num_stages=3):
    T.copy(A[k * 16, 0], S)
    T.copy(S, O[k * 16, 0])
"""
    head = ", ".join(f'{n}: T.Tensor(({r}, 64), "float16")' for n, r in (("A", 64), ("P", 16), ("O", 64)))
    kernel = by_boxes(body, head, "S")
    text = kernel.stage("threaded")
    assert text.count("T.fence_async_shared()") == 1
    run(kernel)
    without = parse_function(text.replace("        T.fence_async_shared()\n", ""), card_words())
    with pytest.raises(SimulationError, match=r"S is overwritten .* without T\.fence_async_shared\(\) since"):
        run_threaded(without, arrays_of(without), warp=32)


EDITS = [
    (("box=(16, 64)", "box=(8, 64)"), LayoutError,
     "tma cannot move S in boxes of (8, 64) with swizzle=0: its layout gives box=(16, 64), swizzle=0"),
    (("box=(16, 64)", "box=(16, 64), swizzle=128"), LayoutError,
     "tma cannot move S in boxes of (16, 64) with swizzle=128: its layout gives box=(16, 64), swizzle=0"),
    ((", barrier=k_full.version((k + 2) % 3)", ""), LayoutError, "a copy by tma has a barrier, and a box"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "kind", "said"), EDITS)
def test_an_edited_stage_is_obeyed_or_refused(change: tuple[str, str], kind: Any, said: str) -> None:
    kernel = by_boxes(*ring(64, 64, (16, 64), "float16", 0, 3), "S")
    text = kernel.stage("pipelined")
    assert change[0] in text
    with pytest.raises((kind, IRError)) as caught:
        compile_from("pipelined", text.replace(*change), like=kernel).stage("threaded")
    assert caught.value.message == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("k_slot__3 // 3", "(k_slot__3 // 3 + 1) % 2"), "wait for phase 1 of k_full[0], of parity 1"),
        (("bytes=2048", "bytes=1024"), "bytes have come"),
        (('            T.sync_threads(why="S: write after read")\n', ""), "a race in shared memory"),
        (
            ("            T.mbarrier_wait(k_full[k_slot__2 : k_slot__2 + 1], k_slot__3 // 3)\n", ""),
            "has not waited",
        ),
    ],
)
def test_a_ring_that_is_wrong_is_refused_by_the_simulator(change: tuple[str, str], said: str) -> None:
    body, head = ring(112, 64, (16, 64), "float16", 0, 3, 7)
    loop = "for i, j in T.Parallel(16, 64):\n        O[k * 16 + i, j] = S[15 - i, j]"
    text = by_boxes(body.replace("T.copy(S, O[k * 16, 0])", loop), head, "S").stage("threaded")
    assert change[0] in text
    function = parse_function(text.replace(*change), card_words())
    with pytest.raises(SimulationError) as caught:
        run_threaded(function, arrays_of(function), warp=32)
    assert said in caught.value.message


TILES = """
A_s = T.alloc_shared((64, 64), "float16")
B_s = T.alloc_shared((64, 64), "float16")
C_l = T.alloc_fragment((64, 64), "float32")
C_s = T.alloc_shared((64, 64), "float32")
for wave in T.serial(3):
    if wave * 2 + 1 < 6:
        T.clear(C_l)
        for ko in T.Pipelined(4, num_stages=3):
            T.copy(A[wave * 64, ko * 64], A_s)
            T.copy(B[0, ko * 64], B_s)
            T.gemm(A_s, B_s, C_l, transpose_B=True)
        T.copy(C_l, C_s)
        T.copy(C_s, O[wave * 64, 0])
"""


def test_tiles_one_after_the_other_by_products_of_warp_groups_and_stores() -> None:
    """What a block that stays on its multiprocessor does: rings, products and stores share bytes."""
    shapes = {"A": ("(150, 208)", "float16"), "B": ("(60, 208)", "float16"), "O": ("(150, 64)", "float32")}
    head = ", ".join(f'{name}: T.Tensor({shape}, "{dtype}")' for name, (shape, dtype) in shapes.items())
    kernel = by_boxes(TILES, head, "A_s", "B_s", "O", gemm={"C_l": {"instruction": "wgmma"}})
    text = kernel.stage("threaded")
    step = text[text.index("for ko in") : text.index("T.wgmma_wait(c=C_l)")]
    assert step.count("T.sync_threads") == 1
    assert "ko_filled" not in text
    arrays = {p.name: np.zeros(p.extents, p.dtype.numpy) for p in kernel.compilation.reference.arrays}
    rng = np.random.default_rng(0)
    for name in "AB":
        arrays[name][...] = rng.integers(-3, 4, arrays[name].shape)
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    wanted = np.zeros((150, 64), np.float32)
    wanted[:, :60] = arrays["A"].astype(np.float32) @ arrays["B"].T.astype(np.float32)
    np.testing.assert_array_equal(arrays["O"], wanted)
    assert kernel.resources.spill_store_bytes == 0
