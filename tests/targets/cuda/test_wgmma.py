"""Products of warp groups: values in the simulator to the last bit, refusals, the text, and real cubins."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.simulated import card_words, run_threaded
from tests.targets.cuda.test_mma import EVERY_TURN, NUMPY, chained, check, numbers, product
from tilebench.errors import ScheduleError
from tilebench.ir import parse_function
from tilebench.ir.dtypes import ALL
from tilebench.kernel.edited import compile_from
from tilebench.layout import Fragment
from tilebench.schedule import Schedule
from tilebench.simulator import SimulationError
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.instructions.tensor_sums import product_sums
from tilebench.targets.cuda.machines import machine_of
from tilebench.targets.cuda.warp_groups import MatrixForm, WgmmaShape, shape_of

ASKED = Schedule.of(gemm={"C_l": {"instruction": "wgmma"}})
NT = (False, True)


def made(*shape: int, schedule: Schedule = ASKED, **options: Any) -> Any:
    """The product's kernel by warp groups."""
    return product.using(target="cuda:sm_90a", schedule=schedule)(*shape, **options)


def arrays_of(shape: tuple[int, int, int], options: dict[str, Any]) -> dict[str, Any]:
    m, n, k = shape
    ta, tb = options.get("turned", (False, False))
    ab, acc = options.get("ab", ("float16", "float16")), options.get("acc", "float32")
    rng = np.random.default_rng(5)
    a = numbers(rng, (k, m) if ta else (m, k), ab[0])
    b = numbers(rng, (n, k) if tb else (k, n), ab[1])
    return {"A": a, "B": b, "C": np.full((m, n), 77, NUMPY[acc])}


def by_the_card(arrays: dict[str, Any], options: dict[str, Any]) -> Any:
    """What sums of 32 bytes of k at a time give, from the first on, without a tile or an address."""
    ta, tb = options.get("turned", (False, False))
    a, b = (arrays["A"].T if ta else arrays["A"]), (arrays["B"].T if tb else arrays["B"])
    dtype = ALL[options.get("ab", ("float16", "float16"))[0]]
    start = np.zeros((1, *arrays["C"].shape), np.int32 if not dtype.is_float else np.float32)
    step = 32 * 8 // dtype.bits
    whole = -a.shape[1] % step
    a, b = np.pad(a, ((0, 0), (0, whole))), np.pad(b, ((0, whole), (0, 0)))
    for k in range(0, a.shape[1], step):
        start = product_sums(a[None, :, k : k + step], b[None, k : k + step], start, dtype)
    return start[0]


def simulated(kernel: Any, arrays: dict[str, Any]) -> Any:
    kernel.stage("threaded")
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    return arrays["C"]


def check_bits(shape: tuple[int, int, int], **options: Any) -> Any:
    kernel, arrays = made(*shape, **options), arrays_of(shape, options)
    assert "T.wgmma(" in kernel.stage("threaded")
    np.testing.assert_array_equal(simulated(kernel, arrays), by_the_card(arrays, options))
    return kernel


@pytest.mark.parametrize("turned", EVERY_TURN)
@pytest.mark.parametrize(
    ("shape", "options", "name"),
    [
        ((128, 96, 96), {"tile": (128, 96, 48), "threads": 256}, "m64n96k16"),
        # Extents that nothing divides, tiles that the instruction does not, a group over columns.
        ((100, 70, 60), {"tile": (48, 40, 32), "threads": 128}, "m64n40k16"),
        ((64, 104, 64), {"tile": (64, 96, 64), "threads": 256, "stages": 1}, "m64n48k16"),
        ((70, 40, 64), {"tile": (128, 64, 16), "threads": 384, "stages": 3}, "m64n64k16"),
        ((128, 64, 32), {"ab": ("bfloat16", "bfloat16"), "tile": (128, 64, 32), "threads": 128}, "m64n64k16"),
    ],
)
def test_products_to_the_last_bit(
    turned: tuple[bool, bool], shape: tuple[int, int, int], options: dict[str, Any], name: str
) -> None:
    kernel = check_bits(shape, turned=turned, **options)
    assert f'"{name}"' in kernel.stage("threaded")


