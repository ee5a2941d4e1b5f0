"""Stores in boxes: values at edges, fences and waits, refusals, and their code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.everywhere import arrays_of
from tests.simulated import card_words, run_threaded
from tilebench.ir import parse_function
from tilebench.simulator import SimulationError
from tilebench.targets.cuda.tensor_maps import tensor_maps

from .test_tma_rings import by_boxes, run

STORE = """
R = T.alloc_fragment({box}, "{dtype}")
S = T.alloc_shared({box}, "{dtype}")
for t in T.serial({turns}):
    T.copy(A[{at}], R)
    T.copy(R, S)
    T.copy(S, O[{at}])
"""
CASES = [
    ((64, 64), (16, 64), "t * 16, 0", "float16"),
    ((50, 72), (16, 64), "t * 16, 24", "float16"),
    ((50, 72), (16, 64), "t * 16, 16", "bfloat16"),
    ((61, 40), (16, 32), "t * 16, 12", "float32"),
    ((64, 256), (16, 256), "t * 16, 0", "int8"),
    ((256,), (64,), "t * 64 + 4", "float32"),
    ((4, 9, 32), (1, 8, 32), "t, 3, 0", "float32"),
    ((2, 4, 3, 6, 16), (1, 3, 6, 16), "1, t, 0, 0, 0", "float32"),
]


def store(shape: tuple[int, ...], box: tuple[int, ...], at: str, dtype: str, *names: str) -> Any:
    head = f'A: T.Tensor({shape}, "{dtype}"), O: T.Tensor({shape}, "{dtype}")'
    body = STORE.format(box=box, dtype=dtype, turns=4, at=at)
    return by_boxes(body, head, *(names or ("O",)))


@pytest.mark.parametrize(("shape", "box", "at", "dtype"), CASES)
def test_a_box_is_stored_where_the_array_is(
    shape: tuple[int, ...], box: tuple[int, ...], at: str, dtype: str
) -> None:
    kernel = store(shape, box, at, dtype)
    text = kernel.stage("threaded")
    assert "T.tma_store(O[" in text
    assert "T.fence_async_shared()" in text
    run(kernel)


def test_it_is_the_instruction_of_that_name_and_has_a_map() -> None:
    kernel = store((50, 72), (16, 64), "t * 16, 24", "float16")
    (one,) = tensor_maps(kernel.compilation.functions["threaded"])
    assert (one.array.name, one.box) == ("O", (16, 64))
    text = kernel.stage("cuda")
    assert kernel.compilation.build.data["tensor_maps"] == ((one.told,),)
    assert f"// O_map is of {one.told}" in text
    assert "tb_half* __restrict__ O, const __grid_constant__ tb_tensor_map O_map)" in text
    assert "tb_tma_store_2d(O_map, S, 24, t * 16);" in text
    assert "cp.async.bulk.tensor.2d.global.shared::cta" in kernel.stage("ptx")
    sass = kernel.stage("sass")
    assert "UTMASTG.2D" in sass
    assert "UTMACMDFLUSH" in sass


def test_a_copy_from_array_to_array_goes_through_shared_memory_by_boxes_alone() -> None:
    body = """
S = T.alloc_shared((16, 64), "float16")
for t in T.Pipelined(5, num_stages=3):
    T.copy(A[t * 16, 0], S)
    T.copy(S, O[t * 16, 8])
"""
    head = 'A: T.Tensor((77, 64), "float16"), O: T.Tensor((70, 72), "float16")'
    kernel = by_boxes(body, head, "S", "O")
    text = kernel.stage("threaded")
    assert "T.vector" not in text
    assert "T.fence_async_shared()" not in text
    run(kernel)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("T.fence_async_shared()", "T.sync_warp()"),
         "S is read past the view of threads, and thread 0 wrote it without T.fence_async_shared()"),
        (("                T.tma_wait()\n", ""), "is written while T.tma_store"),
        (("                T.tma_commit()\n", ""), "nothing was committed"),
        (('            T.sync_threads(why="S: read after write")\n', ""),
         "a race in shared memory: a read of S"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_store_is_told(change: tuple[str, str], said: str) -> None:
    text = store((64, 64), (16, 64), "t * 16, 0", "float16").stage("threaded")
    assert change[0] in text
    function = parse_function(text.replace(*change), card_words())
    with pytest.raises(SimulationError) as caught:
        run_threaded(function, arrays_of(function), warp=32)
    assert said in caught.value.message


def test_an_array_that_the_kernel_reads_too_is_stored_otherwise() -> None:
    body = """
S = T.alloc_shared((16, 64), "float16")
for t in T.serial(4):
    T.copy(O[t * 16, 0], S)
    T.copy(S, O[t * 16, 0])
"""
    kernel = by_boxes(body, 'O: T.Tensor((64, 64), "float16")', "S", "O")
    told = [r.message for r in kernel.compilation.context.remarks if r.message.startswith("tma does not")]
    assert told == ["tma does not take this copy: O is read or written otherwise by the kernel too"] * 2
    run(kernel)


def test_a_box_that_starts_in_front_of_its_array_is_stored_otherwise() -> None:
    kernel = store((50, 72), (16, 64), "t * 16, t * 8 - 8", "bfloat16")
    told = [r.message for r in kernel.compilation.context.remarks if r.message.startswith("tma does not")]
    where = "it starts at t * 8 + -8 in dimension 1, which is not known not to be in front of O"
    assert told == [f"tma does not take this copy: {where}"]
    assert "T.tma_store(" not in kernel.stage("threaded")
    run(kernel)
    text = store((64, 64), (16, 64), "t * 16, 0", "float16").stage("threaded")
    function = parse_function(text.replace("t * 16 + 16, :]", "t * 16 + 16, -8 : 56]"), card_words())
    with pytest.raises(SimulationError) as caught:
        run_threaded(function, arrays_of(function), warp=32)
    assert caught.value.message == "a box that is stored starts in O, and this one at -8 in dimension 1"


def test_the_last_block_stores_what_is_in_the_array() -> None:
    kernel = store((50, 72), (16, 64), "t * 16, 24", "float16")
    arrays = arrays_of(kernel.compilation.reference)
    arrays["O"][...] = 7
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    np.testing.assert_array_equal(arrays["O"][:, 24:], arrays["A"][:, 24:])
    assert (arrays["O"][:, :24] == 7).all()


def test_a_file_of_the_kernel_describes_the_arrays_itself(tmp_path: Path) -> None:
    kernel = store((50, 72), (16, 64), "t * 16, 24", "float16")
    text = kernel.save_program(tmp_path / "boxes").read_text()
    assert "static tb_tensor_map described(" in text
    assert "const unsigned long long map_0_0_extents[] = {72ull, 50ull};" in text
    assert "const unsigned long long map_0_0_strides[] = {144ull};" in text
    assert "const unsigned map_0_0_box[] = {64u, 16u};" in text
    assert "described(O_device, 6, 2, map_0_0_extents, map_0_0_strides, map_0_0_box, " in text
    assert "void* arguments_0[] = {&A_device, &O_device, &map_0_0};" in text
    plain = store((50, 72), (16, 60), "t * 16, 24", "float16").save_program(tmp_path / "plain").read_text()
    assert "described(" not in plain
