"""Results in registers that go in boxes: through panels in shared memory, by turns, waited for late."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.everywhere import arrays_of
from tests.kernels import gemm_nt_kernel
from tests.simulated import run_threaded
from tilebench.reference import run_reference
from tilebench.schedule.choices import choices_schedule

from .test_tma_rings import by_boxes, run

RESULT = """
R = T.alloc_fragment({box}, "float32")
for t in T.serial({turns}):
    T.copy(A[{at}], R)
    for i, j in T.Parallel({rows}, {columns}):
        R[i, j] = R[i, j] + 1
    T.copy(R, O[{at}])
"""


def stored(shape: tuple[int, int], box: tuple[int, int], at: str, dtype: str, turns: int = 3) -> Any:
    head = f'A: T.Tensor({shape}, "float32"), O: T.Tensor({shape}, "{dtype}")'
    body = RESULT.format(box=box, rows=box[0], columns=box[1], turns=turns, at=at)
    return by_boxes(body, head, "O")


@pytest.mark.parametrize(
    ("shape", "box", "at", "dtype", "panels"),
    [
        ((48, 192), (16, 192), "t * 16, 0", "float16", 3),
        ((48, 64), (16, 64), "t * 16, 0", "bfloat16", 1),
        ((45, 200), (16, 128), "t * 16, 96", "float16", 2),
        ((45, 72), (16, 64), "t * 16, 16", "float32", 2),
    ],
)
def test_a_result_is_stored_panel_by_panel(
    shape: tuple[int, int], box: tuple[int, int], at: str, dtype: str, panels: int
) -> None:
    kernel = stored(shape, box, at, dtype)
    text = kernel.stage("threaded")
    assert text.count("T.tma_store(O[") == panels
    run(kernel)


def test_panels_take_turns_and_a_store_is_waited_for_where_the_next_begins() -> None:
    text = stored((48, 256), (16, 256), "t * 16, 0", "float16").stage("pipelined")
    steps = re.findall(r"R_(even|odd)\[.*T.cast|T.(copy|wait)\((?:R_(even|odd)|\"copy_O\")", text)
    assert ["".join(step) for step in steps] == [
        "even", "copyeven", "odd", "wait", "copyodd", "even", "wait", "copyeven", "odd", "wait", "copyodd",
        "wait",
    ]  # fmt: skip


def test_what_boxes_do_not_take_goes_otherwise_with_the_rule() -> None:
    kernel = stored((48, 100), (16, 96), "t * 16, 0", "float16")
    told = [r.message for r in kernel.compilation.context.remarks if r.message.startswith("tma does not")]
    assert told == ["tma does not store this result: its 96 columns are no whole panels of 64"]
    assert "T.tma_store(" not in kernel.stage("threaded")
    run(kernel)
    kernel = stored((48, 104), (16, 64), "t * 16, t * 4", "float16")
    (told_of,) = [r.message for r in kernel.compilation.context.remarks if r.message.startswith("tma does")]
    assert "which is not known to be a multiple of 8 (16 bytes)" in told_of
    run(kernel)


def of_roles(**more: Any) -> Any:
    choices = {"warp_specialize": True, "C_l.instruction": "wgmma", **more}
    choices |= {f"{name}.instruction": "tma" for name in ("A_s", "B_s", "C")}
    function = gemm_nt_kernel.using(target="cuda:sm_90a", schedule=choices_schedule(choices))
    return function(200, 264, 128, block_M=128, block_N=128, block_K=64, num_stages=2, threads=256)


@pytest.mark.parametrize("persistent", [False, True, 2])
def test_a_product_of_roles_stores_its_result_in_boxes(persistent: bool | int) -> None:
    kernel = of_roles(persistent=persistent)
    text = kernel.stage("threaded")
    assert text.count("T.tma_store(C[") == 2
    assert "T.shfl_xor" not in text
    function = kernel.compilation.reference
    arrays = arrays_of(function)
    wanted = run_reference(function, {name: each.copy() for name, each in arrays.items()})["C"]
    run_threaded(kernel.compilation.functions["threaded"], arrays, warp=32)
    # Sums of the same products in another order, rounded once.
    np.testing.assert_allclose(arrays["C"].astype(float), wanted.astype(float), rtol=1e-3, atol=1e-3)


def test_a_panel_is_a_run_of_registers_without_a_test_of_its_columns() -> None:
    kernel = of_roles()
    assert "if j >= 64" in kernel.stage("pipelined").replace("j__2", "j")
    text = kernel.stage("cuda")
    assert "C_l[e + r0 * 2 + (r1 + 8) * 4]" in text
    assert not re.search(r"if \(j(__\d+)? [<>]", text)
    # Rows of the accumulators lie in eight swizzled lines: two instructions of four bytes a thread and line.
    shared = [line for line in kernel.stage("sass").splitlines() if " STS" in line]
    assert len(shared) == 32
    assert all("STS [" in line for line in shared)
