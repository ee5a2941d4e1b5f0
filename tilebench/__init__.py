"""tilebench: a workbench for tile kernels.

    import tilebench
    import tilebench.language as T

`tilebench.jit` makes kernel functions, `tilebench.Schedule.of` and `tilebench.load_schedule` choose
how a kernel runs, `tilebench.workbench` opens the notebook's view, `tilebench.compile_from` starts
from a stage's edited text. Names are found at first use: the import itself loads nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import workbench as workbench
    from .errors import TileError as TileError
    from .kernel import JitFunction as JitFunction
    from .kernel import Kernel as Kernel
    from .kernel import compile_from as compile_from
    from .kernel import jit as jit
    from .language.knobs import Knob as Knob
    from .record import BenchRecord as BenchRecord
    from .record import CompileRecord as CompileRecord
    from .record import RunRecord as RunRecord
    from .record_files import load as open_record
    from .record_files import save as save_record
    from .schedule import Schedule as Schedule
    from .schedule import load_schedule as load_schedule
    from .schedule import save_schedule as save_schedule
    from .sweeps import Sweep as Sweep
    from .sweeps import open_sweep as open_sweep
    from .sweeps import sweep as sweep
    from .targets import target_here as target_here

__version__ = "0.1.0"

_WHERE = {
    "jit": ".kernel", "JitFunction": ".kernel", "Kernel": ".kernel", "compile_from": ".kernel",
    "Knob": ".language.knobs", "Schedule": ".schedule", "load_schedule": ".schedule",
    "save_schedule": ".schedule", "sweep": ".sweeps", "open_sweep": ".sweeps", "Sweep": ".sweeps",
    "TileError": ".errors", "CompileRecord": ".record", "RunRecord": ".record", "BenchRecord": ".record",
    "target_here": ".targets",
}  # fmt: skip

# Names that are others at home.
_RENAMED = {"open_record": (".record_files", "load"), "save_record": (".record_files", "save")}

__all__ = [
    "BenchRecord",
    "CompileRecord",
    "JitFunction",
    "Kernel",
    "Knob",
    "RunRecord",
    "Schedule",
    "Sweep",
    "TileError",
    "compile_from",
    "jit",
    "load_schedule",
    "open_record",
    "open_sweep",
    "save_record",
    "save_schedule",
    "sweep",
    "target_here",
    "workbench",
]


def __getattr__(name: str) -> Any:
    if name == "workbench":
        return import_module(".workbench", __name__)
    where, own = _RENAMED.get(name, (_WHERE.get(name), name))
    if where is None:
        raise AttributeError(f"module 'tilebench' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(import_module(where, __name__), own)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """What `tilebench.<Tab>` offers: the names that a person uses."""
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext tilebench` calls: registers the `%%tile` magic."""
    import_module(".workbench.magic", __name__).load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext tilebench` calls: closes workbenches and their child."""
    import_module(".workbench.magic", __name__).unload(shell)
