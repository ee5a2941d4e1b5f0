"""Reading NVRTC's log and PTX: errors with lines, ptxas's resource report, advisories, line maps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class CompileIssue:
    """An error or warning. `line` counts the generated CUDA text from 1; 0 when it is not known.

    `column` counts from 0 behind the line's indentation; -1 when it is not known.
    """

    line: int
    severity: str
    message: str
    number: str = ""
    column: int = -1


@dataclass(frozen=True)
class Advisory:
    """A performance remark of ptxas, such as C7510. `function` is empty when it names none.

    `line` counts the generated CUDA text from 1; 0 when it is not known.
    """

    code: str
    message: str
    function: str = ""
    line: int = 0


@dataclass(frozen=True)
class FunctionResources:
    """What ptxas reports for one kernel; bytes unless said otherwise. `shared_bytes` is static only.

    `seconds` is ptxas's own time for it.
    """

    name: str
    registers: int
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    shared_bytes: int = 0
    barriers: int = 0
    seconds: float = 0.0


_FRONT = re.compile(
    r"^(?P<file>[^()\n]+)\((?P<line>\d+)\): (?:catastrophic )?(?P<severity>error|warning)"
    r"(?: #(?P<number>[\w-]+))?: (?P<message>.*)$"
)
_PTXAS = re.compile(
    r"^ptxas\s.*?line (?P<line>\d+);\s*(?P<severity>error|warning|fatal)\s*:\s*(?P<message>.*)$"
)
_PTXAS_PLAIN = re.compile(r"^ptxas\s+(?P<severity>error|fatal)\s*:\s*(?P<message>.*)$")
_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
_PROPERTIES = re.compile(r"Function properties for '?(?P<name>[^'\s]+)'?")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+) bytes smem")
_TIME = re.compile(r"Compile time = ([\d.]+) ms")
_ADVISORY = re.compile(r"\((?P<code>C7[5-9]\d\d)\)\s*:?\s*(?P<message>.*)$")
_AT_LINE = re.compile(r"\s*\b(?:in|at)?(?: around)? line (?P<line>\d+)")
_FUNCTION = re.compile(r"function '(?P<name>[^']+)'")


def parse_issues(log: str, ptx: str = "") -> tuple[CompileIssue, ...]:
    """Errors and warnings in the log, in its order.

    ptxas names lines of the PTX; with `ptx` these become lines of the CUDA text (of the outermost
    caller, which is the kernel rather than a helper of the prelude).
    """
    lines = ptx_lines(ptx) if ptx else ()
    found: list[CompileIssue] = []
    told = log.splitlines()
    for at, raw in enumerate(told):
        front = _FRONT.match(raw)
        if front:
            number, caret = front["number"] or "", _caret(told[at + 1 : at + 3])
            found.append(
                CompileIssue(int(front["line"]), front["severity"], front["message"].strip(), number, caret)
            )
            continue
        back = _PTXAS.match(raw)
        if back:
            index = int(back["line"]) - 1
            chain = lines[index] if index < len(lines) else ()
            severity = "warning" if back["severity"] == "warning" else "error"
            found.append(CompileIssue(chain[0] if chain else 0, severity, back["message"].strip()))
            continue
        plain = _PTXAS_PLAIN.match(raw)
        if plain and "due to errors" not in plain["message"]:
            found.append(CompileIssue(0, "error", plain["message"].strip()))
    return tuple(found)


def _caret(below: Sequence[str]) -> int:
    """The column of a caret in the second of two lines, from where the first, the quoted one, begins."""
    if len(below) < 2 or below[1].strip() != "^":
        return -1
    return max(0, below[1].index("^") - (len(below[0]) - len(below[0].lstrip())))


def parse_resources(log: str) -> dict[str, FunctionResources]:
    """ptxas's `-v` report, by the name of the entry function."""
    found: dict[str, FunctionResources] = {}
    name, about, stack, used = "", "", (0, 0, 0), (0, 0, 0)
    for raw in log.splitlines():
        entry = _ENTRY.search(raw)
        if entry:
            name, about, stack, used = entry["name"], entry["name"], (0, 0, 0), (0, 0, 0)
            continue
        properties = _PROPERTIES.search(raw)
        if properties:
            about = properties["name"]
            continue
        frame = _STACK.search(raw)
        if frame and about == name:
            stack = (int(frame[1]), int(frame[2]), int(frame[3]))
            continue
        registers = _USED.search(raw)
        if registers and name:
            shared, barriers = _SHARED.search(raw), _BARRIERS.search(raw)
            used = (int(registers[1]), int(shared[1]) if shared else 0, int(barriers[1]) if barriers else 0)
            found[name] = FunctionResources(name, used[0], *stack, used[1], used[2])
            continue
        took = _TIME.search(raw)
        if took and name in found:
            before = found[name]
            found[name] = FunctionResources(
                name, before.registers, *stack, used[1], used[2], float(took[1]) / 1e3
            )
    return found


def parse_advisories(log: str, ptx: str = "") -> tuple[Advisory, ...]:
    """The C75xx remarks: code that ptxas had to serialise or options it ignored.

    ptxas names lines of the PTX, which `ptx` turns into lines of the CUDA text.
    """
    lines: tuple[tuple[int, ...], ...] | None = None
    found: list[Advisory] = []
    for raw in log.splitlines():
        match = _ADVISORY.search(raw)
        if not match:
            continue
        function, where = _FUNCTION.search(raw), _AT_LINE.search(raw)
        line = 0
        if where:
            lines = ptx_lines(ptx) if lines is None else lines
            index = int(where["line"]) - 1
            line = lines[index][0] if index < len(lines) and lines[index] else 0
        message = _AT_LINE.sub("", match["message"]).strip()
        found.append(Advisory(match["code"], message, function["name"] if function else "", line))
    return tuple(found)


_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*?inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")


def ptx_lines(ptx: str) -> tuple[tuple[int, ...], ...]:
    """For each line of the PTX, the CUDA lines it came from: the outermost caller first.

    A `.loc` holds until the next one or the end of the function. Directives, labels, comments and
    lines outside functions come from nowhere. A `.loc` with `inlined_at` names the call by file,
    line and column; the call itself has had a `.loc` before, so chains of any depth are followed.
    """
    out: list[tuple[int, ...]] = []
    chains: dict[tuple[str, str, str], tuple[int, ...]] = {}
    now: tuple[int, ...] = ()
    for raw in ptx.splitlines():
        loc = _LOC.match(raw)
        if loc:
            line = int(loc[2])
            if loc[4]:
                outer = chains.get((loc[4], loc[5], loc[6]), (int(loc[5]),))
                now = (*outer, line)
            else:
                now = (line,)
            chains[loc[1], loc[2], loc[3]] = now
            out.append(now)
            continue
        text = raw.strip()
        if text == "}" or text.startswith((".visible .entry", ".entry", ".func", ".visible .func")):
            now = ()
        # Inline assembly may begin with a brace; a brace alone is a block's.
        silent = text in ("", "{") or text.startswith((".", "//", "}", "(", ")")) or text.endswith(":")
        out.append(() if silent else now)
    return tuple(out)
