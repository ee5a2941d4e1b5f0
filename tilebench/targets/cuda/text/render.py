"""`threaded` as CUDA C, by the renderer that languages like C share.

`max` and `min` of floats give the number when one side is NaN, as the hardware's instructions do.
"""

from __future__ import annotations

from ....ir import Function
from ....language.structure import Unroll
from ....machine import Machine
from ...clike import render as clike
from ...clike.render import Rendered
from ...intrinsics import Intrinsic
from . import wgmma
from .dialect import CUDA
from .intrinsics import intrinsics
from .tma import parameters


def render(function: Function, machine: Machine) -> Rendered:
    """CUDA C of a function in stage `threaded`. Raises `TargetError` for what has no CUDA code."""
    rows = (*intrinsics(), Intrinsic(Unroll, None, wgmma.unrolled))
    return clike.render(function, machine, CUDA, rows, parameters)
