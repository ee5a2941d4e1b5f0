"""Sweeps: many configurations of one kernel compiled, checked and timed by one method, and kept."""

from .engine import SweepEngine, SweepMethod, SweepProgress
from .prepare import SweepCandidate
from .public import open_sweep, sweep, sweep_of
from .result import Sweep

__all__ = [
    "Sweep",
    "SweepCandidate",
    "SweepEngine",
    "SweepMethod",
    "SweepProgress",
    "open_sweep",
    "sweep",
    "sweep_of",
]