@pytest.mark.parametrize(
    ("ab", "acc", "promises", "name"),
    [
        (("int8", "uint8"), "int32", (False, False), "m64n48k32"),
        (("float8_e4m3fn", "float8_e5m2"), "float32", (False, True), "m64n40k32"),
        (("float32", "float32"), "float32", (True, False), "m64n40k8"),
    ],
)
def test_products_of_other_widths(
    ab: tuple[str, str], acc: str, promises: tuple[bool, bool], name: str
) -> None:
    options = {"tile": (64, 40, 64), "threads": 128, "turned": NT, "ab": ab, "acc": acc, "promises": promises}
    kernel = check_bits((64, 72, 128), **options)
    assert f'"{name}"' in kernel.stage("threaded")
    # The same with the first operand in registers.
    kernel = check_bits((64, 40, 128), **options, fragments="a")
    assert re.search(r"T\.wgmma\(C_l, A_l\[", kernel.stage("threaded"))


def test_few_bits_of_a_sum_are_added_up_in_float32() -> None:
    options = {
        "tile": (64, 16, 256), "threads": 128, "turned": NT, "stages": 1,
        "ab": ("float8_e4m3fn", "float8_e4m3fn"),
    }  # fmt: skip
    kernel, arrays = made(64, 16, 512, **options), arrays_of((64, 16, 512), options)
    found = simulated(kernel, arrays)
    wanted = np.zeros((64, 16), np.float32)
    for first in range(0, 512, 128):
        part = {
            "A": arrays["A"][:, first : first + 128],
            "B": arrays["B"][:, first : first + 128],
            "C": found,
        }
        wanted = wanted + by_the_card(part, options)
    np.testing.assert_array_equal(found, wanted)
    # Waited for inside: a group of nothing would be an instruction more. One part is added while the next
    # is formed.
    text = kernel.stage("threaded")
    waits = re.findall(r"T\.wgmma_commit\(\)|T\.wgmma_wait\(c=part\w*(?:, pending=1)?\)", text)
    commit = "T.wgmma_commit()"
    assert waits == [commit, commit, "T.wgmma_wait(c=part, pending=1)", "T.wgmma_wait(c=part__2)"]


def test_parts_of_a_sum_that_a_thread_has_no_room_for_are_waited_for_one_by_one() -> None:
    ab = ("float8_e4m3fn", "float8_e4m3fn")
    options = {"tile": (64, 144, 256), "threads": 128, "turned": NT, "stages": 1, "ab": ab}
    text = made(64, 144, 256, **options).stage("threaded")
    assert (text.count("T.wgmma_commit("), text.count("T.wgmma_wait(")) == (1, 1)
    assert "for k2 in T.serial(2):" in text


def test_narrow_sums_are_rounded_once_and_sums_may_start_afresh() -> None:
    for options in (
        {"acc": "float16"},
        {"clear": 1},
        {"clear": 0, "ab": ("bfloat16", "bfloat16"), "acc": "bfloat16"},
    ):
        text = check(
            (64, 48, 96), "sm_90a", turned=NT, tile=(64, 48, 32), threads=128, schedule=ASKED, **options
        )
        assert "T.wgmma(" in text


