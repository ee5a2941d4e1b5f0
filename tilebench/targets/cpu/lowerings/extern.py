"""Calls with pointers of functions of a kernel's own CUDA text: the CPU has none."""

from __future__ import annotations

from typing import Any, NoReturn

from ....errors import TargetError
from ....language.addresses import TensorAt
from ....language.extern import ExternCall
from ..loops.lowering import Lowering


def refuse_call(work: Any, call: ExternCall) -> NoReturn:
    """Raises `TargetError` at the line of the call."""
    raise TargetError(
        "{name} of T.call_extern is CUDA text, which the CPU cannot run", name=call.name, at=call.place,
        hint="write it as a Python function of the language, which every target runs",
    )  # fmt: skip


def refuse_tensor(work: Any, tensor: TensorAt) -> NoReturn:
    """Raises `TargetError` at the line of an array that is known by its address alone."""
    raise TargetError(
        "{name} is known by its address alone, which the CPU does not trust", name=tensor.buffer.name,
        at=tensor.place, hint="pass the arrays themselves, or one array with a dimension more",
    )  # fmt: skip


LOWERINGS = (Lowering(ExternCall, refuse_call), Lowering(TensorAt, refuse_tensor))
