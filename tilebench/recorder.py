"""The record of a compilation: stages with their texts, and lines that lead back to the user's.

Each IR stage knows its places; each emitted text knows the lines of the stage before it. Composing
the two gives, for any line of PTX or SASS, the lines of the kernel it came from.
"""

from __future__ import annotations

from collections.abc import Sequence

from .compiler import VERSION, Compilation
from .ir import Buffer, Expr, Function, Node, show
from .language.tracing.values import Value
from .passes.analysis.count_work import Work
from .passes.analysis.launches import launches_of
from .passes.analysis.reads_writes import reads_and_writes
from .passes.analysis.told_names import told_names
from .passes.context import place_record
from .record import UNCOUNTED, CompileRecord, ParamRecord, Remark, Resources, StageRecord
from .targets.build import EmitStep, of_launches

Lines = tuple[tuple[int, ...], ...]


def arguments_of(compilation: Compilation) -> tuple[ParamRecord, ...]:
    """What a call passes, in order, and which of the arrays the function reads and writes."""
    return params_of(compilation.traced.function)


def params_of(function: Function) -> tuple[ParamRecord, ...]:
    """The parameters that a caller passes: arrays and scalars, without the sizes read from arrays."""
    reads, writes = reads_and_writes(function)
    sizes = {var.name for var in function.dimensions}
    out: list[ParamRecord] = []
    for param in function.params:
        if isinstance(param, Buffer):
            written, read = param.name in writes, param.name in reads
            strides = shown_sizes(param.strides or ())
            out.append(
                ParamRecord(param.name, shown_sizes(param.shape), param.dtype.name, written, read, strides)
            )
        elif param.name not in sizes:
            out.append(ParamRecord(param.name, (), param.type.name))
    return tuple(out)


def shown_sizes(sizes: Sequence[int | Expr]) -> tuple[int | str, ...]:
    """Sizes as plain data: numbers, and the text of what is known only at a launch."""
    return tuple(size if isinstance(size, int) else show(size) for size in sizes)


def make_record(compilation: Compilation, stages: Sequence[str] | None = None) -> CompileRecord:
    """The record of all stages made so far, or of those named (made now where they are missing).

    Stages of tier `later` that are not made stand in it as pending.
    """
    if stages is not None:
        for name in stages:
            compilation.reach(name)
    wanted = [n for n in compilation.stage_names if stages is None or n in stages]
    stage_records = tuple(each for name in wanted if (each := _stage(compilation, name)) is not None)
    traced = compilation.traced
    meaning = compilation.reference or traced.function
    # Without sizes there is no number: a measurement has them.
    counts = [count for launch in launches_of(meaning) for count in launch.grid]
    sized = not meaning.dimensions and all(isinstance(count, int) for count in counts)
    work = compilation.work({}) if sized else Work(0.0, 0.0)
    unknown = [work_remark(work.doubt)] if work.doubt is not None else []
    grids = tuple(shown_sizes(launch.grid) for launch in launches_of(compilation.last))
    return CompileRecord(
        kernel=traced.name or traced.function.name,
        target=compilation.machine.name,
        # A size of T.dynamic that was passed as a parameter stands by its name.
        parameters={k: repr(v) if isinstance(v, Value) else v for k, v in traced.parameters.items()},
        arguments=arguments_of(compilation),
        stages=stage_records,
        grid=grids[0],
        grids=grids if len(grids) > 1 else (),
        resources=resources_of(compilation),
        choices=tuple(compilation.context.choices),
        remarks=(*compilation.context.remarks, *unknown),
        diagnostics=tuple(compilation.context.diagnostics),
        source_file=traced.file,
        source_first_line=traced.first_line,
        seconds=sum(compilation.seconds.values()),
        flops=work.flops if work.known else 0.0,
        bytes=work.bytes,
        versions={"tilebench": VERSION, **_versions(compilation)},
        edits=compilation.edits,
    )


def resources_of(compilation: Compilation) -> Resources | None:
    """What a block takes, as far as is known of what has been made."""
    build = compilation.build
    if build is not None and build.resources is not None:
        return build.resources
    # Before shared memory has a map nobody knows how much of it a block takes: no figure, and not 0.
    if "threaded" not in compilation.functions:
        return None
    launches = launches_of(compilation.last)
    return of_launches([Resources(launch.threads, shared_bytes=launch.shared_bytes) for launch in launches])


def text_of(compilation: Compilation, name: str) -> str:
    """The text of a stage, made now where it is missing."""
    compilation.reach(name)
    if name == "source":
        return compilation.traced.text
    if name in compilation.functions:
        return compilation.print(name).text
    assert compilation.build is not None  # the stage has been reached
    return compilation.build.texts[name]


def work_remark(doubt: Node) -> Remark:
    """That only a run knows how much a kernel computes: a wrong rate would be worse than none."""
    what = "data decides how much of this is done, so no operations are counted and no FLOP/s is shown"
    return Remark(UNCOUNTED, "note", what, place_record(doubt.place))


def _versions(compilation: Compilation) -> dict[str, str]:
    """Versions of what code was made with; nothing before there is code."""
    if compilation.build is None or not compilation.build.code:
        return {}
    return compilation.manifest.versions()