def test_a_sum_is_the_next_operand_where_it_lies() -> None:
    both = Schedule.of(gemm={"s": {"instruction": "wgmma"}, "o": {"instruction": "wgmma"}})
    kernel = chained.using(target="cuda:sm_90a", schedule=both)(128, 64, 64, 48, threads=256)
    text = kernel.stage("laid_out")
    assert "T.convert_layout(" not in text
    # Sums start in their products, with nothing between but copies: of the second stands the first in front.
    assert text.count("clear_accum=True") == 2
    assert "T.fill(" not in text
    rng = np.random.default_rng(3)
    a, b, c = (rng.standard_normal(shape).astype(np.float16) for shape in ((128, 64), (64, 64), (64, 48)))
    out, most = np.full((128, 48), np.nan, np.float32), np.full(128, np.nan, np.float32)
    arrays = {"A": a / 8, "B": b, "C": c, "Out": out, "Most": most}
    kernel.stage("threaded")
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    zero = np.zeros((1, 128, 64), np.float32)
    s = product_sums(arrays["A"][None], b.T[None], zero, ALL["float16"])[0]
    p = (s * s).astype(np.float16)
    np.testing.assert_array_equal(most, s.max(axis=1))
    wanted = product_sums(p[None], c[None], np.zeros((1, 128, 48), np.float32), ALL["float16"])[0]
    np.testing.assert_array_equal(out, wanted)
    assert compiled(kernel).advisories == ()


def compiled(kernel: Any) -> Any:
    return compile_cuda(kernel.stage("cuda"), machine_of("sm_90a"))


# -- refusals


@pytest.mark.parametrize(
    ("options", "message", "more"),
    [
        (
            {"threads": 64},
            "wgmma works on 128 threads at a time, and this product has threads 0 to 63",
            "expected: a multiple of 128 threads, from one on",
        ),
        (
            {"tile": (64, 64, 24), "threads": 128},
            "wgmma sums 16 terms at a time, and the tiles of this product have k=24",
            "expected: a k that 16 divides",
        ),
        (
            {"threads": 128, "ab": ("int8", "int8"), "acc": "int32", "turned": (False, False)},
            "wgmma reads operands of 8 bits along k, and rows of B_s run across it",
            "help: give B as (n, k), with transpose_B=True",
        ),
        (
            {"threads": 128, "ab": ("float8_e4m3fn", "float8_e4m3fn"), "turned": (True, True)},
            "wgmma reads operands of 8 bits along k, and rows of A_s run across it",
            "help: give A as (m, k)",
        ),
        (
            {"threads": 256, "tile": (64, 48, 32), "turned": (False, False), "policy": "full_col"},
            "wgmma reads B_s in panels of 16 columns at least, and parts of it are 24 wide",
            "help: make each warp group's part a multiple of 16 wide, or split along rows",
        ),
        (
            {"threads": 128, "ab": ("float64", "float64"), "acc": "float64"},
            "wgmma does not multiply float64 and float64 into float64",
            "help: its table holds: float16 float16 float32",
        ),
        (
            {"threads": 128, "ab": ("float32", "float32")},
            "wgmma multiplies float32 and float32 into float32 where T.gemm says allow_tf32=True",
            "",
        ),
    ],
)
def test_what_it_cannot_do_is_refused_at_the_product(
    options: dict[str, Any], message: str, more: str
) -> None:
    with pytest.raises(ScheduleError) as caught:
        made(128, 128, 96, **{"tile": (64, 64, 32), "turned": NT, **options}).stage("laid_out")
    assert caught.value.message == message
    assert more in str(caught.value)
    assert "T.gemm(" in str(caught.value)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("layout=T.SharedLayout((64, 64), (64, 1))", "wgmma cannot read A_s where its layout has it"),
        (
            "layout=T.SharedLayout((64, 64), (64, 1), swizzle=T.Swizzle(2, 3, 3))",
            "wgmma cannot read A_s where its layout has it",
        ),
        ("swizzle=False", "wgmma reads A_s in swizzled panels, and swizzle=False says that it is none"),
    ],
)
def test_a_layout_that_it_cannot_read_is_refused(where: str, message: str) -> None:
    kernel = made(64, 64, 64, tile=(64, 64, 64), threads=128, turned=NT)
    text = kernel.stage("bounded")
    told = text.replace(
        "A_s = T.alloc_shared((64, 64), T.float16)", f"A_s = T.alloc_shared((64, 64), T.float16, {where})"
    )
    assert told != text
    with pytest.raises(ScheduleError) as caught:
        compile_from("bounded", told, like=kernel).stage("laid_out")
    assert caught.value.message == message


