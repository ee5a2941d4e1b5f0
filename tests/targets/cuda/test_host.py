"""Host arrays on their way to a device and back, without a card: the device is another array's memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tilebench.runtime.describe import describe
from tilebench.targets.cuda.run import host
from tilebench.targets.cuda.run.host import HostArray


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> np.ndarray[Any, Any]:
    """Memory that stands for a device's."""

    def copy_in(_: Any, pointer: int, array: np.ndarray[Any, Any]) -> None:
        ctypes.memmove(pointer, array.ctypes.data, array.nbytes)

    def copy_out(_: Any, array: np.ndarray[Any, Any], pointer: int) -> None:
        ctypes.memmove(array.ctypes.data, pointer, array.nbytes)

    monkeypatch.setattr(host, "copy_in", copy_in)
    monkeypatch.setattr(host, "copy_out", copy_out)
    return np.zeros(4096, np.uint8)


@pytest.mark.parametrize(
    ("part", "span"),
    [
        (np.s_[:, :], 6 * 8), (np.s_[:, :3], 5 * 8 + 3), (np.s_[1:5:2, 2:7:2], 2 * 8 + 5), (np.s_[3:3, :], 0),
        (np.s_[2, :], 8), (np.s_[::3, 7], 3 * 8 + 1),
    ],
)  # fmt: skip
def test_a_strided_array_travels_whole_and_gets_its_elements_back(device: Any, part: Any, span: int) -> None:
    whole = np.arange(48, dtype=np.float32).reshape(6, 8)
    before = whole.copy()
    array = HostArray(describe(whole[part], "A", None))
    assert array.nbytes == 4 * span
    array.upload(None, device.ctypes.data)  # type: ignore[arg-type]
    there = device[: 4 * span].view(np.float32)
    np.testing.assert_array_equal(there, whole.ravel()[: 0 if not span else None][slice(*_where(part, span))])
    there += 100
    # What lies between the elements has changed here meanwhile, and stays.
    between = np.ones(whole.shape, bool)
    between[part] = False
    whole[between] = -1
    array.download(None, device.ctypes.data)  # type: ignore[arg-type]
    np.testing.assert_array_equal(whole[part], before[part] + 100)
    assert (whole[between] == -1).all()


def _where(part: Any, span: int) -> tuple[int, int]:
    """The flat range of a part of (6, 8)."""
    first = int(np.arange(48).reshape(6, 8)[part].ravel()[0]) if span else 0
    return first, first + span


def test_elements_that_lie_densely_in_another_order_are_one_copy(device: Any) -> None:
    whole = np.arange(12, dtype=np.int16).reshape(3, 4)
    array = HostArray(describe(whole.T, "A", None))
    assert array.nbytes == whole.nbytes
    array.upload(None, device.ctypes.data)  # type: ignore[arg-type]
    device[: whole.nbytes].view(np.int16)[:] *= 2
    array.download(None, device.ctypes.data)  # type: ignore[arg-type]
    np.testing.assert_array_equal(whole, np.arange(12).reshape(3, 4) * 2)
