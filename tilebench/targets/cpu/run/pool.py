"""The grid of a kernel over a pool of threads, with a word that cancels it.

A kernel is `void kernel(i64* args, i32* cancel, i64 begin, i64 end, i8* scratch)`: it runs blocks
begin..end-1 and returns early when it finds the cancel word not zero. ctypes releases the GIL for
the call; blocks are dealt out by an atomic counter in native code, so no Python runs between them.

A thread that is inside a ctypes call sees Ctrl-C only when the call returns. Work that takes long
is therefore done by workers while the calling thread waits in Python: on an interrupt it sets the
cancel word, joins the workers and only then lets the exception rise. Work known to be short runs in
the calling thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import queue
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .... import settings
from ....errors import ResourceError
from ..llvm import Module
from ..machine import cores, host_isa
from .jit import Compiled, compile_text

# Below this the way through the workers (30 to 60 us here) costs more than Ctrl-C is worth.
QUICK_SECONDS = 200e-6
_LARGE_PAGE = 1 << 21

_KERNEL = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
_DRIVER = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_void_p,
)


def thread_count() -> int:
    """Threads of a launch: the setting `cpu_threads`, or one for each core allowed."""
    return settings.cpu_threads() or cores()


def _fresh_memory(size: int) -> mmap.mmap:
    """Zeros of this process alone. Python's default is memory shared with forks, never in large pages."""
    flags = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)
    return mmap.mmap(-1, size, flags=flags) if flags else mmap.mmap(-1, size)


