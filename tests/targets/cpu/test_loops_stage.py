"""The `loops` stage as text, its forms after every pass, line maps, what another process finds, Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.targets.cpu import kernels
from tests.waiting import answers_within, interrupted
from tilebench.ir import parse_function, print_function, verify
from tilebench.passes.context import Context
from tilebench.targets.cpu import manifest
from tilebench.targets.cpu.machine import cpu_machine, named_isa

GOLDEN = Path(__file__).parent / "golden"
CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "add": (kernels.add, (1000, 1100, 128, 128)),
    "gemm": (kernels.gemm, (1000, 1100, 1200, 192, 512, 256)),
    "gemm_nt": (
        kernels.gemm,
        (1000, 1100, 1200, 512, 512, 128, "float16", "float32", "float16", False, True),
    ),
    "softmax": (kernels.softmax, (1000, 1000, 16)),
    "row_sum": (kernels.rowsum, (1000, 1000, 16, 128)),
}


@pytest.mark.parametrize("name", CASES)
def test_text(name: str, request: pytest.FixtureRequest) -> None:
    """Golden for one instruction set, so that it does not depend on the machine of the test."""
    kernel, values = CASES[name]
    text = kernel.using(target="cpu:x86-64-v4")(*values).stage("loops")
    path = GOLDEN / f"{name}.loops"
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("isa", ["x86-64", "x86-64-v3", "x86-64-v4", "aarch64"])
@pytest.mark.parametrize("name", CASES)
def test_forms_after_every_pass(name: str, isa: str) -> None:
    kernel, values = CASES[name]
    made = kernel.using(target=f"cpu:{isa}")(*values)
    made.stage("bounded")
    function = made.compilation.functions["bounded"]
    (row,) = manifest().road
    context = Context(cpu_machine(named_isa(isa)))
    for _, step in row.passes:
        function = step(function, context)
        verify(function, row.forms)
        assert parse_function(print_function(function).text, manifest().registry) == function


@pytest.mark.parametrize("isa", ["x86-64", "x86-64-v3", "aarch64"])
def test_code_for_other_processors(isa: str) -> None:
    """Every kernel reaches assembly for processors that this one is not."""
    for kernel, values in CASES.values():
        text = kernel.using(target=f"cpu:{isa}")(*values).stage("asm")
        assert "kernel:" in text
        assert "zmm" not in text


def test_lines_of_llvm_lead_to_the_loops() -> None:
    kernel, values = CASES["softmax"]
    made = kernel.using(target="cpu:x86-64-v4")(*values)
    made.stage("asm")
    build = made.compilation.build
    llvm, loops = build.texts["llvm"].splitlines(), made.stage("loops").splitlines()
    assert len(build.lines["llvm"]) == len(llvm)
    divisions = [k for k, line in enumerate(llvm) if "fdiv <16 x float>" in line]
    assert divisions
    for k in divisions:
        (origin,) = build.lines["llvm"][k]
        assert " / sm[" in loops[origin - 1]
    asm = build.texts["asm"].splitlines()
    assert len(build.lines["asm"]) == len(asm)
    found = [k for k, line in enumerate(asm) if "vdivps" in line]
    assert found
    for k in found:
        (label,) = build.lines["asm"][k]
        block = next(n for n in range(label, len(llvm)) if llvm[n].strip().startswith(("br ", "ret ")))
        assert any("fdiv" in line for line in llvm[label:block])


def test_object_code_is_loaded_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel made anew takes its object file from the store."""
    from tilebench.targets.cpu import emit

    a = np.arange(60 * 44, dtype=np.float32).reshape(60, 44)
    c = np.empty_like(a)
    kernels.add.using(target="cpu")(60, 44, 16, 16)(a, a, c)

    def refuse(*_: object) -> None:
        raise AssertionError("code was generated again")

    monkeypatch.setattr(emit, "assembly_of", refuse)
    from tilebench.kernel import Kernel

    first = kernels.add.using(target="cpu")(60, 44, 16, 16)
    fresh = Kernel(first.compilation.traced, manifest(), cpu_machine())
    c.fill(0)
    fresh(a, a, c)
    assert np.array_equal(c, a + a)


def test_an_interrupt_ends_a_long_kernel() -> None:
    """Ctrl-C in the calling thread: the kernel, minutes long, is left within a second."""
    made = kernels.collatz.using(target="cpu")(4096, 64, 2_000_000_000)
    a, c = np.full(4096, 27, np.int32), np.zeros(4096, np.int32)
    run = made.executable()
    pointers = [type("Info", (), {"pointer": each.ctypes.data})() for each in (a, c)]
    answers_within(1, lambda: interrupted(lambda: run(pointers)))
