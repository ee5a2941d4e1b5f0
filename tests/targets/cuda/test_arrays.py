"""The stream of a launch is the one that the array's library works on."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tilebench.targets.cuda.run import arrays


class Tensor:
    __module__ = "torch"


class Array:
    __module__ = "cupy"


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Stand-ins for torch and CuPy, which the tests do without."""
    held: dict[str, Any] = {
        "torch": SimpleNamespace(
            _C=SimpleNamespace(),
            cuda=SimpleNamespace(current_stream=lambda ordinal: SimpleNamespace(cuda_stream=100 + ordinal)),
        ),
        "cupy": SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=7))),
    }
    real = importlib.import_module
    monkeypatch.setattr(arrays.importlib, "import_module", lambda name: held.get(name) or real(name))
    for kept in (arrays._torch_stream, arrays._cupy_stream):
        kept.cache_clear()
    yield held
    for kept in (arrays._torch_stream, arrays._cupy_stream):
        kept.cache_clear()


def test_torchs_current_stream_of_the_device(libraries: dict[str, Any]) -> None:
    assert arrays.current_stream(Tensor(), 2) == 102


def test_torchs_raw_handle_where_there_is_one(libraries: dict[str, Any]) -> None:
    libraries["torch"]._C._cuda_getCurrentRawStream = lambda ordinal: 200 + ordinal
    assert arrays.current_stream(Tensor(), 1) == 201


def test_cupys_current_stream(libraries: dict[str, Any]) -> None:
    assert arrays.current_stream(Array(), 0) == 7


def test_the_default_stream_for_others() -> None:
    assert arrays.current_stream(object(), 0) == 0
