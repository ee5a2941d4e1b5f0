"""`tilebench show`, `run` and `bench`: kernels of files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import Parser, whole
from .files import load_kernel
from .proving import diagnosis_text, everywhere, lines_text, swizzle_sweep, swizzle_text

if TYPE_CHECKING:
    import argparse

    from ..errors import TileError
    from ..kernel import Kernel
    from ..record import CompileRecord, SweepRow
    from ..workbench.subject import Subject


def _common(parser: Parser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE[:KERNEL]", help="a Python file; without a name its last kernel")
    add("-D", dest="values", action="extend", nargs="+", default=[], metavar="NAME=VALUE",
        help="values of the kernel function's parameters, and sizes and scalars of its calls")  # fmt: skip
    add("--target", help="cpu, cuda, cuda:sm_90a, ...; auto by default")
    add("--schedule", metavar="FILE", help="a schedule file (TOML)")


def _subject(options: argparse.Namespace, sweep: dict[str, tuple[Any, ...]] | None = None) -> Any:
    from ..errors import ArgumentError
    from ..schedule import load_schedule
    from ..workbench.options import parse_values
    from ..workbench.subject import Subject

    schedule = load_schedule(options.schedule) if options.schedule else None
    try:
        return Subject(
            load_kernel(options.file), parse_values(options.values), sweep, schedule, options.target
        )
    except ArgumentError as error:
        raise _respelt(error) from None


def _respelt(error: TileError) -> TileError:
    """An error that shows by an example how values are given, in this door's own spelling."""
    if "example" in error.values:
        error.hint = "for example -D {example}"
    return error


def _kernel(options: argparse.Namespace) -> Kernel:
    subject = _subject(options)
    return subject.make(subject.first_wish((), False, False))


def show(parser: Parser, words: list[str]) -> int:
    """Print one stage (the last by default), or the remarks, choices, resources of a compilation."""
    _common(parser)
    add = parser.add_argument
    add("--stage", help="the stage to print; by default the target's own text (cuda, llvm)")
    add("--remarks", action="store_true", help="what the passes did, and what they could not do")
    add("--choices", action="store_true", help="each scheduling choice with its origin")
    add("--resources", action="store_true", help="registers, shared memory, occupancy")
    add("--stages", action="store_true", help="the names of the stages")
    add(
        "--timeline",
        action="store_true",
        help="what the first block does when: clocks, or the simulator's steps",
    )
    add(
        "--lines", action="store_true", help="with --stage: each line with the lines of the file it came from"
    )
    add("--diagnosis", action="store_true", help="what should bound it, and what keeps it from being faster")
    options = parser.parse_all(words)
    asked = options.remarks or options.choices or options.resources or options.diagnosis
    if options.stages and (asked or options.stage is not None):
        parser.error("--stages prints their names alone: leave out --stage and the tables")
    kernel = _kernel(options)
    if options.stages:
        print("\n".join(kernel.stages))
        return 0
    if options.timeline:
        from ..profile.timeline import timeline_text

        here = kernel.compilation.manifest.available()[0]
        print(timeline_text(kernel.timeline() if here else kernel.steps()))
    elif options.stage is not None and options.lines:
        print(lines_text(kernel, options.stage))
    elif options.stage is not None:
        text = kernel.stage(options.stage)
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    elif not asked:
        sys.stdout.write(kernel.get_kernel_source().rstrip("\n") + "\n")
    if asked:
        print("\n\n".join(_tables(kernel, options)))
    return 0


def _tables(kernel: Kernel, options: argparse.Namespace) -> list[str]:
    from ..workbench.tiers import shared_limit
    from ..workbench.views import resources

    if options.resources or options.diagnosis:
        kernel.reach_code()
    else:
        kernel.compilation.reach(kernel.compilation.rows[-1].name)
    from ..recorder import make_record

    record: CompileRecord = make_record(kernel.compilation, ())
    out: list[str] = []
    if options.choices:
        out.append(resources.choices_text(record.choices))
    if options.remarks:
        out.append(resources.remarks_text(record.remarks, resources.source_word(record)))
    if options.diagnosis:
        out.append(diagnosis_text(kernel))
    if options.resources:
        out.append(resources.resources_text(record.resources, shared_limit(kernel)))
    return out


def run(parser: Parser, words: list[str]) -> int:
    """Run once on random arrays. 1 when a check finds a wrong element."""
    _common(parser)
    parser.add_argument("--check", action="store_true", help="compare every element with the reference")
    parser.add_argument("--bench", action="store_true", help="time it in a child process")
    parser.add_argument(
        "--work",
        action="store_true",
        help="count operations and bytes while the reference runs it (small sizes)",
    )
    parser.add_argument(
        "--everywhere",
        action="store_true",
        help="check it on every target; cards that are not here are simulated",
    )
    parser.add_argument("--seed", type=whole(0, 2**63 - 1), default=0, help="seed of the random arrays")
    options = parser.parse_all(words)
    if options.everywhere:
        subject = _subject(options)
        return everywhere(subject, subject.first_wish((), False, True))
    kernel = _kernel(options)
    arguments: list[Any] = kernel.random_arguments(options.seed)
    worked = ""
    if options.work:
        from ..kernel.measuring.worked import work_text

        worked = work_text(kernel, *arguments)
    _launch(kernel, arguments)
    print(f"{kernel.name} ran on {kernel.target}")
    for argument, array in zip(kernel.arguments, arguments, strict=True):
        if argument.is_scalar:
            print(f"  {argument.name}: {argument.dtype} {array}")
            continue
        shape = " x ".join(map(str, array.shape))
        print(
            f"  {argument.name}: {shape} {argument.dtype}, {'written' if argument.written else 'read'}"
            + _span(argument, array)
        )
    if worked:
        print(worked)
    wrong = False
    if options.check:
        report = kernel.check(seed=options.seed)
        print(report)
        wrong = not report.ok
    if options.bench:
        from ..workbench.views.runs import chart_text

        print(chart_text([kernel.bench(seed=options.seed)], _ceilings(kernel)))
    return 1 if wrong else 0


