"""The operators as operations of torch, where torch is installed."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from tests.library.cases import CASES, EIGHT_BITS, LibraryCase, wrong  # noqa: E402
from tilebench.errors import ArgumentError  # noqa: E402
from tilebench.library import OPERATORS, call, softmax, torch_ops  # noqa: E402

BITS = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}
TORCH_CASES = [case for case in CASES if case.dtype in ("float16", "bfloat16", "float32", *EIGHT_BITS)]


def tensor(array: Any) -> Any:
    """A NumPy array with its strides as a tensor; NumPy has no bfloat16 of torch's."""
    order = sorted(range(array.ndim), key=lambda k: -array.strides[k])
    memory = np.ascontiguousarray(array.transpose(order))
    made = torch.from_numpy(memory.view(BITS[memory.itemsize])).view(getattr(torch, array.dtype.name))
    return made.permute(*[order.index(k) for k in range(array.ndim)])


def array(tensor: Any, dtype: Any) -> Any:
    bits = getattr(torch, np.dtype(BITS[tensor.element_size()]).name)
    return tensor.contiguous().view(bits).numpy().view(dtype)


def called(case: LibraryCase, how: Any) -> tuple[Any, dict[str, Any], list[Any]]:
    arrays = case.arrays()
    given = [None if a.name not in arrays else tensor(arrays[a.name]) for a in case.operator.arguments]
    options = {each.name: case.problem.options[each.name] for each in case.operator.options}
    return how(*given, **options), arrays, given


@pytest.mark.parametrize("case", TORCH_CASES, ids=str)
def test_right(case: LibraryCase) -> None:
    """By `torch.ops`, and the fake kernel says what comes."""
    result, arrays, given = called(case, getattr(torch.ops.tilebench, case.name))
    assert wrong(array(result, case.result().dtype), case.exact(arrays)) == ""
    options = {each.name: case.problem.options[each.name] for each in case.operator.options}
    fake = torch_ops.fake_result(case.operator, given, options)
    assert (fake.shape, fake.dtype, fake.stride()) == (result.shape, result.dtype, result.stride())


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_torch_finds_nothing_wrong(name: str) -> None:
    """torch's own checks of schema, fake kernel and tracing with symbols for sizes."""
    cases = [case for case in TORCH_CASES if case.name == name]
    # Its checks compute with the tensors themselves, which torch does not in 8-bit floats.
    case = next(case for case in cases if case.dtype in ("float32", "int8"))
    arrays = case.arrays()
    given = tuple(None if a.name not in arrays else tensor(arrays[a.name]) for a in case.operator.arguments)
    options = tuple(case.problem.options[each.name] for each in case.operator.options)
    checks = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(getattr(torch_ops, name), (*given, *options), test_utils=checks)


def test_compiles_into_one_graph() -> None:
    def step(x: Any, w: Any) -> Any:
        return torch_ops.matmul(torch_ops.softmax(x), w.t(), activation="gelu") + 1

    x, w = torch.randn(8, 16), torch.randn(4, 16)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (8, 11):
        given = torch.randn(rows, 16)
        assert torch.equal(compiled(given, w), step(given, w))
    assert torch.allclose(step(x, w), torch.nn.functional.gelu(torch.softmax(x, 1) @ w.t()) + 1, atol=1e-5)


def test_gradients_are_refused() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    with pytest.raises(ArgumentError, match="operators have no backward"):
        softmax(x)
    with torch.no_grad():
        assert torch.allclose(softmax(x).sum(1), torch.ones(3))
    y = torch_ops.softmax(x)
    with pytest.raises(RuntimeError):
        y.sum().backward()


def test_results_are_tensors_on_the_same_device() -> None:
    x = torch.randn(3, 4)
    assert isinstance(softmax(x), torch.Tensor)
    assert call(OPERATORS["transpose"], x.to(torch.int8)).dtype == torch.int8
    out = torch.empty(3, 4)
    assert softmax(x, out=out) is out


ALONE = """
import torch
from tilebench import library
x = torch.randn(8, 16)
step = torch.compile(lambda x: library.softmax(x) + 1, fullgraph=True, backend="aot_eager")
assert torch.allclose(step(x), torch.softmax(x, 1) + 1, atol=1e-5)
"""


def test_the_librarys_functions_are_traced_without_importing_the_operations() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", ALONE], check=True)
