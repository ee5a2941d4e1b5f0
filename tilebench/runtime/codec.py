"""Frames over a pipe, and values with arrays in them as bytes.

A frame is one letter, a length of eight bytes, and that many bytes. Values are pickled; both ends
are this package and the parent starts its child itself, so no stranger's bytes are ever read.
Arrays keep strides, alignment and identity, which plain pickle loses: a kernel has to be measured
on the layout the user gave. Large ones go through a file in shared memory.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import pickle
import struct
import sys
import time
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ..errors import LaunchError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

HEADER = struct.Struct("<cQ")
# Below this an array goes inside the frame. A pipe moves 64 KiB at a time, at 1 to 2 GB/s here;
# a file in /dev/shm is two memory copies but costs 60 us to make.
INLINE_BYTES = 256 << 10
# Addresses are reproduced modulo this: no vector, line or transaction is wider.
ALIGN = 256
PREFIX = "tilebench-spool-"
_serial = itertools.count()


def write_all(fd: int, *parts: bytes | memoryview) -> None:
    """Write every byte of every part; `OSError` when the other end is gone."""
    for part in parts:
        view = memoryview(part).cast("B")
        while view:
            view = view[os.write(fd, view[: 1 << 30]) :]


def read_exact(fd: int, size: int) -> bytes | None:
    """Exactly `size` bytes, or None when the stream ended before."""
    body = bytearray(size)
    return bytes(body) if read_into(fd, memoryview(body)) else None


def read_into(fd: int, view: memoryview) -> bool:
    """Fill `view` from a descriptor; False when the stream ended before."""
    stream = io.FileIO(fd, closefd=False)
    while view:
        got = stream.readinto(view[: 1 << 30])
        if not got:
            return False
        view = view[got:]
    return True


def write_frame(fd: int, letter: bytes, body: bytes = b"") -> None:
    head = HEADER.pack(letter, len(body))
    # A small frame in one write wakes the reader once.
    write_all(fd, head + body) if len(body) < 4096 else write_all(fd, head, body)


def read_frame(fd: int) -> tuple[bytes, bytes] | None:
    """The next frame, or None at the end of the stream."""
    head = read_exact(fd, HEADER.size)
    if head is None:
        return None
    letter, size = HEADER.unpack(head)
    body = read_exact(fd, size)
    return None if body is None else (letter, body)


def spool_folders() -> list[str]:
    """Where large arrays may wait for the other process: shared memory first."""
    import tempfile

    folders = ["/dev/shm"] if os.access("/dev/shm", os.W_OK) else []
    return [*folders, tempfile.gettempdir()]


class Spool:
    """Files that carry large arrays; `free` removes those the other end did not take."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def store(self, data: memoryview) -> str:
        """A new file that holds `data`; its path. `LaunchError` when no folder has the room."""
        reason = ""
        for folder in spool_folders():
            path = os.path.join(folder, f"{PREFIX}{os.getpid()}-{next(_serial)}-{time.time_ns():x}")
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o600)
            self.paths.append(path)
            try:
                # Asked for first: a full tmpfs would otherwise kill the writer or the reader later.
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(fd, 0, len(data))
                write_all(fd, data)
                return path
            except OSError as error:
                reason = f"{folder}: {error.strerror}"
                self.paths.pop()
                os.unlink(path)
            finally:
                os.close(fd)
        raise LaunchError(
            "there is no room to hand {size:.0f} MB to the measuring child",
            size=len(data) / 1e6,
            found=reason,
            hint="free space in /dev/shm or in the temporary folder, or measure a smaller problem",
        )

    def free(self) -> None:
        for path in self.paths:
            with contextlib.suppress(OSError):
                os.unlink(path)
        self.paths.clear()


def sweep(pid: int | None = None, *, older_than_s: float = 3600.0) -> None:
    """Remove the spool files of one process that has ended, or those that nobody can want any more."""
    for folder in spool_folders():
        start = f"{PREFIX}{pid}-" if pid is not None else PREFIX
        for path in Path(folder).glob(start + "*"):
            with contextlib.suppress(OSError):
                if pid is not None or time.time() - path.stat().st_mtime > older_than_s:
                    path.unlink()


class _NeedsValue(Exception):
    """Something has to travel by value: plain pickle would only send its name."""


