"""Running the stage `threaded` without a GPU, and finding what a GPU must not do."""

from .arithmetic import FUNCTIONS
from .barriers import Meeting
from .counters import Counters, LineTally, Passes, Sectors
from .lanes import Lanes
from .refusal import SimulationError
from .run import run_threaded
from .words import MEANINGS

__all__ = [
    "FUNCTIONS",
    "MEANINGS",
    "Counters",
    "Lanes",
    "LineTally",
    "Meeting",
    "Passes",
    "Sectors",
    "SimulationError",
    "run_threaded",
]
