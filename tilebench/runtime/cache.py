"""The compile cache: content-addressed, on disk, shared by processes that know nothing of each other.

An entry is one zip file, named by its key and stored uncompressed, so a person can open it and a
CRC covers every byte. It is written aside in the same folder and renamed, which is atomic: a
reader sees the old entry, the new one or none, also when the writer is killed. An entry that
cannot be read back counts as missing and is replaced by the next `put`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence, Set
from enum import Enum
from functools import lru_cache
from pathlib import Path

from .. import settings
from ..errors import InternalError, OptionError
from ..record import Remark

# Part of every key: raise it when the meaning of an entry's files changes.
FORMAT = "2"
MEMORY_BYTES = 64 << 20
# A writer that died leaves its part behind; nobody writes one entry for an hour.
PART_AGE_S = 3600.0
# The folder is measured again after this many puts, because other processes fill it too.
PUTS_PER_SCAN = 64


def _feed(digest: hashlib._Hash, value: object) -> None:  # pyright: ignore[reportPrivateUsage]
    """Feed one value, tagged with its type and length, so that no two values read alike."""
    if isinstance(value, Enum):
        _feed(digest, (type(value).__name__, value.name))
    elif value is None or isinstance(value, (bool, int, float)):
        # repr of a float is its shortest exact form; True and 1 differ by the type's name.
        body = f"{type(value).__name__}:{value!r}".encode()
        digest.update(b"v" + struct.pack("<Q", len(body)) + body)
    elif isinstance(value, (str, bytes)):
        body = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        digest.update((b"s" if isinstance(value, str) else b"b") + struct.pack("<Q", len(body)) + body)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [(part.name, getattr(value, part.name)) for part in dataclasses.fields(value)]
        _feed(digest, (type(value).__name__, fields))
    elif isinstance(value, Mapping):
        items = sorted((str(k), v) for k, v in value.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        digest.update(b"m" + struct.pack("<Q", len(items)))  # pyright: ignore[reportUnknownArgumentType]
        for name, part in items:  # pyright: ignore[reportUnknownVariableType]
            _feed(digest, name)
            _feed(digest, part)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, Set):
        hashes = sorted(_hash_of(part) for part in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        digest.update(b"u")
        _feed(digest, hashes)
    elif isinstance(value, Sequence):
        digest.update(b"l" + struct.pack("<Q", len(value)))  # pyright: ignore[reportUnknownArgumentType]
        for part in value:  # pyright: ignore[reportUnknownVariableType]
            _feed(digest, part)  # pyright: ignore[reportUnknownArgumentType]
    else:
        raise InternalError(
            "a {kind} cannot be part of a cache key",
            kind=type(value).__name__,
            hint="give it as text, numbers, or a dataclass, mapping or sequence of those",
        )


def _hash_of(value: object) -> bytes:
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.digest()


@lru_cache(maxsize=1)
def compiler_fingerprint() -> str:
    """A hash over name, size and time of every source file of this package (about 1 ms, once).

    A version number would serve stale code to whoever changes the compiler in a checkout.
    """
    root = Path(__file__).resolve().parent.parent
    rows: list[tuple[str, int, int]] = []
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith((".py", ".cuh", ".h", ".json", ".toml")):
                path = os.path.join(folder, name)
                status = os.stat(path)
                rows.append(
                    (os.path.relpath(path, root).replace(os.sep, "/"), status.st_size, status.st_mtime_ns)
                )
    return _hash_of(sorted(rows)).hex()


def key_of(**parts: object) -> str:
    """The key of an entry: sha256 in hex over the named parts.

    Give everything that the result depends on (text, options, target, versions of plug-ins) and
    nothing else: no absolute path, no time. The format, the compiler's own sources and the
    settings that change code are added here. `InternalError` for a part of a kind without a
    canonical form.
    """
    fixed = {setting.name: setting() for setting in settings.all_settings() if setting.in_cache_key}
    return _hash_of((FORMAT, compiler_fingerprint(), fixed, parts)).hex()


class Cache:
    """Files by key, in memory and (when `settings.cache` is on) on disk.

    `folder` defaults to `settings.cache_dir`, read at each use. `limit_bytes` bounds the disk
    (default `settings.cache_megabytes`), `memory_bytes` what is kept in this process. Nothing here
    raises for the state of the disk: a folder that cannot be written leaves one entry in `remarks`
    and a line in the log, and what is new lives in memory from then on. Safe from any thread.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        limit_bytes: int | None = None,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._folder = None if folder is None else Path(folder)
        self._limit = limit_bytes
        self._memory_limit = memory_bytes
        self._memory: OrderedDict[str, dict[str, bytes]] = OrderedDict()
        self._memory_size = 0
        self._guard = threading.Lock()
        self._broken: set[Path] = set()
        self._puts = 0
        self._grown = 0
        self.remarks: list[Remark] = []

    key_of = staticmethod(key_of)

    @property
    def root(self) -> Path | None:
        """The folder of the entries, or None when this cache lives in memory only."""
        if not settings.cache():
            return None
        folder = self._folder or Path(settings.cache_dir()).expanduser()
        return folder / f"v{FORMAT}"

    @property
    def writable_root(self) -> Path | None:
        """As `root`; None also once the folder could not be written. What lies there is read all the same."""
        root = self.root
        return None if root in self._broken else root

    def get(self, key: str) -> dict[str, bytes] | None:
        """The files of an entry, or None when it is missing, damaged or unreadable."""
        _check_key(key)
        with self._guard:
            found = self._memory.get(key)
            if found is not None:
                self._memory.move_to_end(key)
                return dict(found)
        root = self.root
        if root is None:
            return None
        path = _entry_path(root, key)
        # A process whose results are all in memory, or whose cache is off, reads and writes no file.
        from .cache_entry import read_entry

        files = read_entry(path)
        if files is None:
            return None
        self._remember(key, files)
        with contextlib.suppress(OSError):
            os.utime(path)  # eviction takes the entries that were not used for longest
        return dict(files)

    def put(self, key: str, files: Mapping[str, bytes]) -> None:
        """Store the files of an entry; an older entry of that key is replaced whole."""
        _check_key(key)
        bodies = {name: bytes(body) for name, body in files.items()}
        self._remember(key, bodies)
        root = self.writable_root
        if root is None:
            return
        from .cache_entry import write_entry

        try:
            self._grown += write_entry(_entry_path(root, key), bodies)
        except OSError as error:
            self._degrade(root, error)
            return
        self._puts += 1
        limit = self.limit_bytes
        if self._puts % PUTS_PER_SCAN == 1 or self._grown > limit // 16:
            self._grown = 0
            _evict(root, limit)

    @property
    def limit_bytes(self) -> int:
        """Most bytes on disk before the oldest entries go."""
        return settings.cache_megabytes() << 20 if self._limit is None else self._limit

    def size_bytes(self) -> int:
        """Bytes of all entries on disk now (walks the folder)."""
        root = self.root
        return 0 if root is None else sum(size for _, size, _ in _scan(root))

    def forget(self) -> None:
        """Drop what this process holds in memory; the disk stays."""
        with self._guard:
            self._memory.clear()
            self._memory_size = 0

    def clear(self) -> None:
        """Remove every entry, in memory and on disk."""
        self.forget()
        root = self.root
        if root is not None:
            for _, _, path in _scan(root):
                _remove(path)

    def _remember(self, key: str, files: dict[str, bytes]) -> None:
        size = _size_of(files)
        with self._guard:
            old = self._memory.pop(key, None)
            if old is not None:
                self._memory_size -= _size_of(old)
            if size > self._memory_limit and self.writable_root is not None:
                return
            self._memory[key] = files
            self._memory_size += size
            while self._memory_size > self._memory_limit and len(self._memory) > 1:
                _, gone = self._memory.popitem(last=False)
                self._memory_size -= _size_of(gone)

    def _degrade(self, root: Path, error: OSError) -> None:
        with self._guard:
            if root in self._broken:
                return
            self._broken.add(root)
        why = error.strerror or error
        text = f"the cache folder {root.parent} cannot be written ({why}); what is new is kept in memory only"
        self.remarks.append(Remark("cache", "missed", text))
        import logging  # 5 ms, for a case that is rare

        logging.getLogger("tilebench").warning("%s", text)


