"""Timing on the device: events around each launch, and a flush that leaves the L2 cold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from .context import Context
from .host import HostArray
from .memory import DeviceMemory, Event, fill_bytes


class EventClock:
    """Device time between two events around one launch; resolution 0.5 us."""

    name = "CUDA events around each launch"

    def __init__(self, context: Context) -> None:
        self.start, self.stop = Event(context), Event(context)

    def time(self, run: Callable[[], object]) -> float:
        """Seconds on the device."""
        self.start.record()
        run()
        self.stop.record()
        self.stop.synchronize()
        return self.stop.seconds_since(self.start)


class DeviceFlush:
    """Writes a buffer of at least twice the L2 before each launch."""

    def __init__(self, context: Context, l2_bytes: int) -> None:
        self.context = context
        self.memory = DeviceMemory(context, max(2 * l2_bytes, 64 << 20))
        self.text = f"{self.memory.size / 2**20:.0f} MiB written on the device before each launch"

    def __call__(self) -> None:
        fill_bytes(self.context, self.memory.pointer, 0, self.memory.size)


@lru_cache(maxsize=8)
def flush_of(context: Context) -> DeviceFlush:
    """The flush of a context, one for all kernels that are timed there: it takes twice the L2."""
    return DeviceFlush(context, context.device.attribute("L2_CACHE_SIZE"))


class CudaArrays:
    """A kernel with copies of its arrays in device memory, as the timing method wants it."""

    def __init__(
        self, context: Context, launch: Callable[[Sequence[int]], None], arrays: Sequence[HostArray]
    ) -> None:
        self.context = context
        self.launch = launch
        self.arrays = arrays
        self.memory = [DeviceMemory(context, array.nbytes) for array in arrays]
        self.clock = EventClock(context)
        self.flush = flush_of(context)
        self.upload()

    def run(self) -> None:
        """Launch on the default stream."""
        self.launch([memory.pointer for memory in self.memory])

    def upload(self) -> None:
        """The host arrays to the device."""
        for memory, array in zip(self.memory, self.arrays, strict=True):
            array.upload(self.context, memory.pointer)
        self.context.synchronize()

    def download(self) -> None:
        """Back into the host arrays, once the device is done."""
        for memory, array in zip(self.memory, self.arrays, strict=True):
            array.download(self.context, memory.pointer)
        self.context.synchronize()
