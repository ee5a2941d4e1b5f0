"""Timing on the device: events around each launch, and a flush that leaves the L2 cold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from weakref import WeakValueDictionary

from .context import Context
from .host import HostArray
from .memory import DeviceMemory, Event, copy_within, fill_bytes


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


class _Copy:
    """A host array's copy on a device; `kept` is what it held once, where that was asked for."""

    def __init__(self, context: Context, size: int) -> None:
        self.context = context
        self.memory = DeviceMemory(context, size)
        self.kept: DeviceMemory | None = None

    def keep(self) -> None:
        self.kept = self.kept or DeviceMemory(self.context, self.memory.size)
        copy_within(self.context, self.kept.pointer, self.memory.pointer, self.memory.size)

    def restore(self) -> None:
        if self.kept is not None:
            copy_within(self.context, self.memory.pointer, self.kept.pointer, self.memory.size)


# Kernels that are timed on the same host array work on one copy of it: a sweep of hundreds has its arrays
# once. A copy lives as long as one of them, which holds the host's memory too: nothing else has its address.
_copies: WeakValueDictionary[tuple[Context, int, int], _Copy] = WeakValueDictionary()


def _copy_of(context: Context, array: HostArray) -> _Copy:
    key = (context, array.bytes.ctypes.data, array.nbytes)
    found = _copies.get(key)
    if found is None:
        found = _copies[key] = _Copy(context, array.nbytes)
    return found


class CudaArrays:
    """A kernel with copies of its arrays in device memory, as the timing method wants it.

    `written` says which of `arrays` a launch may write.
    """

    def __init__(
        self,
        context: Context,
        launch: Callable[[Sequence[int]], None],
        arrays: Sequence[HostArray],
        written: Sequence[bool],
    ) -> None:
        self.context = context
        self.launch = launch
        self.arrays = arrays
        self.copies = [_copy_of(context, array) for array in arrays]
        self.written = written
        self.clock = EventClock(context)
        self.flush = flush_of(context)
        # Before the first launch, where nobody did it until then: most poison outputs on the host first.
        self._uploaded = False

    def run(self) -> None:
        """Launch on the default stream."""
        if not self._uploaded:
            self.upload()
        self.launch([copy.memory.pointer for copy in self.copies])

    def upload(self) -> None:
        """The host arrays to the device."""
        for copy, array in zip(self.copies, self.arrays, strict=True):
            array.upload(self.context, copy.memory.pointer)
        self.context.synchronize()
        self._uploaded = True

    def download(self) -> None:
        """What a launch may write back into the host arrays, once the device is done."""
        for copy, array, written in zip(self.copies, self.arrays, self.written, strict=True):
            if written:
                array.download(self.context, copy.memory.pointer)
        self.context.synchronize()

    def keep(self) -> None:
        """Remember on the device what a launch may write, as it is now."""
        for copy in self._written():
            copy.keep()

    def restore(self) -> None:
        """What `keep` last remembered, as it was then."""
        for copy in self._written():
            copy.restore()
        self.context.synchronize()

    def _written(self) -> list[_Copy]:
        return [copy for copy, written in zip(self.copies, self.written, strict=True) if written]
