"""Copies of boxes by the tensor memory accelerator: values, edges, refusals, maps and their text."""

from __future__ import annotations

import struct
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.everywhere import kernel_of
from tests.simulated import card_words, run_threaded
from tilebench.errors import ArgumentError, TargetError
from tilebench.ir import Function, parse_function
from tilebench.ir.dtypes import ALL, DType
from tilebench.kernel.edited import compile_from
from tilebench.layout import atom_layout
from tilebench.passes.context import Context
from tilebench.runtime.describe import ArrayInfo
from tilebench.simulator import SimulationError
from tilebench.targets.build import Build
from tilebench.targets.cuda.instructions.tma import CLASSES
from tilebench.targets.cuda.machines import machine_of
from tilebench.targets.cuda.run import driver as driver_module
from tilebench.targets.cuda.run import load
from tilebench.targets.cuda.tensor_maps import Encoding, encoding_of, tensor_maps
from tilebench.targets.devices import card

from .fake_driver import FakeDriver
from .tma_kernels import box


def dtype_of(name: str) -> DType:
    return ALL[name]


def parsed(text: str) -> Function:
    return parse_function(text, card_words())


def arrays_of(function: Function) -> dict[str, Any]:
    """Every element of A another bit pattern than its neighbours, and none of them zero."""
    a, o = function.arrays
    bits = np.arange(1, 1 + a.size * a.dtype.numpy.itemsize) % 251 + 1
    raw = bits.astype(np.uint8).view(a.dtype.numpy).reshape(a.extents)
    return {"A": raw, "O": np.zeros(o.extents, o.dtype.numpy)}


def expected(array: Any, start: tuple[int, ...], extent: tuple[int, ...]) -> Any:
    """The box, element by element: zeros outside of the array."""
    out = np.zeros(extent, array.dtype)
    for place in np.ndindex(*extent):
        index = tuple(a + b for a, b in zip(start, place, strict=True))
        if all(0 <= k < n for k, n in zip(index, array.shape, strict=True)):
            out[place] = array[index]
    return out


# The array, its dtype, where the box starts, its extents, its swizzle.
BOXES = [
    ((100,), "float32", (8,), (64,), 0),
    ((100,), "float32", (-4,), (32,), 0),
    ((100,), "float32", (88,), (32,), 0),
    ((100,), "int8", (208,), (32,), 0),
    ((40, 72), "float16", (3, 8), (16, 64), 0),
    ((40, 72), "float16", (32, -8), (16, 64), 128),
    ((40, 72), "bfloat16", (-5, 16), (24, 64), 128),
    ((40, 72), "float16", (3, 40), (16, 32), 64),
    ((40, 72), "float16", (38, 64), (8, 16), 32),
    ((33, 80), "float8_e4m3fn", (0, 0), (40, 64), 64),
    ((9, 40), "float32", (1, 4), (8, 32), 128),
    ((9, 40), "float64", (1, 30), (8, 16), 128),
    ((5, 9, 24), "float16", (4, 2, 8), (2, 8, 16), 32),
    ((3, 5, 6, 16), "int32", (2, -1, 4, 0), (2, 3, 4, 16), 64),
    ((2, 3, 4, 5, 8), "int16", (1, 1, 1, 1, 0), (2, 2, 2, 2, 8), 0),
    ((2, 3, 4, 5, 32), "float32", (0, 2, 0, 4, 4), (1, 2, 2, 2, 8), 32),
]


