"""Records go to a file and back without loss, and the file is JSON that browsers read."""

from __future__ import annotations

import dataclasses
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import kernels
from tilebench.errors import OptionError
from tilebench.ir.dtypes import float16
from tilebench.plain import to_plain
from tilebench.record import (
    BenchRecord,
    CompileRecord,
    ParamRecord,
    Remark,
    RunRecord,
    StageRecord,
)
from tilebench.record_files import dump_json, from_plain, load, save


def strict(text: str) -> Any:
    """Parse as a browser does: the names NaN and Infinity are errors."""

    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def body_of(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["record.json"]
        return archive.read("record.json").decode()


def test_a_compilation_goes_to_a_file_and_back(tmp_path: Path) -> None:
    record = kernels.gemm_kernel.using(target="cuda:sm_80")(100, 75, 90).record(
        ("source", "tile", "laid_out", "cuda")
    )
    path = tmp_path / "gemm.tbz"
    save(record, path)
    assert load(path) == record
    assert [each.name for each in record.stages] == ["source", "tile", "laid_out", "cuda"]
    assert record.remarks
    assert record.choices
    assert strict(body_of(path))["kind"] == "compile"
    assert [each.name for each in tmp_path.iterdir()] == ["gemm.tbz"], "the part file is gone"


def test_infinities_and_nan_come_back(tmp_path: Path) -> None:
    record = RunRecord(
        "k", "cpu", {"scale": math.inf, "M": 3, "name": "inf"}, (1e-3, math.inf),
        error=math.nan, bound=-math.inf, flops=math.inf,
    )  # fmt: skip
    save(record, tmp_path / "run.tbz")
    plain = strict(body_of(tmp_path / "run.tbz"))["record"]
    assert plain["error"] == "NaN"
    assert plain["bound"] == -math.inf
    back = load(tmp_path / "run.tbz")
    assert isinstance(back, RunRecord)
    assert back.error is not None
    assert math.isnan(back.error)
    assert dataclasses.replace(back, error=None) == dataclasses.replace(record, error=None)


def test_values_of_remarks_come_back(tmp_path: Path) -> None:
    remark = Remark("p", "note", "m", None, {"cost": math.inf, "other": 1.5, "word": "x", "count": 3})
    record = CompileRecord("k", "null", {"x": math.nan}, (ParamRecord("A", (2,), "int8", strides=(3,)),), ())
    record = dataclasses.replace(record, remarks=(remark,))
    save(record, tmp_path / "c.tbz")
    back = load(tmp_path / "c.tbz")
    assert isinstance(back, CompileRecord)
    assert back.remarks == (remark,)
    assert back.arguments == record.arguments
    assert math.isnan(back.parameters["x"])


def test_parameters_of_any_kind_become_plain() -> None:
    def relu(x: float) -> float:
        return max(x, 0)

    plain = to_plain(
        {"n": np.int64(3), "x": np.float32(0.5), "dtype": float16, "f": relu, "shape": (1, 2), 4: None}
    )
    text = dump_json(plain)
    held = strict(text)
    assert held["n"] == 3
    assert held["x"] == 0.5
    assert held["dtype"]["name"] == "float16"
    assert held["shape"] == [1, 2]
    assert held["4"] is None
    assert "relu" in held["f"]


def test_the_median_of_samples() -> None:
    run = RunRecord("k", "cpu", {})
    assert run.seconds is None
    assert dataclasses.replace(run, samples=(3.0, 1.0, 2.0)).seconds == 2.0
    assert dataclasses.replace(run, samples=(4.0, 1.0, 2.0, 3.0)).seconds == 2.5


def write(path: Path, text: str, name: str = "record.json") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, text)
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 99, "kind": "run", "record": {}}', "has record format 99"),
        ("[1, 2]", "has record format None"),
        ("{", "is no tilebench record"),
        ('{"format": 1, "kind": "run"}', "is a damaged record"),
        ('{"format": 1, "kind": "compile", "record": {"kernel": "k"}}', "is a damaged record"),
        (
            '{"format": 1, "kind": "run", "record": {"samples": [], "later": 1}}',
            "a field that this version has not",
        ),
    ],
)
def test_what_is_no_record_is_told(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load(write(tmp_path / "x.tbz", text))


def test_files_that_are_no_zip_or_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    with pytest.raises(OptionError, match="is no tilebench record"):
        load(tmp_path / "text")
    with pytest.raises(OptionError, match="is no tilebench record"):
        load(write(tmp_path / "other.zip", "{}", "other.json"))
    with pytest.raises(OptionError, match="cannot be read: there is no such file"):
        load(tmp_path / "nowhere.tbz")


def test_an_unknown_stage_names_those_there_are() -> None:
    record = kernels.add_kernel.using(target="null")(8, 8).record(("tile", "bounded"))
    with pytest.raises(OptionError, match="there is no stage 'sass'") as caught:
        record.stage("sass")
    assert caught.value.hint == "stages: tile, bounded"


def test_plain_data_without_infinities_is_ordinary_json() -> None:
    run = RunRecord("k", "cpu", {"M": 1}, (0.5,))
    assert from_plain(RunRecord, json.loads(dump_json(to_plain(run))), "x") == run


def test_a_run_prints_as_a_line() -> None:
    samples = (2e-3, 1e-3, 3e-3)
    run = RunRecord("gemm", "cpu", {}, samples, flops=4e9, bytes=2e6, error=0.01, bound=0.02)
    assert str(run) == (
        "gemm on cpu: 2000 us (median of 3), 1 GB/s, 2000 GFLOP/s, error 0.01 of 0.02 allowed"
    )
    assert str(RunRecord("gemm", "cpu", {}, failure="it crashed")) == "gemm on cpu: it crashed"
    assert "1 GOP/s" in str(RunRecord("add", "cpu", {}, samples=(1.0,), flops=1e9, operation="OP"))


def test_a_record_is_shown_in_a_line() -> None:
    stages = (StageRecord("source", "python", "x" * 5000), StageRecord("tile", "tile-ir", "y" * 5000))
    record = CompileRecord("gemm", "cpu", {"M": 8, "block": 4}, (), stages)
    assert repr(record) == "<CompileRecord gemm M=8 block=4 for cpu: source, tile>"
    run = RunRecord("gemm", "cpu", {}, (1.0,) * 500)
    assert repr(BenchRecord(record, (run, run))) == f"<BenchRecord of {record!r} with 2 runs>"
