"""Nsight Compute: the card's own counts for each instruction of a kernel, by `ncu`.

Two steps, as its manual has them: a run that collects the section `SourceCounters` into a report, and the
report printed as its source page in CSV: a line with the kernel's name, one with the names of columns, then a
line an instruction with its address. A report that somebody else collected is read in the same form.
"""

from __future__ import annotations

import contextlib
import csv
import os
import re
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import TargetError
from ...record import CompileRecord, LineCounter, StageRecord

if TYPE_CHECKING:
    import subprocess

STAGE = "sass"
# How often a wait looks whether its result is still wanted.
LOOK_S = 0.1
_ADDRESS = re.compile(r"\s*/\*([0-9a-f]{4,})\*/")
_HEADING = re.compile(r"^([A-Za-z_$][\w$]*):$")
_HOW = "Counted on the card by ncu, all blocks of the grid"
_SAMPLES = "ncu_samples"
_OF_COPIES = (
    "; of an asynchronous copy ncu says one for each line of 128 bytes that a warp reads, also where the "
    "card's own counter of conflicts stays 0"
)
# Name, title, column of the report, what it counts.
_COLUMNS = (
    (_SAMPLES, "stall samples", "Warp Stall Sampling (All Samples)", "Samples that found a warp here"),
    ("ncu_runs", "instructions run", "Instructions Executed", "How often warps ran an instruction"),
    ("ncu_sectors", "sectors, card", "L2 Theoretical Sectors Global", "Sectors of global memory asked of L2"),
    (
        "ncu_wasted",
        "wasted sectors, card",
        "L2 Theoretical Sectors Global Excessive",
        "Sectors of global memory beyond the fewest",
    ),
    (
        "ncu_passes",
        "shared passes, card",
        "L1 Wavefronts Shared",
        f"Passes over the banks of shared memory{_OF_COPIES}",
    ),
    (
        "ncu_conflicts",
        "bank conflicts, card",
        "L1 Wavefronts Shared Excessive",
        f"Passes over the banks of shared memory beyond the fewest{_OF_COPIES}",
    ),
)
# Columns that ncu works out from addresses in registers: of a warp that a predicate keeps off as if it had
# run. By how much cannot be told from a report, and the simulator's counts have none of it.
_BY_ADDRESS = frozenset({"ncu_sectors", "ncu_wasted", "ncu_passes", "ncu_conflicts"})
_LANES, _LANES_ON = "Thread Instructions Executed", "Predicated-On Thread Instructions Executed"
OFF_TOO = "with warps that a predicate keeps off"
_STALL = "stall_"
_NOT_ISSUED = "Not Issued"


def missing() -> str:
    """Why ncu cannot be used here; empty where it can."""
    from .run.device import available

    can, why = available()
    if not can:
        return why
    return "" if shutil.which("ncu") else "ncu is not on PATH"


