"""Several launches of one cubin: in order, on the caller's stream, on memory that is theirs for the call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.kernel.test_programs import row_sums
from tilebench.errors import ArgumentError
from tilebench.ir import dtype_of
from tilebench.runtime.describe import ArrayInfo
from tilebench.targets.cuda.run import program
from tilebench.targets.devices import card


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    noted: list[Any] = []

    @contextmanager
    def memory(context: Any, stream: int, size: int) -> Iterator[int]:
        noted.append(("take", stream, size))
        yield 0x9000
        noted.append(("give", stream))

    monkeypatch.setattr(program, "current_stream", lambda owner, ordinal: 7)
    monkeypatch.setattr(program, "stream_memory", memory)
    monkeypatch.setattr(program, "context", lambda ordinal: None)
    return noted


def made(log: list[Any]) -> program.CudaProgram:
    kernel = row_sums.using(target="cuda:sm_80")(100, 64, 4)
    kernel.reach_code()
    assert kernel.compilation.build is not None
    found = program.CudaProgram(kernel.compilation.build)
    for number, launch in enumerate(found.launches):
        launch._launches[0] = lambda *values, grid, number=number: log.append((number, values, grid))  # type: ignore[assignment]
    return found


def arrays(a: int, b: int, device: str) -> list[ArrayInfo]:
    dtype = dtype_of("float32")
    return [
        ArrayInfo(a, (100, 64), (64, 1), dtype, card(0), True, None),
        ArrayInfo(b, (100,), (1,), dtype, device, True, None),
    ]


def test_launches_follow_each_other_on_the_callers_stream(log: list[Any]) -> None:
    made(log)(arrays(0x1000, 0x2000, card(0)))
    # 4 x 100 floats, in whole pieces of 256 bytes.
    assert log == [
        ("take", 7, 1792),
        (0, (7, 0x1000, 0x2000, 0x9000), (4, 4)),
        (1, (7, 0x1000, 0x2000, 0x9000), (2,)),
        ("give", 7),
    ]


def test_wrong_places_are_refused_before_anything_runs(log: list[Any]) -> None:
    with pytest.raises(ArgumentError, match="B lies on cuda:1, the first array on cuda:0"):
        made(log)(arrays(0x1000, 0x2000, card(1)))
    with pytest.raises(ArgumentError, match="A starts at an address that is no multiple of 16 bytes"):
        made(log)(arrays(0x1004, 0x2000, card(0)))
    assert log == []


def test_each_launch_has_its_threads_and_shared_memory(log: list[Any]) -> None:
    rows = [launch.build.data["launches"] for launch in made(log).launches]
    assert rows == [(("main_1", 64, 0),), (("main_2", 128, 0),)]