def _stage(compilation: Compilation, name: str) -> StageRecord | None:
    seconds = compilation.seconds.get(name, 0.0)
    traced = compilation.traced
    if name == "source":
        count = len(traced.text.splitlines())
        lines = tuple((traced.first_line + k,) for k in range(count))
        return StageRecord(name, "python", traced.text, lines, (), seconds)
    if name in compilation.functions:
        printed = compilation.print(name)
        lines = user_lines(compilation, name)
        above, names = _above(compilation, name, lines), _names(compilation, name)
        return StageRecord(name, "tile-ir", printed.text, lines, above, seconds, names=names)
    step = next(each for each in compilation.manifest.steps if each.name == name)
    build = compilation.build
    if build is None or name not in build.texts:
        return StageRecord(name, step.language, "", pending=True) if step.tier == "later" else None
    made_of, made_lines = _made_of(compilation, step)
    return StageRecord(
        name,
        step.language,
        build.texts[name],
        emitted_lines(compilation, name),
        _before(compilation, step),
        seconds,
        made_of=made_of,
        made_lines=made_lines,
        beside=build.beside.get(name, ()),
    )


def _made_of(compilation: Compilation, step: EmitStep) -> tuple[str, Lines]:
    """The text that a step's compiler got, and lines of it where they are not those of the stage before."""
    steps = compilation.manifest.steps
    index = steps.index(step)
    before = steps[index - 1].name if index else next(reversed(compilation.functions))
    if not step.lines_of or step.lines_of == before:
        return before, ()
    build = compilation.build
    return step.lines_of, _clean(build.lines.get(step.name, ())) if build is not None else ()


def _names(compilation: Compilation, name: str) -> dict[str, str]:
    """What the names of a stage's text stand for; of a value the first stage that has it says it for all."""
    for stage in (each for each in compilation.stage_names if each in compilation.functions):
        names = compilation.print(stage).names
        if not names.names.keys() <= compilation.told.keys():
            found = told_names(compilation.functions[stage], names, compilation.machine)
            for value, word in names.names.items():
                compilation.told.setdefault(value, found[word])
        if stage == name:
            return {word: compilation.told[value] for value, word in names.names.items()}
    return {}


def _before(compilation: Compilation, step: EmitStep) -> Lines:
    """For each line of an emitted text the lines of the stage just before it."""
    build = compilation.build
    assert build is not None  # the step has been made
    own = _clean(build.lines.get(step.name, ()))
    steps = compilation.manifest.steps
    index = steps.index(step)
    if not step.lines_of or step.lines_of == steps[index - 1].name:
        return own
    # Both refer to one text above: lines of the stage before that share a line of it.
    where: dict[int, list[int]] = {}
    for number, found in enumerate(_clean(build.lines.get(steps[index - 1].name, ())), 1):
        for line in found:
            where.setdefault(line, []).append(number)
    return tuple(tuple(n for line in found for n in where.get(line, ())) for found in own)


def _clean(lines: Lines) -> Lines:
    """Line 0 is what a compiler gives for code that has no line."""
    return tuple(tuple(each for each in found if each > 0) for found in lines)


def user_lines(compilation: Compilation, name: str) -> Lines:
    """For each line of an IR stage the lines of the user's file that it came from.

    The kernel's own line is the first; behind it the lines of macros that it inlined, from the outside in.
    """
    file = compilation.traced.file
    out: list[tuple[int, ...]] = []
    for place in compilation.print(name).places:
        chain = place.chain if place is not None else ()
        ours = [each.line for each in reversed(chain) if each.file == file]
        out.append(tuple(dict.fromkeys(ours)) if chain and chain[-1].file == file else ())
    return tuple(out)


def emitted_lines(compilation: Compilation, name: str) -> Lines:
    """For each line of an emitted text the lines of the user's file, composed through the texts between."""
    build = compilation.build
    if build is None:
        return ()
    steps = {each.name: each for each in compilation.manifest.steps}
    names = list(steps)
    index = names.index(name)
    if index:
        below = emitted_lines(compilation, steps[name].lines_of or names[index - 1])
    else:
        below = user_lines(compilation, next(reversed(compilation.functions)))
    out: list[tuple[int, ...]] = []
    for lines in build.lines.get(name, ()):
        found = [each for line in lines if 0 < line <= len(below) for each in below[line - 1]]
        out.append(tuple(dict.fromkeys(found)))
    return tuple(out)


def _above(compilation: Compilation, name: str, lines: Lines) -> Lines:
    """For each line the lines of the stage above that share its source line."""
    order = [stage for stage in compilation.stage_names if stage in compilation.functions]
    index = order.index(name)
    if index == 0:
        first = compilation.traced.first_line
        return tuple(tuple(line - first + 1 for line in found[:1]) for found in lines)
    where: dict[int, list[int]] = {}
    for number, found in enumerate(user_lines(compilation, order[index - 1]), 1):
        for line in found[:1]:
            where.setdefault(line, []).append(number)
    return tuple(tuple(n for line in found[:1] for n in where.get(line, ())) for found in lines)