def run(command: Sequence[str], names: Sequence[str], cancel: threading.Event) -> str:
    """Run a command under ncu and print the source page of its report, for the first launch of each kernel.

    When `cancel` is set, ncu and the command are ended at once, and there is no report. `TargetError` where
    ncu fails: mostly it may not read counters.
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix="tilebench-ncu-") as folder:
        report = str(Path(folder) / "report")
        chosen = "regex:^(" + "|".join(map(re.escape, names)) + ")$"
        collect = [
            "ncu", "--section", "SourceCounters", "--kernel-name-base", "function", "--kernel-name", chosen,
            "--launch-count", str(len(names)), "--force-overwrite", "--export", report, *command,
        ]  # fmt: skip
        _said(collect, cancel)
        page = ["--page", "source", "--csv", "--print-source", "sass"]
        return _said(["ncu", "--import", f"{report}.ncu-rep", *page], cancel)


def _said(command: Sequence[str], cancel: threading.Event) -> str:
    """What a command prints. When `cancel` is set or this wait interrupted, it ends with all it started."""
    import subprocess

    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        said = _wait(process, cancel)
    finally:
        # ncu starts the program that it profiles, which would go on without it.
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode != 0 and not cancel.is_set():
        told = "\n".join(line for line in said.splitlines() if line.startswith("==ERROR==")) or said[-600:]
        hint = "counters need a permission: see ERR_NVGPUCTRPERM" if "ERR_NVGPUCTRPERM" in said else ""
        raise TargetError("ncu failed: {text}", text=told.strip(), hint=hint)
    return said


def _wait(process: subprocess.Popen[str], cancel: threading.Event) -> str:
    """All that a process says; nothing where `cancel` is set before its end."""
    import subprocess

    while not cancel.is_set():
        try:
            return process.communicate(timeout=LOOK_S)[0]
        except subprocess.TimeoutExpired:
            continue
    return ""


def read(report: str, record: CompileRecord) -> tuple[LineCounter, ...]:
    """Counters of the SASS of a record from a source page; `TargetError` where that is of other code.

    Instructions are found by their addresses, and their names have to agree.
    """
    stage = record.stage(STAGE)
    places = _places(stage)
    text = stage.text.splitlines()
    values: dict[str, list[float]] = {name: [0.0] * len(text) for name, *_ in _COLUMNS}
    kinds = {name: [""] * len(text) for name in (*_BY_ADDRESS, _SAMPLES)}
    found: set[str] = set()
    for kernel, heads, rows in _kernels(report):
        entry = next((name for name in places if kernel.partition("(")[0].split()[-1:] == [name]), None)
        if entry is None:
            continue
        base = int(rows[0][heads.index("Address")], 0)
        for row in rows:
            line = places[entry].get(int(row[heads.index("Address")], 0) - base)
            if line is None:
                continue  # what pads a kernel's end
            _same(row[heads.index("Source")], text[line], line)
            found.add(entry)
            for name, _, column, _ in _COLUMNS:
                values[name][line] += _number(row, heads, column)
                if name in _BY_ADDRESS and values[name][line] and _is_partly_off(row, heads):
                    kinds[name][line] = OFF_TOO
            kinds[_SAMPLES][line] = _reason(row, heads)
    if not found:
        raise TargetError(
            "this report of ncu is of other kernels", expected=" or ".join(places) or "machine code",
            found=", ".join(kernel for kernel, _, _ in _kernels(report)) or "no source page",
            hint="ncu --import FILE --page source --csv --print-source sass",
        )  # fmt: skip
    return tuple(
        LineCounter(
            name, title, STAGE, tuple(values[name]), "", f"{says}. {_HOW}.",
            tuple(kinds[name]) if any(kinds.get(name, ())) else (),
        )
        for name, title, _, says in _COLUMNS
        if any(values[name]) or name == "ncu_conflicts"
    )  # fmt: skip


def _is_partly_off(row: Sequence[str], heads: Sequence[str]) -> bool:
    """Whether a predicate kept lanes of an instruction off that the warp ran."""
    return _number(row, heads, _LANES_ON) < _number(row, heads, _LANES)


def _places(stage: StageRecord) -> dict[str, dict[int, int]]:
    """By kernel, the line (from 0) of each address."""
    out: dict[str, dict[int, int]] = {}
    now: dict[int, int] = {}
    for number, line in enumerate(stage.text.splitlines()):
        heading = _HEADING.match(line)
        if heading and not line.startswith(".L"):
            now = out.setdefault(heading[1], {})
        address = _ADDRESS.match(line)
        if address:
            now[int(address[1], 16)] = number
    return out


def _kernels(report: str) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Each kernel of a source page: its name, the names of columns, the rows with an address."""
    name, heads, rows = "", list[str](), list[list[str]]()
    for row in csv.reader(line for line in report.splitlines() if not line.startswith("==")):
        if row[:1] == ["Kernel Name"]:
            if rows:
                yield name, heads, rows
            # ncu ends the line with a comma: an empty cell, and no part of the name
            name, heads, rows = ",".join(filter(None, row[1:])), [], []
        elif "Address" in row and "Source" in row:
            heads = row
        elif heads and len(row) == len(heads) and row[heads.index("Address")]:
            rows.append(row)
    if rows:
        yield name, heads, rows


def _same(source: str, line: str, number: int) -> None:
    """Refuse a report whose instruction is another one than that of a line."""
    here, there = (_opcode(each) for each in (line.partition("*/")[2], source))
    if here != there:
        raise TargetError(
            "this report of ncu is of other code", expected=f"{here} in line {number + 1} of the sass",
            found=there, hint="count again: the kernel was compiled anew",
        )  # fmt: skip


def _opcode(text: str) -> str:
    words = text.strip().rstrip(";").split()
    return next((word for word in words if not word.startswith("@")), "")


def _number(row: Sequence[str], heads: Sequence[str], column: str) -> float:
    if column not in heads:
        return 0.0
    try:
        return float(row[heads.index(column)].replace(",", "") or 0)
    except ValueError:
        return 0.0  # `-` where an instruction has no such figure


def _reason(row: Sequence[str], heads: Sequence[str]) -> str:
    """What most samples waited for, in ncu's word."""
    stalls = [
        (_number(row, heads, head), head.removeprefix(_STALL))
        for head in heads
        if head.startswith(_STALL) and _NOT_ISSUED not in head
    ]
    most = max(stalls, default=(0.0, ""))
    return most[1] if most[0] else ""
