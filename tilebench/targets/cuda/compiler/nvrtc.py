"""CUDA C to a cubin and PTX in one NVRTC compile, without a toolkit and without a GPU.

ctypes releases the GIL during a call, so compiles run side by side.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....errors import TargetError
from ....machine import Machine
from ..machines import arch_of
from .library import Nvrtc, check, library, supported_archs
from .log import Advisory, CompileIssue, FunctionResources, parse_advisories, parse_issues, parse_resources

# -lineinfo maps SASS to lines. --modify-stack-limit would change the stack limit of the whole
# process. -default-device lets helper functions go without __device__. 177 is "declared but never
# referenced", which overloads of the prelude would raise by the dozen.
# Without declarations of textures, of launches from the device and of the runtime's types: an empty kernel
# takes 38 ms and not 54.
MINIMAL = "--minimal"
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
        errors = [issue for issue in self.issues if issue.severity == "error"]
        text = errors[0].message if errors else "it gave no reason"
        found = "\n         ".join(
            (f"line {issue.line} of the cuda stage: " if issue.line else "") + issue.message
            for issue in errors[:8]
        )
        super().__init__(
            "the CUDA compiler refused the code for {arch}: {text}",
            arch=arch,
            text=text,
            found="{listing}" if found else "",
            listing=found,
        )


def _fetch(lib: Any, program: ctypes.c_void_p, what: str) -> bytes:
    """One of the program's results, by the `nvrtcGet<what>Size` and `nvrtcGet<what>` pair."""
    size = ctypes.c_size_t()
    check(lib, getattr(lib, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    if size.value == 0:
        return b""
    result = ctypes.create_string_buffer(size.value)
    check(lib, getattr(lib, f"nvrtcGet{what}")(program, result))
    return result.raw


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
    nvrtc = library()
    arch = arch_of(machine)
    all_options = (f"--gpu-architecture={arch}", *BASE_OPTIONS, *options)
    lib = nvrtc.lib
    program = ctypes.c_void_p()
    shown = name if name.startswith("/") else f"/{name}"
    check(lib, lib.nvrtcCreateProgram(ctypes.byref(program), text.encode(), shown.encode(), 0, None, None))
    try:
        array = (ctypes.c_char_p * len(all_options))(*(each.encode() for each in all_options))
        start = time.perf_counter()
        code = lib.nvrtcCompileProgram(program, len(all_options), array)
        seconds = time.perf_counter() - start
        log = _text(_fetch(lib, program, "ProgramLog"))
        if code != 0:
            _refuse(nvrtc, arch, code, log, _partial_ptx(lib, program))
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
        nvrtc=".".join(map(str, nvrtc.version)),
        options=all_options,
    )


def _partial_ptx(lib: Any, program: ctypes.c_void_p) -> str:
    """The PTX of a compile that failed in ptxas; empty when the front end had refused."""
    size = ctypes.c_size_t()
    if lib.nvrtcGetPTXSize(program, ctypes.byref(size)) != 0 or size.value <= 1:
        return ""
    return _text(_fetch(lib, program, "PTX"))


def _refuse(nvrtc: Nvrtc, arch: str, code: int, log: str, ptx: str) -> None:
    """Raise what a failed compile means. Code 5 is NVRTC's "invalid option"."""
    if code == 5 and "gpu-architecture" in log:
        raise TargetError(
            "NVRTC {version} makes no code for {arch}",
            version=".".join(map(str, nvrtc.version)),
            arch=arch,
            expected="one of {known}",
            known=", ".join(supported_archs()),
            hint="a newer compiler may: pip install --upgrade nvidia-cuda-nvrtc",
        )
    issues = parse_issues(log, ptx)
    if not any(issue.severity == "error" for issue in issues):
        text = nvrtc.lib.nvrtcGetErrorString(code).decode()
        issues = (CompileIssue(0, "error", f"{text}: {log.strip()}" if log.strip() else text), *issues)
    raise CudaCompileError(issues, log, arch)
