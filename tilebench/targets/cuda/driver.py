"""The CUDA driver API through ctypes: devices, the primary context, modules, memory, events.

Nothing here needs a package, and nothing is opened before the first call. The primary context of
a device is used, which is the one that torch and CuPy use, so their pointers and streams are
valid here. Calls may come from any thread: each makes its context current and puts the thread
back as it was.
"""

from __future__ import annotations

import ctypes
import re
import threading
from functools import cache
from types import TracebackType
from typing import Any

from ...errors import LaunchError, TargetError
from ...machine import Machine
from .machines import machine_for_capability, machine_of
from .nvrtc import find_library

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
            raise _failure
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


def available() -> tuple[bool, str]:
    """Whether kernels can run on a GPU here, and in words why not. Never raises."""
    try:
        held = driver()
        reason = too_old(held.version, compiler_major())
        if reason:
            return False, reason
        return (True, "") if device_count() > 0 else (False, "the CUDA driver sees no device")
    except (TargetError, CudaError) as error:
        return False, error.message


def device_count() -> int:
    """Number of CUDA devices that this process may see."""
    held, count = driver(), ctypes.c_int()
    held.check(held.lib.cuDeviceGetCount(ctypes.byref(count)), "counting the devices")
    return count.value


# The attributes that `Device` reads, by CUdevice_attribute.
DEVICE_ATTRIBUTES = {
    "MAX_THREADS_PER_BLOCK": 1,
    "WARP_SIZE": 10,
    "CLOCK_RATE": 13,
    "MULTIPROCESSOR_COUNT": 16,
    "MEMORY_CLOCK_RATE": 36,
    "GLOBAL_MEMORY_BUS_WIDTH": 37,
    "L2_CACHE_SIZE": 38,
    "MAX_THREADS_PER_MULTIPROCESSOR": 39,
    "COMPUTE_CAPABILITY_MAJOR": 75,
    "COMPUTE_CAPABILITY_MINOR": 76,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 81,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 82,
    "COOPERATIVE_LAUNCH": 95,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 97,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": 106,
    "RESERVED_SHARED_MEMORY_PER_BLOCK": 111,
}


class Device:
    """One device: `ordinal`, `handle`, `name`, `capability`, `total_bytes` of memory."""

    def __init__(self, ordinal: int) -> None:
        held = driver()
        handle = ctypes.c_int()
        held.check(held.lib.cuDeviceGet(ctypes.byref(handle), ordinal), f"opening CUDA device {ordinal}")
        self.ordinal = ordinal
        self.handle = handle.value
        text = ctypes.create_string_buffer(256)
        held.check(held.lib.cuDeviceGetName(text, 256, self.handle), "reading the device's name")
        self.name = text.value.decode()
        size = ctypes.c_size_t()
        held.check(held.lib.cuDeviceTotalMem_v2(ctypes.byref(size), self.handle), "reading the memory's size")
        self.total_bytes = size.value
        self.capability = (
            self.attribute("COMPUTE_CAPABILITY_MAJOR"),
            self.attribute("COMPUTE_CAPABILITY_MINOR"),
        )

    def attribute(self, name: str) -> int:
        """A device attribute by its name in `DEVICE_ATTRIBUTES`. Clocks are in kHz."""
        held, value = driver(), ctypes.c_int()
        code = held.lib.cuDeviceGetAttribute(ctypes.byref(value), DEVICE_ATTRIBUTES[name], self.handle)
        held.check(code, f"reading the device's {name}")
        return value.value


@cache
def device(ordinal: int = 0) -> Device:
    """The device of that number; `CudaError` when there is none."""
    return Device(ordinal)


def describe(name: str | None = None) -> Machine:
    """The machine of a name, or of this host's first device; without one, of `cuda` alone."""
    if name is not None:
        return machine_of(name)
    return machine_for_capability(*device(0).capability) if available()[0] else machine_of("cuda")


class Context:
    """The primary context of a device, kept for the life of the process.

    `with context:` makes it current in this thread and puts the former one back at the end.
    """

    def __init__(self, ordinal: int) -> None:
        held = driver()
        reason = too_old(held.version, compiler_major())
        if reason:
            raise TargetError("{reason}", reason=reason)
        self.device = device(ordinal)
        self.driver = held
        handle = ctypes.c_void_p()
        code = held.lib.cuDevicePrimaryCtxRetain(ctypes.byref(handle), self.device.handle)
        held.check(code, f"opening a context on {self.device.name}")
        self.handle = handle
        self._key = handle.value
        self._thread = threading.local()

    def enter(self) -> bool:
        """Make the context current; True when it was not, so that `leave` has to undo it."""
        now = ctypes.c_void_p()
        lib = self.driver.lib
        if lib.cuCtxGetCurrent(ctypes.byref(now)) == 0 and now.value == self._key:
            return False
        self.driver.check(lib.cuCtxPushCurrent_v2(self.handle), "making the CUDA context current")
        return True

    def leave(self, pushed: bool) -> None:
        if pushed:
            former = ctypes.c_void_p()
            self.driver.check(
                self.driver.lib.cuCtxPopCurrent_v2(ctypes.byref(former)), "leaving the CUDA context"
            )

    def __enter__(self) -> Context:
        stack: list[bool] = self._thread.__dict__.setdefault("stack", [])
        stack.append(self.enter())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pushed: bool = self._thread.stack.pop()
        try:
            self.leave(pushed)
        except CudaError:
            # A lost context cannot be left either; the error inside is the one to show.
            if error is None:
                raise

    def synchronize(self, stream: int | None = None) -> None:
        """Wait for all work of the device, or of one stream. Raises what a kernel did wrong."""
        with self:
            lib = self.driver.lib
            code = (
                lib.cuCtxSynchronize() if stream is None else lib.cuStreamSynchronize(ctypes.c_void_p(stream))
            )
            self.driver.check(code, "the kernel failed while it ran")

    def free_bytes(self) -> int:
        """Memory of the device that is free now, in bytes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        with self:
            code = self.driver.lib.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
            self.driver.check(code, "asking for free memory")
        return free.value


_contexts: dict[int, Context] = {}
_context_lock = threading.Lock()


def context(ordinal: int = 0) -> Context:
    """The primary context of a device. `TargetError` for a driver that is too old for our code."""
    with _context_lock:
        held = _contexts.get(ordinal)
        if held is None:
            held = _contexts[ordinal] = Context(ordinal)
        return held
