"""The launch, loops that keep their form, tests, names and single stores."""

from __future__ import annotations

from ....ir import If, Let, Stmt, Store, While, const_of
from ....language.scopes import entered
from ....language.structure import KernelLaunch, Pipelined, Serial, ThreadGroup, Unroll
from ..loops.lowering import Lowering
from ..loops.work import Work

# Turns of a loop that are written out at most: more code than that pays no loop back.
WRITTEN_OUT = 8


def launch(work: Work, kernel: KernelLaunch) -> list[Stmt]:
    """A block runs on one core, as one thread."""
    work.facts = entered(kernel, work.facts)
    return [KernelLaunch(kernel.grid, kernel.vars, work.body(kernel.body), threads=1, place=kernel.place)]


def group(work: Work, threads: ThreadGroup) -> list[Stmt]:
    """What some threads of a block do, its one thread here does."""
    return list(work.body(threads.body))


def loop(work: Work, old: Serial | Unroll) -> list[Stmt]:
    """The loop around its lowered body."""
    work.facts = entered(old, work.facts)
    head = work.swapped(old.but(body=()))
    return [head.but(body=work.body(old.body))]


def unrolled(work: Work, old: Unroll) -> list[Stmt]:
    """A loop to be written out; one with many turns, or nobody knows how many, stays a loop and says so."""
    ends = [const_of(end) for end in (old.start, old.stop, old.step)]
    turns = len(range(*ends)) if None not in ends and ends[2] else None  # type: ignore[arg-type]
    plain = old.condition is None and old.factor is None
    if turns is not None and turns <= WRITTEN_OUT and plain:
        return loop(work, old)
    name, count = old.vars[0].name, "turns that nobody has counted" if turns is None else f"{turns} turns"
    if old.condition is not None:
        count = "an end that it may be left before"
    message = f"T.unroll of {name} has {count} and stays a loop: up to {WRITTEN_OUT} are written out"
    if old.factor is not None:
        message = f"T.unroll of {name} stays a loop: the compiler unrolls by a factor of its own"
    work.context.remark("to_loops", "missed", message, old)
    rolled = Serial(old.stop, old.vars, old.body, start=old.start, step=old.step, place=old.place)
    return loop(work, rolled.but(condition=old.condition))


def turning(work: Work, old: While) -> list[Stmt]:
    """A loop that goes on while its condition holds."""
    return [old.but(condition=work.swapped(old.condition), body=work.body(old.body))]


def pipelined(work: Work, old: Pipelined) -> list[Stmt]:
    """A serial loop: copies do not run ahead on one core."""
    work.facts = entered(old, work.facts)
    body = work.body(old.body)
    ends = Serial(old.stop, old.vars, (), start=old.start, condition=old.condition, place=old.place)
    return [work.swapped(ends).but(body=body)]


def branch(work: Work, old: If) -> list[Stmt]:
    """The test around its lowered bodies."""
    then, orelse = work.body(old.then), work.body(old.orelse)
    return [old.but(condition=work.swapped(old.condition), then=then, orelse=orelse)]


def name(work: Work, let: Let) -> list[Stmt]:
    """A name for a value."""
    work.facts = work.facts.with_let(let.var, let.value)
    return [work.swapped(let)]


def store(work: Work, old: Store) -> list[Stmt]:
    """One element."""
    return [work.swapped(old)]


LOWERINGS = (
    Lowering(KernelLaunch, launch),
    Lowering(ThreadGroup, group),
    Lowering(Serial, loop),
    Lowering(Unroll, unrolled),
    Lowering(Pipelined, pipelined),
    Lowering(While, turning),
    Lowering(If, branch),
    Lowering(Let, name),
    Lowering(Store, store),
)
