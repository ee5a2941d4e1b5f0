"""`tilelang.carver`: the machine in TileLang's words, and tiles for a product that every machine can run."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.compat
import tilebench.language as T
from tilebench.compat.products import (
    MatmulTemplate,
    _rate,  # pyright: ignore[reportPrivateUsage]
)
from tilebench.errors import OptionError, ShapeError, TargetError
from tilebench.targets import resolve


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    tilebench.compat.install()
    yield
    tilebench.compat.uninstall()


def arch() -> Any:
    return importlib.import_module("tilelang.carver.arch")


def test_the_machine_is_the_one_that_is_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = importlib.import_module("tilelang.carver.arch.driver")
    monkeypatch.setenv("TILEBENCH_TARGET", "cuda:sm_80")
    assert driver.get_num_sms() == 108
    assert driver.get_device_name() == "cuda:sm_80"
    assert driver.get_shared_memory_per_block() == 163 * 1024
    assert driver.get_max_dynamic_shared_size_bytes(format="kb") == 164
    assert driver.get_registers_per_block() == 65536
    with pytest.raises(OptionError, match="there is no format 'gb'"):
        driver.get_shared_memory_per_block(format="gb")
    monkeypatch.setenv("TILEBENCH_TARGET", "cpu")
    assert driver.get_num_sms() == resolve("cpu")[1].units >= 1


def test_a_machine_by_its_target() -> None:
    card = arch().CUDA({"kind": "cuda", "arch": "sm_90a"})
    figures = (card.platform, card.compute_max_core, card.warp_size, card.smem_cap)
    assert figures == ("CUDA", 132, 32, 227 * 1024)
    assert arch().is_cuda_arch(card)
    assert arch().is_cpu_arch(arch().get_arch("llvm"))
    assert not arch().is_cdna_arch(card)
    with pytest.raises(TargetError, match="CDNA machines are none of tilebench's targets"):
        arch().CDNA("hip")


SIZES = [(4096, 4096, 4096), (256, 256, 256), (16, 4096, 4096), (300, 70, 90), (1, 1, 1)]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "cpu"])
def test_every_hint_fits_its_machine(target: str, sizes: tuple[int, int, int]) -> None:
    machine = arch().TileDevice(target)
    template = MatmulTemplate(*sizes, in_dtype=T.float16, accum_dtype=T.float32).with_arch(machine)
    hints = template.recommend_hints(topk=20)
    assert 0 < len(hints) <= 20
    for hint in hints:
        (rows, columns), (down, across), (step,) = hint.block, hint.warp, hint.rstep
        assert rows % down == columns % across == down % 16 == across % 8 == 0
        assert 32 <= rows // down * (columns // across) * 32 <= machine.machine.max_threads
        taken = hint.pipeline_stage * (rows + columns) * step * 2
        assert not machine.smem_cap or taken <= machine.smem_cap
    assert hints == sorted(hints, key=lambda hint: hint.cycles)


def test_a_large_product_has_large_tiles_and_a_small_one_as_many_as_there_are_units() -> None:
    machine = arch().TileDevice("cuda:sm_90a")
    large = MatmulTemplate(4096, 4096, 4096).with_arch(machine).recommend_hints(1)[0]
    small = MatmulTemplate(256, 256, 256).with_arch(machine).recommend_hints(1)[0]
    assert large.block[0] * large.block[1] >= 128 * 128
    assert large.pipeline_stage > 1
    assert 256 // small.block[0] * (256 // small.block[1]) > 100


@pytest.mark.parametrize(
    ("target", "dtype", "rate"),
    [
        ("cuda:sm_80", "float16", 1024), ("cuda:sm_80", "bfloat16", 1024), ("cuda:sm_80", "int8", 2048),
        # By products of warp groups, which a schedule or their rules choose.
        ("cuda:sm_90a", "float16", 2048), ("cuda:sm_90a", "int8", 4096),
        ("cuda:sm_90a", "float8_e4m3fn", 4096), ("cuda:sm_75", "bfloat16", 64),
    ],
)  # fmt: skip
def test_multiply_adds_a_cycle_are_those_of_the_fastest_instruction(
    target: str, dtype: str, rate: float
) -> None:
    assert _rate(resolve(target)[1], dtype) == rate


def test_a_product_that_fits_no_machine_is_told() -> None:
    machine = arch().TileDevice("cuda:sm_90a")
    machine.smem_cap = 100
    with pytest.raises(ShapeError, match="no tile of this product fits cuda:sm_90a"):
        MatmulTemplate(64, 64, 64).with_arch(machine).recommend_hints()


@pytest.mark.parametrize(("trans_a", "trans_b"), [(False, True), (True, False)])
def test_the_equivalent_function_is_the_product(trans_a: bool, trans_b: bool) -> None:
    m, n, k = 33, 20, 50
    template = MatmulTemplate(m, n, k, "float32", "float32", "float32", trans_a, trans_b)
    tilelang: Any = importlib.import_module("tilelang")
    kernel = tilelang.compile(template.equivalent_function(), out_idx=[2], target="llvm")
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (m, k)).astype(np.float32), rng.uniform(-1, 1, (k, n)).astype(np.float32)
    turned = [np.ascontiguousarray(x.T) if t else x for x, t in ((a, trans_a), (b, trans_b))]
    np.testing.assert_allclose(np.asarray(kernel(*turned)), a @ b, rtol=1e-5, atol=1e-5)


def test_the_work_of_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    analyzer: Any = importlib.import_module("tilelang.tools").Analyzer
    m, n, k = 300, 70, 90
    template = MatmulTemplate(m, n, k, "float16", "float32", "float32")
    kernel = importlib.import_module("tilelang").compile(template.equivalent_function(), target="llvm")
    function = kernel.compilation.functions["tile"]
    found = analyzer.analysis(function, arch().CUDA({"kind": "cuda", "arch": "sm_90a"}))
    assert (found.total_flops, found.total_global_bytes) == (2 * m * n * k, 2 * (m + n) * k + 4 * m * n)
    assert np.isnan(found.estimated_time)
    most = SimpleNamespace(flops_s={"float32": 1e9}, bandwidth_bytes_s=1e12)
    monkeypatch.setattr("tilebench.compat.analyzer.ceilings", lambda: most)
    here = analyzer.analysis(function, arch().CPU())
    assert here.estimated_time == 2 * m * n * k / 1e9
    assert here.expected_tflops == pytest.approx(1e-3)
