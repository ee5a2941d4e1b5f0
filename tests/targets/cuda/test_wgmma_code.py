"""Products of warp groups as real code: which instructions there are, from where, and what they take."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.targets.cuda.test_wgmma import NT, SMALL, compiled, made
from tilebench.errors import TargetError
from tilebench.kernel.edited import compile_from


@pytest.mark.parametrize("turned", [NT, (False, False)])
def test_a_tile_of_128x256_has_no_spill_and_no_advisory(turned: tuple[bool, bool]) -> None:
    kernel = made(256, 512, 256, tile=(128, 256, 64), turned=turned, stages=3, threads=256)
    code = compiled(kernel)
    (report,) = code.resources.values()
    assert (report.spill_store_bytes, report.spill_load_bytes, report.stack_bytes) == (0, 0, 0)
    assert report.registers <= 255
    assert code.advisories == ()
    sass = kernel.stage("sass")
    products = re.findall(r"HGMMA\.64x256x16\.F32 R\d+, gdesc\[UR\d+\](\.tnspB)?,", sass)
    assert products == ["" if turned[1] else ".tnspB"] * 4
    # Descriptors: of each operand an addition a step of k, in registers that all threads share.
    assert "R2UR" not in sass[sass.index("WARPGROUP.ARRIVE") : sass.index("gsb0")]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"tile": (64, 40, 32), "fragments": "a"}, r"HGMMA\.64x40x16\.F32 R\d+, R\d+, gdesc"),
        (
            {"tile": (64, 40, 32), "turned": (True, False)},
            r"HGMMA\.64x40x16\.F32 R\d+, gdesc\[UR\d+\]\.tnspA\.tnspB",
        ),
        ({"tile": (64, 40, 32), "ab": ("bfloat16", "bfloat16")}, r"HGMMA\.64x40x16\.F32\.BF16 "),
        (
            {"tile": (64, 48, 32), "ab": ("uint8", "int8"), "acc": "int32", "turned": NT},
            r"IGMMA\.64x48x32\.U8\.S8 ",
        ),
        (
            {"tile": (64, 48, 32), "ab": ("float8_e5m2", "float8_e4m3fn"), "turned": NT},
            r"QGMMA\.64x48x32\.F32\.E5M2\.E4M3 ",
        ),
        (
            {"tile": (64, 48, 32), "ab": ("float32", "float32"), "promises": (True, False), "turned": NT},
            r"HGMMA\.64x48x8\.F32\.TF32 ",
        ),
    ],
)
def test_cubins(options: dict[str, Any], name: str) -> None:
    kernel = made(64, 80, 64, threads=128, **options)
    code = compiled(kernel)
    (report,) = code.resources.values()
    assert (report.spill_store_bytes, code.advisories) == (0, ())
    assert re.search(name, kernel.stage("sass"))


def test_a_word_without_code_is_refused() -> None:
    kernel = made(64, 16, 32, **SMALL)
    text = kernel.stage("threaded").replace('"m64n16k16"', '"m64n16k8"')
    with pytest.raises(TargetError) as caught:
        compile_from("threaded", text, like=kernel).stage("cuda")
    assert caught.value.message == (
        "T.wgmma m64n16k8 of float32, float16, float16 has no code for cuda:sm_90a"
    )
