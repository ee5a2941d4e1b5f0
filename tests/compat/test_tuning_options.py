"""What `autotune` keeps between processes, and its options: obeyed, or told."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilebench
from tests.compat.test_tuning import CONFIGS, lazy
from tilebench.compat.bench import Bench
from tilebench.compat.tuning import AutoTuner, autotune
from tilebench.errors import ArgumentError
from tilebench.record import RunRecord
from tilebench.runtime.cache import default_cache


@pytest.fixture(scope="module", autouse=True)
def worker() -> Iterator[None]:
    yield
    importlib.import_module("tilebench.runtime.worker").default_worker().close()


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEBENCH_CACHE", "1")
    monkeypatch.setenv("TILEBENCH_CACHE_DIR", str(tmp_path))
    default_cache().forget()


def counted(monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float]) -> list[int]:
    """Times by the block of a configuration in place of measurements, and a list of those asked for."""
    asked: list[int] = []

    def measured(self: Bench, kernel: Any, arrays: Any, budget: float, timeout: Any) -> RunRecord:
        asked.append(kernel.parameters["block"])
        return RunRecord(kernel.name, kernel.target, {}, (seconds[asked[-1]],) * 9)

    monkeypatch.setattr(Bench, "measured", measured)
    return asked


def fresh(configs: Any = CONFIGS[:2], **options: Any) -> Any:
    """A function that knows of no earlier tuning, as in a new process."""
    return autotune(configs=configs, **options)(tilebench.jit(out_idx=[1], target="cpu")(lazy))


def plus_one(a: Any) -> Any:
    return a + 1


def plus_two(a: Any) -> Any:
    return a + 2


def test_the_best_is_kept_for_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch, {16: 2.0, 64: 1.0})
    assert fresh()(72).config == {"block": 64}
    # Both once, then the one that may be the best.
    assert asked == [16, 64, 64, 64]
    default_cache().forget()
    kernel = fresh()(72)
    assert asked == [16, 64, 64, 64]
    assert (kernel.config, kernel.latency) == ({"block": 64}, 1000.0)
    assert [trial.milliseconds for trial in kernel.tuning.trials] == [2000.0, 1000.0]
    a = np.ones(72, np.float32)
    np.testing.assert_array_equal(kernel(a), a + 1)
    # Other sizes, other configurations and other inputs are others; so is what is compared.
    fresh()(73)
    fresh([{"block": 64}, {"block": 16}])(72)
    fresh(supply_type="one")(72)
    fresh(ref_prog=plus_one)(72)
    assert len(asked) == 20
    # What was kept and is not right any more is timed again.
    with pytest.raises(ArgumentError, match="no configuration of autotune runs"):
        fresh(ref_prog=plus_two)(72)


def test_those_that_may_be_the_best_are_timed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of two is better is said by runs with the other's between: a good minute decides nothing."""
    times = {16: [1.00, 1.20, 1.18], 64: [1.10, 1.08, 1.06], 32: [3.0]}
    asked: list[int] = []
    limits: list[float | None] = []

    def measured(self: Bench, kernel: Any, arrays: Any, budget: float, timeout: Any) -> RunRecord:
        asked.append(kernel.parameters["block"])
        limits.append(timeout)
        assert budget == pytest.approx(0.1)
        return RunRecord(kernel.name, kernel.target, {}, (times[asked[-1]].pop(0),) * 9)

    monkeypatch.setattr(Bench, "measured", measured)
    kernel = fresh([{"block": 16}, {"block": 64}, {"block": 32}], rep=300)(73)
    assert asked == [16, 64, 32, 64, 16, 16, 64]
    assert kernel.config == {"block": 64}
    assert [trial.milliseconds for trial in kernel.tuning.trials] == [1180.0, 1080.0, 3000.0]
    # What others took bounds the later ones.
    assert limits == [None] * 3 + [10.0] * 4


