"""Hints overridden by the schedule: `num_stages=3` and a directive of 2 -> `num_stages=2`.

Every choice goes into the context with its origin; one that the machine has no use for says so. A hint
that is equal to what would hold anyway is the kernel's choice all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import ResourceError, ScheduleError
from ...ir import Function, Node, Stmt, map_bodies
from ...ir.stmt import statements
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...language.lowered.decisions import ROW_BY_ROW, Instr
from ...language.memory import AllocShared
from ...language.structure import KernelLaunch, Pipelined, Serial, ThreadGroup, Unroll
from ...record import Choice
from ...schedule import Directive, Schedule, candidates, resolve
from ..analysis.launches import launches_of
from ..context import Context
from ..laid_out.choose_instructions import dtypes_of
from .check_threads import check_threads


@dataclass(frozen=True)
class Hint:
    """A choice that a kernel or a schedule can make of one kind of node.

    `option` is its name in a schedule, `field` the node's field, None in it where nobody chose.
    `fallback` is written there then; `told` is how that is told, and `why` the reason. Without `why`
    the choice is told only where somebody made it.
    """

    kind: str
    option: str
    of: type[Node] | tuple[type[Node], ...]
    field: str
    fallback: Any = None
    told: str = ""
    why: str = ""


HINTS = (
    Hint(
        "kernel", "threads", KernelLaunch, "threads", 128, "128",
        "four warps, what holds where nothing else is said",
    ),
    Hint(
        "kernel", "order", KernelLaunch, "order", None, "row by row",
        "blocks run in the order of their numbers",
    ),
    Hint("kernel", "min_blocks", KernelLaunch, "min_blocks"),
    Hint("kernel", "persistent", KernelLaunch, "persistent"),
    Hint("kernel", "warp_specialize", KernelLaunch, "warp_specialize"),
    Hint("kernel", "cluster", KernelLaunch, "cluster"),
    Hint("kernel", "dependent_launch", KernelLaunch, "dependent_launch"),
    Hint("loop", "num_stages", Pipelined, "num_stages", 0, "0", "a plain loop until stages are asked for"),
    Hint("loop", "unroll", Serial, "unroll"),
    Hint("loop", "split", (Pipelined, Serial), "split"),
    Hint("loop", "overlap", Pipelined, "overlap"),
    Hint(
        "buffer", "swizzle", AllocShared, "swizzle", None, "decided by bank conflicts",
        "the layout with the fewest bank conflicts is taken",
    ),
    Hint("gemm", "policy", Gemm, "policy", None, "square", "the tile is split as evenly as warps allow"),
    Hint("gemm", "instruction", Gemm, "by"),
    Hint("copy", "vector", Copy, "coalesced_width"),
    Hint("copy", "instruction", Copy, "by"),
    Hint("copy", "eviction", Copy, "eviction"),
)  # fmt: skip

# What a schedule chose, by the identity of the node and the option. Staging directives act in
# `stage_operands` and are not among them.
Chosen = dict[tuple[int, str], Directive]


def apply_schedule(function: Function, context: Context) -> Function:
    """The function with the schedule's choices in place of its hints, and every hint with a value."""
    schedule: Schedule = context.schedule or Schedule()
    chosen: Chosen = {}
    for directive in schedule.directives:
        if any((hint.kind, hint.option) == (directive.kind, directive.name) for hint in HINTS):
            for node in _targets(function, directive):
                if directive.name == "instruction" and not context.machine.why_unused("instruction"):
                    _check_instruction(directive, node, context)
                chosen[id(node), directive.name] = directive
                context.asked.add((directive.name, node.place))
    _note_choices(function, chosen, context)
    # Told with the others, and written nowhere: a target that knows no instructions has none of that name.
    idle = {"instruction"} if context.machine.why_unused("instruction") else set[str]()
    acting = {key: directive for key, directive in chosen.items() if directive.name not in idle}
    scheduled = _in_whole_warps(_written(function, acting), context)
    for launch in launches_of(scheduled):
        _check_launch(launch, context)
    return scheduled


def _targets(function: Function, directive: Directive) -> tuple[Node, ...]:
    """What a directive is about: one node, or every launch of the kernel."""
    if directive.kind == "kernel":
        return launches_of(function)
    node = resolve(function, directive.kind, directive.address).node
    hints = [hint for hint in HINTS if (hint.kind, hint.option) == (directive.kind, directive.name)]
    if directive.name != "num_stages" and not any(isinstance(node, hint.of) for hint in hints):
        raise ScheduleError(
            "{address} has no {option}", at=node.place, address=directive.address, option=directive.name,
            found="T.{word}", word=getattr(node, "word", ""), expected="{option} of T.{words}",
            words=" or T.".join(word for hint in hints for word in _words(hint)),
        )  # fmt: skip
    if (directive.kind, directive.name) == ("loop", "num_stages") and not isinstance(node, Pipelined):
        raise ScheduleError(
            "the loop {address} is not pipelined, so it has no num_stages",
            at=node.place,
            address=directive.address,
            hint="write it as T.Pipelined in the kernel",
        )
    return (node,)


def _words(hint: Hint) -> list[str]:
    """The words of the statements that a hint is of."""
    classes: Any = hint.of if isinstance(hint.of, tuple) else (hint.of,)
    return [str(cls.word) for cls in classes]


def _check_instruction(directive: Directive, node: Node, context: Context) -> None:
    known = [row.name for row in context.machine.instructions_for(directive.kind)]
    if known and directive.value not in known:
        raise ScheduleError(
            "{machine} has no {kind} instruction {name}", at=node.place, machine=context.machine.name,
            kind=directive.kind, name=directive.value,
            hint="its table holds: " + ", ".join(dict.fromkeys(known)),
        )  # fmt: skip
    if isinstance(node, Gemm):
        _check_dtypes(directive.value, node, context)


