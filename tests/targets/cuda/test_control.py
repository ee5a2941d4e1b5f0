"""Control codes of SASS: known encodings, nvdisasm's own reuse marks, and hazards that they have to cover."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests import line_kernels
from tilebench.record import StageRecord
from tilebench.recorder import make_record
from tilebench.targets.cuda.compiler.control import (
    Control,
    control_of,
    decode_control,
    parse_control,
    show_control,
)

ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120")
# Instructions whose results come at a time that the assembler cannot know: a barrier tells.
LATE = re.compile(r"\b(LDG|LDS|LDSM|LDL|S2R|S2UR|SHFL|MUFU)\b")


@cache
def sass(arch: str) -> StageRecord:
    compilation = line_kernels.macro_gemm.compile(M=256, N=256, K=256, target=f"cuda:{arch}").compilation
    return make_record(compilation, compilation.stage_names).stage("sass")


def rows(arch: str) -> list[tuple[str, Control]]:
    stage = sass(arch)
    pairs = zip(stage.text.splitlines(), stage.beside, strict=True)
    return [(line, parse_control(code)) for line, code in pairs if code]


@pytest.mark.parametrize(
    ("upper", "text"),
    [
        # Upper words as nvdisasm prints them with -hex, read by CuAssembler's fields (`Y`: the bit is 0).
        (0x000FEA0003800000, "B------:R-:W-:-:S05"),  # EXIT
        (0x000FC80000000F00, "B------:R-:W-:Y:S04"),  # MOV R6, R2
        (0x000E280000002500, "B------:R-:W0:-:S04"),  # S2R R0, SR_CTAID.X
        (0x008FE2000BF23270, "B---3--:R-:W-:-:S01"),  # ISETP.LE.AND P1, PT, R2, UR6, PT
        (0x000FDA0003F06270, "B------:R-:W-:Y:S13"),  # ISETP.GE.AND P0 before a branch
        (0x000FE400078E02FF, "B------:R-:W-:-:S02"),
    ],
)
def test_known_encodings(upper: int, text: str) -> None:
    assert decode_control((upper << 64).to_bytes(16, "little")) == text


@pytest.mark.parametrize("arch", ARCHS)
def test_operands_in_the_reuse_cache_are_those_that_nvdisasm_marks(arch: str) -> None:
    found = rows(arch)
    assert sum(len(control.reuse) for _, control in found) > 5
    for line, control in found:
        assert line.count(".reuse") == len(control.reuse), line


@pytest.mark.parametrize("arch", ARCHS)
def test_what_comes_late_is_waited_for_before_it_is_read(arch: str) -> None:
    """Of each late result: its barrier is set, and waited for no later than by its first reader."""
    found, checked = rows(arch), 0
    for at, (line, _) in enumerate(found):
        made = re.search(r"\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9]+)\S*\s+(U?R\d+),", line)
        if made is None or not LATE.search(made[1]):
            continue
        reader = next((k for k in range(at + 1, len(found)) if reads(found[k][0], made[2])), None)
        if reader is None or any("BRA" in text or re.search(r"^\.L", text) for text, _ in found[at:reader]):
            continue
        # Those of one pipe complete in order: the barrier of the last of a row of them is enough.
        set_here = [c.write for text, c in found[at:reader] if made[1] in text and c.write is not None]
        assert set_here, line
        waited = {barrier for _, later in found[at + 1 : reader + 1] for barrier in later.waits}
        assert set(set_here) & waited, (line, found[reader][0])
        checked += 1
    assert checked > 6


def reads(line: str, register: str) -> bool:
    """Whether an instruction reads a register, by its operands behind the first."""
    operands = line.split("*/", 1)[1].split(",", 1)
    return len(operands) > 1 and re.search(rf"(?<![A-Z0-9]){register}(?!\d)", operands[1]) is not None


@pytest.mark.parametrize("arch", ARCHS)
def test_codes_are_read_back_as_they_were_written(arch: str) -> None:
    for _, control in rows(arch):
        assert parse_control(control.text) == control


def test_a_code_in_words() -> None:
    control = Control(4, False, 2, None, (0, 1, 5), "ac")
    assert control.text == "B01---5:R-:W2:Y:S04:ac"
    short, shade, words = show_control(control.text)
    assert (short, shade) == (" 4y 2. 01...5r", 4 / 15)
    assert words.splitlines() == [
        "stall 4: the warp's next instruction comes at least 4 cycles later",
        "yield: the scheduler had better turn to another warp now",
        "sets barrier 2, which opens when the result is written",
        "waits first until barriers 0, 1 and 5 have opened",
        "operand a and c stays in the reuse cache for the next instruction",
    ]
    assert control_of(bytes(16)).words.startswith("stall 0: the warp may issue its next instruction at once")
