"""Settings are read at each use, and a value of the wrong kind is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tilebench import settings
from tilebench.errors import OptionError

PACKAGE = Path(settings.__file__).parent


def test_a_default_until_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEBENCH_CPU_THREADS", raising=False)
    assert settings.cpu_threads() == 0
    monkeypatch.setenv("TILEBENCH_CPU_THREADS", "3")
    assert settings.cpu_threads() == 3
    monkeypatch.setenv("TILEBENCH_CPU_THREADS", "")
    assert settings.cpu_threads() == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("yes", True), ("0", False), ("False", False), ("NO", False), ("off", False), ("", False)],
)
def test_a_flag(monkeypatch: pytest.MonkeyPatch, text: str, value: bool) -> None:
    monkeypatch.setenv("TILEBENCH_RAISE_RAW", text)
    assert settings.raise_raw() is value


def test_numbers_and_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEBENCH_WORKER_IDLE", "0.5")
    assert settings.worker_idle() == 0.5
    monkeypatch.setenv("TILEBENCH_TARGET", "cuda:sm_90a")
    assert settings.target() == "cuda:sm_90a"


@pytest.mark.parametrize(
    ("setting", "text", "expected"),
    [
        (settings.cpu_threads, "many", "a whole number of at least 0"),
        (settings.cpu_threads, "-3", "a whole number of at least 0"),
        (settings.cpu_threads, "1.5", "a whole number of at least 0"),
        (settings.cache_megabytes, "-1", "a whole number of at least 0"),
        (settings.worker_timeout, "-1", "a number of at least 0"),
        (settings.worker_timeout, "nan", "a number of at least 0"),
        (settings.worker_timeout, "inf", "a number of at least 0"),
        (settings.worker_idle, "-1", "a number of at least 0"),
        (settings.cache, "maybe", "one of 1, true, yes, on, 0, false, no, off"),
    ],
)
def test_a_value_that_means_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, setting: Any, text: str, expected: str
) -> None:
    monkeypatch.setenv(setting.name, text)
    with pytest.raises(OptionError) as caught:
        setting()
    assert caught.value.message == f"the environment variable {setting.name} cannot be {text!r}"
    assert f"expected: {expected}" in str(caught.value)


def test_every_setting_is_listed_once_with_a_text() -> None:
    listed = settings.all_settings()
    names = [each.name for each in listed]
    assert len(set(names)) == len(names)
    assert all(name.startswith("TILEBENCH_") for name in names)
    assert all(each.doc and each.doc[0].islower() for each in listed)
    written = re.findall(r'"(TILEBENCH_[A-Z_]+)"', Path(settings.__file__).read_text(encoding="utf-8"))
    assert written == names
