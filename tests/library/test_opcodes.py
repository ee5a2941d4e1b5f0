"""Every opcode that the library's kernels are compiled to is explained where the pointer rests on it.

The table is `tilebench/workbench/opcodes.json`; here all opcodes of PTX and SASS are counted, for each card.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tilebench
from tests.library.cases import LibraryCase
from tests.library.test_right import CARDS, LARGE
from tilebench.library import kernel_for

TABLE = json.loads((Path(tilebench.__file__).parent / "workbench" / "opcodes.json").read_text("utf-8"))
SASS = re.compile(r"(?:\s|/\*.*?\*/)*(?:@!?U?P[T\d]+\s+)?([A-Z][A-Z0-9_]*)((?:\.\w+)*)")
PTX = re.compile(r"\s*(?:\{\s*)?(?:@!?%\w+\s+)?([a-z][a-z0-9_]*)((?:(?:\.|::)\w+)*)(?=[\s;])")
# Of `LDS.U` on sm_75 no document says what it is.
UNKNOWN = {"U"}
FEW = ("matmul", "softmax", "attention")


def opcodes(text: str, form: re.Pattern[str]) -> Iterator[str]:
    """The opcodes of a listing, one an instruction, with their modifiers."""
    for line in text.splitlines():
        found = form.match(line)
        if found is not None and ";" in line and not line.strip().startswith((".", "//")):
            yield found[1] + found[2]


def emitted(cases: Any, arch: str) -> tuple[Counter[str], Counter[str]]:
    """How often each opcode of SASS and of PTX stands in the kernels of these cases."""
    sass: Counter[str] = Counter()
    ptx: Counter[str] = Counter()
    for case in cases:
        kernel = kernel_for(case.operator, case.problem, f"cuda:{arch}")
        sass.update(opcodes(str(kernel.stage("sass")), SASS))
        ptx.update(opcodes(str(kernel.stage("ptx")), PTX))
    return sass, ptx


def unexplained(found: Counter[str], language: str) -> dict[str, int]:
    return {name: count for name, count in found.items() if name.partition(".")[0] not in TABLE[language]}


def bases(found: Counter[str]) -> set[str]:
    return {name.partition(".")[0] for name in found}


def small() -> list[LibraryCase]:
    """One case of each of a few operators."""
    return [next(case for case in LARGE if case.name == name) for name in FEW]


@pytest.mark.parametrize(("arch", "product"), [("sm_75", ("HMMA", "mma")), ("sm_90a", ("HGMMA", "wgmma"))])
def test_the_opcodes_of_a_few_kernels(arch: str, product: tuple[str, str]) -> None:
    sass, ptx = emitted(small(), arch)
    assert sum(sass.values()) > 1000
    assert {"LDG", "STG", "FFMA", product[0], "BAR", "MUFU"} <= bases(sass)
    assert {"ld", "st", product[1], "bar", "fma"} <= bases(ptx)
    assert unexplained(sass, "sass") == unexplained(ptx, "ptx") == {}


@pytest.mark.slow
# A quarter of a minute each: the oldest and the newest. All four were counted when the words were written.
@pytest.mark.parametrize("arch", [CARDS[0], CARDS[-1]])
def test_the_opcodes_of_the_library(arch: str) -> None:
    sass, ptx = emitted(LARGE, arch)
    assert len(bases(sass)) > 40
    assert len(bases(ptx)) > 25
    assert unexplained(sass, "sass") == unexplained(ptx, "ptx") == {}
    # A modifier without a sentence is passed over; of those that are left none is documented.
    for found, language in ((sass, "sass"), (ptx, "ptx")):
        known = TABLE[f"{language}_modifiers"]
        parts = {part for name in found for part in name.split(".")[1:]}
        assert parts - set(known) <= UNKNOWN


def test_a_sentence_says_something_and_is_short() -> None:
    for rows in TABLE.values():
        for name, says in rows.items():
            assert 1 < len(says) <= 140, name
            assert not says.endswith("."), name
            assert says[0].islower() or not says[0].isalpha() or says.split()[0].isupper(), name


def test_what_the_highlighter_knows_is_explained() -> None:
    tokens = json.loads((Path(tilebench.__file__).parent / "workbench" / "tokens.json").read_text("utf-8"))
    known = {word for words in tokens["nvsass"]["words"].values() for word in words}
    later = {word for word in known if word.startswith(("UTC", "OMMA", "BGMMA", "LDTM", "STTM", "ARRIVES"))}
    assert known - later <= set(TABLE["sass"]), known - later - set(TABLE["sass"])
