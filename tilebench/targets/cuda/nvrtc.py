"""CUDA C to a cubin and PTX in one NVRTC compile, without a toolkit and without a GPU.

NVRTC is called through ctypes: the library opens in 11 ms, against 123 ms for the Python bindings
(measured in fresh processes). ctypes releases the GIL during a call, so compiles run side by side.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import InternalError, TargetError
from ...machine import Machine
from .log import Advisory, CompileIssue, FunctionResources, parse_advisories, parse_issues, parse_resources
from .machines import arch_of

if TYPE_CHECKING:
    pass

HINT = 'install the CUDA compiler packages, no GPU needed: pip install ".[cuda]" in the folder of tilebench'

# -lineinfo maps SASS to lines. --modify-stack-limit would change the stack limit of the whole
# process. -default-device lets helper functions go without __device__. 177 is "declared but never
# referenced", which overloads of the prelude would raise by the dozen.
BASE_OPTIONS = (
    "-lineinfo",
    "--ptxas-options=-v",
    "--modify-stack-limit=false",
    "-default-device",
    "--std=c++17",
    "--diag-suppress=177",
    # NVRTC keeps finished code beside the driver's cache and then gives no report of registers
    # (seen with 13.0 and driver 580). Our own cache keeps both.
    "--no-cache",
)

_OLDEST = (12, 8)
_lock = threading.Lock()
_loaded: _Library | None = None


@dataclass(frozen=True)
class Compiled:
    """One compile. `resources` is by function name; `seconds` is NVRTC's own time.

    `advisories` are ptxas's C75xx remarks: wgmma serialised, setmaxnreg ignored and the like.
    """

    name: str
    arch: str
    cubin: bytes
    ptx: str
    log: str
    seconds: float
    resources: Mapping[str, FunctionResources]
    advisories: tuple[Advisory, ...] = ()
    warnings: tuple[CompileIssue, ...] = ()
    nvrtc: str = ""
    options: tuple[str, ...] = field(default=())


class CudaCompileError(TargetError):
    """NVRTC refused the text. `issues` hold the generated lines; the caller maps them to the user's."""

    title = "CUDA compile error"

    def __init__(self, issues: Sequence[CompileIssue], log: str, arch: str) -> None:
        self.issues = tuple(issues)
        self.log = log
        self.arch = arch
        errors = [each for each in self.issues if each.severity == "error"]
        text = errors[0].message if errors else "it gave no reason"
        found = "\n         ".join(
            (f"line {each.line} of the cuda stage: " if each.line else "") + each.message
            for each in errors[:8]
        )
        super().__init__(
            "the CUDA compiler refused the code for {arch}: {text}",
            arch=arch,
            text=text,
            found="{listing}" if found else "",
            listing=found,
        )


@dataclass(frozen=True)
class _Library:
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
    folders = [Path(each) for each in dict.fromkeys(sys.path) if each]
    for pattern in patterns:
        for folder in folders:
            if not (folder / "nvidia").is_dir():
                continue
            found = sorted(each for each in folder.glob(pattern) if ".alt." not in each.name)
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


def _open() -> _Library:
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
    return _Library(lib, path, version)


def library() -> _Library:
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
    _check(lib, lib.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    held = (ctypes.c_int * count.value)()
    _check(lib, lib.nvrtcGetSupportedArchs(held))
    return tuple(f"sm_{each}" for each in held)


def _check(lib: Any, code: int) -> None:
    if code != 0:
        raise InternalError(
            "NVRTC failed: {text} ({code})", text=lib.nvrtcGetErrorString(code).decode(), code=code
        )


def _fetch(lib: Any, program: ctypes.c_void_p, what: str) -> bytes:
    """One of the program's results, by the `nvrtcGet<what>Size` and `nvrtcGet<what>` pair."""
    size = ctypes.c_size_t()
    _check(lib, getattr(lib, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    if size.value == 0:
        return b""
    held = ctypes.create_string_buffer(size.value)
    _check(lib, getattr(lib, f"nvrtcGet{what}")(program, held))
    return held.raw


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\0").decode("utf-8", "replace")


def compile_cuda(
    text: str, machine: Machine, *, name: str = "kernel.cu", options: Iterable[str] = ()
) -> Compiled:
    """Compile CUDA C `text` for `machine` into a cubin and PTX.

    The display name is made absolute under `/`: NVRTC would else write the working folder into
    the line table, and equal text would give cubins that differ from folder to folder.
    Raises `CudaCompileError` with the generated lines, `TargetError` when NVRTC is missing or
    does not know the architecture. Safe to call from several threads; the GIL is released.
    """
    held = library()
    arch = arch_of(machine)
    all_options = (f"--gpu-architecture={arch}", *BASE_OPTIONS, *options)
    lib = held.lib
    program = ctypes.c_void_p()
    shown = name if name.startswith("/") else f"/{name}"
    _check(lib, lib.nvrtcCreateProgram(ctypes.byref(program), text.encode(), shown.encode(), 0, None, None))
    try:
        array = (ctypes.c_char_p * len(all_options))(*(each.encode() for each in all_options))
        start = time.perf_counter()
        code = lib.nvrtcCompileProgram(program, len(all_options), array)
        seconds = time.perf_counter() - start
        log = _text(_fetch(lib, program, "ProgramLog"))
        if code != 0:
            _refuse(held, arch, code, log, _partial_ptx(lib, program))
        ptx = _text(_fetch(lib, program, "PTX"))
        cubin = _fetch(lib, program, "CUBIN")
    finally:
        lib.nvrtcDestroyProgram(ctypes.byref(program))
    return Compiled(
        name=name,
        arch=arch,
        cubin=cubin,
        ptx=ptx,
        log=log,
        seconds=seconds,
        resources=parse_resources(log),
        advisories=parse_advisories(log, ptx),
        warnings=tuple(each for each in parse_issues(log) if each.severity == "warning"),
        nvrtc=".".join(map(str, held.version)),
        options=all_options,
    )


def _partial_ptx(lib: Any, program: ctypes.c_void_p) -> str:
    """The PTX of a compile that failed in ptxas; empty when the front end had refused."""
    size = ctypes.c_size_t()
    if lib.nvrtcGetPTXSize(program, ctypes.byref(size)) != 0 or size.value <= 1:
        return ""
    return _text(_fetch(lib, program, "PTX"))


def _refuse(held: _Library, arch: str, code: int, log: str, ptx: str) -> None:
    """Raise what a failed compile means. Code 5 is NVRTC's "invalid option"."""
    if code == 5 and "gpu-architecture" in log:
        raise TargetError(
            "NVRTC {version} makes no code for {arch}",
            version=".".join(map(str, held.version)),
            arch=arch,
            expected="one of {known}",
            known=", ".join(supported_archs()),
            hint='a newer compiler may: pip install --upgrade ".[cuda]" in the folder of tilebench',
        )
    issues = parse_issues(log, ptx)
    if not any(each.severity == "error" for each in issues):
        text = held.lib.nvrtcGetErrorString(code).decode()
        issues = (CompileIssue(0, "error", f"{text}: {log.strip()}" if log.strip() else text), *issues)
    raise CudaCompileError(issues, log, arch)
