"""Roofline arithmetic, classes and flags; ceilings; the environment of a run."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.waiting import costs_less_than
from tilebench.errors import OptionError
from tilebench.profile import ceilings as module
from tilebench.profile.ceilings import Ceilings, ceilings
from tilebench.profile.environment import allowed_cores, environment, last_level_cache_bytes
from tilebench.profile.roofline import attainable, roofline

PEAK, BAND = 100e9, 10e9


def test_attainable_bends_at_the_ridge() -> None:
    assert attainable(1, PEAK, BAND) == 10e9
    assert attainable(10, PEAK, BAND) == 100e9
    assert attainable(1000, PEAK, BAND) == 100e9


def test_a_memory_bound_run() -> None:
    found = roofline(1.25e-3, flops=1e6, bytes=1e7, peak_flops_s=PEAK, bandwidth_bytes_s=BAND)
    assert found.bound == "memory"
    assert found.valid
    assert found.of_memory == pytest.approx(0.8)
    assert found.of_compute == pytest.approx(0.008)
    assert found.of_attainable == pytest.approx(0.8)
    assert found.intensity == pytest.approx(0.1)
    assert found.attainable_flops_s == pytest.approx(1e9)
    assert found.attainable_bytes_s == pytest.approx(10e9)
    assert "1250.0 us" in found.why
    assert "(80%)" in found.why


def test_a_compute_bound_run() -> None:
    found = roofline(2e-2, flops=1e9, bytes=1e7, peak_flops_s=PEAK, bandwidth_bytes_s=BAND)
    assert found.bound == "compute"
    assert found.of_compute == pytest.approx(0.5)
    assert found.attainable_flops_s == PEAK
    assert found.attainable_bytes_s == pytest.approx(1e9)


def test_what_neither_explains_is_latency() -> None:
    found = roofline(1e-2, flops=1e8, bytes=1e7, peak_flops_s=PEAK, bandwidth_bytes_s=BAND)
    assert found.bound == "latency/overhead"
    assert "neither explains" in found.why
    small = roofline(10e-6, flops=1e3, bytes=8e4, peak_flops_s=PEAK, bandwidth_bytes_s=BAND, overhead_s=6e-6)
    assert small.bound == "latency/overhead"
    assert "6.0 us of them" in small.why


def test_figures_above_a_ceiling_are_flagged() -> None:
    fast = roofline(0.5e-3, flops=0, bytes=1e7, peak_flops_s=PEAK, bandwidth_bytes_s=BAND)
    assert not fast.valid
    assert "20.0 GB/s is above this machine's 10.0 GB/s" in fast.flags[0]
    assert roofline(0.98e-3, flops=0, bytes=1e7, peak_flops_s=PEAK, bandwidth_bytes_s=BAND).valid
    reads = roofline(0.7e-3, flops=0, bytes=1e7, peak_flops_s=PEAK, bandwidth_bytes_s=BAND, most_bytes_s=15e9)
    assert reads.valid
    assert reads.of_memory > 1
    warm = roofline(0.5e-3, flops=0, bytes=1e7, peak_flops_s=PEAK, bandwidth_bytes_s=BAND, cold=False)
    assert warm.valid
    assert "warm caches" in warm.why
    sharp = roofline(5e-3, flops=1e9, bytes=1e3, peak_flops_s=PEAK, bandwidth_bytes_s=BAND, cold=False)
    assert not sharp.valid
    assert "200.0 GFLOP/s is above" in sharp.flags[0]


def test_nonsense_is_refused() -> None:
    for bad in ({"seconds": 0.0}, {"flops": -1.0}, {"flops": 0.0, "bytes": 0.0}):
        given = {"seconds": 1.0, "flops": 1.0, "bytes": 1.0} | bad
        with pytest.raises(OptionError, match="positive figures"):
            roofline(
                given["seconds"],
                flops=given["flops"],
                bytes=given["bytes"],
                peak_flops_s=1,
                bandwidth_bytes_s=1,
            )


def test_ceilings_are_measured_in_a_child_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEBENCH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(module, "_kept", {})
    found = ceilings(1)
    assert 1e8 < found.bandwidth_bytes_s < 1e13
    assert 1e8 < found.read_bytes_s < 1e13
    assert found.most_bytes_s == max(found.bandwidth_bytes_s, found.read_bytes_s)
    assert 1e9 < found.flops_s["float64"] < found.flops_s["float32"] * 1.5
    assert found.threads == 1
    assert "1 threads" in found.method
    assert found.when.startswith("20")
    assert found.device
    with costs_less_than(0.05):
        assert ceilings(1) is found
    (file,) = (tmp_path / "ceilings").iterdir()
    assert Ceilings(**json.loads(file.read_text())) == found


def test_kept_ceilings_are_read_and_a_damaged_file_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEBENCH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(module, "_kept", {})
    path = module._file(3)  # pyright: ignore[reportPrivateUsage]
    path.parent.mkdir()
    path.write_text(
        '{"bandwidth_bytes_s": 5.0, "read_bytes_s": 4.0, "flops_s": {"float32": 7.0}, "threads": 3}'
    )
    assert ceilings(3).flops_s == {"float32": 7.0}
    held = Ceilings(1.0, 1.0, {"float32": 1.0}, busy=True)
    path.write_text(json.dumps(asdict(held)))
    assert module._load(path) == held  # pyright: ignore[reportPrivateUsage]
    os.utime(path, (1, 1))
    assert module._load(path) is None  # pyright: ignore[reportPrivateUsage]
    path.write_text('{"bandwidth_bytes_s": 5.0, "read')
    assert module._load(path) is None  # pyright: ignore[reportPrivateUsage]


def test_environment_is_small_quick_and_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("another program was started")

    environment()
    monkeypatch.setattr("subprocess.Popen", refuse)
    with costs_less_than(0.02):
        found = environment({"card": "none"})
    assert found["card"] == "none"
    names = {"processor", "cores", "allowed_cores", "python", "numpy", "system", "last_level_cache"}
    assert names <= set(found)
    assert all(isinstance(each, str) for each in found.values())
    assert len(json.dumps(found)) < 2000
    assert 1 <= allowed_cores() <= int(found["cores"])
    assert last_level_cache_bytes() >= 1 << 20
