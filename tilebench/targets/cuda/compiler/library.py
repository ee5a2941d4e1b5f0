"""NVRTC, found in the packages or in a toolkit and opened through ctypes.

The library opens in 11 ms so, against 123 ms for the Python bindings (measured in fresh processes).
"""

from __future__ import annotations

import ctypes
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....errors import InternalError, TargetError, install_command

HINT = f"install the CUDA compiler packages, no GPU needed: {install_command('cuda')}"
_OLDEST = (12, 8)
_lock = threading.Lock()
_loaded: Nvrtc | None = None


@dataclass(frozen=True)
class Nvrtc:
    """An open NVRTC: the handle, the file it came from, its version."""

    lib: Any
    path: str
    version: tuple[int, int]


def find_library() -> str | None:
    """The file of the newest NVRTC in the packages on `sys.path`; None when there is none.

    Its builtins stand in the same folder.
    """
    patterns = (
        "nvidia/cu1[3-9]/lib/libnvrtc.so.*",
        "nvidia/cu1[3-9]/bin/x86_64/nvrtc64_*0.dll",
        "nvidia/cuda_nvrtc/lib/libnvrtc.so.1*",
        "nvidia/cuda_nvrtc/bin/nvrtc64_*0.dll",
    )
    folders = [Path(path) for path in dict.fromkeys(sys.path) if path]
    for pattern in patterns:
        for folder in folders:
            if not (folder / "nvidia").is_dir():
                continue
            found = sorted(path for path in folder.glob(pattern) if ".alt." not in path.name)
            if found:
                return str(found[-1])
    return None


def _system_library() -> str | None:
    """NVRTC of a toolkit: by the loader's search path, then in the usual folder."""
    for name in ("libnvrtc.so.13", "libnvrtc.so.12"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    found = sorted(Path("/usr/local/cuda/lib64").glob("libnvrtc.so.1?"))
    return str(found[-1]) if found else None


def _open() -> Nvrtc:
    path = find_library() or _system_library()
    if path is None:
        raise TargetError("the CUDA compiler NVRTC is not installed", hint=HINT)
    try:
        # NVRTC opens its builtins by bare name, which works from a folder of the loader's search
        # path only; opened here first, they are found wherever the package lies (1 ms).
        for builtins in sorted(Path(path).parent.glob("libnvrtc-builtins.so.*")) if "/" in path else ():
            if ".alt." not in builtins.name:
                ctypes.CDLL(str(builtins))
        lib: Any = ctypes.CDLL(path)
    except OSError as error:
        raise TargetError(
            "the CUDA compiler NVRTC cannot be loaded: {error}", error=error, hint=HINT
        ) from None
    lib.nvrtcGetErrorString.restype = ctypes.c_char_p
    major, minor = ctypes.c_int(), ctypes.c_int()
    lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    version = (major.value, minor.value)
    if version < _OLDEST:
        raise TargetError(
            "the CUDA compiler NVRTC {found_version} is too old",
            found_version=".".join(map(str, version)),
            expected=".".join(map(str, _OLDEST)) + " or newer",
            hint=HINT,
        )
    return Nvrtc(lib, path, version)


def library() -> Nvrtc:
    """The NVRTC of this process, opened on first use. `TargetError` when there is none."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _open()
    return _loaded


def nvrtc_version() -> tuple[int, int]:
    """Version of NVRTC, as (major, minor). `TargetError` when it is not installed."""
    return library().version


def supported_archs() -> tuple[str, ...]:
    """The architectures NVRTC makes code for, as `sm_75`, without the specific (`a`) forms."""
    lib = library().lib
    count = ctypes.c_int()
    check(lib, lib.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    numbers = (ctypes.c_int * count.value)()
    check(lib, lib.nvrtcGetSupportedArchs(numbers))
    return tuple(f"sm_{number}" for number in numbers)


def check(lib: Any, code: int) -> None:
    """Raise `InternalError` for a code of NVRTC's other than success."""
    if code != 0:
        raise InternalError(
            "NVRTC failed: {text} ({code})", text=lib.nvrtcGetErrorString(code).decode(), code=code
        )
