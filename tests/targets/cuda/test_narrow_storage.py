"""8-bit floats and 4-bit integers in CUDA C: the text compiles for every kind of card."""

from __future__ import annotations

from typing import Any

import pytest

from tests import kernels_packed
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.machines import machine_of

STORED = ["int4", "uint4", "float8_e4m3fn", "float8_e5m2"]
KERNELS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "widening": (kernels_packed.through_shared, ("{}", "float16")),
    "from f32": (kernels_packed.narrowed, ("float32", "{}")),
    "from f64": (kernels_packed.narrowed, ("float64", "{}")),
    "to int8": (kernels_packed.elementwise, ("{}", "int8")),
    "copy": (kernels_packed.elementwise, ("{}", "{}")),
}


def text_of(name: str, stored: str, arch: str) -> str:
    function, dtypes = KERNELS[name]
    made = function.using(target=f"cuda:{arch}")(33, 70, *(each.format(stored) for each in dtypes))
    return made.stage("cuda")


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a", "sm_120a"])
@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("name", list(KERNELS))
def test_the_text_compiles(name: str, stored: str, arch: str) -> None:
    made = compile_cuda(text_of(name, stored, arch), machine_of(arch))
    (resources,) = made.resources.values()
    assert (resources.spill_store_bytes, resources.stack_bytes) == (0, 0)
    if name == "from f32" and stored.startswith("float8"):
        instruction = f"cvt.rn.satfinite.{stored.removeprefix('float8_').removesuffix('fn')}x2.f32"
        assert (instruction in made.ptx) == (arch != "sm_80")


def test_packed_elements_move_in_whole_words() -> None:
    text = text_of("widening", "int4", "sm_80")
    assert "const unsigned char* __restrict__ A" in text
    assert "tb_ld_packed<2>(A_v, A, " in text
    assert "tb_ld_packed<8>(A_s_v, A_s, " in text
    assert "tb_put_half(A_s" not in text.partition("tb_shared[];")[2]
