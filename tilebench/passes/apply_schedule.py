"""Hints overridden by the schedule: `num_stages=3` and a directive of 2 -> `num_stages=2`.

Every choice goes into the context with its origin; one that the machine has no use for says so.
"""

from __future__ import annotations

from typing import Any

from ..errors import ResourceError, ScheduleError
from ..ir import Function, Node, map_children
from ..language.copy import Copy
from ..language.gemm import Gemm
from ..language.lowered.decisions import Instr
from ..language.memory import AllocShared
from ..language.structure import Pipelined, Serial, Unroll
from ..record import Choice
from ..schedule import Directive, Schedule, candidates, resolve
from .context import Context
from .launches import launch_of

# (kind, option) to the attribute it sets. Staging directives act in `stage_operands`.
FIELDS = {
    ("kernel", "threads"): "threads", ("kernel", "order"): "order", ("loop", "num_stages"): "num_stages",
    ("buffer", "swizzle"): "swizzle", ("gemm", "policy"): "policy", ("copy", "vector"): "coalesced_width",
}  # fmt: skip
DEFAULTS: dict[str, Any] = {
    "threads": 128,
    "order": None,
    "num_stages": 0,
    "swizzle": None,
    "policy": "square",
}
WHY_DEFAULT = {
    "threads": "four warps, what holds where nothing else is said",
    "order": "blocks run in the order of their numbers",
    "num_stages": "a plain loop until stages are asked for",
    "swizzle": "the layout with the fewest bank conflicts is taken",
    "policy": "the tile is split as evenly as warps allow",
}
# What is told of each kind of node: the field, and whether it is told when nobody chose it.
NOTED: tuple[tuple[str, type[Node], str, bool], ...] = (
    ("loop", Pipelined, "num_stages", True), ("loop", Serial, "unroll", False),
    ("buffer", AllocShared, "swizzle", True), ("gemm", Gemm, "policy", True),
    ("gemm", Gemm, "by", False), ("copy", Copy, "coalesced_width", False),
)  # fmt: skip
# Fields whose option in a schedule has another name.
OPTION = {"coalesced_width": "vector", "by": "instruction"}


def apply_schedule(function: Function, context: Context) -> Function:
    """The function with the schedule's choices in place of its hints."""
    changes: dict[int, dict[str, Any]] = {}
    chosen: dict[tuple[int, str], Directive] = {}
    schedule: Schedule = context.schedule or Schedule()
    for each in schedule.directives:
        field = FIELDS.get((each.kind, each.name))
        node = _target(function, each)
        if each.kind == "loop" and each.name == "unroll":
            changes.setdefault(id(node), {})["unroll"] = each.value
            chosen[id(node), "unroll"] = each
        elif (each.kind, each.name) == ("gemm", "instruction"):
            _check_instruction(each, node, context)
            changes.setdefault(id(node), {})["by"] = Instr(each.value)
            chosen[id(node), "by"] = each
        if field is not None:
            changes.setdefault(id(node), {})[field] = each.value
            chosen[id(node), field] = each
    _note_choices(function, chosen, context)
    out = _change(function, changes)
    _check_launch(out, context)
    return out


def _target(function: Function, directive: Directive) -> Node:
    if directive.kind == "kernel":
        return launch_of(function)
    found = resolve(function, directive.kind, directive.address).node
    if (directive.kind, directive.name) == ("loop", "num_stages") and not isinstance(found, Pipelined):
        raise ScheduleError(
            "the loop {address} is not pipelined, so it has no num_stages",
            at=found.place,
            address=directive.address,
            hint="write it as T.Pipelined in the kernel",
        )
    return found


def _check_instruction(directive: Directive, node: Node, context: Context) -> None:
    known = [each.name for each in context.machine.instructions_for("gemm")]
    if known and directive.value not in known:
        raise ScheduleError(
            "{machine} has no gemm instruction {name}", at=node.place, machine=context.machine.name,
            name=directive.value, hint="its table holds: " + ", ".join(dict.fromkeys(known)),
        )  # fmt: skip


def _change(function: Function, changes: dict[int, dict[str, Any]]) -> Function:
    def step(at: Any) -> Any:
        below = map_children(at, step)
        wanted = dict(changes.get(id(at), {}))
        if not wanted:
            return below
        unroll = wanted.pop("unroll", None)
        if unroll and isinstance(below, Serial):
            below = Unroll(
                below.stop, below.vars, below.body, start=below.start, step=below.step, place=below.place
            )
        return below.but(**wanted) if wanted else below

    return step(function)


def _note_choices(function: Function, chosen: dict[tuple[int, str], Directive], context: Context) -> None:
    """Every effective choice with its origin, in the order of `NOTED`."""

    def note(kind: str, address: str, node: Node, field: str, always: bool) -> None:
        directive = chosen.get((id(node), field))
        hint = getattr(node, field, None)
        written = hint != DEFAULTS.get(field)
        if directive is None and not written and not always:
            return
        if directive is not None:
            origin, why, value = directive.origin.kind, directive.origin.why, directive.value
        elif written:
            origin, why, value = "kernel", "the kernel's hint", hint
        else:
            origin, why, value = "default", WHY_DEFAULT[field], hint
        option = OPTION.get(field, field)
        unused = context.machine.why_unused(option)
        context.choices.append(
            Choice(f"{kind} {address}".strip(), option, _text(field, value, unused), origin, unused or why)
        )

    launch = launch_of(function)
    note("kernel", "", launch, "threads", True)
    note("kernel", "", launch, "order", True)
    for kind, cls, field, always in NOTED:
        for each in candidates(function, kind):
            if isinstance(each.node, cls):
                note(kind, each.address, each.node, field, always)


# What is told where nothing was asked for.
_UNASKED = {"swizzle": "decided by bank conflicts", "order": "row by row"}


def _text(field: str, value: Any, unused: str) -> str:
    if value is None:
        return "none" if unused else _UNASKED[field]
    return str(value) if isinstance(value, (int, str)) else repr(value)


def _check_launch(function: Function, context: Context) -> None:
    launch = launch_of(function)
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
    for axis, (blocks, most) in enumerate(zip(launch.grid, context.machine.max_grid, strict=False)):
        if blocks > most:
            raise ResourceError(
                "dimension {axis} of the grid has {blocks} blocks, {machine} allows {most} there",
                at=launch.place, axis=axis, blocks=blocks, machine=context.machine.name, most=most,
                hint="put the longest dimension first, with its name: T.Kernel(long, short) as (long, short);"
                " or use larger blocks",
            )  # fmt: skip
