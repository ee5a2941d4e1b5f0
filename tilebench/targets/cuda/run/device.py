"""Devices: how many there are, what one says of itself, and whether kernels can run here."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from functools import cache

from ....errors import TargetError
from ....machine import Machine
from ..machines import machine_for_capability, machine_of
from .driver import CudaError, compiler_major, driver, too_old


def available() -> tuple[bool, str]:
    """Whether kernels can run on a GPU here, and in words why not. Never raises."""
    try:
        reason = too_old(driver().version, compiler_major())
        if reason:
            return False, reason
        return (True, "") if device_count() > 0 else (False, "the CUDA driver sees no device")
    except (TargetError, CudaError) as error:
        error.__traceback__ = None  # the driver keeps why it cannot be loaded
        return False, error.message


def device_count() -> int:
    """Number of CUDA devices that this process may see."""
    cuda, count = driver(), ctypes.c_int()
    cuda.check(cuda.lib.cuDeviceGetCount(ctypes.byref(count)), "counting the devices")
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
    "MEMORY_POOLS_SUPPORTED": 115,
}


class Device:
    """One device: `ordinal`, `handle`, `name`, `capability`, `total_bytes` of memory."""

    def __init__(self, ordinal: int) -> None:
        cuda = driver()
        handle = ctypes.c_int()
        cuda.check(cuda.lib.cuDeviceGet(ctypes.byref(handle), ordinal), f"opening CUDA device {ordinal}")
        self.ordinal = ordinal
        self.handle = handle.value
        text = ctypes.create_string_buffer(256)
        cuda.check(cuda.lib.cuDeviceGetName(text, 256, self.handle), "reading the device's name")
        self.name = text.value.decode()
        size = ctypes.c_size_t()
        cuda.check(cuda.lib.cuDeviceTotalMem_v2(ctypes.byref(size), self.handle), "reading the memory's size")
        self.total_bytes = size.value
        self.capability = (
            self.attribute("COMPUTE_CAPABILITY_MAJOR"),
            self.attribute("COMPUTE_CAPABILITY_MINOR"),
        )

    def attribute(self, name: str) -> int:
        """A device attribute by its name in `DEVICE_ATTRIBUTES`. Clocks are in kHz."""
        cuda, value = driver(), ctypes.c_int()
        code = cuda.lib.cuDeviceGetAttribute(ctypes.byref(value), DEVICE_ATTRIBUTES[name], self.handle)
        cuda.check(code, f"reading the device's {name}")
        return value.value


@cache
def device(ordinal: int = 0) -> Device:
    """The device of that number; `CudaError` when there is none."""
    return Device(ordinal)


def describe(name: str | None = None) -> Machine:
    """The machine of a name, or of this host's first device; without one, of `cuda` alone."""
    if name is not None:
        return machine_of(name)
    if not available()[0]:
        return machine_of("cuda")
    here = device(0)
    return replace(machine_for_capability(*here.capability), units=here.attribute("MULTIPROCESSOR_COUNT"))
