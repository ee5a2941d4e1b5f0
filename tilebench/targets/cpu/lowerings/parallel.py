"""Element-wise loops and reductions as loops over vectors."""

from __future__ import annotations

from collections.abc import Sequence

from ....ir import (
    AllocStmt,
    Arith,
    Call,
    Const,
    Expr,
    If,
    Let,
    Load,
    LoopStmt,
    Region,
    Stmt,
    Store,
    Var,
    all_of,
    const_of,
    walk,
)
from ....ir.arith import linear
from ....language.reduce import Reduce
from ....language.structure import Parallel, Vectorized
from ....passes.bound_accesses import conjuncts
from ..llvm import bytes_of
from ..loops.plan_buffers import reads_var
from ..loops.to_loops import Lowering, nest
from ..loops.words import Fold
from ..numbers.convert import COMPUTE

_CHAINS = 4


def lower_parallel(work: Lowering, at: Parallel | Vectorized) -> list[Stmt]:
    """Serial loops, and inside them one over vectors where the body allows it."""
    extents = at.extents if isinstance(at, Parallel) else (at.extent,)
    for var, extent in zip(at.vars, extents, strict=True):
        work.ranges[var.name] = (0, max(extent - 1, 0))
    stops: list[Expr] = [Const(extent) for extent in extents]
    body, rest = _cut(work, at.vars, stops, at.body)
    inner = work.body(body)
    order = list(range(len(stops)))
    if not _has_own_scalars(inner):
        chosen = _best(work, at.vars, inner)
        if _uniform_control(inner, at.vars[chosen]):
            order.append(order.pop(chosen))
            uniform = [each for each in rest if not reads_var(each, {at.vars[chosen].name})]
            varying = [each for each in rest if each not in uniform]
            if varying:
                inner = (If(work.swapped(all_of(varying)), inner, (), place=at.place),)
            made: tuple[Stmt, ...] = (work.vector_loop(at.vars[chosen], stops[chosen], inner),)
            made = (If(work.swapped(all_of(uniform)), made, (), place=at.place),) if uniform else made
            return list(nest([at.vars[k] for k in order[:-1]], [stops[k] for k in order[:-1]], made))
    inner = (If(work.swapped(all_of(rest)), inner, (), place=at.place),) if rest else inner
    return list(nest(at.vars, stops, inner))


def _cut(
    work: Lowering, vars_: Sequence[Var], stops: list[Expr], body: tuple[Stmt, ...]
) -> tuple[tuple[Stmt, ...], list[Expr]]:
    """Tests around the whole body become stops of loops where they can; the body inside, and the rest."""
    rest: list[Expr] = []
    names = {each.name for each in vars_}
    while len(body) == 1 and isinstance(body[0], If) and not body[0].orelse:
        for test in conjuncts(body[0].condition):
            found = _stop(test, vars_, names)
            if found is None:
                rest.append(test)
                continue
            k, (base, limit) = found
            size = const_of(stops[k])
            room = Const(limit) - base
            stops[k] = (
                Call("min", (stops[k], room), type=room.dtype)
                if size is None
                else work.valid(base, size, limit)
            )
        body = body[0].then
    return body, rest


def _stop(test: Expr, vars_: Sequence[Var], names: set[str]) -> tuple[int, tuple[Expr, int]] | None:
    """Which variable `base + var < limit` bounds, with base and limit; None for another kind of test."""
    limit = const_of(test.args[1]) if isinstance(test, Arith) and test.op == "<" else None
    if limit is None or not isinstance(test, Arith):
        return None
    form = linear(test.args[0])
    moving = [each for each, _ in form.terms if reads_var(each, names)]
    if len(moving) != 1 or moving[0] not in vars_ or form.coefficient(moving[0]) != 1:
        return None
    if any(isinstance(each, Load) for each in walk(test)):
        return None
    return list(vars_).index(moving[0]), (form.without(moving[0]).expr(), limit)  # pyright: ignore[reportArgumentType]


