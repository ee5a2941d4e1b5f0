"""Calls like an earlier one: what goes the short way, and everything that must not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tilebench.kernel.calls import repeated
from tilebench.kernel.calls.repeated import RepeatedCalls
from tilebench.record import ParamRecord
from tilebench.runtime.arrays import ArgumentChecker
from tilebench.runtime.describe import ArrayInfo
from tilebench.targets.devices import CARD, card

PARAMS = (ParamRecord("A", (4, 8), "float16"), ParamRecord("C", (4, 8), "float16", written=True))
BYTES = 4 * 8 * 2


@dataclass(frozen=True)
class Tensor:
    """What is asked of a tensor on a card."""

    pointer: int = 0x1000
    shape: tuple[int, ...] = (4, 8)
    dtype: str = "torch.float16"
    ordinal: int = 0
    contiguous: bool = True
    negative: bool = False
    requires_grad: bool = False
    is_cpu: bool = False

    def data_ptr(self) -> int:
        return self.pointer

    def get_device(self) -> int:
        return self.ordinal

    def is_contiguous(self) -> bool:
        return self.contiguous

    def is_neg(self) -> bool:
        return self.negative


class OfAnotherClass(Tensor):
    pass


class Launches:
    """The launch that a call left, with the addresses that it was given."""

    alignment = 16

    def __init__(self) -> None:
        self.given: list[list[int]] = []

    def __call__(self, pointers: Sequence[int]) -> None:
        self.given.append(list(pointers))


A, C = Tensor(0x1000), Tensor(0x2000)


def remembered(*tensors: Tensor, alignment: int = 16) -> tuple[RepeatedCalls, Launches]:
    calls, launches = RepeatedCalls(), Launches()
    checker = ArgumentChecker(PARAMS, CARD)
    dtype = checker._rows[0][1]
    infos = [
        ArrayInfo(each.pointer, each.shape, (8, 1), dtype, card(each.ordinal), True, each) for each in tensors
    ]
    calls.remember(checker, infos, alignment, lambda ordinal, owner: launches)
    return calls, launches


def test_tensors_anywhere_in_memory_go_the_short_way() -> None:
    calls, launches = remembered(A, C)
    assert calls((A, C))
    assert calls((replace(A, pointer=0x5000), replace(C, pointer=0x5000 + BYTES)))
    assert launches.given == [[0x1000, 0x2000], [0x5000, 0x5000 + BYTES]]


@pytest.mark.parametrize(
    "other",
    [
        (replace(A, shape=(8, 4)), C),
        (replace(A, dtype="torch.bfloat16"), C),
        (replace(A, ordinal=1), replace(C, ordinal=1)),
        (A, replace(C, ordinal=1)),
        (A, replace(C, ordinal=-1)),
        (replace(A, contiguous=False), C),
        (replace(A, negative=True), C),
        (A, replace(C, requires_grad=True)),
        (replace(A, pointer=0), C),
        (replace(A, pointer=0x1008), C),
        (OfAnotherClass(0x1000), C),
        (A, replace(C, pointer=0x1000)),
        (A, replace(C, pointer=0x1000 + BYTES - 16)),
        (replace(A, pointer=0x2000 + BYTES - 16), C),
        (A,),
        (A, C, C),
        (),
        (A, None),
        ([1.0], C),
    ],
)  # fmt: skip
def test_whatever_differs_goes_the_long_way(other: tuple[Any, ...]) -> None:
    calls, launches = remembered(A, C)
    assert not calls(other)
    assert launches.given == []


def test_an_input_may_require_a_gradient() -> None:
    calls, _ = remembered(A, C)
    assert calls((replace(A, requires_grad=True), C))


def test_a_tensor_that_cannot_be_asked_goes_the_long_way() -> None:
    class Sparse(Tensor):
        def is_contiguous(self) -> bool:
            raise RuntimeError("a sparse tensor has no contiguity")

    calls, _ = remembered(Sparse(), C)
    assert not calls((Sparse(), C))


def test_the_strictest_alignment_holds() -> None:
    calls, _ = remembered(A, C, alignment=32)
    assert not calls((replace(A, pointer=0x1010), C))


def test_shapes_with_no_elements_leave_nothing() -> None:
    calls, _ = remembered(replace(A, shape=(0, 8)), replace(C, shape=(0, 8)))
    assert not calls((replace(A, shape=(0, 8)), replace(C, shape=(0, 8))))


def test_calls_of_several_shapes_and_cards_take_turns() -> None:
    calls, launches = remembered(A, C)
    there, others = replace(A, ordinal=1), replace(C, ordinal=1)
    checker = ArgumentChecker(PARAMS, CARD)
    infos = [
        ArrayInfo(each.pointer, each.shape, (8, 1), checker._rows[0][1], card(1), True, each)
        for each in (there, others)
    ]
    second = Launches()
    calls.remember(checker, infos, 16, lambda ordinal, owner: second)
    for _ in range(2):
        assert calls((A, C))
        assert calls((there, others))
    assert (len(launches.given), len(second.given)) == (2, 2)


def test_a_look_of_torchs_spares_the_questions_but_not_the_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[tuple[Any, ...]] = []

    def look(*tensors: Tensor) -> bool:
        looked.append(tensors)
        return tensors[0].dtype == "torch.float16"

    monkeypatch.setattr(repeated, "guard_of", lambda tensors: look)
    calls, launches = remembered(A, C)
    assert calls((A, C))
    for wrong in (replace(C, pointer=0), replace(C, pointer=0x2008), replace(C, pointer=0x1000)):
        assert not calls((A, wrong))
    assert not calls((replace(A, dtype="torch.bfloat16"), C))
    assert len(looked) == 5
    assert launches.given == [[0x1000, 0x2000]]


def test_what_the_look_takes_for_another_is_asked_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated, "guard_of", lambda tensors: lambda *given: False)
    calls, _ = remembered(A, C)
    assert calls((replace(A, requires_grad=True), C))
