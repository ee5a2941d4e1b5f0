"""The size budgets: a file 400 lines, a function 50, over `tilebench/` and `extension/src/`.

Over `tilebench/` also what is typical: the median file stays under 160 lines, nine of ten functions under 25.

Run as a script it prints one line a folder and fails when something is over its budget without a
row in `EXCEPTIONS`, or when a row there is no longer needed. Why budgets: in the compilers of this
field that read best, files have a median of 110 to 160 lines and functions a 90th percentile of 21
to 29; annotations and docstrings do not tell them apart from the others, size does.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FILE_LINES = 400
FUNCTION_LINES = 50
MEDIAN_FILE = 160
NINE_OF_TEN_FUNCTIONS = 25
FOLDERS = ("tilebench", "extension/src")
SUFFIXES = (".py", ".ts", ".tsx", ".js", ".css")

# "path" or "path:function" -> (lines allowed, reason)
EXCEPTIONS: Mapping[str, tuple[int, str]] = {
    "tilebench/library/bench/tilelang_kernels.py:_attention": (
        60,
        "one kernel, as TileLang's users write it",
    ),
    "tilebench/library/kernels/attention_training.py:attention_backward_kernel": (
        54,
        "one kernel with nine arrays and ten tiles, a line each",
    ),
    "tilebench/library/kernels/decode.py:decode_kernel": (64, "one kernel, for plain memory and pages"),
    "extension/src/record.ts": (460, "written from tilebench/record.py, in whose size it is counted"),
    "extension/src/bench/state.ts": (440, "written from front/state.py, in whose size it is counted"),
}


@dataclass(frozen=True)
class Size:
    """One measured thing: `path` for a file, `path:name` for a function."""

    what: str
    lines: int
    budget: int


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and lines of every function, decorators not counted, inner ones counted in the outer too."""
    stack: list[tuple[ast.AST, str]] = [(ast.parse(text), "")]
    while stack:
        node, prefix = stack.pop()
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{prefix}.{child.name}" if prefix else child.name
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield name, (child.end_lineno or child.lineno) - child.lineno + 1
            stack.append((child, name))


_SKIPPED = re.compile(
    r"//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`", re.DOTALL
)
_OPENS_BODY = re.compile(r"(?:\)|=>)\s*(?::\s*[\w\[\]<>|., ]+)?\s*$")


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def script_functions(text: str) -> Iterator[tuple[str, int]]:
    """Lines of every brace block that follows `)` or `=>`, named by its first line.

    No parser of TypeScript is at hand in Python. Function bodies are such blocks; so are the
    blocks of `if` and `for`, which are never longer than the function around them.
    """
    text = _SKIPPED.sub(_blank, text)
    opened: list[tuple[int, bool]] = []
    for match in re.finditer(r"[{}]", text):
        if match.group() == "{":
            before = text[max(0, match.start() - 200) : match.start()]
            opened.append((match.start(), bool(_OPENS_BODY.search(before))))
        elif opened:
            start, body = opened.pop()
            if body:
                first = text.count("\n", 0, start) + 1
                yield f"block at line {first}", text.count("\n", start, match.end()) + 1


def measure(root: Path, folders: tuple[str, ...] = FOLDERS) -> list[Size]:
    """Sizes of all files and functions under `root`'s folders, in order of their paths."""
    sizes: list[Size] = []
    for path in sorted(each for folder in folders for each in (root / folder).rglob("*")):
        relative = path.relative_to(root)
        if path.suffix not in SUFFIXES or {"__pycache__", "labextension"} & set(relative.parts):
            continue
        text = path.read_text(encoding="utf-8")
        sizes.append(Size(relative.as_posix(), len(text.splitlines()), FILE_LINES))
        found = python_functions(text) if path.suffix == ".py" else script_functions(text)
        if path.suffix != ".css":
            sizes += [Size(f"{relative.as_posix()}:{name}", lines, FUNCTION_LINES) for name, lines in found]
    return sizes


def complaints(sizes: list[Size], exceptions: Mapping[str, tuple[int, str]] = EXCEPTIONS) -> list[str]:
    """What is over its budget, and which exceptions are not needed or have no reason."""
    out: list[str] = []
    needed: set[str] = set()
    for size in sizes:
        allowed, reason = exceptions.get(size.what, (size.budget, ""))
        if size.lines > size.budget and reason.strip():
            needed.add(size.what)
        if size.lines > (allowed if reason.strip() else size.budget):
            out.append(f"{size.what}: {size.lines} lines, allowed are {max(allowed, size.budget)}")
    out += [f"{what}: has an exception that it does not need" for what in exceptions if what not in needed]
    return out


def typical(sizes: list[Size], under: str = "tilebench/") -> tuple[float, float]:
    """The median of the files' lines, and the 90th percentile of the functions', of what `under` names."""
    inside = [size for size in sizes if size.what.startswith(under)]
    files = [size.lines for size in inside if ":" not in size.what]
    functions = [size.lines for size in inside if ":" in size.what]
    return statistics.median(files), statistics.quantiles(functions, n=10, method="inclusive")[-1]


def typical_complaints(sizes: list[Size]) -> list[str]:
    """What is typical and has grown too large."""
    median, ninetieth = typical(sizes)
    return [
        f"{what} is {lines:g} lines, it stays under {budget}"
        for what, lines, budget in (
            ("the median file", median, MEDIAN_FILE),
            ("the 90th percentile of functions", ninetieth, NINE_OF_TEN_FUNCTIONS),
        )
        if lines >= budget
    ]


def table(sizes: list[Size]) -> str:
    """One line a folder: files, lines, the largest file and the largest function."""
    rows = [f"{'folder':<34}{'files':>6}{'lines':>7}{'largest file':>14}{'largest function':>18}"]
    folders = {size.what.rpartition("/")[0] for size in sizes if ":" not in size.what}
    for folder in sorted(folders):
        inside = [s for s in sizes if s.what.partition(":")[0].rpartition("/")[0] == folder]
        files = [s.lines for s in inside if ":" not in s.what]
        functions = [s.lines for s in inside if ":" in s.what]
        rows.append(
            f"{folder:<34}{len(files):>6}{sum(files):>7}{max(files):>14}{max(functions, default=0):>18}"
        )
    return "\n".join(rows)


def main() -> int:
    """Print the table, what is typical and the complaints; 1 when there are any."""
    sizes = measure(ROOT)
    print(table(sizes))
    print("tilebench: median file {:g} lines, 90th percentile of functions {:g}".format(*typical(sizes)))
    told = complaints(sizes) + typical_complaints(sizes)
    for complaint in told:
        print(complaint)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
