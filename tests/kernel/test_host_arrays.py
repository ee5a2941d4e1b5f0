"""Arrays of other libraries brought to the host; a stand-in has torch's names, as tests do without it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.kernels import add_kernel
from tilebench.kernel.host_arrays import host_copy, on_host


class Tensor:
    """What `host_copy` uses of a torch tensor, over a NumPy array."""

    __module__ = "torch"

    def __init__(self, array: np.ndarray[Any, Any], dtype: str, device: str = "cuda:0") -> None:
        self.array, self.dtype, self.device = array, f"torch.{dtype}", device

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return Tensor(self.array, self.dtype.removeprefix("torch."), "cpu")

    def contiguous(self) -> Tensor:
        return self

    def view(self, dtype: Any) -> Tensor:
        return Tensor(self.array.view(dtype), np.dtype(dtype).name, self.device)

    def numpy(self) -> np.ndarray[Any, Any]:
        return self.array


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    held = SimpleNamespace(uint8=np.uint8, int16=np.int16, int32=np.int32, int64=np.int64)
    monkeypatch.setitem(sys.modules, "torch", held)


@pytest.mark.usefixtures("torch")
def test_a_bfloat16_tensor_stays_bfloat16() -> None:
    values = np.array([1.5, -2.0, 3.25], ml_dtypes.bfloat16)
    found = host_copy(Tensor(values.view(np.int16), "bfloat16"))
    assert found.dtype == values.dtype
    assert np.array_equal(found, values)


def test_a_copy_shares_nothing() -> None:
    values = np.arange(6.0).reshape(2, 3)
    found = host_copy(values)
    found[0, 0] = 9
    assert values[0, 0] == 0


def test_where_a_tensor_lies() -> None:
    assert on_host(Tensor(np.zeros(1), "float32", "cpu"))
    assert not on_host(Tensor(np.zeros(1), "float32"))


def test_bench_measures_on_the_arrays_that_are_given() -> None:
    kernel = add_kernel.using(target="cpu")(32, 16, dtype="float32")
    a, b, c = (np.full((32, 16), k, np.float32) for k in (1, 2, 0))
    run = kernel.bench(a, b, c, seconds=0.05)
    assert run.failure == ""
    assert run.seconds
    assert (c == 0).all()  # the child worked on copies
