"""The text of `T.set_max_nreg`: `setmaxnreg`, which needs the launch bound that kernels have."""

from __future__ import annotations

from typing import Any

from ....errors import TargetError
from ....language.registers import SetMaxNreg
from ...clike.renderer import Renderer
from ...intrinsics import Intrinsic


def _set_max_nreg(renderer: Renderer, statement: SetMaxNreg) -> None:
    if "setmaxnreg" not in renderer.machine.features:
        raise TargetError(
            "T.set_max_nreg has no code for {target}", at=statement.place, target=renderer.machine.name
        )
    way = "inc" if statement.increase else "dec"
    # Nothing that touches memory moves over it: behind an increase there may be registers in place of it.
    code = f'asm volatile("setmaxnreg.{way}.sync.aligned.u32 {statement.registers};" ::: "memory");'
    renderer.line(code, statement)


def _simulated(lanes: Any, statement: Any, mask: Any) -> Any:
    from ..instructions.registers_meaning import set_max_nreg  # with the simulator, which texts do not need

    yield from set_max_nreg(lanes, statement, mask)


INTRINSICS = (Intrinsic(SetMaxNreg, _simulated, _set_max_nreg),)
