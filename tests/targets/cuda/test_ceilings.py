"""The kernels that measure a card's ceilings: their code does what is counted."""

from __future__ import annotations

import re

from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.compiler.sass import disassemble
from tilebench.targets.cuda.machines import machine_of
from tilebench.targets.cuda.run.ceilings import CHAINS, FMA, STEPS, THREADS


def test_the_numbers_counted_are_those_of_the_text() -> None:
    assert f"k < {STEPS}" in FMA
    assert f"i < {CHAINS}" in FMA
    assert FMA.count(f"__launch_bounds__({THREADS})") == 2


def test_the_chains_stay_multiply_adds_and_the_copy_moves_16_bytes() -> None:
    made = compile_cuda(FMA, machine_of("sm_90a"))
    text = disassemble(made.cubin).text
    # Eight steps of the loop are written out, CHAINS multiply-adds each; nothing was folded away.
    assert len(re.findall(r"\bFFMA\b", text)) >= 8 * CHAINS
    assert "LDG.E.128" in text
    assert "STG.E.128" in text
    assert all(each.spill_store_bytes == 0 for each in made.resources.values())
