"""Expressions of hundreds of levels, as a helper's loop makes them: the same on every road."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests.roads import ROADS
from tilebench.errors import LanguageError
from tilebench.ir import room

LEVELS = 150
A, OUT = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)


def nested(step: Callable[[Any, int], Any]) -> Callable[[Any], Any]:
    def value(start: Any) -> Any:
        for k in range(LEVELS):
            start = step(start, k)
        return start

    return value


CHAINS = {
    "casts of elements": (nested(lambda x, k: T.cast(x, "int32" if k % 2 else "float32")), "x", A),
    "casts of indices": (nested(lambda x, k: T.cast(x, "int32" if k % 2 else "float32")), "i", A),
    "casts of integers": (nested(lambda x, k: T.cast(x, "int32" if k % 2 else "int64")), "i", A),
    "differences": (nested(lambda x, k: k - x), "x", A + LEVELS // 2),
    "choices": (nested(lambda x, k: T.if_then_else(x > 1000, -1.0, k + 0.5)), "x", np.full(8, LEVELS - 0.5)),
    "quotients": (nested(lambda x, k: x // 2 * 2), "i", A // 2 * 2),
    "largest": (nested(lambda x, k: T.max(x, k % 3)), "x", np.maximum(A, 2)),
}


@tilebench.jit
def kernel(value, start):
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), C: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(8):
                C[i] = value(A[i] if start == "x" else i)

    return main


class _With:
    """The jit function with its arguments, as the roads call it."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def using(self, target: str) -> Callable[[], Any]:
        return lambda: kernel.using(target=target)(*self.arguments)


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("road", ROADS)
def test_hundreds_of_levels(chain: str, road: str) -> None:
    value, start, want = CHAINS[chain]
    after = ROADS[road](_With(value, start), {"A": A, "C": OUT})
    assert np.array_equal(after["C"], want)


def test_more_than_there_is_room_for_is_refused_at_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "FRAMES", 1)
    value, start, _ = CHAINS["choices"]
    with pytest.raises(LanguageError, match="nested too deeply") as caught:
        kernel.using(target="cuda:sm_80")(value, start).stage("threaded")
    assert caught.value.place is not None
    assert "C[i] = value(" in caught.value.place.text


def test_room_is_given_back_and_what_was_raised_rises() -> None:
    def depth(n: int) -> int:
        return 0 if not n else 1 + depth(n - 1)

    frames, size = sys.getrecursionlimit(), threading.stack_size()
    assert room.with_room(lambda: depth(5 * frames)) == 5 * frames
    with pytest.raises(RecursionError):
        room.with_room(lambda: depth(2 * room.FRAMES))
    with pytest.raises(ZeroDivisionError):
        room.with_room(lambda: depth(2 * frames) // 0)
    undone: list[int] = []
    assert room.with_room(lambda: depth(10), undo=lambda: undone.append(1)) == 10
    assert not undone
    assert room.with_room(lambda: depth(2 * frames), undo=lambda: undone.append(1)) == 2 * frames
    assert undone == [1]
    assert (sys.getrecursionlimit(), threading.stack_size()) == (frames, size)
