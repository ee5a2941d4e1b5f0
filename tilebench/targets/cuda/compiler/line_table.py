"""The line table of a cubin: for each instruction its line and those of the calls that were inlined there.

The section `.debug_line` is a DWARF 3 line program with an opcode of NVIDIA's: 0x90 says that what follows
was inlined at a row of this table (its first operand, counted from 1; 0 for none). nvdisasm prints the same
from it, with one loss: where only the place of inlining changes and the line inside the helper does not,
ptxas moves the address on without a row of its own, and nvdisasm stays at the call before. Two calls of one
helper side by side, as of two copies, then look like one.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

_INLINED_AT, _SET_ADDRESS, _END = 0x90, 2, 1
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _CONST_PC, _FIXED_PC = 1, 2, 3, 8, 9


@dataclass(frozen=True)
class LineRow:
    """From `address` on (bytes into its function) code comes from these lines, the innermost last."""

    address: int
    lines: tuple[int, ...]


class _Program:
    """The bytes of a line program being read."""

    def __init__(self, body: bytes, offset: int) -> None:
        self.body, self.offset = body, offset

    def byte(self) -> int:
        self.offset += 1
        return self.body[self.offset - 1]

    def leb(self, signed: bool = False) -> int:
        value = shift = 0
        while True:
            part = self.byte()
            value |= (part & 127) << shift
            shift += 7
            if not part & 128:
                return value - (1 << shift) if signed and part & 64 else value


@dataclass
class _Reader:
    """The state machine: where it stands, its rows as NVIDIA counts them, and what it found."""

    rows: list[tuple[int, ...]]
    found: list[LineRow]
    address: int = 0
    line: int = 1
    inlined_at: int = 0
    moved: bool = False

    def lines(self) -> tuple[int, ...]:
        outer = self.rows[self.inlined_at - 1] if 0 < self.inlined_at <= len(self.rows) else ()
        return (*outer, self.line)

    def note(self) -> None:
        """What holds from here on."""
        self.found.append(LineRow(self.address, self.lines()))
        self.moved = False

    def row(self) -> None:
        """A row of the table."""
        self.rows.append(self.lines())
        self.note()

    def inline(self, at: int) -> None:
        """Another place of inlining; what the one before was moved to without a row is noted first."""
        if self.moved:
            self.note()
        self.inlined_at = at


def read_lines(body: bytes, functions: Mapping[int, str]) -> dict[str, tuple[LineRow, ...]]:
    """The rows of each function, by address. `functions` says, by the place of an address, whose it is.

    What cannot be read gives no rows: then the disassembler's own notes have to do.
    """
    found: dict[str, tuple[LineRow, ...]] = {}
    start = 0
    try:
        while start + 10 < len(body):
            (length, _, header) = struct.unpack_from("<IHI", body, start)
            end = start + 4 + length
            _unit(body, start, start + 10 + header, end, functions, found)
            start = end
    except (IndexError, struct.error):
        return {}
    return found


def _unit(
    body: bytes, start: int, begin: int, end: int, functions: Mapping[int, str],
    found: dict[str, tuple[LineRow, ...]],
) -> None:  # fmt: skip
    step, _, base, span, first = struct.unpack_from("<BBbBB", body, start + 10)
    arguments = body[start + 15 : start + 15 + first - 1]
    program, state, name = _Program(body, begin), _Reader([], []), ""
    while program.offset < end:
        opcode = program.byte()
        if opcode >= first:
            opcode -= first
            state.address += opcode // span * step
            state.line += base + opcode % span
            state.row()
        elif opcode == 0:
            size = program.leb()
            after = program.offset + size
            extended = program.byte()
            if extended == _SET_ADDRESS:
                name = functions.get(program.offset, "")
                state = _Reader(state.rows, [])
            elif extended == _INLINED_AT:
                state.inline(program.leb())
            elif extended == _END:
                found[name] = tuple(sorted(state.found, key=lambda row: row.address))
                state = _Reader([], [])
            program.offset = after
        else:
            _standard(program, state, opcode, step, (255 - first) // span * step, arguments)


def _standard(
    program: _Program, state: _Reader, opcode: int, step: int, const: int, arguments: bytes
) -> None:
    if opcode == _COPY:
        state.row()
    elif opcode == _ADVANCE_PC:
        state.address += program.leb() * step
        state.moved = True
    elif opcode == _ADVANCE_LINE:
        state.line += program.leb(signed=True)
    elif opcode == _CONST_PC:
        state.address += const
        state.moved = True
    elif opcode == _FIXED_PC:
        state.address += program.byte() | program.byte() << 8
        state.moved = True
    else:
        for _ in range(arguments[opcode - 1]):
            program.leb()
