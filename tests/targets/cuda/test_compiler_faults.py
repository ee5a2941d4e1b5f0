"""Code that an old compiler makes wrongly is refused, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tilebench.errors import TargetError
from tilebench.kernel.calls.variants import Variant
from tilebench.library.kernels.attention import attention_kernel
from tilebench.schedule import Schedule
from tilebench.targets.cuda import compiler_faults

OLD, MENDED = (13, 0), (13, 1)
WARP_GROUPS, WARPS = (
    Schedule.of(gemm={name: {"instruction": instruction} for name in ("s", "acc")})
    for instruction in ("wgmma", "mma")
)


def attention(held: bool, dim: int = 128, schedule: Any = WARP_GROUPS) -> Any:
    """Attention on arrays that start anywhere, which was wrong on a card with queries in registers."""
    sizes = {"B": 1, "H": 1, "KV": 1, "SQ": 256, "SK": 256, "D": dim}
    orders = {f"{name}_order": 0 for name in "qkvo"}
    tile = {"block_M": 128, "block_N": 128, "num_stages": 2, "threads": 256, "held": held}
    function = attention_kernel.using(target="cuda:sm_90a", schedule=schedule)
    kernel = function.kernel((), {**sizes, "dtype": "float16", "causal": False, **orders, **tile})
    return kernel.calls.compiled(Variant(aligned=False))


def test_an_operand_that_spills_over_a_loop_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_faults, "nvrtc_version", lambda: OLD)
    with pytest.raises(TargetError) as caught:
        attention(held=True).reach_code()
    text = str(caught.value)
    assert "NVRTC 13.0 spilled" in text
    assert "loses queries" in text
    assert "13.1 or newer, or a kernel without spills" in text


def test_a_newer_compiler_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_faults, "nvrtc_version", lambda: MENDED)
    compilation = attention(held=True)
    compilation.reach_code()
    assert compilation.build.resources.spill_store_bytes > 0


def test_only_operands_that_stand_over_turns_are_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights of attention are in registers too, and written in each turn."""
    monkeypatch.setattr(compiler_faults, "nvrtc_version", lambda: OLD)

    def kept(held: bool, schedule: Any = WARP_GROUPS) -> list[str]:
        compilation = attention(held, schedule=schedule)
        compilation.reach("threaded")
        return [name for name, _ in compiler_faults.kept_over_loops(compilation.last)]

    assert kept(held=True) == ["queries"]
    assert kept(held=False) == []
    assert kept(held=True, schedule=WARPS) == []
    spilled = attention(held=False)
    spilled.reach("threaded")
    compiler_faults.refuse_lost_operands(spilled.last, 840)
    held = attention(held=True)
    held.reach("threaded")
    compiler_faults.refuse_lost_operands(held.last, 0)
    with pytest.raises(TargetError, match="loses queries"):
        compiler_faults.refuse_lost_operands(held.last, 840)
