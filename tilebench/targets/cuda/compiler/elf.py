"""A small reader of cubins (ELF64, little endian): the resources and the code of each kernel.

The fallback where ptxas's log is gone (a cubin from the cache or from a file), and the source of
the control words beside the SASS. 0.1 ms a cubin.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ....errors import TargetError
from .line_table import LineRow, read_lines

# Attributes of a .nv.info section that name a function: (symbol index, value) pairs.
_REGISTERS, _FRAME, _MIN_STACK = 0x2F, 0x11, 0x12
# Formats of an attribute; only the last has a size and a body, the others two bytes of value.
_SIZED = 0x04
_CODE, _SHARED, _INFO = ".text.", ".nv.shared.", ".nv.info"
_SYMBOLS = 2
_LINES = ".debug_line"
# From sm_90 on with an addend, which is 0.
_RELOCATIONS = (".rel.debug_line", ".rela.debug_line")


@dataclass(frozen=True)
class CubinFunction:
    """One kernel of a cubin. `shared_bytes` counts what the section holds: from sm_90 on with the
    1024 bytes that the system reserves. `code` is the machine code, 16 bytes an instruction, and `lines` the
    line table, by address."""

    name: str
    registers: int = 0
    frame_bytes: int = 0
    min_stack_bytes: int = 0
    shared_bytes: int = 0
    code: bytes = b""
    lines: tuple[LineRow, ...] = ()


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    link: int
    entry: int


def _name(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode()


def _sections(cubin: bytes) -> list[_Section]:
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    raw = [struct.unpack_from("<IIQQQQIIQQ", cubin, start + k * size) for k in range(count)]
    table = cubin[raw[names_at][4] : raw[names_at][4] + raw[names_at][5]]
    return [_Section(_name(table, r[0]), r[1], r[4], r[5], r[6], r[9]) for r in raw]


def _symbols(cubin: bytes, sections: list[_Section]) -> list[str]:
    for section in sections:
        if section.kind == _SYMBOLS:
            strings = sections[section.link]
            table = cubin[strings.offset : strings.offset + strings.size]
            starts = range(section.offset, section.offset + section.size, section.entry)
            return [_name(table, struct.unpack_from("<I", cubin, start)[0]) for start in starts]
    return []


def _attributes(cubin: bytes, info: _Section) -> dict[tuple[int, int], int]:
    """(attribute, symbol index) to value, for those of the module's .nv.info that name a function."""
    found: dict[tuple[int, int], int] = {}
    offset, end = info.offset, info.offset + info.size
    while offset + 4 <= end:
        form, attribute, size = struct.unpack_from("<BBH", cubin, offset)
        offset += 4
        if form != _SIZED:
            continue
        if attribute in (_REGISTERS, _FRAME, _MIN_STACK) and size == 8:
            symbol, value = struct.unpack_from("<II", cubin, offset)
            found[attribute, symbol] = value
        offset += size
    return found


def read_cubin(cubin: bytes) -> dict[str, CubinFunction]:
    """The kernels of a cubin by name. Raises `TargetError` for bytes that are no cubin."""
    if cubin[:4] != b"\x7fELF" or len(cubin) < 64 or cubin[4:6] != b"\x02\x01":
        raise TargetError("these bytes are no cubin", expected="a 64-bit little-endian ELF file")
    try:
        return _read(cubin)
    except (struct.error, IndexError, ValueError) as error:
        raise TargetError("this cubin is cut off or damaged: {error}", error=error) from None


def _read(cubin: bytes) -> dict[str, CubinFunction]:
    sections = _sections(cubin)
    symbols = _symbols(cubin, sections)
    shared = {
        section.name[len(_SHARED) :]: section.size for section in sections if section.name.startswith(_SHARED)
    }
    attributes: dict[tuple[int, int], int] = {}
    for section in sections:
        if section.name == _INFO:
            attributes = _attributes(cubin, section)
    lines = _lines(cubin, sections, symbols)
    found: dict[str, CubinFunction] = {}
    for section in sections:
        if not section.name.startswith(_CODE):
            continue
        name = section.name[len(_CODE) :]
        index = symbols.index(name) if name in symbols else -1
        found[name] = CubinFunction(
            name,
            registers=attributes.get((_REGISTERS, index), 0),
            frame_bytes=attributes.get((_FRAME, index), 0),
            min_stack_bytes=attributes.get((_MIN_STACK, index), 0),
            shared_bytes=shared.get(name, 0),
            code=cubin[section.offset : section.offset + section.size],
            lines=lines.get(name, ()),
        )
    return found


def _lines(cubin: bytes, sections: list[_Section], symbols: list[str]) -> dict[str, tuple[LineRow, ...]]:
    """The line table of each kernel. Whose addresses are whose, the relocations of the table say."""
    by_name = {section.name: section for section in sections}
    table = by_name.get(_LINES)
    moved = next((by_name[name] for name in _RELOCATIONS if name in by_name), None)
    if table is None or moved is None or not moved.entry:
        return {}
    functions: dict[int, str] = {}
    for offset in range(moved.offset, moved.offset + moved.size, moved.entry):
        place, info = struct.unpack_from("<QQ", cubin, offset)
        functions[place] = symbols[info >> 32]
    return read_lines(cubin[table.offset : table.offset + table.size], functions)
