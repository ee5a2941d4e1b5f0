"""The primary context of a device, the one that torch and CuPy use: their pointers and streams are valid.

Calls may come from any thread: each makes its context current and puts the thread back as it was.
"""

from __future__ import annotations

import ctypes
import threading
from types import TracebackType

from ....errors import TargetError
from .device import device
from .driver import CudaError, compiler_major, driver, too_old


class Context:
    """The primary context of a device, kept for the life of the process.

    `with context:` makes it current in this thread and puts the former one back at the end.
    """

    def __init__(self, ordinal: int) -> None:
        cuda = driver()
        reason = too_old(cuda.version, compiler_major())
        if reason:
            raise TargetError("{reason}", reason=reason)
        self.device = device(ordinal)
        self.driver = cuda
        handle = ctypes.c_void_p()
        code = cuda.lib.cuDevicePrimaryCtxRetain(ctypes.byref(handle), self.device.handle)
        cuda.check(code, f"opening a context on {self.device.name}")
        self.handle = handle
        self._key = handle.value
        self._current = cuda.lib.cuCtxGetCurrent
        self._thread = threading.local()

    def enter(self) -> bool:
        """Make the context current; True when it was not, so that `leave` has to undo it."""
        try:
            now, place = self._thread.now
        except AttributeError:
            now = ctypes.c_void_p()
            now, place = self._thread.now = now, ctypes.byref(now)
        if self._current(place) == 0 and now.value == self._key:
            return False
        code = self.driver.lib.cuCtxPushCurrent_v2(self.handle)
        self.driver.check(code, "making the CUDA context current")
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
        if ordinal not in _contexts:
            _contexts[ordinal] = Context(ordinal)
        return _contexts[ordinal]
