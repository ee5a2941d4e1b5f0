"""Running the stage `threaded` without a GPU, and finding what a GPU must not do."""

from .lanes import run_threaded
from .lanes_memory import SimulationError

__all__ = ["SimulationError", "run_threaded"]
