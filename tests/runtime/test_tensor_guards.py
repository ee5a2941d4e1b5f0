"""torch's own look at tensors is taken where it tells them apart, and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from tilebench.runtime import tensor_guards


@dataclass(frozen=True)
class Tensor:
    """All that a look may see of a tensor."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    strides: tuple[int, ...] = ()
    requires_grad: bool = False
    device: str = "cpu"
    kind: str = "plain"

    @property
    def T(self) -> Tensor:
        return replace(self, shape=self.shape[::-1], strides=(1, 6))

    def __getitem__(self, index: Any) -> Tensor:
        return replace(self, shape=(4, 6), strides=(12, 2))

    def to_sparse(self) -> Tensor:
        return replace(self, kind="sparse")


def made(*shape: int, **known: Any) -> Tensor:
    return Tensor(shape, **known)


def torch_with(look: Callable[[Tensor], Any]) -> Any:
    """A torch whose look sees of tensors what a function gives."""

    class TensorGuards:
        def __init__(self, *tensors: Tensor, dynamic_dims_sizes: None, dynamic_dims_strides: None) -> None:
            self.seen = [look(each) for each in tensors]

        def check(self, *tensors: Tensor) -> bool:
            return self.seen == [look(each) for each in tensors]

    return SimpleNamespace(
        zeros=made, ones=made, float64="float64", _neg_view=lambda each: replace(each, kind="negative"),
        nn=SimpleNamespace(Parameter=lambda each, requires_grad: replace(each, kind="parameter")),
        _C=SimpleNamespace(_dynamo=SimpleNamespace(guards=SimpleNamespace(TensorGuards=TensorGuards))),
    )  # fmt: skip


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], None]]:
    tensor_guards._maker.cache_clear()
    yield lambda module: monkeypatch.setitem(sys.modules, "torch", module)
    tensor_guards._maker.cache_clear()


def test_a_look_that_tells_tensors_apart_is_taken(torch: Callable[[Any], None]) -> None:
    torch(torch_with(lambda each: each))
    guard = tensor_guards.guard_of([made(8), made(8, dtype="int32")])
    assert guard is not None
    assert guard(made(8), made(8, dtype="int32"))
    assert not guard(made(8), made(8))


BLIND: list[Callable[[Tensor], Any]] = [
    lambda each: 0,
    lambda each: replace(each, dtype=""),
    lambda each: replace(each, shape=()),
    lambda each: replace(each, strides=()),
    lambda each: replace(each, requires_grad=False),
    lambda each: replace(each, device=""),
    lambda each: replace(each, kind="plain"),
    lambda each: replace(each, kind="plain" if each.kind == "negative" else each.kind),
]


@pytest.mark.parametrize("number", range(len(BLIND)))
def test_a_look_that_misses_a_difference_is_not(number: int, torch: Callable[[Any], None]) -> None:
    torch(torch_with(BLIND[number]))
    assert tensor_guards.guard_of([made(8)]) is None


@pytest.mark.parametrize("module", [None, SimpleNamespace(), SimpleNamespace(_C=SimpleNamespace())])
def test_without_it_there_is_none(module: Any, torch: Callable[[Any], None]) -> None:
    torch(module)
    assert tensor_guards.guard_of([made(8)]) is None
