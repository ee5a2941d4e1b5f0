"""Records to files and back. A file may be anybody's: what is read is bounded, and checked field by field."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from .errors import OptionError
from .plain import to_plain
from .record import FORMAT, BenchRecord, CompileRecord, RunRecord, SweepRecord

# A record of a large GEMM with all its stages is 1 MB of JSON; a thousand values take about 0.1 MB of memory.
MOST_BYTES = 64 << 20
MOST_VALUES = 4_000_000
# What a number of a record can be: browsers read integers up to 2^53 exactly, hashes and addresses are text.
MOST_INTEGER = 1 << 63

Kind = TypeVar("Kind")
AnyRecord = CompileRecord | RunRecord | SweepRecord | BenchRecord
_KINDS: dict[str, type[AnyRecord]] = {
    "compile": CompileRecord, "run": RunRecord, "sweep": SweepRecord, "bench": BenchRecord,
}  # fmt: skip


def save(record: AnyRecord, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a record as JSON in a zip. Raises what `write_files` does."""
    write_files({Path(path): packed_record(record)}, overwrite)


def write_files(files: Mapping[Path, str | bytes], overwrite: bool = False) -> tuple[Path, ...]:
    """Write files, all or none; gives their paths. Each is written aside and renamed.

    Raises `OptionError` where one is there already and `overwrite` is not given, or cannot be written.
    """
    there = [path for path in files if path.exists()]
    if there and not overwrite:
        raise OptionError(
            "{path} is there already", path=", ".join(str(path) for path in there),
            hint="give another name, or overwrite=True",
        )  # fmt: skip
    aside = {path: path.with_name(f"{path.name}.{os.getpid()}.part") for path in files}
    path = next(iter(files))
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            aside[path].write_bytes(text if isinstance(text, bytes) else text.encode())
        for path in files:
            aside[path].replace(path)
    except OSError as error:
        raise OptionError("{path} cannot be written: {why}", path=path, why=error.strerror) from None
    finally:
        for part in aside.values():
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
    return tuple(files)


def packed_record(record: AnyRecord) -> bytes:
    """The bytes of a record's file."""
    import io
    import zipfile  # with what it imports 6 ms, and only files need it

    kind = next(kind for kind, cls in _KINDS.items() if isinstance(record, cls))
    body = dump_json({"format": FORMAT, "kind": kind, "record": to_plain(record)})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("record.json", body)
    return out.getvalue()


def load(path: str | Path) -> AnyRecord:
    """Read a record back. `OptionError` when the file is no record of this format, or larger than any is."""
    found = parse_json(_body(Path(path)), str(path))
    plain = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    given: Any = plain.get("format")
    if type(given) is not int or given != FORMAT:
        raise OptionError(
            "{path} has record format {given}", path=path, given=_shown(given), expected=f"format {FORMAT}",
            hint="it may be of another version of tilebench",
        )  # fmt: skip
    kind: Any = plain.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise _damaged(str(path), "kind", " or ".join(_KINDS), kind)
    return from_plain(_KINDS[kind], plain.get("record"), str(path))


def _body(path: Path) -> bytes:
    """The JSON of a record's file."""
    import struct
    import zipfile
    import zlib

    try:
        if not path.is_file():
            why = "it is no file" if path.exists() else "there is no such file"
            raise OptionError("{path} cannot be read: {why}", path=path, why=why)
        if path.stat().st_size > MOST_BYTES:
            raise _too_large(str(path), path.stat().st_size)
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if names != ["record.json"]:
                what, shown = "{path} is no tilebench record: it holds {names}", ", ".join(names[:4])
                raise OptionError(what, path=path, names=shown or "nothing", expected="record.json alone")
            (row,) = archive.infolist()
            if row.file_size > MOST_BYTES:
                raise _too_large(str(path), row.file_size)
            # Not more than that is unpacked, whatever the file says of itself.
            with archive.open(row) as stream:
                return stream.read(MOST_BYTES)
    except OSError as error:
        raise OptionError("{path} cannot be read: {why}", path=path, why=error.strerror or error) from None
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError) as error:
        raise OptionError("{path} is no tilebench record: {error}", path=path, error=error) from None


def parse_json(body: bytes, where: str) -> Any:
    """JSON of a stranger. `OptionError` when it is none, is nested too deeply or holds more than a record."""
    values = sum(body.count(sign) for sign in (b",", b"[", b"{"))
    if len(body) > MOST_BYTES or values > MOST_VALUES:
        raise _too_large(where, len(body))
    try:
        return json.loads(body)
    except RecursionError:
        raise OptionError("{where} is no tilebench record: it is nested too deeply", where=where) from None
    except ValueError as error:  # no JSON, no UTF-8, or a number of more digits than Python reads
        raise OptionError("{where} is no tilebench record: {error}", where=where, error=error) from None


def _too_large(where: str, size: int) -> OptionError:
    return OptionError(
        "{where} is larger than any record: {size:.0f} MB", where=where, size=size / 2**20,
        expected="at most {most} MB unpacked, and {values} values", most=MOST_BYTES >> 20, values=MOST_VALUES,
    )  # fmt: skip


# -- plain data and the dataclass that it is of


