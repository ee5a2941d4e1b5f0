"""The cubin reader against ptxas's own report."""

from __future__ import annotations

import pytest

from tilebench.errors import TargetError
from tilebench.targets.cuda.compiler.elf import read_cubin
from tilebench.targets.cuda.compiler.nvrtc import Compiled


def test_registers_and_shared_memory_equal_ptxas(each_arch: Compiled) -> None:
    found = read_cubin(each_arch.cubin)
    assert set(found) == set(each_arch.resources)
    reserved = 1024 if int(each_arch.arch[3:].rstrip("a")) >= 90 else 0
    for name, report in each_arch.resources.items():
        assert found[name].registers == report.registers
        assert found[name].frame_bytes == report.stack_bytes
        assert len(found[name].code) % 16 == 0
        assert len(found[name].code) >= 128
    assert found["chain"].shared_bytes == each_arch.resources["chain"].shared_bytes + reserved


@pytest.mark.parametrize("cut", [0, 3, 40, 200])
def test_damaged_bytes_are_told(hopper: Compiled, cut: int) -> None:
    with pytest.raises(TargetError):
        read_cubin(hopper.cubin[:cut])
