"""What TileLang's files ask of the card and of the compiler around it."""

from __future__ import annotations

import importlib
import re
from typing import Any, NoReturn

from ..errors import OptionError


def get_target_compute_version(target: object = None) -> str:
    """The compute capability of a target that names one ("sm_90a"), or of torch's current card: "9.0"."""
    named = re.search(r"sm_(\d+)(\d)", str(target))
    if named:
        return f"{named[1]}.{named[2]}"
    cuda: Any = importlib.import_module("torch").cuda

    major, minor = cuda.get_device_capability()
    return f"{major}.{minor}"


def register_cuda_postproc_callback(*_: object, **__: object) -> NoReturn:
    """Refused when it is called: a kernel's text is what its stages say."""
    raise OptionError(
        "CUDA text is not rewritten behind a kernel here",
        hint="print a stage, edit it, and compile what it says then",
    )


__all__ = ["get_target_compute_version", "register_cuda_postproc_callback"]
