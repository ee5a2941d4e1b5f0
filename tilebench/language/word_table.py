"""The table of the language's names: tier, signature, one line, and where the tests of each pass.

The two tiers are the names without which TileLang's files do not run, and those that many of them use.
`support.json` beside this file is written by the tests, from kernels that are run.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from .known import explain_missing

CORE = """
    Kernel Tensor prim_func const empty dynamic dtype alloc_shared alloc_fragment alloc_var copy
    gemm clear fill reduce_sum reduce_max atomic_add Pipelined Parallel serial if_then_else exp2
    log2 max min infinity ceildiv float32 float16 bfloat16 int32 GemmWarpPolicy annotate_layout
    use_swizzle get_thread_binding
"""
COMMON = """
    alloc_local cast reinterpret exp rsqrt clamp floordiv floormod reduce_absmax reduce_min Layout
    reshape view StridedTensor symbolic Buffer im2col macro vectorized unroll grid thread_binding
    sync_threads call_extern access_ptr attr evaluate tma_copy alloc_barrier barrier_arrive
    barrier_wait mbarrier_arrive mbarrier_wait_parity ws wgmma_gemm wait_wgmma set_max_nreg
    disable_warp_group_reg_alloc float bool int8 uint8 uint16 int16 uint32 uint64 int64 float64
    float8_e4m3fn float8_e5m2
"""
TIERS = {"core": tuple(CORE.split()), "common": tuple(COMMON.split())}


@dataclass(frozen=True)
class WordRow:
    """One name. `roads` are those on which every kernel of the tests with it is right; None: none has it.

    For a name that is not here, `line` says so, and what to write instead.
    """

    name: str
    tier: str
    here: bool
    signature: str
    line: str
    roads: tuple[str, ...] | None


@cache
def _support() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("support.json").read_text())


def known_roads() -> tuple[str, ...]:
    """Where the tests try each word: the columns of the table."""
    return tuple(_support()["roads"])


def roads_line(name: str) -> str:
    """On which roads every kernel of the tests with a word is right; empty for a word without one."""
    roads = _support()["words"].get(name)
    return f"Tested on: {', '.join(roads)}." if roads else ""


def row_of(language: ModuleType, name: str) -> WordRow:
    """The row of a name, which need not be in a tier, nor here."""
    tier = next((tier for tier, names in TIERS.items() if name in names), "more")
    if name not in language.NAMES:
        what, hint = explain_missing(name, language.NAMES)
        return WordRow(name, tier, False, "", f"{what}; {hint}" if hint else what, None)
    word = getattr(language, name)
    roads = _support()["words"].get(name)
    return WordRow(
        name, tier, True, _signature(name, word), _line(word), None if roads is None else tuple(roads)
    )


def rows(language: ModuleType) -> list[WordRow]:
    """The rows of both tiers in their order, then all other names of the language."""
    tiered = [name for names in TIERS.values() for name in names]
    return [row_of(language, name) for name in (*tiered, *sorted(set(language.NAMES) - set(tiered) - _INNER))]


_INNER = {"PrimFunc", "TensorSpec", "registry"}


def _signature(name: str, word: Any) -> str:
    members: dict[str, Any] | None = getattr(word, "__members__", None)
    if members is not None:
        return f"T.{name}: " + ", ".join(members)
    try:
        return f"T.{name}{inspect.signature(word)}"
    except (TypeError, ValueError):
        return f"T.{name}"


def _line(word: Any) -> str:
    return (inspect.getdoc(word) or "").partition("\n")[0]


def page(table: Iterable[WordRow]) -> str:
    """The table as a page of Markdown."""
    roads = known_roads()
    out = [
        "# The words of the language",
        "",
        "Written by `tests/language/test_word_table.py` (`--update-golden`), which runs a kernel of each",
        "name: on the reference and the CPU, in the simulator of the CUDA path, and compiled for cards.",
        "A tick says that all kernels with the name gave the reference's numbers there, or compiled.",
        "`tilebench help T.copy` and `T.copy?` in a notebook tell more.",
    ]
    tier = ""
    for row in table:
        if row.tier != tier:
            tier = row.tier
            out += [
                "",
                f"## {tier}",
                "",
                f"| word | what it says | {' | '.join(roads)} |",
                "|" + " --- |" * 7,
            ]
        ticks = ["" if row.roads is None else "✓" if road in row.roads else "✗" for road in roads]
        said = row.signature.replace("|", "\\|") if row.here else f"T.{row.name}"
        line = row.line.replace("|", "\\|")
        out.append(f"| `{said}` | {line if row.here else f'*{line}*'} | {' | '.join(ticks)} |")
    return "\n".join(out) + "\n"