@lru_cache(maxsize=1)
def default_cache() -> Cache:
    """The one cache of this process, in `settings.cache_dir`."""
    return Cache()


def _check_key(key: str) -> None:
    if len(key) != 64 or not all(ch in "0123456789abcdef" for ch in key):
        raise OptionError("{key!r} is no cache key", key=key, hint="make keys with Cache.key_of(...)")


def _size_of(files: Mapping[str, bytes]) -> int:
    return sum(len(body) + len(name) for name, body in files.items())


def _entry_path(root: Path, key: str) -> Path:
    return root / key[:2] / f"{key}.zip"


def _scan(root: Path) -> Iterator[tuple[float, int, Path]]:
    """(time of last use, size, path) of every entry and forgotten part."""
    try:
        folders = [entry for entry in os.scandir(root) if entry.is_dir()]
    except OSError:
        return
    for folder in folders:
        try:
            rows = list(os.scandir(folder.path))
        except OSError:
            continue
        for row in rows:
            try:
                status = row.stat()
            except OSError:
                continue
            yield status.st_mtime, status.st_size, Path(row.path)


def _evict(root: Path, limit: int) -> None:
    """Remove forgotten parts, then the longest unused entries until nine tenths of `limit` are left."""
    entries: list[tuple[float, int, Path]] = []
    now = time.time()
    for used, size, path in _scan(root):
        if path.suffix == ".part":
            if now - used > PART_AGE_S:
                _remove(path)
        else:
            entries.append((used, size, path))
    total = sum(size for _, size, _ in entries)
    if total <= limit:
        return
    for _, size, path in sorted(entries):
        if total <= limit * 9 // 10:
            break
        _remove(path)
        total -= size


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
