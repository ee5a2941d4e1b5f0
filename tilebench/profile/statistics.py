"""Medians, quartiles, and the interval of a ratio of medians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

RESAMPLES = 500
SEED = 20_011


class Summary(NamedTuple):
    """Median and quartiles of samples, and how many there were. Same unit as the samples."""

    median: float
    low: float
    high: float
    samples: int

    @property
    def spread(self) -> float:
        """Interquartile range as a part of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0


class Ratio(NamedTuple):
    """A ratio of two medians with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def decided(self) -> bool:
        """Does the interval leave out 1, so that one of the two is really faster?"""
        return not self.low <= 1.0 <= self.high

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def summarize(samples: Sequence[float]) -> Summary:
    """Median and quartiles (linear interpolation) of at least one sample."""
    low, median, high = np.percentile(np.asarray(samples, np.float64), [25, 50, 75])
    return Summary(float(median), float(low), float(high), len(samples))


def ratio_of_medians(
    above: Sequence[Sequence[float]], below: Sequence[Sequence[float]], *, seed: int = SEED
) -> Ratio:
    """median(above) / median(below), samples given by round, with a bootstrap interval.

    Samples of one round are not independent (they share its clock and its noise), so rounds are
    drawn first, the same ones for both sides, then samples within each (Davison and Hinkley,
    Bootstrap Methods and their Application, section 3.8). Percentile interval, fixed seed: the
    same samples always print the same interval.
    """
    rounds = min(len(above), len(below))
    tops = [np.asarray(each, np.float64) for each in above[:rounds]]
    bottoms = [np.asarray(each, np.float64) for each in below[:rounds]]
    value = float(np.median(np.concatenate(tops)) / np.median(np.concatenate(bottoms)))
    random = np.random.default_rng(seed)
    drawn = np.empty(RESAMPLES)
    for k in range(RESAMPLES):
        chosen = random.integers(0, rounds, rounds)
        drawn[k] = _median_of(tops, chosen, random) / _median_of(bottoms, chosen, random)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Ratio(value, float(low), float(high))


def _median_of(
    rounds: list[np.ndarray[tuple[int], np.dtype[np.float64]]],
    chosen: np.ndarray[tuple[int], np.dtype[np.int64]],
    random: np.random.Generator,
) -> float:
    parts = [rounds[i][random.integers(0, len(rounds[i]), len(rounds[i]))] for i in chosen]
    return float(np.median(np.concatenate(parts)))
