"""Random numbers: `T.rng_init`, `T.rng_rand`, `T.rng_rand_float`, those of cuRAND's Philox generator.

The numbers of a state are those of a counter: number n of a sequence is word n % 4 of Philox 4x32-10 for the
counter (n // 4, sequence) and the key `seed` (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
easy as 1, 2, 3", 2011). So each is worked out by itself, the same on every target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import LanguageError
from ..ir import Buffer, Call, Const, DType, Expr, If, Let, Load, Stmt, Var, boolean, substitute
from ..ir.dtypes import float32, float64, uint32, uint64
from .elementwise import cos, log, sin, sqrt
from .memory import AllocVar
from .thread_numbers import get_block_binding
from .threads.block import block_of
from .tracing.arithmetic import logical_not
from .tracing.builder import Builder, here, inside_kernel
from .tracing.expressions import Value, cast_value
from .tracing.promote import expr_of
from .tracing.stores import assign_var
from .tracing.values import BufferView, VarRef

if TYPE_CHECKING:
    from .tracing.taken import Whole

PHILOX = "curandStatePhilox4_32_10_t"
_OTHERS = ("curandStateMRG32k3a_t", "curandStateXORWOW_t")


@dataclass(eq=False)
class RandomState:
    """What `T.rng_init` begins: scalars of the thread. `spare` are second normals that wait, by dtype."""

    seed: VarRef
    sequence: VarRef
    next: VarRef
    init: Stmt
    frame: Any
    spare: dict[str, tuple[VarRef, VarRef]]


def rng_init(seed: Whole, seq: Whole | None = None, off: Whole = 0, generator: str = PHILOX) -> None:
    """Begin the random numbers of a thread, or of the block: number `off` of sequence `seq` comes next.

    They are those of cuRAND's `curand_init(seed, seq, off, state)` for `curandStatePhilox4_32_10_t`, on every
    target. Without `seq` each thread has a sequence, by its number in the grid along x. In T.Parallel, which
    orders nothing, each element has the numbers that it would have if elements came one after the other, the
    last index fastest; begun inside, each element has numbers of its own. Raises `LanguageError` for another
    generator.
    """
    builder = inside_kernel("T.rng_init")
    if generator != PHILOX:
        raise LanguageError(
            "T.rng_init has no generator {name!r}", name=generator, expected=repr(PHILOX),
            hint="each number of it is worked out by itself; the others have a state of many words"
            if generator in _OTHERS else "",
        )  # fmt: skip
    values = [_wide(builder, seed), _wide(builder, _own_sequence(builder) if seq is None else seq)]
    values.append(_wide(builder, off))
    known: RandomState | None = builder.random
    if known is not None and known.frame in builder.frames and not _of_a_loop(builder, known):
        for var, value in zip((known.seed, known.sequence, known.next), values, strict=True):
            assign_var(var, Value(value))
        for waits, _ in known.spare.values():
            assign_var(waits, Value(Const(False, type=boolean)))
        return
    names = ("rng_seed", "rng_sequence", "rng_next")
    start, sequence, after = (
        _scalar(builder, name, uint64, value) for name, value in zip(names, values, strict=True)
    )
    frame = builder.frames[-1]
    builder.random = RandomState(start, sequence, after, frame.statements[-1], frame, {})


def _own_sequence(builder: Builder) -> Any:
    """The number of a thread in the grid, along x."""
    block = block_of(builder)
    number = Value(block.number(builder, 0)) if block.count > 1 else 0
    return number + get_block_binding(0) * block.extents[-1]


def _wide(builder: Builder, given: Any) -> Expr:
    """An integer as a uint64, as C converts it. In a block of one thread that thread's number is 0."""
    expr = expr_of(given)
    if not expr.dtype.is_integer:
        raise LanguageError(
            "T.rng_init takes integers", found="{dtype}", dtype=expr.dtype, hint="T.cast(x, T.int64)"
        )
    block = block_of(builder)
    if block.shape and block.count == 1:
        expr = substitute(expr, {var.name: Const(0) for var in block.numbers.values()})
    signed = expr.dtype.kind == "int"
    return cast_value(cast_value(Value(expr), "int64") if signed else Value(expr), uint64).expr


def _scalar(builder: Builder, name: str, dtype: DType, first: Expr) -> VarRef:
    buffer = Buffer(builder.unique(name), (), dtype, "var")
    builder.emit(AllocVar(buffer, init=first, place=here()))
    return VarRef(BufferView(buffer, builder.frames[-1], here()))


def _state(word: str) -> tuple[Builder, RandomState]:
    builder = inside_kernel(word)
    if builder.random is None:
        raise LanguageError(
            "{word} has nothing to go on from", word=word, hint="T.rng_init(seed, sequence, offset) before it"
        )
    return builder, builder.random


def _of_a_loop(builder: Builder, state: RandomState) -> bool:
    """Whether elements of a parallel loop draw from a state that was begun in front of it."""
    state.next.view.check_scope()
    loop = builder.within("parallel")
    order = [id(frame) for frame in builder.frames]
    return loop is not None and order.index(id(state.frame)) < order.index(id(loop))