def _describe(array: Array, spool: Spool) -> tuple[Any, ...]:
    """Persistent id of an array: dtype, shape, strides, address modulo ALIGN, writeable, data."""
    import numpy as np

    packed = np.ascontiguousarray(array)
    flat: Any = packed.reshape(-1).view(np.uint8)
    data = memoryview(flat)
    where: bytes | str = spool.store(data) if len(data) > INLINE_BYTES else bytes(data)
    address = array.__array_interface__["data"][0]
    return (array.dtype, array.shape, array.strides, address % ALIGN, bool(array.flags.writeable), where)


def _rebuild(pid: tuple[Any, ...]) -> Array:
    """The array a persistent id describes, in fresh memory; takes its file away."""
    import numpy as np

    dtype, shape, strides, residue, writeable, where = pid
    count = int(np.prod(shape, dtype=np.int64))
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) if count else 0
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) if count else 0
    memory = np.empty(high - low + dtype.itemsize + ALIGN, np.uint8)
    # Element zero gets the same address modulo ALIGN as the original.
    first = -low + (residue - (memory.__array_interface__["data"][0] - low)) % ALIGN
    array: Array = np.ndarray(shape, dtype, buffer=memory, offset=first, strides=strides)
    size = count * dtype.itemsize
    if array.flags.c_contiguous:
        target = memory[first : first + size]
        _fill(target, where)
    else:
        packed = np.empty(size, np.uint8)
        _fill(packed, where)
        array[...] = packed.view(dtype).reshape(shape)
    array.flags.writeable = writeable
    return array


def _fill(target: Any, where: bytes | str) -> None:
    import numpy as np

    if isinstance(where, bytes):
        target[:] = np.frombuffer(where, np.uint8)
        return
    with open(where, "rb", buffering=0) as stream:
        whole = read_into(stream.fileno(), memoryview(target))
    with contextlib.suppress(OSError):
        os.unlink(where)
    if not whole:
        raise LaunchError("an array was cut short on its way to the other process")


class _ArrayMixin:
    """`persistent_id` for a pickler: plain arrays go apart, each once."""

    spool: Spool
    seen: dict[int, tuple[int, tuple[Any, ...] | None]]

    def persistent_id(self, obj: Any) -> Any:
        numpy: Any = sys.modules.get("numpy")
        if numpy is None or type(obj) is not numpy.ndarray or obj.dtype.hasobject:
            return None
        known = self.seen.get(id(obj))
        if known is not None:
            return (known[0], None)
        self.seen[id(obj)] = (len(self.seen), None)
        return (len(self.seen) - 1, _describe(obj, self.spool))


class _Pickler(_ArrayMixin, pickle.Pickler):
    def __init__(self, file: io.BytesIO, spool: Spool) -> None:
        super().__init__(file, protocol=5)
        self.spool, self.seen = spool, {}

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, (FunctionType, type)):
            named: Any = sys.modules.get(obj.__module__)
            for name in obj.__qualname__.split("."):
                named = getattr(named, name, None)
            if named is not obj or obj.__module__ == "__main__":
                raise _NeedsValue
        elif type(obj).__module__ == "__main__":
            raise _NeedsValue
        return NotImplemented


def encode(value: object, spool: Spool) -> bytes:
    """`value` as bytes. What only this process can name goes by value: cloudpickle, 55 ms once."""
    out = io.BytesIO()
    try:
        _Pickler(out, spool).dump(value)
        return out.getvalue()
    except (_NeedsValue, pickle.PicklingError, AttributeError, TypeError):
        spool.free()
    try:
        import cloudpickle  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        raise LaunchError(
            "functions from a notebook or a script need cloudpickle to reach the measuring child",
            hint="pip install cloudpickle, or put the function in a module",
        ) from None

    class Pickler(_ArrayMixin, cloudpickle.Pickler):  # pyright: ignore[reportUntypedBaseClass, reportUnknownMemberType]
        pass

    out = io.BytesIO()
    pickler: Any = Pickler(out, protocol=5)
    pickler.spool, pickler.seen = spool, {}
    try:
        pickler.dump(value)
    except Exception as error:
        spool.free()
        raise LaunchError(
            "a value cannot travel to or from the measuring child: {error}",
            error=f"{type(error).__name__}: {error}",
            hint="what travels: plain data, NumPy arrays, functions that hold no open file, lock or device",
        ) from error
    return out.getvalue()


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.arrays: dict[int, Array] = {}

    def persistent_load(self, pid: Any) -> Array:
        index, described = pid
        if described is not None:
            self.arrays[index] = _rebuild(described)
        return self.arrays[index]


def decode(body: bytes) -> Any:
    """The value that `encode` made `body` from."""
    return _Unpickler(io.BytesIO(body)).load()