def test_an_annotated_layout_that_it_can_read_is_kept() -> None:
    kernel = made(64, 64, 64, tile=(64, 64, 64), threads=128, turned=NT)
    own = "T.SharedLayout((64, (32, 2)), (32, (1, 2048)), swizzle=T.Swizzle(2, 3, 3))"
    text = kernel.stage("bounded").replace(
        "A_s = T.alloc_shared((64, 64), T.float16)",
        f"A_s = T.alloc_shared((64, 64), T.float16, layout={own})",
    )
    edited = compile_from("bounded", text, like=kernel)
    assert "a_form=T.MatrixForm(64, 512)" in edited.stage("threaded")
    arrays = arrays_of((64, 64, 64), {"turned": NT})
    run_threaded(edited.compilation.functions["threaded"], arrays, warp=32)
    np.testing.assert_array_equal(arrays["C"], by_the_card(arrays, {"turned": NT}))


# -- what the simulator refuses

SMALL = {"tile": (64, 16, 32), "threads": 128, "turned": NT, "stages": 1}
FIRST = "A_s[k1 * 16 : k1 * 16 + 2032]"


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (
            "T.fence_async_shared()\n",
            "A_s is read past the view of threads, and thread 0 wrote it without T.fence_async",
        ),
        ("T.wgmma_fence()\n", "C_l was written after the last T.wgmma_fence, and T.wgmma uses it"),
        ("T.wgmma_commit()\n", "the token wgmma is waited for, and nothing was committed to it"),
        ("T.wgmma_wait(c=C_l)\n", "C_l is read while T.wgmma of line"),
        (("T.wgmma_wait(c=C_l)", "T.wgmma_wait(c=C_l, pending=1)"), "C_l is read while T.wgmma of line"),
        (
            ('T.sync_threads(why="A_s: read after write")\n', ""),
            "a race in shared memory: a read of A_s by thread",
        ),
        ((FIRST, FIRST.replace("k1", "4 + k1")), "T.wgmma reads A_s from an address that 16 does not divide"),
        (
            (FIRST, FIRST.replace("k1", "tid * 8 + k1")),
            "the threads of a warp group name different parts of A_s",
        ),
        (('"m64n16k16"', '"m64n24k16"'), "T.wgmma has no shape m64n24k16 for these operands"),
    ],
)
def test_a_wrong_order_of_words_is_refused(change: str | tuple[str, str], refusal: str) -> None:
    kernel = made(64, 16, 32, **SMALL)
    text = kernel.stage("threaded")
    before, after = change if isinstance(change, tuple) else (change, "")
    if after == "":
        wrong = "\n".join(line for line in text.splitlines() if before.strip() not in line)
    else:
        wrong = text.replace(before, after)
    assert wrong.strip() != text.strip()
    function = parse_function(wrong, card_words())
    arrays = arrays_of((64, 16, 32), SMALL)
    with pytest.raises(SimulationError) as caught:
        run_threaded(function, arrays, warp=32)
    assert caught.value.message.startswith(refusal)


HELD = {"tile": (64, 8, 16), "threads": 128, "turned": NT, "stages": 1, "fragments": "a"}
HELD_TF32 = {**HELD, "ab": ("float32", "float32"), "promises": (True, False)}
ONE = "            T.wgmma({c}, A_l[{a}], B_s[{b} : {b} + 120], {rest})\n"