def _drawn(builder: Builder, state: RandomState, count: int) -> list[Value]:
    """The next numbers of the state, each under a name."""
    inside = _of_a_loop(builder, state)
    found: list[Value] = []
    for k in range(count):
        number: Expr = state.next.expr
        if inside:
            slot = Var(builder.unique("rng_slot"), type=uint64)
            builder.draws[slot.name] = state.next.view.buffer
            number = number + slot
        elif k:
            number = number + Const(k, type=uint64)
        var = Var(builder.unique("rng"), type=uint32)
        builder.emit(Let(var, _philox(number, state), place=here()))
        found.append(Value(var))
    if not inside:
        assign_var(state.next, Value(state.next.expr + Const(count, type=uint64)))
    return found


def _philox(number: Expr, state: RandomState) -> Expr:
    """A word of the block of four that has the number."""

    def low(value: Expr) -> Expr:
        return cast_value(Value(value), uint32).expr

    def high(value: Expr) -> Expr:
        return low((Value(value) >> 32).expr)

    block = (Value(number) >> 2).expr
    sequence, seed = state.sequence.expr, state.seed.expr
    args = (low(number), low(block), high(block), low(sequence), high(sequence), low(seed), high(seed))
    return Call("philox", args, type=uint32, place=here())


def rng_rand() -> Any:
    """The next random number, a uint32: all 32 bits are random. Raises `LanguageError` without a state."""
    builder, state = _state("T.rng_rand")
    return _drawn(builder, state, 1)[0]


def rng_rand_float(bit: int = 32, dist: str = "uniform") -> Any:
    """The next random number as a float of 32 or 64 bits, `dist` "uniform" in (0, 1] or "normal".

    As cuRAND's: a uniform one is the middle of the interval that a number of 32 bits stands for, also as a
    float64. Two normal ones are made of two numbers, of 64 bits of four, by Box and Muller; in T.Parallel
    each element has its own. Raises `LanguageError` for another width or distribution, and without a state.
    """
    builder, state = _state("T.rng_rand_float")
    if bit not in (32, 64) or dist not in ("uniform", "normal"):
        raise LanguageError(
            "T.rng_rand_float has no {dist!r} of {bits} bits", dist=dist, bits=bit,
            expected="bit 32 or 64, dist 'uniform' or 'normal'",
        )  # fmt: skip
    if dist == "uniform":
        number = cast_value(_drawn(builder, state, 1)[0], float32 if bit == 32 else float64)
        return number * 2.0**-32 + 2.0**-33
    if _of_a_loop(builder, state):
        return _normals(_drawn(builder, state, bit // 16))[0]
    return _normal(builder, state, bit)


def _uniform(numbers: list[Value]) -> Value:
    """(0, 1] of one number, or of two as one of 53 bits."""
    if len(numbers) == 1:
        return cast_value(numbers[0], float32) * 2.0**-32 + 2.0**-33
    first, second = (cast_value(number, uint64) for number in numbers)
    return cast_value(first ^ (second << 21), float64) * 2.0**-53 + 2.0**-54


def _normals(numbers: list[Value]) -> tuple[Any, Any]:
    """Two normal numbers from two uniform ones."""
    half = len(numbers) // 2
    kind = float32 if half == 1 else float64
    size, turn = _uniform(numbers[:half]), _uniform(numbers[half:])
    radius = sqrt(log(size) * -2.0)
    angle = turn * cast_value(2 * math.pi, kind)
    return sin(angle) * radius, cos(angle) * radius


def _normal(builder: Builder, state: RandomState, bit: int) -> Value:
    """The second of two where one waits, else the first of two new ones."""
    kind = float32 if bit == 32 else float64
    if kind.name not in state.spare:
        _add_spare(builder, state, kind)
    waits, spare = state.spare[kind.name]
    found = _scalar(builder, "rng_normal", kind, spare.expr)
    ready = waits.expr
    outer, builder.frames[-1].statements = builder.frames[-1].statements, []
    first, second = _normals(_drawn(builder, state, bit // 16))
    assign_var(found, first)
    assign_var(spare, second)
    inside, builder.frames[-1].statements = builder.frames[-1].statements, outer
    none = Var(builder.unique("rng_none"), type=boolean)
    builder.emit(Let(none, logical_not(ready), place=here()))
    builder.emit(If(none, tuple(inside), (), place=here()))
    assign_var(waits, Value(none))
    return Value(Load(found.view.buffer, (), place=here()))


def _add_spare(builder: Builder, state: RandomState, kind: DType) -> None:
    """Scalars behind the state's, for the second of two normals."""
    statements = state.frame.statements
    builder_frame, builder.frames[-1].statements = builder.frames[-1].statements, []
    waits = _scalar(builder, "rng_waits", boolean, Const(False, type=boolean))
    spare = _scalar(builder, "rng_spare", kind, Const(0.0, type=kind))
    made, builder.frames[-1].statements = builder.frames[-1].statements, builder_frame
    behind = next(k for k, statement in enumerate(statements) if statement is state.init) + 1
    statements[behind:behind] = made
    for ref in (waits, spare):
        ref.view.frame = state.frame
    state.spare[kind.name] = waits, spare


__all__ = ["rng_init", "rng_rand", "rng_rand_float"]
