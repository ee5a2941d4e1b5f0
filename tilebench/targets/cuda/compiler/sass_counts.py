"""What SASS says of itself, line by line: instructions by kind, bytes that loads and stores move.

Each instruction counts once, however often it runs: figures of the text, not of a run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ....record import LineCounter

_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(@!?U?P[T\d]\s+)?([A-Z][A-Z0-9_]*)((?:\.[\w&]+)*)")
# What is guarded by this never runs; the assembler puts such loads in front of asynchronous copies.
_NEVER = ("@!PT", "@!UPT")

# The first whose pattern the whole name of an opcode has; one of uniform registers is asked without its U.
_KINDS = tuple(
    (kind, re.compile("|".join(patterns.split())))
    for kind, patterns in (
        ("matrix product", r"\w*MMA(?:64)? UTC\w+ WARPGROUP LDTM STTM"),
        ("local memory", r"LDL STL"),
        ("shared memory", r"LDS STS LDSM STSM ATOMS"),
        (
            "global memory",
            r"LDG STG LDGSTS RED REDG ATOMG? LD ST UTMA\w+ UBLK\w+ CCTL\w* REDAS SUST SULD TLD\w* TEX",
        ),
        (
            "synchronisation",
            (
                r"BAR B2R R2B \w*DEPBAR SYNCS\w* WARPSYNC MEMBAR FENCE ERRBAR ARRIVES ACQ\w+ NANOSLEEP"
                r" ENDCOLLECTIVE CGAERRBAR ELECT"
            ),
        ),
        ("exchange", r"SHFL VOTE\w* MATCH CREDUX REDUX"),
        ("special function", r"MUFU"),
        ("conversion", r"[FI]2[FI]P? F2F\w* I2I\w* F2FP FRND I2FP F2IP"),
        ("floating point", r"[FDH](?:ADD|MUL|FMA|SET|SETP|MNMX|SEL|CHK|SWZADD)\w* H[A-Z]+2\w* FMNMX3"),
        (
            "control",
            (
                r"BRA BRX\w* JMP JMX\w* EXIT RET CALL BSSY BSYNC BREAK BMOV YIELD KILL NOP BPT RTT WARPEXIT"
                r" PREEXIT LEPC"
            ),
        ),
        (
            "move",
            r"MOV MOVM SEL PRMT S2R S2UR CS2R R2UR UR2R P2R R2P PLOP3 PSETP LDC LDCU SETMAXREG\w* SETCTAID",
        ),
        (
            "integer",
            (
                r"I[A-Z]+\d* LEA LOP3? LOP32I SHF SHL SHR SGXT BMSK BREV FLO POPC V[A-Z]+\w* BFE BFI XMAD"
                r" SCADD\w*"
            ),
        ),
    )
)
OTHER = "other"
_BITS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}
# Shared memory is also what an asynchronous copy writes.
_SPACES = {
    "global": re.compile(r"LDG|STG|LDGSTS|RED|REDG|ATOMG?|LD|ST"),
    "shared": re.compile(r"LDS|STS|LDSM|STSM|ATOMS|LDGSTS"),
    "local": re.compile(r"LDL|STL"),
}
_STATIC = "Each instruction of the text counts once, however often it runs."


@lru_cache(maxsize=1024)
def kind_of(opcode: str) -> str:
    """What an opcode does, in a word or two; `other` for one that is not known here."""
    for name in (opcode, opcode.removeprefix("U")):
        for kind, pattern in _KINDS:
            if pattern.fullmatch(name):
                return kind
    return OTHER


@dataclass(frozen=True)
class Opcode:
    """The opcode of a line with suffixes (`.E.128`); `never` where its predicate keeps it from running."""

    name: str
    suffixes: str
    never: bool = False

    @property
    def kind(self) -> str:
        """What it does."""
        return kind_of(self.name)

    def moved(self, space: str) -> int:
        """Bytes that one thread moves to or from a memory by it; 0 where the text does not say it.

        A copy by a descriptor (`UTMALDG`) has its size there.
        """
        return 0 if self.never else bytes_of(self.name, self.suffixes, space)


@lru_cache(maxsize=1024)
def bytes_of(opcode: str, suffixes: str, space: str) -> int:
    """The bytes of `Opcode.moved`, of an instruction that runs."""
    if not _SPACES[space].fullmatch(opcode):
        return 0
    parts = suffixes.split(".")
    if opcode in ("LDSM", "STSM"):
        # Matrices of 8 rows of 16 bytes, of which each of the 32 threads gets 4 bytes: `.M88.4` are four.
        return 4 * max((int(part) for part in parts if part in ("2", "4")), default=1)
    return max((_BITS[part] for part in parts if part in _BITS), default=32) // 8


def opcodes_of(text: str) -> list[Opcode | None]:
    """The opcode of each line, None for one that is no instruction."""
    found = (_INSTRUCTION.match(line) for line in text.split("\n"))
    return [Opcode(m[2], m[3], (m[1] or "").strip() in _NEVER) if m else None for m in found]


def count_sass(text: str) -> tuple[LineCounter, ...]:
    """Instructions by kind, and bytes to and from global, shared and local memory, of a thread."""
    rows = opcodes_of(text)
    kinds = tuple(row.kind if row else "" for row in rows)
    once = tuple(float(row is not None) for row in rows)
    says = f"Instructions of SASS. {_STATIC}"
    out = [LineCounter("instructions", "instructions", "sass", once, "", says, kinds)]
    matrix = tuple(float(kind == "matrix product") for kind in kinds)
    if any(matrix):
        says = f"Instructions for the matrix units. {_STATIC}"
        out.append(LineCounter("matrix", "matrix instructions", "sass", matrix, "", says))
    for space, title, says in _MOVED:
        values = tuple(float(row.moved(space)) if row else 0.0 for row in rows)
        if any(values):
            words = tuple(row.name if row and value else "" for row, value in zip(rows, values, strict=True))
            out.append(LineCounter(f"{space}_bytes", title, "sass", values, "B", f"{says} {_STATIC}", words))
    return tuple(out)


_MOVED: Sequence[tuple[str, str, str]] = (
    ("global", "global bytes a thread", "Bytes that a thread moves to and from global memory."),
    (
        "shared",
        "shared bytes a thread",
        "Bytes that a thread moves to and from shared memory, those of asynchronous copies too.",
    ),
    (
        "local",
        "spilled bytes a thread",
        "Bytes that a thread moves to and from local memory: spilled registers and arrays without registers.",
    ),
)
