"""SASS: run nvdisasm on a cubin, clean its text, map each line to lines of the generated CUDA.

A start of nvdisasm takes 0.2 to 0.4 s whatever the kernel, so results are kept by the cubin's
hash, and `disassemble_later` runs it in the background.
"""

from __future__ import annotations

import re
import sys
import threading
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ....errors import TargetError
from .control import decode_control
from .elf import CubinFunction, read_cubin
from .library import HINT

# Process, pool and hash modules are imported where they are used: 28 ms in a fresh process.
if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


@dataclass(frozen=True)
class Sass:
    """Disassembly. `lines[k]` are the generated CUDA lines behind line k+1 of `text`, the outermost
    caller first (the kernel's own line before a prelude helper's); empty for labels and headings.

    `controls[k]` is what the scheduler reads beside that instruction, as `control.decode_control` writes it;
    empty where there is no instruction.
    """

    text: str
    lines: tuple[tuple[int, ...], ...]
    controls: tuple[str, ...]


_FILE_LINE = re.compile(r'^\s*//## File "[^"]*", line (\d+)')
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*$")
_LABEL = re.compile(r"^(\.L[\w.$]*|[A-Za-z_$][\w$]*):\s*$")
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([\w$]+)")
_SYMBOL_LABEL = ".text."


def find_nvdisasm() -> str | None:
    """The nvdisasm of the packages on `sys.path`, else of a toolkit, else on PATH; or None."""
    for folder in dict.fromkeys(sys.path):
        if folder and (Path(folder) / "nvidia").is_dir():
            for pattern in ("nvidia/cu1[3-9]/bin/nvdisasm*", "nvidia/cuda_nvdisasm/bin/nvdisasm*"):
                found = sorted(Path(folder).glob(pattern))
                if found:
                    return str(found[-1])
    import shutil

    toolkit = Path("/usr/local/cuda/bin/nvdisasm")
    return shutil.which("nvdisasm") or (str(toolkit) if toolkit.exists() else None)


def _run(cubin: bytes) -> str:
    """nvdisasm's own text, with the inline stacks. `TargetError` when it is missing or fails."""
    import subprocess
    import tempfile

    tool = find_nvdisasm()
    if tool is None:
        raise TargetError("the CUDA disassembler nvdisasm is not installed", hint=HINT)
    with tempfile.TemporaryDirectory(prefix="tilebench-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        done = subprocess.run([tool, "-gi", "-c", str(path)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TargetError(
            "nvdisasm failed: {text}",
            text=(done.stderr or done.stdout).strip().replace(str(path), "the cubin"),
            hint="a disassembler as new as the compiler is needed; " + HINT,
        )
    return done.stdout


def parse(raw: str, cubin: bytes = b"") -> Sass:
    """nvdisasm's `-gi -c` text to clean text with maps; `cubin` gives the control words and exact lines.

    Kept: a heading a kernel, labels, instructions. Dropped: directives, line comments (they are in
    `lines`), and the NOPs that pad a kernel's end.
    """
    functions = read_cubin(cubin) if cubin else {}
    out: list[tuple[str, tuple[int, ...], str]] = []
    stack: list[int] = []
    fresh, name = True, ""
    for line in raw.splitlines():
        section = _SECTION.match(line)
        if section:
            _drop_padding(out)
            name, stack = section[1], []
            out += [("", (), "")] if out else []
            continue
        place = _FILE_LINE.match(line)
        if place:
            # A block of comments is one stack, innermost frame first; its last line names no caller.
            stack = [int(place[1])] if fresh else [*stack, int(place[1])]
            fresh = False
            continue
        instruction = _INSTRUCTION.match(line)
        if instruction:
            fresh = True
            address = int(instruction[1], 16)
            code = functions[name].code if name in functions else b""
            control = decode_control(code[address : address + 16]) if address + 16 <= len(code) else ""
            text = f"    /*{instruction[1]}*/ {instruction[2]};"
            found = _lines_at(functions.get(name), address) or tuple(reversed(stack))
            out.append((text, tuple(dict.fromkeys(found)), control))
            continue
        label = _LABEL.match(line.strip())
        if label and name and not label[1].startswith(_SYMBOL_LABEL):
            fresh = True
            out.append((f"{label[1]}:", (), ""))
    _drop_padding(out)
    return Sass("\n".join(row[0] for row in out), tuple(row[1] for row in out), tuple(row[2] for row in out))


def _lines_at(function: CubinFunction | None, address: int) -> tuple[int, ...]:
    """The lines of an instruction by the cubin's own table, outermost first; empty where that has none.

    It knows more than the disassembler's comments: see `line_table`.
    """
    if function is None:
        return ()
    at = bisect_right(function.lines, address, key=lambda row: row.address)
    return function.lines[at - 1].lines if at else ()


def _drop_padding(out: list[tuple[str, tuple[int, ...], str]]) -> None:
    """Remove the end label and NOPs after a kernel's last instruction."""
    while out and (out[-1][0].endswith((" NOP;", ":")) or not out[-1][0]):
        out.pop()


_lock = threading.Lock()
_known: dict[str, Future[Sass]] = {}
_pool: ThreadPoolExecutor | None = None
_KEEP = 256


def disassemble_later(cubin: bytes) -> Future[Sass]:
    """Start nvdisasm in the background; the same cubin gives the same future.

    The future raises `TargetError` when nvdisasm is missing or fails; a failure is not kept.
    """
    import hashlib
    from concurrent.futures import ThreadPoolExecutor

    global _pool
    key = hashlib.sha256(cubin).hexdigest()
    with _lock:
        known = _known.get(key)
        if known is not None:
            return known
        if _pool is None:
            _pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="tilebench-nvdisasm")
        future = _pool.submit(lambda: parse(_run(cubin), cubin))
        _known[key] = future
        while len(_known) > _KEEP:
            del _known[next(iter(_known))]
    future.add_done_callback(lambda done: _forget(key) if done.cancelled() or done.exception() else None)
    return future


def _forget(key: str) -> None:
    with _lock:
        _known.pop(key, None)


def disassemble(cubin: bytes) -> Sass:
    """The SASS of a cubin; waits for nvdisasm. Raises `TargetError` when that is missing or fails."""
    return disassemble_later(cubin).result()