def _check_dtypes(name: str, gemm: Gemm, context: Context) -> None:
    """Refuse an instruction that a schedule names for operands that it has no row for."""
    rows = [row for row in context.machine.instructions_for("gemm") if row.name == name and row.dtypes]
    dtypes = dtypes_of(gemm)
    fitting = [row for row in rows if row.dtypes == dtypes]
    lacking = next((row.asked for row in fitting if row.asked and not getattr(gemm, row.asked)), "")
    if rows and (not fitting or lacking):
        a, b, c = dtypes
        what = "{name} multiplies {a} and {b} into {c} where T.gemm says {asked}=True"
        raise ScheduleError(
            what if fitting else "{name} does not multiply {a} and {b} into {c}", at=gemm.place, name=name,
            a=a, b=b, c=c, asked=lacking,
            hint="" if fitting else "its table holds: " + "; ".join(" ".join(row.dtypes) for row in rows),
        )  # fmt: skip


def _written(function: Function, chosen: Chosen) -> Function:
    """The function in which every hint has its value: the schedule's, the kernel's, or the fallback."""

    def step(node: Any) -> Any:
        below = map_bodies(node, step)
        if not isinstance(node, (KernelLaunch, Pipelined, Serial, AllocShared, Gemm, Copy)):
            return below
        changes = {
            hint.field: value
            for hint in HINTS
            if isinstance(node, hint.of)
            and (value := _effective(hint, node, chosen)) is not getattr(node, hint.field, None)
        }
        if changes.pop("unroll", False):
            below = Unroll(
                below.stop, below.vars, below.body, start=below.start, step=below.step,
                condition=below.condition, place=below.place,
            )  # fmt: skip
        return below.but(**changes) if changes else below

    return step(function)


def _effective(hint: Hint, node: Node, chosen: Chosen) -> Any:
    directive = chosen.get((id(node), hint.option))
    if directive is not None:
        return Instr(directive.value) if hint.option == "instruction" else directive.value
    written = getattr(node, hint.field, None)
    return hint.fallback if written is None or written == ROW_BY_ROW else written


def _note_choices(function: Function, chosen: Chosen, context: Context) -> None:
    """Every effective choice with its origin: those of the launch, then those of each hint's nodes."""
    for hint in HINTS:
        if hint.kind == "kernel":
            launches = launches_of(function)
            for number, launch in enumerate(launches, 1):
                _note(hint, "" if len(launches) == 1 else f"{number}", launch, chosen, context)
        for candidate in candidates(function, hint.kind):
            if isinstance(candidate.node, hint.of):
                _note(hint, candidate.address, candidate.node, chosen, context)


def _note(hint: Hint, address: str, node: Node, chosen: Chosen, context: Context) -> None:
    directive = chosen.get((id(node), hint.option))
    written = getattr(node, hint.field, None)
    if directive is not None:
        origin, why = directive.origin.kind, directive.origin.why
    elif written is not None:
        origin, why = "kernel", "the kernel's hint"
    elif hint.why:
        origin, why = "default", hint.why
    else:
        return
    unused = context.machine.why_unused(hint.option)
    value = directive.value if directive is not None else _effective(hint, node, chosen)
    told = _text(value) if value is not None else "none" if unused else hint.told
    context.choices.append(Choice(f"{hint.kind} {address}".strip(), hint.option, told, origin, unused or why))


def _text(value: Any) -> str:
    return str(value) if isinstance(value, (int, str)) else repr(value)


def _in_whole_warps(function: Function, context: Context) -> Function:
    """The function whose blocks have a warp at least, where a kernel says fewer and counts none of them."""
    warp = context.machine.warp

    def widened(node: Stmt) -> Stmt:
        if not isinstance(node, KernelLaunch) or node.threads % warp == 0 or node.threads > warp:
            return node
        if any(isinstance(s, ThreadGroup) or getattr(s, "of_threads", False) for s in statements(node.body)):
            return node
        said = f"the block has {warp} threads in place of {node.threads}: a warp is the least that runs"
        context.remark("apply_schedule", "note", said, node)
        return node.but(threads=warp)

    return function.but(body=tuple(widened(node) for node in function.body))


def _check_launch(launch: KernelLaunch, context: Context) -> None:
    limit = context.machine.max_threads
    if launch.threads > limit:
        raise ResourceError(
            "the block has {threads} threads, {machine} allows {limit}",
            at=launch.place,
            threads=launch.threads,
            machine=context.machine.name,
            limit=limit,
            hint="lower threads= of T.Kernel, or the schedule's threads",
        )
    if launch.threads % context.machine.warp:
        raise ResourceError(
            "{threads} threads are no whole number of warps of {warp}",
            at=launch.place,
            threads=launch.threads,
            warp=context.machine.warp,
            hint="use a multiple of the warp width",
        )
    check_threads(launch)
    for axis, (blocks, most) in enumerate(zip(launch.grid, context.machine.max_grid, strict=False)):
        if isinstance(blocks, int) and blocks > most:
            raise ResourceError(
                "dimension {axis} of the grid has {blocks} blocks, {machine} allows {most} there",
                at=launch.place, axis=axis, blocks=blocks, machine=context.machine.name, most=most,
                hint="put the longest dimension first, with its name: T.Kernel(long, short) as (long, short);"
                " or use larger blocks",
            )  # fmt: skip