@pytest.mark.parametrize(("shape", "dtype", "start", "extent", "swizzle"), BOXES)
def test_a_box_lies_in_shared_memory_as_its_map_says(
    shape: tuple[int, ...], dtype: str, start: tuple[int, ...], extent: tuple[int, ...], swizzle: int
) -> None:
    function = parsed(box(shape, dtype_of(dtype), start, extent, swizzle))
    arrays = arrays_of(function)
    run_threaded(function, arrays, warp=32)
    wanted = expected(arrays["A"], start, extent)
    found = arrays["O"]
    if swizzle:
        # Where a layout of the same atoms has the elements; rows of more dimensions follow each other.
        rows = (wanted.size // extent[-1], extent[-1])
        layout = atom_layout(rows, dtype_of(dtype).bits, swizzle)
        found = found[layout.all_offsets().reshape(-1)]
    np.testing.assert_array_equal(found.view(np.uint8), wanted.reshape(-1).view(np.uint8))


def compiled(text: str, arch: str = "sm_90a") -> Any:
    function = parsed(text)
    head = ", ".join(f'{p.name}: T.Tensor({p.extents}, "{p.dtype.name}")' for p in function.arrays)
    like = kernel_of("pass", head).using(target=f"cuda:{arch}")()
    return compile_from("threaded", text, like=like)


@pytest.mark.parametrize(("shape", "extent"), [(each[0], each[3]) for each in BOXES if each[4] == 0])
def test_it_is_the_instruction_of_its_rank(shape: tuple[int, ...], extent: tuple[int, ...]) -> None:
    made = compiled(box(shape, dtype_of("float32"), (0,) * len(shape), extent))
    rank = len(shape)
    instruction = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    assert instruction in made.stage("ptx").replace("global.mbarrier", "global.tile.mbarrier")
    assert f"UTMALDG.{rank}D" in made.stage("sass")
    assert "SYNCS.ARRIVE.TRANS64" in made.stage("sass")


def test_a_map_is_a_parameter_and_is_told() -> None:
    text = compiled(box((40, 72), dtype_of("float16"), (32, -8), (16, 64), 128)).stage("cuda")
    assert (
        "// A_map is of A: float16 (40, 72), strides (72, 1), boxes of 16 x 64, swizzle of 128 bytes, zeros"
        " outside, 256 bytes to L2"
    ) in text
    assert "const __grid_constant__ tb_tensor_map A_map)" in text
    assert "tb_tma_load_2d(S, A_map, full, -8, 32);" in text


def test_one_map_serves_all_boxes_alike_and_others_have_their_own() -> None:
    text = box((40, 72), dtype_of("float16"), (0, 0), (16, 64))
    line = next(line for line in text.splitlines() if "tma_load" in line)
    again, other = line.replace("0 : 16", "8 : 24"), line.replace("full[0:1])", "full[0:1], swizzle=128)")
    more = text.replace(line, f"{line}\n{again}\n{other}")
    maps = tensor_maps(parsed(more))
    assert [(each.box, each.swizzle) for each in maps] == [((16, 64), 0), ((16, 64), 128)]
    both = "tb_tensor_map A_map, const __grid_constant__ tb_tensor_map A_map_1)"
    assert both in compiled(more).stage("cuda")


@pytest.mark.parametrize(
    ("shape", "dtype", "extent", "swizzle", "wanted"),
    [
        ((100,), "float32", (64,), 0, Encoding(7, (100,), (), (64,), 0)),
        ((40, 72), "float16", (16, 64), 128, Encoding(6, (72, 40), (144,), (64, 16), 3)),
        ((40, 72), "bfloat16", (16, 32), 64, Encoding(9, (72, 40), (144,), (32, 16), 2)),
        ((33, 80), "float8_e4m3fn", (40, 32), 32, Encoding(0, (80, 33), (80,), (32, 40), 1)),
        ((2, 3, 8), "int32", (1, 2, 8), 0, Encoding(3, (8, 3, 2), (32, 96), (8, 2, 1), 0)),
        ((1, 3, 8), "float64", (1, 2, 8), 0, Encoding(8, (8, 3, 1), (64, 16), (8, 2, 1), 0)),
    ],
)
def test_what_the_driver_is_told(
    shape: tuple[int, ...], dtype: str, extent: tuple[int, ...], swizzle: int, wanted: Encoding
) -> None:
    (one,) = tensor_maps(parsed(box(shape, dtype_of(dtype), (0,) * len(shape), extent, swizzle)))
    assert encoding_of(one, {}) == wanted


def test_a_row_of_no_whole_units_is_refused_by_name_at_the_launch() -> None:
    (one,) = tensor_maps(parsed(box((40, 71), dtype_of("float16"), (0, 0), (16, 64))))
    with pytest.raises(ArgumentError) as caught:
        encoding_of(one, {})
    assert caught.value.message == (
        "A has a stride of 142 bytes in dimension 0, and copies by tma need a multiple of 16"
    )


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    held = FakeDriver()
    monkeypatch.setattr(driver_module, "_driver", driver_module.Driver(held))
    monkeypatch.setattr(driver_module, "_failure", None)

    def stream(owner: object, ordinal: int) -> int:
        return 7

    monkeypatch.setattr(load, "current_stream", stream)
    return held


def executable(text: str) -> tuple[load.CudaExecutable, list[Any]]:
    machine = machine_of("sm_90a")
    made = load.CudaExecutable(Build(parsed(text), machine, Context(machine)))
    calls: list[Any] = []
    made._launches[0] = lambda stream, *values, grid: calls.append(values)  # type: ignore[assignment]
    return made, calls


def infos(function: Function, *pointers: int) -> list[ArrayInfo]:
    out: list[ArrayInfo] = []
    for pointer, array in zip(pointers, function.arrays, strict=True):
        strides = tuple(int(each) for each in array.element_strides)  # type: ignore[arg-type]
        out.append(ArrayInfo(pointer, array.extents, strides, array.dtype, card(0), True, None))
    return out


def test_maps_are_encoded_at_a_launch_and_kept_for_the_next(fake: FakeDriver) -> None:
    text = box((40, 72), dtype_of("float16"), (0, 0), (16, 64), 128)
    made, calls = executable(text)
    made(infos(parsed(text), 0x1000, 0x2000))
    made(infos(parsed(text), 0x1000, 0x3000))
    assert fake.calls.count("cuTensorMapEncodeTiled") == 1
    made(infos(parsed(text), 0x5000, 0x2000))
    assert fake.calls.count("cuTensorMapEncodeTiled") == 2
    assert [values[:2] for values in calls] == [(0x1000, 0x2000), (0x1000, 0x3000), (0x5000, 0x2000)]
    # The driver made of it what it was told, which this one writes down as it stands.
    told = struct.unpack_from("<16Q", calls[0][2])
    assert told[:12] == (6, 2, 0x1000, 72, 40, 144, 64, 16, 0, 3, 3, 0)
    assert struct.unpack_from("<16Q", calls[2][2])[2] == 0x5000


def test_what_the_driver_refuses_is_told_with_the_array(fake: FakeDriver) -> None:
    fake.codes["cuTensorMapEncodeTiled"] = 1
    text = box((40, 72), dtype_of("float16"), (0, 0), (16, 64), 128)
    made, _ = executable(text)
    with pytest.raises(Exception, match="describing A to the tensor memory accelerator: invalid argument"):
        made(infos(parsed(text), 0x1000, 0x2000))


def refused(text: str) -> str:
    function = parsed(text)
    with pytest.raises(SimulationError) as caught:
        run_threaded(function, arrays_of(function), warp=32)
    assert caught.value.place is not None
    return caught.value.message


PLAIN = box((40, 72), dtype_of("float16"), (0, 0), (16, 64))
MEET = "        T.sync_threads()\n        if tid == 0:\n"
WAIT = "        T.mbarrier_wait(full[0:1], 0)\n"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((WAIT, ""),
         "a read of S by thread 0, and T.tma_load of line 13 wrote it: the thread has not waited for the"),
        ((WAIT, "        if tid < 32:\n    " + WAIT),
         "a read of S by thread 32, and T.tma_load of line 13 wrote it"),
        (("bytes=2048", "bytes=2032"),
         "phase 0 of full[0], of parity 0 (1 of 1 arrivals and 2048 of 2032 bytes have come)"),
        (("bytes=2048", "bytes=4096"), "(1 of 1 arrivals and 2048 of 4096 bytes have come)"),
        (("            T.fence_mbarrier_init()\n", ""),
         "full[0] is used by a copy that goes on by itself, and T.fence_mbarrier_init() has not told it"),
        (("offset=1024", "offset=1040"),
         "a box starts at a multiple of 128 bytes in shared memory, and S at 1040 here"),
        (("S[0:1024], A[0 : 16", "S[0:512], A[0 : 16"),
         "this box has 2048 bytes, and its place in shared memory 1024"),
        (("0 : 64], full", "0 : 12], full"),
         "no tensor map has this box: its rows have 24 bytes, no multiple of 16"),
        (("0 : 64], full", "4 : 68], full"),
         "rows of a box start at a multiple of 16 bytes along the last dimension of A, and these"),
        (("full[0:1])\n        T.mbar", "full[0:1], swizzle=64)\n        T.mbar"),
         "no tensor map has this box: its rows have 128 bytes, and a swizzle of 64 needs as many"),
        ((MEET, f"        T.sync_threads()\n        S[tid] = A[0, tid]\n{MEET}"),
         "S is overwritten past the view of threads, and thread 0 wrote it without T.fence_async"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_copy_is_told(change: tuple[str, str], said: str) -> None:
    assert change[0] in PLAIN
    text = PLAIN.replace("shared_bytes=3072", "shared_bytes=4096")
    assert said in refused(text.replace(*change))


def test_a_copy_that_nobody_waits_for_is_refused_at_its_line() -> None:
    text = PLAIN[: PLAIN.index(WAIT)]
    assert refused(text) == (
        "this may still be in flight when the kernel ends: nobody waits for the barrier that it completes on"
    )


def test_a_fence_of_who_wrote_or_of_who_asks_is_enough() -> None:
    for fence in ("        T.fence_async_shared()\n        T.sync_threads()\n",
                  f"{MEET}            T.fence_async_shared()\n"):  # fmt: skip
        text = PLAIN.replace(
            MEET, f"        T.sync_threads()\n        S[tid] = A[0, tid]\n{fence}        if tid == 0:\n"
        )
        function = parsed(text)
        arrays = arrays_of(function)
        run_threaded(function, arrays, warp=32)
        np.testing.assert_array_equal(arrays["O"].reshape(16, 64), arrays["A"][:16, :64])


def test_a_card_without_it_refuses_at_the_line() -> None:
    with pytest.raises(TargetError) as caught:
        compiled(PLAIN, "sm_80").stage("cuda")
    assert "(sm_90), which cuda:sm_80 has not" in caught.value.message


def test_a_launch_without_boxes_loads_nothing_of_them() -> None:
    code = (
        "import sys\nfrom tilebench.targets.cuda.run import load\n"
        "print([m for m in sys.modules if 'passes.threads' in m or 'tensor_maps' in m])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_words_of_boxes_are_those_that_a_launch_looks_for() -> None:
    words = {cls.word for cls in CLASSES if "src" in {mark.name for mark in cls.marks}}
    assert words == load.BOX_WORDS