@pytest.mark.parametrize(
    ("between", "refusal"),
    [
        ("", "A_l is written while T.wgmma of line"),
        ("            T.wgmma_commit()\n            T.wgmma_wait()\n            T.wgmma_fence()\n", ""),
    ],
)
def test_sums_in_registers_that_another_product_reads(between: str, refusal: str) -> None:
    """The second of two products sums where the first, which is under way, has its operand."""
    kernel, arrays = made(64, 8, 16, **HELD_TF32), arrays_of((64, 8, 16), HELD_TF32)
    lines = kernel.stage("threaded").splitlines(keepends=True)
    at = next(k for k, line in enumerate(lines) if "T.wgmma(" in line)
    rest = lines[at][lines[at].index('"m64') : lines[at].rindex(")")]
    first = ONE.format(c="C_l", a="0 : 4", b="0", rest=rest)
    second = ONE.format(c="A_l[0:4]", a="4 : 8", b="8", rest=rest)
    lines[at - 1 : at + 1] = [first, between, second]
    function = parse_function("".join(lines), card_words())
    if not refusal:
        run_threaded(function, arrays, warp=32)
        return
    with pytest.raises(SimulationError) as caught:
        run_threaded(function, arrays, warp=32)
    assert caught.value.message.startswith(refusal)


def test_a_descriptor_that_says_another_layout_gives_other_numbers() -> None:
    kernel, arrays = made(64, 16, 32, **SMALL), arrays_of((64, 16, 32), SMALL)
    text = kernel.stage("threaded")
    assert "b_form=T.MatrixForm(64, 512)" in text
    other = parse_function(
        text.replace("b_form=T.MatrixForm(64, 512)", "b_form=T.MatrixForm(32, 512)"), card_words()
    )
    run_threaded(other, arrays, warp=32)
    assert (arrays["C"] != by_the_card(arrays, SMALL)).any()


# -- the facts of the instruction


def test_the_fragments_are_those_of_the_documentation() -> None:
    """PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma.mma_async."""
    c, a = WgmmaShape(16, 16).c, WgmmaShape(16, 16).a
    for thread in (0, 1, 5, 31, 32, 77, 127):
        warp, lane = divmod(thread, 32)
        for value in range(8):
            row = 16 * warp + lane // 4 + 8 * (value // 2 % 2)
            column = lane % 4 * 2 + value % 2 + 8 * (value // 4)
            assert tuple(int(x) for x in c.coordinates(np.array(thread), np.array(value))) == (row, column)
            k = lane % 4 * 2 + value % 2 + 8 * (value // 4)
            assert tuple(int(x) for x in a.coordinates(np.array(thread), np.array(value))) == (row, k)
    assert a == Fragment((64, 16), ((4, 1, 2), (8, 0, 1), (4, 0, 16)), ((2, 1, 1), (2, 0, 8), (2, 1, 8)))
    assert shape_of("m64n264k16", 16) is None
    assert shape_of("m64n12k16", 16) is None
    assert shape_of("m64n8k16", 8) is None


def test_addresses_of_a_descriptor() -> None:
    """Rows of 128 bytes, eight of them an atom: unit u of row r stands at u ^ r % 8."""
    along = MatrixForm(128, 1024).bytes_of(2048 + 32, 64, 16, 2)
    assert along.shape == (64, 16)
    assert along[0, 0] == 2048 + 32
    assert along[3, 8] == 2048 + 3 * 128 + (3 ^ 3) * 16
    assert along[9, 1] == 2048 + 1024 + 128 + (2 ^ 1) * 16 + 2
    across = MatrixForm(64, 512, 2048, turned=True).bytes_of(0, 64, 16, 2)
    # Column 33 is in the second panel of 32; row 9 is line 1 of the second 8, whose lines are half as long.
    assert across[33, 9] == 2048 + 512 + 64 + (0 ^ (64 >> 7)) * 16 + 2
    assert across[40, 10] == 2048 + 512 + 128 + (1 ^ 1) * 16
    assert MatrixForm(128, 1024).high == 0x40000040
