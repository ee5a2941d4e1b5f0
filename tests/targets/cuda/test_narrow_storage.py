"""8-bit floats and 4-bit integers in CUDA C: the text compiles for every kind of card."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import kernels_packed
from tilebench.ir.dtypes import ALL
from tilebench.language.meanings.rounding import narrowed
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.machines import machine_of
from tilebench.targets.cuda.text.prelude_narrow import E2M1, E4M3, E5M2

STORED = ["int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"]
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
    assert "tb_ld_packed<2>(A_v + r0 * 2, A, " in text
    assert "tb_ld_packed<8>(A_s_v, A_s, " in text
    assert "tb_put_half(A_s" not in text.partition("tb_shared[];")[2]


HOST = """\
#include <algorithm>
#include <cstring>
using std::min;
#define TB static inline
static unsigned __float_as_uint(float f) {{ unsigned u; std::memcpy(&u, &f, 4); return u; }}
static float __uint_as_float(unsigned u) {{ float f; std::memcpy(&f, &u, 4); return f; }}
{functions}
extern "C" void run(const float* x, unsigned char* e4m3, unsigned char* e5m2, unsigned char* e2m1,
                    float* values, int n) {{
  for (int i = 0; i < n; ++i) {{
    e4m3[i] = tb_e4m3_soft_bits(x[i]);
    e5m2[i] = tb_e5m2_soft_bits(x[i]);
    e2m1[i] = tb_e2m1_bits(x[i]);
  }}
  for (int i = 0; i < 256; ++i) values[i] = tb_e4m3_value((unsigned char)i);
  for (int i = 0; i < 16; ++i) values[256 + i] = tb_e2m1_value((unsigned char)i);
}}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler on this machine")
def test_the_integers_of_older_cards_round_as_the_reference(tmp_path: Path) -> None:
    # The functions before sm_89 are plain C: the host's compiler runs them over every float16 and beside.
    parts = [text[: text.index("\nTB", 10)] for text in (E4M3, E5M2, E2M1)]
    for text, name in ((E4M3, "e4m3"), (E2M1, "e2m1")):
        parts.append(text[text.index(f"TB float tb_{name}_value") : text.index("// Towards zero")])
    source, library = tmp_path / "host.cpp", tmp_path / "host.so"
    source.write_text(HOST.format(functions="\n".join(parts)), encoding="utf-8")
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32)
    bits = halves.view(np.uint32)
    random = np.random.default_rng(0).integers(0, 1 << 32, 200_000, dtype=np.uint32)
    x = np.concatenate([bits, bits + 1, bits - 1, random]).view(np.float32)
    found = {name: np.zeros(x.size, np.uint8) for name in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")}
    values = np.zeros(256 + 16, np.float32)
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (x, *found.values(), values)]
    ctypes.CDLL(str(library)).run(*pointers, x.size)
    for name, got in found.items():
        expected = narrowed(x, ALL[name])
        number = ~np.isnan(x)
        assert np.array_equal(got[number], expected.view(np.uint8)[number])
        of_nan = got.view(ALL[name].numpy)[~number].astype(np.float32)
        assert (np.isnan(of_nan) if ALL[name].has_nan else of_nan == 6.0).all()
    every = np.arange(256, dtype=np.uint8).view(ALL["float8_e4m3fn"].numpy).astype(np.float32)
    assert np.array_equal(values[:256], every, equal_nan=True)
    codes = np.arange(16, dtype=np.uint8).view(ALL["float4_e2m1fn"].numpy).astype(np.float32)
    assert values[256:].tolist() == codes.tolist()
    assert codes[:8].tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
