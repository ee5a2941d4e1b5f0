"""The CUDA driver API through ctypes: the library, its errors, and whether it is new enough.

Nothing here needs a package, and nothing is opened before the first call.
"""

from __future__ import annotations

import ctypes
import re
import threading
from functools import cache
from typing import Any

from ....errors import LaunchError, TargetError
from ..compiler.library import find_library

# The oldest driver branch for code of each major version of the compiler. The driver itself states
# the CUDA version that it is good for.
OLDEST_DRIVER = {13: 580, 12: 525}

# After these the context is gone: each later call in this process fails, unloading too.
_LOST = frozenset({700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721})
_HINTS = {
    2: "free other arrays on the device, or use smaller ones",
    200: "the cubin is damaged: clear the compile cache",
    209: "the code was made for another architecture: name the target of this device",
    222: "the driver is older than the compiler: update the driver, or install an older compiler",
    700: "an access outside an array: run the kernel in the simulator to find the line",
    701: "too many registers or threads for one block: use fewer threads",
    716: "a vector access to an address that is not aligned: check the array's offset",
    802: "another process is setting the device up; wait, then try again",
    999: "restart the process; if it stays, the driver needs a restart",
}


class CudaError(LaunchError):
    """A driver call failed. `code` is the CUresult; `context_lost` says that this process is done."""

    title = "CUDA error"

    def __init__(self, code: int, name: str, meaning: str, doing: str) -> None:
        self.code = code
        self.context_lost = code in _LOST
        self.name = name
        hint = _HINTS.get(code, "")
        if self.context_lost:
            lost = (
                "the CUDA context of this process is lost, so no later CUDA call in it can work; restart it"
            )
            hint = f"{hint}; {lost}" if hint else lost
        super().__init__(
            "{doing}: {meaning} ({name})",
            doing=doing, meaning=meaning, name=name, hint="{hint_text}" if hint else "", hint_text=hint,
        )  # fmt: skip
        self._made_of = (code, name, meaning, doing)

    def __reduce__(self) -> tuple[type[CudaError], tuple[int, str, str, str]]:
        """As it was made: a measuring child sends it to its parent."""
        return type(self), self._made_of


class Driver:
    """An open libcuda, initialised. `version` is the CUDA version it is good for, as (major, minor)."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        code = lib.cuInit(0)
        if code != 0:
            raise self.error(code, "the CUDA driver could not start")
        number = ctypes.c_int()
        self.check(lib.cuDriverGetVersion(ctypes.byref(number)), "asking for the driver's version")
        self.version = (number.value // 1000, number.value % 1000 // 10)
        self.can_launch_ex = hasattr(lib, "cuLaunchKernelEx")

    def error(self, code: int, doing: str) -> CudaError:
        """The error for a CUresult, with the driver's own name and meaning of it."""
        name, meaning = ctypes.c_char_p(), ctypes.c_char_p()
        self.lib.cuGetErrorName(code, ctypes.byref(name))
        self.lib.cuGetErrorString(code, ctypes.byref(meaning))
        return CudaError(
            code,
            (name.value or b"CUDA_ERROR_%d" % code).decode(),
            (meaning.value or b"no meaning known").decode(),
            doing,
        )

    def check(self, code: int, doing: str) -> None:
        if code != 0:
            raise self.error(code, doing)


_lock = threading.Lock()
_driver: Driver | None = None
_failure: TargetError | CudaError | None = None


def _load() -> Any:
    """libcuda of this machine. `TargetError` when there is none."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise TargetError(
        "no CUDA driver is installed on this machine",
        hint="everything but running and timing on the GPU works without one",
    )


def driver() -> Driver:
    """The driver of this process. `TargetError` when there is none, `CudaError` when it cannot start."""
    global _driver, _failure
    with _lock:
        if _failure is not None:
            # Each raise adds its frames to the error, and they hold whatever their functions worked on.
            raise _failure.with_traceback(None)
        if _driver is None:
            try:
                _driver = Driver(_load())
            except (TargetError, CudaError) as error:
                _failure = error
                raise
        return _driver


@cache
def compiler_major() -> int:
    """Major version of the NVRTC that makes our code, from its file's name; 13 when none is installed."""
    found = re.search(r"libnvrtc\.so\.(\d+)|nvrtc64_(\d\d)", find_library() or "")
    return int(found[1] or found[2]) if found else 13


def too_old(version: tuple[int, int], needed: int) -> str:
    """Why a driver good for CUDA `version` cannot run code of CUDA `needed`; empty when it can."""
    if version[0] >= needed:
        return ""
    least = f"driver {OLDEST_DRIVER[needed]}" if needed in OLDEST_DRIVER else "a driver for it"
    return (
        f"the NVIDIA driver is too old: it is good for CUDA {version[0]}.{version[1]}, and code made by "
        f"CUDA {needed} needs {least} or newer"
    )
