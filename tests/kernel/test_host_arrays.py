"""Arrays of other libraries brought to the host; a stand-in has torch's names, as tests do without it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.kernels import add_kernel
from tilebench.kernel.calls.host_arrays import host_copy, on_host


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


@tilebench.jit
def numbered(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32) as b0:
            for i in T.Parallel(n):
                A[i] = i

    return main


@pytest.mark.parametrize(
    ("target", "has_card", "device"),
    [("cpu", True, "cpu"), ("cuda:sm_80", True, "cuda"), ("cuda:sm_80", False, "cpu")],
)
def test_a_call_without_arrays_gives_torchs_where_torch_is_used(
    monkeypatch: pytest.MonkeyPatch, target: str, has_card: bool, device: str
) -> None:
    asked: list[Any] = []

    def empty(shape: tuple[int, ...], dtype: Any, device: str) -> np.ndarray[Any, Any]:
        asked.append(device)
        return np.empty(shape, dtype)

    cuda = SimpleNamespace(is_available=lambda: has_card)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(float32=np.float32, empty=empty, cuda=cuda))
    kernel = numbered.using(target=target, out_idx=-1)(4)
    arrays, results = kernel.with_outputs(())
    assert asked == [device]
    assert arrays[0] is results[0]
    if target == "cpu":
        assert kernel().tolist() == [0, 1, 2, 3]


def test_a_call_without_arrays_gives_numpys_where_torch_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    found = numbered.using(target="cpu", out_idx=-1)(4)()
    assert type(found) is np.ndarray
    assert found.tolist() == [0, 1, 2, 3]
