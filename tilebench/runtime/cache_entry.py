"""One entry of the compile cache as a file: a zip, written aside and renamed, checked as it is read."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import shutil
import stat
import struct
import time
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

# What zipfile raises for bytes that are no zip, or not any more.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, OSError, ValueError, KeyError, EOFError, RuntimeError,
    NotImplementedError,
)  # fmt: skip
# The code of the largest kernels is a few megabytes; a larger file is none of ours.
MOST_BYTES = 256 << 20

_serial = itertools.count()


def read_entry(path: Path) -> dict[str, bytes] | None:
    """All files of an entry; None when it is not there, is another's, or any byte is not as written."""
    try:
        body = _read(path)
        if body is None:
            return None
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            rows = archive.infolist()
            # A file cut at the right place could lose members in silence: the comment counts them. It
            # also names the key, so that an entry renamed to another's place is none.
            if archive.comment != _comment(path, len(rows)):
                return None
            # Stored as they are: what claims to unpack to more than the file holds is not read.
            if any(row.compress_type != zipfile.ZIP_STORED for row in rows):
                return None
            if sum(row.file_size for row in rows) > len(body):
                return None
            files = {row.filename: archive.read(row) for row in rows}
            return files if len(files) == len(rows) else None
    except _DAMAGE:
        return None


def _read(path: Path) -> bytes | None:
    """The bytes of a regular file of a size that an entry can have."""
    # Not blocking: a pipe under that name would wait for a writer for ever.
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(fd, "rb") as stream:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            return None
        return stream.read(status.st_size)


def _comment(path: Path, count: int) -> bytes:
    return f"{count} {path.stem}".encode()


def write_entry(path: Path, files: Mapping[str, bytes]) -> int:
    """Write an entry aside and rename it into place; its size in bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, body in files.items():
            archive.writestr(zipfile.ZipInfo(name), body)
        archive.comment = _comment(path, len(files))
    body = packed.getvalue()
    _make_room(path)
    # Unique over processes and threads; in the same folder, so that the rename is atomic.
    part = path.with_name(f"{path.stem[:16]}-{os.getpid()}-{next(_serial)}-{time.time_ns()}.part")
    try:
        with open(part, "xb") as stream:
            stream.write(body)
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        # On Windows an entry that another process reads right now cannot be replaced; it is as good.
        if not (isinstance(error, PermissionError) and path.is_file()):
            raise
    return len(body)


def _make_room(path: Path) -> None:
    """Make the entry's folder, and take away what cannot be renamed over: these names are the cache's own."""
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        # Asked after the failure, never before: between a look and an unlink another process may
        # have made the folder, and what stands in the way higher up is the user's.
        if not folder.parent.is_dir():
            raise
        with contextlib.suppress(OSError):
            folder.unlink()
        folder.mkdir(exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
