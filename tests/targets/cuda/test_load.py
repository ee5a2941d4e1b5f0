"""What a call of a loaded kernel hands to the launch, without a card: pointers in order, stream, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from tests.passes.lowering import lower
from tests.passes.test_to_threads import ADD
from tilebench.errors import ArgumentError
from tilebench.passes.context import Context
from tilebench.runtime.describe import ArrayInfo
from tilebench.targets.build import Build
from tilebench.targets.cuda.machines import machine_of
from tilebench.targets.cuda.run import load
from tilebench.targets.devices import card

MACHINE = machine_of("sm_80")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[int, ...], Any]]:
    monkeypatch.setattr(load, "current_stream", lambda owner, ordinal: 7)
    return []


def executable(calls: list[Any]) -> load.CudaExecutable:
    made = load.CudaExecutable(Build(lower(ADD)[0], MACHINE, Context(MACHINE)))
    made._launches[0] = lambda *values, grid: calls.append((values, grid))  # type: ignore[assignment]
    return made


def arrays(*pointers: int, devices: tuple[str, ...] = ()) -> list[ArrayInfo]:
    where = devices or (card(0),) * len(pointers)
    return [
        ArrayInfo(pointer, (64, 96), (96, 1), lower(ADD)[0].params[0].dtype, device, True, None)  # type: ignore[union-attr]
        for pointer, device in zip(pointers, where, strict=True)
    ]


def test_pointers_go_in_the_order_of_the_parameters(calls: list[Any]) -> None:
    made = executable(calls)
    made(arrays(0x1000, 0x2000, 0x3000))
    # The grid is fixed, so it stands in the launch and no call sets it.
    assert calls == [((7, 0x1000, 0x2000, 0x3000), None)]
    assert made.grid.constant == (3, 4)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_an_address_that_no_vector_can_use_is_refused_by_name(calls: list[Any], which: int) -> None:
    pointers = [0x1000, 0x2000, 0x3000]
    pointers[which] += 4
    with pytest.raises(ArgumentError, match=f"{'ABC'[which]} starts at an address that is no multiple of 16"):
        executable(calls)(arrays(*pointers))
    assert calls == []


def test_arrays_of_two_cards_are_refused_by_name(calls: list[Any]) -> None:
    with pytest.raises(ArgumentError, match="B lies on cuda:1, the first array on cuda:0"):
        executable(calls)(arrays(0x1000, 0x2000, 0x3000, devices=(card(0), card(1), card(0))))
