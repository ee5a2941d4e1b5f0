"""Cubins loaded into a context, and the kernels in them."""

from __future__ import annotations

import ctypes
import threading

from ....errors import ResourceError
from .context import Context, context

FUNCTION_ATTRIBUTES = {
    "MAX_THREADS_PER_BLOCK": 0,
    "SHARED_SIZE_BYTES": 1,
    "LOCAL_SIZE_BYTES": 3,
    "NUM_REGS": 4,
    "MAX_DYNAMIC_SHARED_SIZE_BYTES": 8,
}


class Module:
    """A cubin loaded into a context. Unloaded by `close`, else at the end of the process."""

    def __init__(self, cubin: bytes, context: Context) -> None:
        self.context = context
        self.handle = ctypes.c_void_p()
        with context:
            code = context.driver.lib.cuModuleLoadData(ctypes.byref(self.handle), cubin)
            context.driver.check(code, f"loading a kernel on {context.device.name}")

    def function(self, name: str) -> Function:
        """The kernel of that name; `CudaError` when the module has none."""
        kernel = ctypes.c_void_p()
        with self.context:
            code = self.context.driver.lib.cuModuleGetFunction(
                ctypes.byref(kernel), self.handle, name.encode()
            )
            self.context.driver.check(code, f"looking for the kernel {name}")
        return Function(self, name, kernel)

    def close(self) -> None:
        if self.handle.value:
            with self.context:
                code = self.context.driver.lib.cuModuleUnload(self.handle)
                self.context.driver.check(code, "unloading a kernel")
            self.handle = ctypes.c_void_p()


class Modules:
    """A cubin on each device that it is used on, loaded there at first use."""

    def __init__(self, cubin: bytes) -> None:
        self.cubin = cubin
        self._loaded: dict[int, Module] = {}
        self._lock = threading.Lock()

    def function(self, ordinal: int, name: str) -> Function:
        """The kernel of that name on a device; `CudaError` when there is none."""
        with self._lock:
            if ordinal not in self._loaded:
                self._loaded[ordinal] = Module(self.cubin, context(ordinal))
            return self._loaded[ordinal].function(name)


class Function:
    """One kernel of a module. Keeps the module alive."""

    def __init__(self, module: Module, name: str, handle: ctypes.c_void_p) -> None:
        self.module = module
        self.context = module.context
        self.name = name
        self.handle = handle

    def attribute(self, name: str) -> int:
        """What the driver says of the kernel, by a name of `FUNCTION_ATTRIBUTES`."""
        value = ctypes.c_int()
        with self.context:
            code = self.context.driver.lib.cuFuncGetAttribute(
                ctypes.byref(value), FUNCTION_ATTRIBUTES[name], self.handle
            )
            self.context.driver.check(code, f"reading {name} of {self.name}")
        return value.value

    def allow_shared(self, size: int) -> None:
        """Allow `size` bytes of dynamic shared memory; needed above 48 KB, harmless below."""
        most = self.context.device.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        if size > most:
            raise ResourceError(
                "{name} asks for {size} bytes of shared memory a block",
                name=self.name, size=size, most=most, expected="at most {most} on this device",
            )  # fmt: skip
        self._set("MAX_DYNAMIC_SHARED_SIZE_BYTES", size)

    def _set(self, name: str, value: int) -> None:
        with self.context:
            lib = self.context.driver.lib
            code = lib.cuFuncSetAttribute(self.handle, FUNCTION_ATTRIBUTES[name], value)
            self.context.driver.check(code, f"setting {name} of {self.name}")

    def blocks_per_sm(self, threads: int, shared: int) -> int:
        """Resident blocks a multiprocessor by the driver's own count, to compare with ours."""
        blocks = ctypes.c_int()
        with self.context:
            code = self.context.driver.lib.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                ctypes.byref(blocks), self.handle, threads, ctypes.c_size_t(shared)
            )
            self.context.driver.check(code, f"asking for the occupancy of {self.name}")
        return blocks.value