def from_plain(cls: type[Kind], raw: Any, where: str) -> Kind:
    """The value of a dataclass that `to_plain` made `raw` from; fields that are not there have their default.

    Raises `OptionError` that names the field for what has another type, is missing or not known.
    """
    return _dataclass(cls, raw, where, "record")


def _dataclass(cls: type[Kind], raw: Any, where: str, spot: str) -> Kind:
    if not isinstance(raw, dict):
        raise _damaged(where, spot, "an object", raw)
    given = cast("dict[str, Any]", raw)
    fields, hints = _fields(cls)
    unknown = next((name for name in given if name not in fields), None)
    if unknown is not None:
        raise OptionError(
            "{where} is a record with a field that this version has not: {spot}", where=where,
            spot=f"{spot}.{unknown:.40}", hint="it may be of another version of tilebench",
        )  # fmt: skip
    values: dict[str, Any] = {}
    for name, needed in fields.items():
        if name in given:
            values[name] = _value(hints[name], given[name], where, f"{spot}.{name}")
        elif needed:
            raise OptionError(
                "{where} is a damaged record: {spot} is missing", where=where, spot=f"{spot}.{name}"
            )
    return cls(**values)


@lru_cache
def _fields(cls: Any) -> tuple[dict[str, bool], dict[str, Any]]:
    """The fields of a dataclass, whether each is needed, and their types."""
    missing = dataclasses.MISSING
    fields = {f.name: f.default is missing and f.default_factory is missing for f in dataclasses.fields(cls)}
    return fields, typing.get_type_hints(cls)


def _value(hint: Any, raw: Any, where: str, spot: str) -> Any:
    """A value of a field's type."""
    if hint is Any:
        return math.nan if raw == "NaN" else raw
    if dataclasses.is_dataclass(hint):
        return _dataclass(cast(Any, hint), raw, where, spot)
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        return _one_of(inner, raw, where, spot)
    if origin is tuple:
        if not isinstance(raw, list):
            raise _damaged(where, spot, "a list", raw)
        rows = cast("list[Any]", raw)
        return tuple(_value(inner[0], row, where, f"{spot}[{number}]") for number, row in enumerate(rows))
    if origin in (Mapping, dict):
        if not isinstance(raw, dict):
            raise _damaged(where, spot, "an object", raw)
        rows = cast("dict[str, Any]", raw)
        return {key: _value(inner[1], row, where, f"{spot}.{key:.40}") for key, row in rows.items()}
    return _scalar(hint, raw, where, spot)


def _one_of(hints: tuple[Any, ...], raw: Any, where: str, spot: str) -> Any:
    """A value of the one type of a union that `raw` can be: JSON's own types tell them apart."""
    if raw is None and types.NoneType in hints:
        return None
    rest = [hint for hint in hints if hint is not types.NoneType]
    for hint in rest:
        if hint in _SCALARS and _is(hint, raw):
            return _scalar(hint, raw, where, spot)
    return _value(rest[0], raw, where, spot)


def _is(hint: Any, raw: Any) -> bool:
    kinds, _ = _SCALARS[hint]
    if hint is float and raw == "NaN":
        return True
    return isinstance(raw, kinds) and (hint is bool or not isinstance(raw, bool))


def _scalar(hint: Any, raw: Any, where: str, spot: str) -> Any:
    _, called = _SCALARS[hint]
    if not _is(hint, raw):
        raise _damaged(where, spot, called, raw)
    if isinstance(raw, int) and not -MOST_INTEGER <= raw < MOST_INTEGER:
        raise _damaged(where, spot, "a number of 64 bits", raw)
    return math.nan if hint is float and raw == "NaN" else raw


_SCALARS: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "text"), int: ((int,), "a whole number"), bool: ((bool,), "true or false"),
    float: ((int, float), "a number"),
}  # fmt: skip


def _damaged(where: str, spot: str, expected: str, found: Any) -> OptionError:
    return OptionError(
        "{where} is a damaged record: {spot} is wrong", where=where, spot=spot,
        expected="{want}", want=expected, found="{got}", got=_shown(found),
    )  # fmt: skip


def _shown(value: Any) -> str:
    """A value of a file, short enough for a message."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = (
        repr(value) if not isinstance(value, int) or abs(value) < MOST_INTEGER else "a number of many digits"
    )
    return text if len(text) <= 40 else text[:37] + "..."


def dump_json(plain: Any) -> str:
    """Plain data as JSON that browsers take too, which refuse `NaN` and `Infinity`.

    An infinity is the number 1e999, which reads back as one; a NaN is the text `NaN`.
    """
    try:
        return json.dumps(plain, allow_nan=False)
    except ValueError:
        text = json.dumps(_marked(plain), allow_nan=False, ensure_ascii=False)
        return text.replace(f'"{_INFINITE}"', "1e999").replace(f'"-{_INFINITE}"', "-1e999")


# A private character: no text of a record is this.
_INFINITE = "\ue000infinite"


def _marked(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {key: _marked(each) for key, each in plain.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(plain, list):
        return [_marked(each) for each in plain]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(plain, float) and math.isnan(plain):
        return "NaN"
    if isinstance(plain, float) and math.isinf(plain):
        return _INFINITE if plain > 0 else f"-{_INFINITE}"
    return plain
