"""A file of ceilings that does not check is none: the machine is measured again."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tilebench.profile.ceilings import Ceilings, _load

GOOD = Ceilings(1e10, 2e10, {"float32": 1e11}, 2, "how", "today", "this")


def test_what_was_kept_comes_back(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(asdict(GOOD)))
    assert _load(tmp_path / "c.json") == GOOD


@pytest.mark.parametrize(
    "changes",
    [
        {"bandwidth_bytes_s": math.inf}, {"bandwidth_bytes_s": -1}, {"bandwidth_bytes_s": "fast"},
        {"read_bytes_s": math.nan}, {"flops_s": []}, {"flops_s": {}}, {"flops_s": {"float32": None}},
        {"flops_s": {"float32": 0}}, {"threads": "two"}, {"threads": 10**400}, {"other": 1}, {"device": None},
    ],
)  # fmt: skip
def test_figures_that_cannot_be_are_measured_again(tmp_path: Path, changes: dict[str, Any]) -> None:
    (tmp_path / "c.json").write_text(json.dumps({**asdict(GOOD), **changes}))
    assert _load(tmp_path / "c.json") is None


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    for body in (b"", b"[]", b"{", b"[" * 100_000, b"\xff", bytes(2 << 20)):
        path.write_bytes(body)
        assert _load(path) is None
    path.unlink()
    os.mkfifo(path)
    assert _load(path) is None
    assert _load(tmp_path) is None
    assert _load(tmp_path / "nowhere") is None