def _launch(kernel: Kernel, arrays: list[Any]) -> None:
    """Run on `arrays`, one for each parameter; those that `out_idx` names are replaced by what came back."""
    given = [array for number, array in enumerate(arrays) if number not in kernel.outputs]
    result = kernel(*given)
    if kernel.outputs:
        returned = result if len(kernel.outputs) > 1 else (result,)
        for number, array in zip(kernel.outputs, returned, strict=True):
            arrays[number] = array


def _span(argument: Any, array: Any) -> str:
    """Smallest and greatest element of an output, enough to see that something was written."""
    import numpy as np

    if not argument.written or array.size == 0:
        return ""
    wide: Any = array.astype(np.float64)
    return f", from {float(np.nanmin(wide)):.4g} to {float(np.nanmax(wide)):.4g}"


def _ceilings(kernel: Kernel) -> Any:
    from ..workbench.tiers import ceilings_of

    return ceilings_of(kernel)


def _checked(rows: Sequence[SweepRow]) -> str:
    """What the checks of a sweep found; those that failed say why in their rows."""
    good = [row.runs[0] for row in rows if row.state == "timed"]
    unwritten = max((run.unwritten for run in good), default=0)
    rest = f"; up to {unwritten} elements of outputs were never written" if unwritten else ""
    return f"Checked: {len(good)} of {len(rows)} with all elements within bounds{rest}."


def bench(parser: Parser, words: list[str]) -> int:
    """Time one position, or every combination of a sweep. 1 when one of them failed."""
    _common(parser)
    add = parser.add_argument
    add("--sweep", action="extend", nargs="+", default=[], metavar="NAME=VALUES",
        help="values to try, as block_M=64,128 num_stages=1..4")  # fmt: skip
    add("--check", action="store_true", help="compare every element with the reference")
    add(
        "--against",
        metavar="NAMES",
        default="",
        help="other implementations: numpy, torch, torch.compile, cublas, triton",
    )
    add("--save", metavar="FILE", help="keep the sweep in a file (.tbz), and go on from what it has")
    add("--diagnosis", action="store_true", help="what bounds the best, and what keeps it from being faster")
    add(
        "--swizzle",
        action="store_true",
        help="with each tile's swizzle and without: counted, and timed on a card",
    )
    options = parser.parse_all(words)
    if options.swizzle and not _swizzles(options):
        return 0
    from ..kernel.available import require_available
    from ..targets import resolve
    from ..workbench.options import parse_sweep

    subject = _subject(options, parse_sweep(options.sweep))
    manifest, machine = resolve(subject.target)
    require_available(manifest, subject.name, machine.name)
    return _bench_sweep(subject, options)


def _swizzles(options: argparse.Namespace) -> bool:
    """Print what swizzles cost and save; whether both ways can be timed here, which the sweep then does."""
    kernel = _kernel(options)
    print(swizzle_text(kernel))
    can, why = kernel.compilation.manifest.available()
    names = swizzle_sweep(kernel)
    if not can:
        print(f"Not timed: {why}.")
    options.sweep += [f"{name}=true,false" for name in names] if can else []
    return can and bool(names)


def _bench_sweep(subject: Subject, options: argparse.Namespace) -> int:
    """All rows of a sweep, or the one row there is, as a table with the method."""
    from ..errors import TileError
    from ..sweeps import SweepMethod, sweep_of
    from ..sweeps.others import others_of_words
    from ..workbench.sweeping import candidates

    found = [one for one, _ in candidates(subject, subject.first_wish((), True, options.check))]
    made = sweep_of(
        found, kernel=subject.name, target=subject.target, domains=subject.sweep, path=options.save,
        method=SweepMethod(check=options.check),
        others=others_of_words(tuple(name for name in options.against.split(",") if name), {}),
    )  # fmt: skip
    timed = made.record.of("timed")
    # One fault of all positions is told once, at its line, and not in as many rows.
    if not timed and len({row.why for row in made.rows}) == 1:
        try:
            found[0].make().reach_code()
        except TileError as error:
            raise _respelt(error) from None
    print(made.table())
    if options.check:
        print(_checked(made.rows))
    if options.diagnosis and timed:
        best = made.best or timed[0]
        others = [run for row in timed for run in row.runs if row is not best]
        one = next(each for each in found if dict(each.config) == dict(best.config))
        print(f"\n{diagnosis_text(one.make(), best.runs[-1], others)}")
    return 1 if len(timed) < len(made.rows) else 0
