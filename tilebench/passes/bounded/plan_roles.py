"""Warps with roles: one group of threads brings tiles, the others compute on them.

`T.Kernel(9, 8, threads=256, warp_specialize=True)` -> 384 threads. The kernel's own 256 do everything that it
says but for the copies of its pipelined loops that complete on barriers; one more warp group, in a
`with T.threads(256, 128):` of its own at the end of the launch, issues those, as far ahead as the loop has
stages (`passes/pipelined/split_roles.py` puts them there). It gives back registers that the others take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from ...errors import ScheduleError
from ...ir import AllocStmt, Function, Stmt, map_bodies
from ...ir.effects import own_effects
from ...ir.facts import Facts
from ...ir.stmt import statements
from ...language.copy import Copy
from ...language.groups import WARP_GROUP
from ...language.lowered.decisions import PRODUCER, Instr, Plan
from ...language.memory import AllocFragment, AllocShared
from ...language.registers import FEWEST, STEP, SetMaxNreg
from ...language.structure import KernelLaunch, Pipelined, ThreadGroup
from ...machine import Machine
from ..analysis.boxes import box_rows, boxes_of, sides, why_no_boxes
from ..analysis.known_facts import facts_at
from ..analysis.launches import launch_of
from ..analysis.register_shares import registers_at_entry
from ..context import Context

NAME = "plan_roles"
# What one thread that issues copies needs, and the group with it.
PRODUCER_REGISTERS = 24
# A group that computes leaves some of what a thread can have at most to the compiler's rounding.
MOST_REGISTERS = 240
ONE_STAGE = "it has one stage"
# Of what a general variant is for: a call with such an array has no producer, and is right without.
ANY_ADDRESS = "may start at an address that is no multiple of"


def plan_roles(function: Function, context: Context) -> Function:
    """The function whose launch has a producer, where its schedule asks for one."""
    launch = launch_of(function)
    if launch.warp_specialize is None:
        return function
    plain = launch.but(warp_specialize=None)
    wanted = launch.warp_specialize and not context.machine.why_unused("warp_specialize")
    unnamed = [s for s in statements(launch.body) if isinstance(s, Copy) and s.by is None]
    facts = facts_at(function, {id(copy) for copy in unnamed} if wanted else ())
    planned = _with_producer(plain, facts, context) if wanted else plain
    return function.but(body=tuple(planned if s is launch else s for s in function.body))


def _with_producer(launch: KernelLaunch, facts: Mapping[int, Facts], context: Context) -> KernelLaunch:
    loops = _loops(launch, facts, context)
    if not loops:
        return launch
    own, total = launch.threads, launch.threads + WARP_GROUP
    most = context.machine.max_threads
    if total > most:
        _refuse(launch, f"{own} threads and {WARP_GROUP} more are above the {most} of a block")
    has_a_producer = {id(loop) for loop in loops}

    def step(node: Stmt) -> Stmt:
        below = map_bodies(node, step)
        if id(node) in has_a_producer:
            brought = tuple(_named(s, context.machine) for s in below.body)
            return below.but(plan=Plan(below.plan.stages, roles=PRODUCER), body=brought)
        return below

    tiles = tuple(s for s in launch.body if isinstance(s, (AllocShared, AllocFragment)))
    work = tuple(step(s) for s in launch.body if not isinstance(s, (AllocShared, AllocFragment)))
    give, take = _registers(launch, context.machine)
    place = launch.place
    consumers = ThreadGroup(0, own, vars=(), body=(*take, *work), place=place)
    producer = ThreadGroup(own, WARP_GROUP, vars=(), body=give, place=place)
    names = ", ".join(loop.vars[0].name for loop in loops)
    context.remark(
        NAME, "applied", f"{WARP_GROUP} more threads bring the tiles of {names}", launch, threads=total,
        **({"registers": take[0].registers} if take else {}),
    )  # fmt: skip
    return launch.but(threads=total, body=(*tiles, consumers, producer))


def _loops(launch: KernelLaunch, facts: Mapping[int, Facts], context: Context) -> list[Pipelined]:
    """The loops whose tiles a producer can bring; none where each has one stage, as of a single iteration.

    Raises `ScheduleError` where something else keeps all of them.
    """
    every = list(statements(launch.body))
    group = next((s for s in every if isinstance(s, ThreadGroup)), None)
    if group is not None:
        _refuse(group, "the kernel says itself what its groups of threads do")
    loops = [s for s in every if isinstance(s, Pipelined)]
    if not loops:
        _refuse(launch, "it has no pipelined loop")
    reasons = [_why_not(loop, launch, facts, context.machine) for loop in loops]
    named = [(loop.vars[0].name, loop, why) for loop, why in zip(loops, reasons, strict=True)]
    found = [loop for _, loop, why in named if not why]
    if not found and not all(why == ONE_STAGE or ANY_ADDRESS in why for why in reasons):
        _refuse(launch, "; ".join(f"{name}: {why}" for name, _, why in named))
    for name, loop, why in named:
        if why:
            context.remark(NAME, "missed", f"the tiles of {name} have no producer: {why}", loop)
    return found


def _why_not(loop: Pipelined, launch: KernelLaunch, facts: Mapping[int, Facts], machine: Machine) -> str:
    """Why nobody can bring the tiles of a loop; empty where a producer can."""
    plan, complete = loop.plan, _completing(machine)
    if plan is None or plan.stages < 2:
        return ONE_STAGE
    ahead = [s for s in loop.body if isinstance(s, Copy) and s.at_stage is not None and not s.at_stage.number]
    others = [copy.dst.buffer.name for copy in ahead if copy.by is not None and copy.by.name not in complete]
    unnamed = [
        (copy.dst.buffer.name, _why_unnamed(copy, facts, machine)) for copy in ahead if copy.by is None
    ]
    if not ahead:
        return "its statements have stages of their own"
    if others:
        return f"{', '.join(others)} is copied by an instruction that completes on no barrier"
    engine = next((boxes for _, boxes in box_rows(machine)), None)
    for copy in ahead:
        boxes, array = engine if copy.by is None else boxes_of(copy, machine), sides(copy)[0].buffer
        if boxes is not None and array.align % boxes.align:
            return f"{array.name} {ANY_ADDRESS} {boxes.align} bytes"
    for tile, why in unnamed:
        if why:
            return f"{tile} cannot be brought in boxes: {why}"
    # Whoever brings the first tiles waits for nobody.
    shared = sorted({copy.dst.buffer.name for copy in ahead} & _used_outside(launch, loop))
    return f"{', '.join(shared)} is used outside of the loop too" if shared else ""


def _why_unnamed(copy: Copy, facts: Mapping[int, Facts], machine: Machine) -> str:
    """Why a copy that names no instruction cannot be one by an engine, as far as it shows before layouts."""
    if copy.at_stage is None or not copy.at_stage.can_be_async or copy.by_threads:
        return "threads move it"
    arrays, known = frozenset({copy.src.buffer.name}), facts[id(copy)]
    rules = [boxes for name, boxes in box_rows(machine) if name in _completing(machine)]
    reasons = [why_no_boxes(copy, boxes, arrays, frozenset(), known) for boxes in rules]
    return min(reasons, default="there is no such instruction")


def _named(statement: Stmt, machine: Machine) -> Stmt:
    """A copy ahead by the instruction that a producer needs, where it names none."""
    ahead = isinstance(statement, Copy) and statement.at_stage is not None and statement.by is None
    return statement.but(by=Instr(min(_completing(machine)))) if ahead else statement


def _used_outside(launch: KernelLaunch, loop: Pipelined) -> set[str]:
    """The buffers that statements of a launch use which do not stand in a loop."""
    inside = {id(s) for s in statements(loop.body)} | {id(loop)}
    found: set[str] = set()
    for statement in statements(launch.body):
        if id(statement) not in inside and not isinstance(statement, AllocStmt):
            found |= {effect.buffer.name for effect in own_effects(statement)}
    return found


def _completing(machine: Machine) -> set[str]:
    """The names of copies that complete on a barrier."""
    return {row.name for row in machine.instructions_for("copy") if row.completes == "mbarrier"}


def _registers(
    launch: KernelLaunch, machine: Machine
) -> tuple[tuple[SetMaxNreg, ...], tuple[SetMaxNreg, ...]]:
    """What the producer gives back and the others take; nothing where they would have no more for it."""
    if "setmaxnreg" not in machine.features or launch.threads % WARP_GROUP:
        return (), ()
    total = launch.threads + WARP_GROUP
    at_entry = registers_at_entry(total, launch.min_blocks or 1, (), machine)
    # What a block has is what its threads begin with, not all that there are.
    there = total * min(at_entry, machine.sm.max_registers_per_thread)
    left = (there - WARP_GROUP * max(FEWEST, PRODUCER_REGISTERS)) // launch.threads // STEP * STEP
    each = min(MOST_REGISTERS, left)
    if each <= min(at_entry, machine.sm.max_registers_per_thread):
        return (), ()
    place = launch.place
    give = SetMaxNreg(PRODUCER_REGISTERS, increase=False, place=place)
    return (give,), (SetMaxNreg(each, increase=True, place=place),)


def _refuse(at: Stmt, why: str) -> NoReturn:
    raise ScheduleError(
        "no warps can be set apart to bring tiles: {why}", at=at.place, why=why,
        hint='such a loop has two stages or more, and copies by an instruction that completes on a barrier: '
        '[schedule.copy.NAME] names no other than "tma"',
    )  # fmt: skip