def _has_own_scalars(body: Sequence[Stmt]) -> bool:
    """Whether a turn keeps state of its own in a scalar or array: such loops run element by element."""
    for top in body:
        for each in walk(top):
            if isinstance(each, AllocStmt) or (isinstance(each, Store) and each.buffer.scope == "var"):
                return True
    return False


def _uniform_control(body: Sequence[Stmt], var: Var) -> bool:
    """Whether inner loops run the same for every lane."""
    names = {var.name}
    for top in body:
        for each in walk(top):
            if isinstance(each, Let) and reads_var(each.value, names):
                names.add(each.var.name)
            if isinstance(each, LoopStmt):
                ends = [getattr(each, name, None) for name in ("start", "stop", "step")]
                if any(isinstance(end, Expr) and reads_var(end, names) for end in ends):
                    return False
    return True


def _best(work: Lowering, vars_: Sequence[Var], body: Sequence[Stmt]) -> int:
    """The variable along which most accesses are contiguous; the last one when that does not tell."""
    scores = [0] * len(vars_)
    for top in body:
        for each in walk(top):
            if not isinstance(each, (Load, Store)) or not each.index:
                continue
            weight = 3 if isinstance(each, Store) else 2
            for k, var in enumerate(vars_):
                scores[k] += weight * _step(work, each, var)
    return max(range(len(vars_)), key=lambda k: (scores[k], k))


def _step(work: Lowering, at: Load | Store, var: Var) -> int:
    """2 where the access moves by one element with the variable, 1 where it stays, -1 where it jumps."""
    stays = True
    for d, index in enumerate(at.index):
        factor = linear(index).coefficient(var)
        nested = any(reads_var(term, {var.name}) and term != var for term, _ in linear(index).terms)
        if nested or (factor and (factor != 1 or at.buffer.element_strides[d] != 1)):
            return -1
        stays = stays and not factor
    return 1 if stays else 2


def lower_reduce(work: Lowering, at: Reduce) -> list[Stmt]:
    """Each result by a fold of its own; along a leading dimension, as many results as lanes at once."""
    src, dst = work.swapped(at.src), work.swapped(at.dst)
    shape = src.buffer.shape
    axis = at.dim % len(shape)
    kept = [d for d in range(len(shape)) if d != axis]
    moving = {d: work.fresh("ijklmn"[d % 6]) for d in kept}
    index = [moving[d] for d in kept]
    if dst.buffer.rank == len(shape):
        index.insert(axis, Const(0))  # pyright: ignore[reportArgumentType]
    target = Region(dst.buffer, tuple(index) if kept or dst.buffer.rank else (), place=at.place)
    if not kept and dst.buffer.rank == 1:
        target = Region(dst.buffer, (Const(0),), place=at.place)
    start = tuple(moving[d] if d in moving else Const(0) for d in range(len(shape)))
    box = Region(
        src.buffer,
        start,
        extent=tuple(shape[d] if d == axis else 1 for d in range(len(shape))),
        place=at.place,
    )
    wide = max(bytes_of(COMPUTE[each.buffer.dtype.name]) for each in (src, dst))
    lanes = work.isa.vector_bytes // wide
    last = len(shape) - 1
    along = axis == last
    fold = Fold(
        at.kind,
        target,
        box,
        lanes=lanes if along else 1,
        chains=_CHAINS if along else 1,
        clear=at.clear,
        place=at.place,
    )
    if along:
        return list(nest([moving[d] for d in kept], [Const(shape[d]) for d in kept], (fold,)))
    from ..loops.words import Vectors

    inner = Vectors(Const(shape[last]), (moving[last],), (fold,), lanes=lanes, place=at.place)
    outer = [d for d in kept if d != last]
    return list(nest([moving[d] for d in outer], [Const(shape[d]) for d in outer], (inner,)))
