"""A right result told by a look at each element: the same figures as a whole comparison, or no answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tilebench.ir import dtype_of
from tilebench.reference import chunks
from tilebench.reference.bounds import Bounded
from tilebench.reference.check import compare_output, poison
from tilebench.reference.chunks import CHUNK, digest, in_chunks
from tilebench.reference.within import report_within

SHAPE = (70, 1000)
F32 = dtype_of("float32")


def right() -> tuple[Any, Bounded]:
    """A result of more than one chunk within its bounds."""
    random = np.random.default_rng(5)
    value: Any = random.standard_normal(SHAPE)
    error: Any = np.abs(value) * 1e-5 + 1e-7
    got = (value + 0.9 * error * random.uniform(-1, 1, SHAPE)).astype(np.float32)
    return got, Bounded(value, error, stored=np.ones(SHAPE, np.bool_))


def test_its_figures_are_those_of_the_whole_comparison() -> None:
    got, bounded = right()
    assert got.size > CHUNK
    quick, whole = report_within(got, bounded, F32, "C"), compare_output(got, bounded, F32, "C")
    assert quick is not None
    assert quick == replace(whole, worst=(), heat=(), patch=(1, 1))


def test_what_has_no_bound_and_what_is_no_number_in_both_is_right() -> None:
    got, bounded = right()
    got[0, 0], bounded.error[0, 0] = 1e30, np.inf
    got[69, 999] = bounded.value[69, 999] = np.inf
    got[69, 998] = bounded.value[69, 998] = np.nan
    bounded.error[69, 997] = 0.0
    got[69, 997] = bounded.value[69, 997] = 2.0
    quick, whole = report_within(got, bounded, F32, "C"), compare_output(got, bounded, F32, "C")
    assert quick is not None
    assert quick.unbounded == 1
    assert quick == replace(whole, worst=(), heat=(), patch=(1, 1))


@pytest.mark.parametrize(
    "wrong", ["outside", "not a number", "infinite", "unwritten", "never stored", "in part"]
)
def test_it_has_no_answer_where_anything_is_wrong_or_in_doubt(wrong: str) -> None:
    got, bounded = right()
    last = (69, 999)
    if wrong == "outside":
        got[last] += 10 * bounded.error[last]
    elif wrong == "unwritten":
        poison(got[69:, 999:])
    elif wrong == "never stored":
        assert bounded.stored is not None
        bounded.stored[last] = False
    elif wrong == "in part":
        bounded = replace(bounded, known=np.ones(SHAPE, np.bool_))
    else:
        got[last] = {"not a number": np.nan, "infinite": np.inf}[wrong]
    assert report_within(got, bounded, F32, "C") is None


def test_integers_are_compared_as_such() -> None:
    got = np.full(SHAPE, 2**62 + 1, np.int64)
    bounded = Bounded(got.copy(), np.zeros(SHAPE))
    assert report_within(got, bounded, dtype_of("int64"), "C") is not None
    got[0, 1] -= 1
    assert report_within(got, bounded, dtype_of("int64"), "C") is None


def test_chunks_are_all_of_an_array_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = in_chunks(1001, lambda part: (part.start, part.stop), 100)
    assert parts[0] == (0, 100)
    assert parts[-1] == (1000, 1001)
    assert [low for low, _ in parts[1:]] == [high for _, high in parts[:-1]]
    monkeypatch.setattr(chunks, "FEW", 10**6)
    assert in_chunks(1001, lambda part: (part.start, part.stop), 100) == parts
    assert in_chunks(0, lambda part: part.start) == []


def test_a_digest_is_of_every_byte_and_of_no_stride() -> None:
    array = np.random.default_rng(1).integers(0, 255, (3, 1 << 20)).astype(np.uint8)
    before = digest(array)
    assert digest(np.asfortranarray(array)) == before
    array[2, -1] ^= 1
    assert digest(array) != before