def test_an_entry_that_is_damaged_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch, {16: 2.0, 64: 1.0})
    bad = [b"", b"[1]", b'{"rows": [["timed", "", 1]], "reference": null}', b'{"rows": [[1, 2, 3], 4]}']
    bad += [b'{"rows": [["timed", "", "x"], ["timed", "", 1]], "reference": null}']
    bad += [b'{"rows": [["timed", "", NaN], ["timed", "", 1]], "reference": null}']
    for number, body in enumerate(bad):
        fresh()(80 + number)
        keys = default_cache()
        get = type(keys).get

        def damaged(self: Any, key: str, body: bytes = body, get: Any = get) -> Any:
            found = get(self, key)
            return {"tuning.json": body} if found and "tuning.json" in found else found

        with monkeypatch.context() as patch:
            patch.setattr(type(keys), "get", damaged)
            assert fresh()(80 + number).config == {"block": 64}
        assert len(asked) == 8 * (number + 1)


def test_slow_configurations_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch, {16: 1.0, 64: 5.0, 32: 1.5})
    configs = [{"block": 16}, {"block": 64}, {"block": 32}]
    kernel = fresh(configs, early_stop=True, early_stop_factor=3.0)(91)
    # An estimate of each but the first; the third, too slow to be the best, has one run.
    assert asked == [16, 64, 32, 32, 16, 16]
    assert [trial.state for trial in kernel.tuning.trials] == ["timed", "stopped", "timed"]
    assert "1 stopped: slower than the best by more than early_stop_factor" in kernel.tuning.summary
    with pytest.raises(ArgumentError, match=r"early_stop_factor is 0\.5"):
        fresh(early_stop=True, early_stop_factor=0.5)


def test_inputs_are_made_once_where_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    counted(monkeypatch, {16: 1.0, 64: 2.0})
    for wanted, count in ((True, 1), (False, 4)):  # four runs
        calls: list[int] = []

        def supply(arguments: Any, calls: list[int] = calls, size: int = 93 + count) -> list[Any]:
            calls.append(1)
            return [np.zeros(size, np.float32)]

        fresh(supply_prog=supply, cache_input_tensors=wanted)(93 + count)
        assert len(calls) == count


def test_ones_own_check(monkeypatch: pytest.MonkeyPatch) -> None:
    counted(monkeypatch, {16: 1.0, 64: 2.0})
    seen: list[tuple[int, int]] = []

    def check(ours: list[Any], theirs: list[Any]) -> None:
        seen.append((len(ours), len(theirs)))
        assert (ours[0] == theirs[0]).all()

    fresh(ref_prog=plus_one, manual_check_prog=check)(96)
    assert seen == [(1, 1), (1, 1)]
    with pytest.raises(ArgumentError, match=r"0 of 2 .* failed: AssertionError"):
        fresh(ref_prog=plus_two, manual_check_prog=check)(97)
    assert fresh(ref_prog=plus_two, manual_check_prog=check, skip_check=True)(97).config


def test_parameters_that_are_not_specialised(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch, {16: 2.0, 64: 1.0})
    function = fresh(do_not_specialize=["N"])
    assert function(98).config == {"block": 64}
    other = function(99)
    assert len(asked) == 4
    assert (other.config, other.parameters["N"], other.parameters["block"]) == ({"block": 64}, 99, 64)


def test_a_measurement_that_takes_too_long_costs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def measure(kernel: Any, arrays: Any, **options: Any) -> Any:
        given.append(options["timeout"])
        raise TimeoutError("too long")

    monkeypatch.setattr("tilebench.compat.bench.measure_kernel", measure)
    with pytest.raises(ArgumentError, match="2 failed: TimeoutError: too long"):
        fresh(timeout=3)(100)
    assert given == [3, 3]


def test_what_chooses_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    counted(monkeypatch, {16: 1.0})
    kernel = fresh([{"block": 16, "pass_configs": {"tl.disable_wgmma": True}}])(101)
    told = [each.message for each in kernel.record().remarks]
    assert any("the pass configuration tl.disable_wgmma chooses nothing here" in each for each in told)
    assert kernel.config["block"] == 16
    tuner = AutoTuner.from_kernel(lazy, CONFIGS[:1]).set_compile_args(out_idx=[1], target="llvm")
    with caplog.at_level(logging.WARNING, "tilebench.compat"):
        tuner.set_profile_args(backend="cupti").run(rep=1, use_pipeline=True)
    assert "autotune: options that choose nothing here: backend" in caplog.text
    assert "autotune: options that choose nothing here: use_pipeline" in caplog.text
