"""The control codes of SASS: what the scheduler of a warp reads beside each instruction.

From Volta on an instruction has 16 bytes, and its bits 105 to 125 are for the scheduler: how many cycles
the warp waits before its next instruction (4 bits), whether it had rather go on itself than let another warp
in (1), the barrier that is set when the result is written and the one when the operands are read (3 each, 7
for none), the barriers that are waited for first (6, one each), and the operands that stay in the reuse
cache (4). NVIDIA documents none of it; these are the fields on which the assemblers of Jia et al.,
"Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (2018), and CuAssembler agree.
"""

from __future__ import annotations

from dataclasses import dataclass

NONE = 7
# The scheduler's counters of outstanding results, 0 to 5.
BARRIERS = 6
_OPERANDS = "abcd"
MOST_STALL = 15


@dataclass(frozen=True)
class Control:
    """The scheduling bits of one instruction. `write` and `read` are None where no barrier is set."""

    stall: int
    stays: bool
    write: int | None
    read: int | None
    waits: tuple[int, ...]
    reuse: str

    @property
    def text(self) -> str:
        """As assemblers write it: `B01----:R0:W-:Y:S04`, and `:ab` for operands in the reuse cache.

        `Y` stands where the bit is 0: one of 1 keeps the scheduler at the warp.
        """
        waits = "".join(str(k) if k in self.waits else "-" for k in range(BARRIERS))
        reads, writes = ("-" if each is None else str(each) for each in (self.read, self.write))
        out = f"B{waits}:R{reads}:W{writes}:{'-' if self.stays else 'Y'}:S{self.stall:02d}"
        return f"{out}:{self.reuse}" if self.reuse else out

    @property
    def short(self) -> str:
        """In 14 letters: stall and yield, write and read barrier, barriers waited for, reuse."""
        write, read = ("." if each is None else str(each) for each in (self.write, self.read))
        waits = "".join(str(k) if k in self.waits else "." for k in range(BARRIERS))
        return (
            f"{self.stall:2d}{' ' if self.stays else 'y'} {write}{read} {waits}{'r' if self.reuse else ' '}"
        )

    @property
    def words(self) -> str:
        """What the codes say, a sentence each."""
        cycles = "cycle" if self.stall == 1 else "cycles"
        out = [
            f"stall {self.stall}: the warp's next instruction comes at least {self.stall} {cycles} later"
            if self.stall
            else "stall 0: the warp may issue its next instruction at once"
        ]
        if not self.stays:
            out.append("yield: the scheduler had better turn to another warp now")
        if self.write is not None:
            out.append(f"sets barrier {self.write}, which opens when the result is written")
        if self.read is not None:
            out.append(f"sets barrier {self.read}, which opens when the operands are read")
        if self.waits:
            out.append(f"waits first until {_listed(self.waits)} opened")
        if self.reuse:
            out.append(
                f"operand {' and '.join(self.reuse)} stays in the reuse cache for the next instruction"
            )
        return "\n".join(out)


def _listed(numbers: tuple[int, ...]) -> str:
    shown = [str(each) for each in numbers]
    if len(shown) == 1:
        return f"barrier {shown[0]} has"
    return f"barriers {', '.join(shown[:-1])} and {shown[-1]} have"


def control_of(word: bytes) -> Control:
    """The control codes of one 16-byte instruction."""
    bits = int.from_bytes(word, "little") >> 105
    write, read, wait, reuse = bits >> 5 & 7, bits >> 8 & 7, bits >> 11 & 63, bits >> 17 & 15
    return Control(
        bits & 15, bool(bits >> 4 & 1), None if write == NONE else write, None if read == NONE else read,
        tuple(k for k in range(BARRIERS) if wait >> k & 1),
        "".join(letter for k, letter in enumerate(_OPERANDS) if reuse >> k & 1),
    )  # fmt: skip


def decode_control(word: bytes) -> str:
    """The control codes of one 16-byte instruction as text."""
    return control_of(word).text


def parse_control(text: str) -> Control:
    """The control codes that `Control.text` wrote."""
    waits, read, write, stays, stall, *reuse = text.split(":")
    return Control(
        int(stall[1:]), stays == "-", _barrier(write), _barrier(read),
        tuple(k for k, sign in enumerate(waits[1:]) if sign != "-"), reuse[0] if reuse else "",
    )  # fmt: skip


def _barrier(text: str) -> int | None:
    return None if text[1:] == "-" else int(text[1:])


def show_control(text: str) -> tuple[str, float, str]:
    """A control code for a gutter: in few letters, the stall as a shade, and in words."""
    control = parse_control(text)
    return control.short, control.stall / MOST_STALL, control.words
