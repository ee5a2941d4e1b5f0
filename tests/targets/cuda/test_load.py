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
from tilebench.targets.cuda.run import load, prepared
from tilebench.targets.devices import card

MACHINE = machine_of("sm_80")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[int, ...], Any]]:
    monkeypatch.setattr(load, "current_stream", lambda owner, ordinal: 7)
    return []


def executable(calls: list[Any]) -> load.CudaExecutable:
    made = load.CudaExecutable(Build(lower(ADD)[0], MACHINE, Context(MACHINE)))
    made._launches[0] = Noted(calls)  # type: ignore[assignment]
    return made


class Noted:
    """A launch that notes what it is given."""

    def __init__(self, calls: list[Any]) -> None:
        self.calls = calls

    def __call__(self, *values: Any, grid: Any) -> None:
        self.calls.append((values, grid))

    def ready(self, grid: Any) -> Any:
        return lambda stream, values: self(stream, *values, grid=grid)


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


MIXED = """
@T.prim_func
def main(A: T.Tensor((64,), T.int8, align=1), S: T.Tensor((64,), T.float32, align=4)):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(64, map=T.Fragment((64,), thread=((32, 0, 1),), value=((2, 0, 32),))):
            S[i] = T.cast(A[i], T.float32)
"""


def test_each_array_is_asked_for_its_own_alignment(calls: list[Any]) -> None:
    """Bytes may start anywhere, also beside floats."""
    made = load.CudaExecutable(Build(lower(MIXED)[0], MACHINE, Context(MACHINE)))
    made._launches[0] = Noted(calls)  # type: ignore[assignment]
    assert [array.align for array in made.arrays] == [1, 4]
    made(arrays(0x1001, 0x2004))
    assert calls == [((7, 0x1001, 0x2004), None)]
    with pytest.raises(ArgumentError, match="S starts at an address that is no multiple of 4 bytes"):
        made(arrays(0x1001, 0x2006))


def test_arrays_of_two_cards_are_refused_by_name(calls: list[Any]) -> None:
    with pytest.raises(ArgumentError, match="B lies on cuda:1, the first array on cuda:0"):
        executable(calls)(arrays(0x1000, 0x2000, 0x3000, devices=(card(0), card(1), card(0))))


def test_a_prepared_launch_asks_for_the_stream_and_takes_the_addresses(
    calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = iter((7, 9))
    monkeypatch.setattr(prepared, "stream_function", lambda owner: lambda ordinal: next(streams))
    ready = executable(calls).prepared(0, arrays(0x1000, 0x2000, 0x3000), None)
    assert ready is not None
    assert ready.alignment == 16
    ready([0x1000, 0x2000, 0x3000])
    ready([0x4000, 0x5000, 0x6000])
    assert calls == [((7, 0x1000, 0x2000, 0x3000), None), ((9, 0x4000, 0x5000, 0x6000), None)]


def test_a_prepared_launch_keeps_what_it_packs_by_the_addresses(
    calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "stream_function", lambda owner: lambda ordinal: 7)
    made, asked = executable(calls), list[Any]()
    made.passes_pointers_only = False
    monkeypatch.setattr(
        made, "packed", lambda arguments, found, ordinal: (asked.append(found), (*found, b"map"))[1]
    )
    ready = made.prepared(0, arrays(0x1000, 0x2000, 0x3000), None)
    assert ready is not None
    for first in (0x1000, 0x4000, 0x1000):
        ready([first, 0x2000, 0x3000])
    assert asked == [(0x1000, 0x2000, 0x3000), (0x4000, 0x2000, 0x3000)]
    assert [values for values, _ in calls] == [
        (7, n, 0x2000, 0x3000, b"map") for n in (0x1000, 0x4000, 0x1000)
    ]
