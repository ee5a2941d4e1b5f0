"""The quickstart without a browser: its cells run in this process, one HTML file shows everything."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, TargetError, remember_source
from ..record import CompileRecord, RunRecord
from .chart import chart_of
from .magic import cell_text, choose_kernel
from .options import TileOptions, parse_line
from .report import Part, Runs, Section, report_html
from .status import remarks
from .style import bytes_text, number

if TYPE_CHECKING:
    from .live import Workbench

NAME = "quickstart.ipynb"
STAGE_LINES = 160


def find_notebook(name: str = NAME) -> Path:
    """A notebook of the package, installed or beside it in a checkout. `OptionError` if there is none."""
    package = Path(__file__).resolve().parent.parent
    places = (package / "notebooks" / name, package.parent / "notebooks" / name)
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise OptionError(
            "the notebook {name} is not installed", name=name, hint="install tilebench from a wheel"
        )
    return found


@dataclass
class Demo:
    """A run of a notebook's cells: the namespace, the sections of the report, the lines told."""

    space: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    sections: list[Section] = field(default_factory=list[Section])
    wrong: int = 0
    measured: set[str] = field(default_factory=set[str])

    def run(self, cells: list[dict[str, Any]]) -> None:
        """Run the cells in their order. Raises what a cell raises."""
        title = ""
        parts: list[Part] = []
        count = 0
        for cell in cells:
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                head, rest = heading(text)
                if head:
                    self._end(title, parts)
                    title, parts = head, []
                parts += paragraphs(rest)
            elif cell["cell_type"] == "code" and text.strip():
                count += 1
                parts += self.cell(text, f"{NAME} cell [{count}]")
        self._end(title, parts)

    def _end(self, title: str, parts: list[Part]) -> None:
        if parts:
            self.sections.append(Section(title or "Start", tuple(parts), STAGE_LINES))

    def cell(self, text: str, name: str) -> list[Part]:
        """Run one cell; what it shows."""
        first, _, rest = text.partition("\n")
        if first.startswith("%%tile"):
            line = first.removeprefix("%%tile").strip()
            before = dict(self.space)
            shown = self._python(cell_text(line, rest), name)
            kernels = {k: v for k, v in _kernels(self.space).items() if before.get(k) is not v}
            return [*shown, *self._bench(parse_line(line), kernels)]
        plain: list[str] = []
        benches: list[Part] = []
        for line in text.splitlines():
            if line.startswith("%tile "):
                benches += self._bench(parse_line(line.removeprefix("%tile ")), _kernels(self.space))
            plain.append("" if line.startswith("%") else line)
        return [*self._python("\n".join(plain) + "\n", name), *benches]

    def _python(self, text: str, name: str) -> list[Part]:
        """Run Python; what it printed, and the value of its last line."""
        remember_source(name, text)
        tree = ast.parse(text, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        values: list[Any] = []
        with contextlib.redirect_stdout(io.StringIO()) as said, _shown(values):
            exec(compile(tree, name, "exec"), self.space)  # noqa: S102
            if last is not None:
                exec(compile(ast.Interactive([last]), name, "single"), self.space)  # noqa: S102
        parts: list[Part] = [line for line in said.getvalue().splitlines() if line.strip()]
        for value in values:
            parts += parts_of(value)
        return parts

    def _bench(self, options: TileOptions, kernels: dict[str, Any]) -> list[Part]:
        """What `%%tile` opens, measured and checked: that is what the lines told are about.

        The same once more is opened for its stages.
        """
        from .live import open_live

        kernel = choose_kernel(options.kernel, kernels, self.space)
        position = repr((kernel.name, options.target, options.values, options.schedule))
        first = position not in self.measured
        self.measured.add(position)
        bench = open_live(
            kernel, with_=options.values, sweep=options.sweep, target=options.target, stages=options.stages,
            schedule=options.schedule or None, run=first, check=first,
        )  # fmt: skip
        try:
            print(line_of(bench) if first else stages_line(bench), flush=True)
            self.wrong += bench.report is not None and not bench.report.ok
            self.wrong += any(measured.failure for measured in bench.runs)
            self.wrong += bench.error is not None and not lacks_tools(bench)
            return bench_parts(bench)
        finally:
            bench.close()


def _kernels(space: dict[str, Any]) -> dict[str, Any]:
    from ..kernel import JitFunction

    return {key: value for key, value in space.items() if isinstance(value, JitFunction)}


@contextlib.contextmanager
def _shown(values: list[Any]) -> Generator[None]:
    """Values of last lines go to `values` instead of the screen."""
    before = sys.displayhook
    sys.displayhook = lambda value: None if value is None else values.append(value)
    try:
        yield
    finally:
        sys.displayhook = before


def heading(text: str) -> tuple[str, str]:
    """The title of a Markdown cell that begins with one, and the rest."""
    first, _, rest = text.partition("\n")
    return (first.lstrip("# ").strip(), rest) if first.startswith("#") else ("", text)


def paragraphs(text: str) -> list[Part]:
    """Markdown as plain paragraphs; fences are left out, their lines stay."""
    blocks = [block.strip() for block in text.split("\n\n")]
    out: list[Part] = []
    for block in blocks:
        out += (
            block.splitlines()[1:-1] if block.startswith("```") else [block.replace("`", "")] if block else []
        )
    return out


def parts_of(value: Any) -> list[Part]:
    """What a report shows of a cell's last value."""
    from ..kernel import Kernel
    from ..reference.check import CheckReport

    if isinstance(value, Kernel):
        value = value.record()
    if isinstance(value, CompileRecord):
        return [value]
    if isinstance(value, RunRecord):
        return [Runs([value])]
    if isinstance(value, CheckReport):
        return [value]
    return [repr(value)]


def bench_parts(bench: Workbench) -> list[Part]:
    """What a report shows of a workbench."""
    picture = bench.session.picture
    out: list[Part] = [*([picture.problem] if picture.problem else []), *remarks(picture)]
    if picture.record is not None:
        return [*out, picture]
    if picture.report is not None:
        out.append(picture.report)
    return [*out, *([Runs(picture.runs, picture.ceilings)] if picture.runs else [])]


def lacks_tools(bench: Workbench) -> bool:
    """Whether all that is wrong is a compiler that is not installed here: the report says what gives it."""
    return isinstance(bench.error, TargetError) and bench.record is not None


def stages_line(bench: Workbench) -> str:
    """Kernel, target, and the stages that are shown; those that could not be had, with what gives them."""
    assert bench.record is not None or bench.error is not None
    record, error = bench.session.picture.shown_record, bench.error
    stages = record.stages if record is not None else ()
    target = record.target if record is not None else "-"
    said = f"{bench.name:<14} {target:<18} stages " + ", ".join(s.name for s in stages if not s.pending)
    lacking = ", ".join(stage.name for stage in stages if stage.pending)
    return said + (f"; no {lacking}: {error.message}; {error.hint}" if error is not None else "")


def line_of(bench: Workbench) -> str:
    """Kernel, target, error against the reference with its bound, time, rate."""
    picture = bench.session.picture
    run = picture.runs[-1] if picture.runs else None
    if run is None or run.failure:
        why = (
            run.failure if run is not None else picture.problem.message if picture.problem else "not measured"
        )
        return f"{bench.name:<14} {picture.record.target if picture.record else '-':<18} FAILED: {why}"
    chart = chart_of([run], picture.ceilings)
    (point,) = chart.points
    error = "not checked"
    if run.error is not None and run.bound is not None:
        error = f"error {number(run.error)} of {number(run.bound)} allowed"
    shown = picture.record.target if picture.record else run.target
    stages = "" if shown == run.target else f"  (stages for {shown})"
    return (
        f"{bench.name:<14} {run.target:<18} {error:<32} {point.time_text:>9}"
        f"  {point.rate_text(chart.unit):>13}{stages}"
    )


def _cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook's file. `OptionError` when there is none, or it is no notebook."""
    if not path.is_file():
        raise OptionError("there is no file {path}", path=path)
    try:
        cells: Any = json.loads(path.read_text(encoding="utf-8"))["cells"]
        if all(isinstance(cell["source"], (str, list)) and cell["cell_type"] for cell in cells):
            return cells
        why = "a cell has no source"
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        why = "there are no cells" if isinstance(error, (KeyError, TypeError)) else str(error)
    raise OptionError("{path} is no notebook: {why}", path=path, why=why)


def run_demo(out: Path, notebook: Path | None = None) -> int:
    """Run a notebook's cells (the quickstart's), write a report, print a line for each kernel opened.

    Returns 0 when every kernel ran and every element was within its bound, else 1. Raises what a
    cell raises, and `OptionError` when the notebook or the folder of `out` is missing.
    """
    path = notebook or find_notebook()
    if not out.resolve().parent.is_dir():
        raise OptionError("there is no folder {folder}", folder=out.resolve().parent)
    if out.is_dir():
        raise OptionError("{out} is a folder", out=out, hint="name the file that is to be written")
    began = time.monotonic()
    demo = Demo()
    demo.run(_cells(path))
    note = f"Made from {path.name} by tilebench without a browser."
    out.write_text(report_html("tilebench", demo.sections, note=note), encoding="utf-8")
    took = time.monotonic() - began
    print(f"{out}: {bytes_text(out.stat().st_size)}, made in {took:.0f} s")
    return 1 if demo.wrong else 0
