"""Calls with pointers of functions of a kernel's own CUDA text: the CPU has none."""

from __future__ import annotations

from typing import Any, NoReturn

from ....errors import TargetError
from ....language.extern import ExternCall
from ..loops.lowering import Lowering


def refuse_call(work: Any, call: ExternCall) -> NoReturn:
    """Raises `TargetError` at the line of the call."""
    raise TargetError(
        "{name} of T.call_extern is CUDA text, which the CPU cannot run", name=call.name, at=call.place,
        hint="write it as a Python function of the language, which every target runs",
    )  # fmt: skip


LOWERINGS = (Lowering(ExternCall, refuse_call),)
