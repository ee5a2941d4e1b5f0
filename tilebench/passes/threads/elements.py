"""Element loops: a body over the coordinates of a tile becomes the loops of one thread over its values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

from ...errors import LayoutError
from ...ir import (
    Call,
    Const,
    Expr,
    If,
    Let,
    Load,
    Node,
    Region,
    Stmt,
    Store,
    Var,
    all_of,
    children,
    substitute,
    zero_of,
)
from ...ir.expr_walks import seen
from ...ir.node import map_children
from ...ir.rewrite import rewrite
from ...ir.stmt import statements
from ...language.memory import AllocLocal
from ...language.structure import Serial, Unroll
from ...layout import Fragment
from ..analysis.accesses import MEMORY
from ..analysis.body_accesses import BodyAccesses
from ..bounded.check_packed import refuse_half
from .emitter import Emitter
from .kept_digits import Kept, kept_digits
from .registers import with_vector
from .scalars import lower_body
from .tiles import Coordinates
from .vector import Vector
from .vector_body import gathered, vector_body, widest

# More registers than four times what a thread can have lie in local memory anyway.
MOST_REGISTERS = 1024
# Repeats that are written out where no register is indexed by them: enough for the loads of a
# thread to be in flight together, and the text stays short beyond.
UNROLLED = 16
# Bytes of registers that the loads of a thread may fill before anything is done with them.
MOST_LOADED = 256


def loop_over_registers(total: int) -> type[Serial] | type[Unroll]:
    """The loop over `total` registers in all: written out, so that each is a register of its own.

    Those that do not fit stay rolled, or the compiler would take minutes for them.
    """
    return Unroll if total <= MOST_REGISTERS else Serial


def looped(word: type[Serial] | type[Unroll], var: Var, count: int, body: list[Stmt]) -> list[Stmt]:
    """A loop over `count` steps; the body itself, at step 0, when there is one step only."""
    if count == 1:
        return [substitute(statement, {var.name: Const(0)}) for statement in body]
    return [word(Const(count), (var,), tuple(body))]


@dataclass(frozen=True)
class ElementLoop:
    """A body over a box: which thread does what (`mapping`), the coordinates the body uses, its node.

    `box` are the extents; a mapping of others is refused.

    `cap` bounds the vector in elements (0: the machine's widest access). `ours` says that the names
    of the coordinates are not the kernel's. `judge` is told how many elements the widest access has.
    """

    node: Node
    mapping: Fragment
    box: tuple[int, ...]
    names: tuple[Var, ...]
    body: tuple[Stmt, ...]
    cap: int = 0
    ours: bool = False
    judge: Callable[[int], None] | None = None


def element_loops(emitter: Emitter, loop: ElementLoop) -> list[Stmt]:
    """The loops of one thread over its part of a tile.

    Ghosts, and threads that do not own what they would write, are masked. Raises `LayoutError` for a
    mapping of another box or of more threads.
    """
    _check_mapping(emitter, loop)
    touched = BodyAccesses.of(loop.body)
    body, owner = _owned(emitter, loop, touched)
    ghosts = [
        name.compare("<", extent)
        for name, extent, padded in zip(loop.names, loop.mapping.extents, loop.mapping.padded, strict=True)
        if padded > extent
    ]
    if ghosts and touched.memory:
        body = _inside(all_of(ghosts), body, touched, loop.node)
    width = _width(loop.mapping, touched, loop.cap, emitter.machine.vector_bytes[0])
    with emitter.scope(bool(owner)):
        lowered = _nest(emitter, loop, body, width, touched)
        if lowered is None:
            lowered = _nest(emitter, loop, body, 1, touched)
            assert lowered is not None
    return [If(all_of(owner), tuple(lowered), ())] if owner else lowered


def _inside(condition: Expr, body: tuple[Stmt, ...], touched: BodyAccesses, node: Node) -> tuple[Stmt, ...]:
    """The body without accesses to memory for ghosts.

    Where only fragments are written the reads alone are guarded, and give zero: registers of ghosts are
    nobody's, and without a branch around them all loads of a thread are in flight together.
    """
    if touched.outside or touched.stores.intersection(MEMORY):
        return (If(condition, body, (), place=node.place),)

    def guard(part: Node) -> Node:
        if not isinstance(part, Load) or part.buffer.scope not in MEMORY:
            return part
        return Call("if_then_else", (condition, part, zero_of(part.dtype)), type=part.dtype)

    return tuple(rewrite(statement, guard) for statement in body)


def _check_mapping(emitter: Emitter, loop: ElementLoop) -> None:
    threads = loop.mapping.threads
    if loop.mapping.extents != loop.box:
        raise LayoutError(
            "the thread mapping is for a box of {a}, and this one is {b}",
            at=loop.node.place, a=loop.mapping.extents, b=loop.box, expected="map=T.Fragment({b}, ...)",
        )  # fmt: skip
    if threads > emitter.threads.count:
        raise LayoutError(
            "the thread mapping is for {a} threads, and {b} work here",
            at=loop.node.place, a=threads, b=emitter.threads.count, mapping=loop.mapping,
            found="{mapping}",
        )  # fmt: skip


def _check_packed(loop: ElementLoop, body: tuple[Stmt, ...], vector: Vector | None) -> None:
    """One thread stores both halves of a byte: its vectors along a packed buffer start and end with bytes."""
    for store in BodyAccesses.of(body).memory:
        per_byte = store.buffer.dtype.per_byte
        width = 1 if vector is None or per_byte == 1 else vector.access_width(store)
        if isinstance(store, Store) and width % per_byte:
            node = store if store.place is not None else loop.node
            refuse_half(node, store.buffer, f"one thread stores {width} element in a row")


def _owned(emitter: Emitter, loop: ElementLoop, touched: BodyAccesses) -> tuple[tuple[Stmt, ...], list[Expr]]:
    """The body whose stores to memory only owners do, and the condition that stands outside all loops."""
    owner = emitter.owner(loop.mapping)
    if not owner or not touched.stores.intersection(MEMORY):
        return loop.body, []
    if touched.stays_in_memory:
        return loop.body, owner
    if touched.is_of_one:
        raise LayoutError(
            "threads that share an element of this loop read what one of them stores", at=loop.node.place,
            mapping=loop.mapping, found="{mapping}",
            expected="a mapping that gives each element to one thread",
            hint="make in the loop what the loop assigns, or read and store in two loops",
        )  # fmt: skip

    def guard(node: Node) -> Node:
        if isinstance(node, Store) and node.buffer.scope in MEMORY:
            return If(all_of(owner), (node,), (), place=node.place)
        return node

    return tuple(rewrite(statement, guard) for statement in loop.body), []


def _width(mapping: Fragment, touched: BodyAccesses, cap: int, most: int) -> int:
    """The elements of a vector step: neighbours along the last dimension, a power of two of them."""
    last = len(mapping.extents) - 1
    run = with_vector(mapping, 1).value[:1]
    if not run or run[0][1] != last or run[0][2] != 1:
        return 1
    sizes = [access.buffer.dtype.bits for access in touched.memory]
    if not sizes:
        return 1
    width = gcd(gcd(run[0][0], mapping.extents[last]), 16)
    while width > (cap or most * 8 // min(sizes)):
        width //= 2
    return width


def _nest(
    emitter: Emitter, loop: ElementLoop, body: tuple[Stmt, ...], width: int, touched: BodyAccesses
) -> list[Stmt] | None:
    """Loops over value digits around the body; None when no access is as wide as a vector."""
    mapping = with_vector(loop.mapping, width)
    kept, body = kept_digits(mapping, loop.names, body)
    total = prod(count for count, _, _ in mapping.value)
    rolled = total > (MOST_REGISTERS if touched.registers else UNROLLED * width)
    looped = any(count > 1 for count, _, _ in mapping.value[width > 1 :])
    first: list[Stmt] = []
    with emitter.scope(looped):
        digits, loops, parts = value_loops(emitter, mapping, width, rolled, kept)
        names, body = _bound(emitter, loop, body, ours=loop.ours and not looped)
        lets: list[Stmt] = [emitter.let(name, part) for name, part in zip(names, parts, strict=True)]
        shift = (names[-1].name, digits[0]) if width > 1 else None
        element = Coordinates(
            mapping, tuple(name.name for name in names), tuple(digits), shift, loop.node.place
        )
        if width > 1:
            vector = Vector(emitter, element, names[-1], width)
            body = gathered(body)
            most = widest(vector, body)
            if most <= 1:
                return None
            if loop.judge is not None:
                loop.judge(most)
            if touched.packed:
                _check_packed(loop, body, vector)
            inner, first = vector_body(vector, body), vector.first
        else:
            if loop.judge is not None:
                loop.judge(1)
            if touched.packed:
                _check_packed(loop, body, None)
            inner = lower_body(emitter, body, element)
    if loops and not rolled and _may_gather(first, loops):
        return loads_in_front(emitter, loops, lets, first, inner)
    return around(loops, without_unused([*lets, *first, *inner]), rolled)


def _may_gather(loads: list[Stmt], loops: list[tuple[Var, int]]) -> bool:
    """Whether loads under a branch, behind which others would wait, have few enough registers to go first."""
    steps = prod(count for _, count in loops)
    registers = [statement.buffer for statement in loads if isinstance(statement, AllocLocal)]
    branches = any(isinstance(statement, If) for statement in loads)
    return branches and steps * sum(buffer.bytes for buffer in registers) <= MOST_LOADED


def loads_in_front(
    emitter: Emitter, loops: list[tuple[Var, int]], lets: list[Stmt], loads: list[Stmt], rest: list[Stmt]
) -> list[Stmt]:
    """The loops over a thread's vectors twice: all loads, each into registers of its own, then the rest."""
    step: Expr = Const(0)
    steps = 1
    for variable, count in loops:
        step, steps = step + variable * steps, steps * count
    longer = {
        s.buffer.name: emitter.buffer(s.buffer.name, s.buffer.size * steps, s.buffer)
        for s in loads
        if isinstance(s, AllocLocal)
    }

    def own(old: Any) -> Any:
        if isinstance(old, Expr) and not seen(old).loads:
            return old
        node = map_children(old, own)
        if isinstance(node, (Load, Store)) and node.buffer.name in longer:
            lead = step * (longer[node.buffer.name].size // steps)
            return node.but(buffer=longer[node.buffer.name], index=(lead + node.index[0],))
        if isinstance(node, Region) and node.buffer.name in longer:
            lead = step * (longer[node.buffer.name].size // steps)
            return node.but(buffer=longer[node.buffer.name], start=(lead + node.start[0],))
        return node

    loading = [own(s) for s in loads if not isinstance(s, AllocLocal)]
    doing = [own(s) for s in rest]
    return [
        *[AllocLocal(buffer) for buffer in longer.values()],
        *around(loops, without_unused([*lets, *loading]), rolled=False),
        *around(loops, without_unused([*lets, *doing]), rolled=False),
    ]


def value_loops(
    emitter: Emitter, mapping: Fragment, width: int, rolled: bool, kept: Kept | None = None
) -> tuple[list[Expr], list[tuple[Var, int]], list[Expr]]:
    """The value digits, the loops that they count in, and each coordinate from thread and digits."""
    digits: list[Expr] = []
    loops: list[tuple[Var, int]] = []
    parts = emitter.thread_part(mapping)
    for k, (_, count, dim, step) in enumerate(mapping.value_digits):
        if k == 0 and width > 1:
            digits.append(emitter.leaf_variable("e", width))
            continue
        first, end = (kept or {}).get(k, (0, count))
        digit: Expr = Const(first)
        for unit, steps in _split(end - first, rolled and not loops):
            variable = emitter.variable(f"r{len(loops)}", steps)
            loops.append((variable, steps))
            digit = digit + variable * unit
        digits.append(digit)
        parts[dim] = parts[dim] + digit * step
    return digits, loops, parts


def _bound(
    emitter: Emitter, loop: ElementLoop, body: tuple[Stmt, ...], ours: bool
) -> tuple[tuple[Var, ...], tuple[Stmt, ...]]:
    """The coordinates, and the body, under names that are not bound around them.

    Without a loop as a scope around them names stay bound: a later use of the kernel's (a text may
    repeat a name in separate loops) gets another one.
    """
    new: dict[str, Expr] = {}
    lets = [node.var for node in statements(body) if isinstance(node, Let)]
    for variable in (*loop.names, *lets):
        is_ours = ours and variable in loop.names
        name = emitter.name(variable.name) if is_ours else emitter.coordinate(variable.name)
        if name != variable.name:
            new[variable.name] = Var(name, type=variable.type)
    if not new:
        return loop.names, body
    names = tuple(new.get(name.name, name) for name in loop.names)
    return names, tuple(_renamed(statement, new) for statement in body)  # type: ignore[return-value]


def _renamed(statement: Stmt, new: dict[str, Expr]) -> Stmt:
    """A statement with variables, and the lets that bind them, under new names."""

    def change(node: Node) -> Node:
        if isinstance(node, Let) and node.var.name in new:
            return node.but(var=new[node.var.name])
        return node

    return rewrite(substitute(statement, new), change)


def _split(count: int, rolled: bool) -> list[tuple[int, int]]:
    """(unit, steps) of the loops over a digit: of a long one a short run is written out inside."""
    short = next((run for run in (4, 3, 2, 5, 7) if count % run == 0), 0)
    if not rolled or count <= 8 or not short:
        return [(1, count)]
    return [(1, short), (short, count // short)]


def without_unused(body: list[Stmt]) -> list[Stmt]:
    """The body without coordinates that nothing uses."""
    unused = {statement.var.name for statement in body if isinstance(statement, Let)}
    stack: list[Node] = list(body)
    # Most coordinates are used soon: the walk ends where all of them have been seen.
    while stack and unused:
        node = stack.pop()
        if isinstance(node, Expr):
            unused -= seen(node).names
        else:
            stack += children(node)
    return [s for s in body if not (isinstance(s, Let) and s.var.name in unused)]


def around(loops: list[tuple[Var, int]], body: list[Stmt], rolled: bool) -> list[Stmt]:
    """The loops around the body, innermost first; of rolled ones only a short innermost is written out."""
    for k, (variable, count) in enumerate(loops):
        word = Serial if rolled and (k > 0 or count > 8) else Unroll
        body = [word(Const(count), (variable,), tuple(body))]
    return body