class Scratch:
    """Memory of one worker: page-aligned, zero at first, kept and reused, grown when asked."""

    def __init__(self, what: str = "the tiles of a block") -> None:
        self.what = what
        self._map: mmap.mmap | None = None
        self._size = 0
        self._address = 0

    @property
    def size(self) -> int:
        """The bytes that are there without asking for more."""
        return self._size

    def address(self, size: int) -> int:
        """The address of at least `size` bytes (what an earlier kernel left is still there)."""
        if size > self._size:
            # Tiles of a megabyte touch hundreds of small pages; large pages spare the TLB. They need
            # an address that is a multiple of their size.
            page = _LARGE_PAGE if size >= 1 << 20 else 4096
            whole = -(-size // page) * page
            try:
                self._map = _fresh_memory(whole + (page if page == _LARGE_PAGE else 0))
            except OSError as error:
                raise ResourceError(
                    "the system has no {size} bytes of memory for {what}", size=size,
                    what=self.what,
                    hint="make the tiles smaller, or run fewer at a time: TILEBENCH_CPU_THREADS=1",
                ) from error  # fmt: skip
            self._size = whole
            if page == _LARGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
                with contextlib.suppress(OSError):  # a kernel without large pages: small ones do
                    self._map.madvise(mmap.MADV_HUGEPAGE)
            start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
            self._address = -(-start // page) * page
        return self._address


class _Local(threading.local):
    def __init__(self) -> None:
        self.scratch = Scratch()


_local = _Local()


@lru_cache(maxsize=1)
def _driver() -> tuple[Compiled, Callable[..., None]]:
    """Native code that takes blocks from a shared counter until none is left or it is cancelled."""
    module = Module(host_isa())
    names = (("kernel", "ptr"), ("args", "ptr"), ("cancel", "ptr"), ("counter", "ptr"))
    f = module.function("drive", [*names, ("total", "i64"), ("chunk", "i64"), ("scratch", "ptr")])
    kernel, args, cancel, counter, total, chunk, scratch = f.arguments
    again, work, done = f.block(), f.block(), f.block()
    f.branch(again)
    f.open_block(again)
    begin = f.impure(f"atomicrmw add ptr {counter.name}, i64 {chunk.name} monotonic", "i64")
    stop = f.load(cancel, "i32", volatile=True)
    more = f.compare("slt", begin, total)
    f.branch_if(f.binary("and", more, f.compare("eq", stop, 0)), work, done)
    f.open_block(work)
    end = f.imin(f.add(begin, chunk), total)
    f.emit(
        f"call void {kernel.name}(ptr {args.name}, ptr {cancel.name}, i64 {begin.name}, i64 {end.name}, "
        f"ptr {scratch.name})"
    )
    f.branch(again)
    f.open_block(done)
    f.ret()
    compiled = compile_text(module.text(), ("drive",))
    return compiled, _DRIVER(compiled.address("drive"))


class _Job:
    """One launch in flight: the counter, the cancel word, how many workers are still in it."""

    def __init__(
        self, kernel: int, args: int, grid: int, chunk: int, scratch_bytes: int, workers: int
    ) -> None:
        self.words = (ctypes.c_int64 * 2)(0, 0)
        self.counter = ctypes.addressof(self.words)
        self.cancel = self.counter + 8
        self.call = (kernel, args, grid, chunk)
        self.scratch_bytes = scratch_bytes
        self.left = workers
        self.lock = threading.Lock()
        self.done = threading.Lock()
        self.done.acquire()
        self.failure: BaseException | None = None

    def work(self, scratch: Scratch, drive: Callable[..., None]) -> None:
        kernel, args, grid, chunk = self.call
        try:
            memory = scratch.address(self.scratch_bytes)
            drive(kernel, args, self.cancel, self.counter, grid, chunk, memory)
        except BaseException as error:  # a worker must never die: the caller raises it
            self.failure = error
        with self.lock:
            self.left -= 1
            last = self.left == 0
        if last:
            self.done.release()

    def wait(self) -> None:
        """Wait for the workers; on an interrupt cancel, wait for them, then let it rise."""
        try:
            self.done.acquire()
        except BaseException:
            self.words[1] = 1
            while True:
                try:
                    self.done.acquire()
                    break
                except KeyboardInterrupt:
                    continue  # the kernel polls the word: it will come back
            raise
        if self.failure is not None:
            raise self.failure


class _Pool:
    """Daemon threads, each with its queue and its scratch memory."""

    def __init__(self, size: int) -> None:
        self.process = os.getpid()
        self.queues: list[queue.SimpleQueue[_Job]] = []
        _driver()
        self.grow(size)

    def grow(self, size: int) -> None:
        while len(self.queues) < size:
            line: queue.SimpleQueue[_Job] = queue.SimpleQueue()
            self.queues.append(line)
            name = f"tilebench-cpu-{len(self.queues)}"
            threading.Thread(target=self._serve, args=(line,), name=name, daemon=True).start()

    @staticmethod
    def _serve(line: queue.SimpleQueue[_Job]) -> None:
        scratch, (_, drive) = Scratch(), _driver()
        while True:
            line.get().work(scratch, drive)


_pool: _Pool | None = None
_pool_lock = threading.Lock()


def _workers(size: int) -> _Pool:
    """The pool, made at first use and again in a forked child (threads do not survive a fork)."""
    global _pool
    with _pool_lock:
        if _pool is None or _pool.process != os.getpid():
            _pool = _Pool(size)
        _pool.grow(size)
        return _pool


class Launcher:
    """Runs one compiled kernel. `keep` holds what must stay alive (the `Compiled`).

    `endless=True` says that the kernel may not come to an end by itself, so it never runs in the
    calling thread, where Ctrl-C could not reach it.
    """

    def __init__(
        self, address: int, scratch_bytes: int = 0, *, endless: bool = False, keep: Any = None
    ) -> None:
        self.address_ = address
        self.scratch_bytes = scratch_bytes
        self.endless = endless
        self._keep = keep
        self._kernel = _KERNEL(address)
        self._never = ctypes.c_int64(0)
        self._cancel = ctypes.addressof(self._never)
        self._block_seconds: float | None = None

    def __call__(self, args: int, grid: int, *, threads: int = 0) -> None:
        """Run `grid` blocks with the argument words at address `args`; returns when all are done.

        `threads` 0 takes `thread_count()`. Raises KeyboardInterrupt after the workers have stopped.
        """
        known = self._block_seconds
        if known is not None and known * grid < QUICK_SECONDS:
            self._kernel(args, self._cancel, 0, grid, _local.scratch.address(self.scratch_bytes))
            return
        threads = max(1, min(threads or thread_count(), grid))
        start = time.perf_counter()
        # Dealing a block costs about 20 ns: chunks only where blocks are many.
        job = _Job(self.address_, args, grid, max(1, grid // (threads * 64)), self.scratch_bytes, threads)
        for line in _workers(threads).queues[:threads]:
            line.put(job)
        job.wait()
        if not self.endless and grid:
            # In the calling thread there is one worker: count its time, not the wall clock.
            spent = (time.perf_counter() - start) * threads / grid
            self._block_seconds = spent if known is None else min(known, spent)
