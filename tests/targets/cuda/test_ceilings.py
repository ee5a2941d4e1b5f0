"""The kernels that measure a card's ceilings: their code does what is counted."""

from __future__ import annotations

import re

import pytest

from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.compiler.sass import disassemble
from tilebench.targets.cuda.machines import machine_of
from tilebench.targets.cuda.run.ceilings import CHAINS, FMA, STEPS, THREADS
from tilebench.targets.cuda.run.product_ceilings import product_kernels, text_of


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


@pytest.mark.parametrize(
    ("arch", "dtypes", "instruction"),
    [
        ("sm_75", {"float16", "int8", "uint8"}, "HMMA"),
        ("sm_80", {"float16", "bfloat16", "int8", "uint8", "float64", "tfloat32"}, "HMMA"),
        ("sm_89", {"float16", "bfloat16", "int8", "uint8", "float8_e4m3fn", "tfloat32"}, "QMMA"),
        ("sm_90a", {"float16", "bfloat16", "int8", "uint8", "float8_e4m3fn", "float64", "tfloat32"}, "HGMMA"),
    ],
)
def test_products_of_the_matrix_units_by_dtype(arch: str, dtypes: set[str], instruction: str) -> None:
    kernels = list(product_kernels(machine_of(arch)))
    found = [dtype for kernel in kernels for dtype in kernel.dtypes]
    assert set(found) == dtypes
    assert len(found) == len(dtypes)
    made = compile_cuda(text_of(kernels), machine_of(arch))
    assert set(made.resources) == {kernel.name for kernel in kernels}
    assert all(each.spill_store_bytes == 0 for each in made.resources.values())
    assert instruction in disassemble(made.cubin).text
    assert all(kernel.operations > 1e6 for kernel in kernels)
