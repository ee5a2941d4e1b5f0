"""One entry of the compile cache as a file: a zip, written aside and renamed, checked as it is read."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
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

_serial = itertools.count()


def read_entry(path: Path) -> dict[str, bytes] | None:
    """All files of an entry; None when it is not there or any byte of it is not as written."""
    try:
        body = path.read_bytes()
    except OSError:
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            # A file cut at the right place could lose members in silence: the comment counts them.
            names = archive.namelist()
            if archive.comment != str(len(names)).encode():
                return None
            return {name: archive.read(name) for name in names}
    except _DAMAGE:
        return None


def write_entry(path: Path, files: Mapping[str, bytes]) -> int:
    """Write an entry aside and rename it into place; its size in bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, body in files.items():
            archive.writestr(zipfile.ZipInfo(name), body)
        archive.comment = str(len(files)).encode()
    body = packed.getvalue()
    path.parent.mkdir(parents=True, exist_ok=True)
    # Unique over processes and threads; in the same folder, so that the rename is atomic.
    part = path.with_name(f"{path.stem[:16]}-{os.getpid()}-{next(_serial)}-{time.time_ns()}.part")
    try:
        part.write_bytes(body)
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        # On Windows an entry that another process reads right now cannot be replaced; it is as good.
        if not (isinstance(error, PermissionError) and path.exists()):
            raise
    return len(body)
