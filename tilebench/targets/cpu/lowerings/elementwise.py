"""Element-wise loops as serial loops around one over vectors."""

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
    Stmt,
    Store,
    Var,
    all_of,
    const_of,
    walk,
)
from ....ir.arith import linear
from ....ir.facts import conjuncts
from ....ir.stmt import statements
from ....language.structure import Parallel, Vectorized
from ....passes.analysis.turns_apart import turns_apart
from ..loops.buffers import loads_memory, reads_var
from ..loops.lowering import Lowering
from ..loops.vectors import nest, vector_loop
from ..loops.words import Vectors
from ..loops.work import Work


def elementwise(work: Work, old: Parallel | Vectorized) -> list[Stmt]:
    """Serial loops, and inside them one over vectors where the body allows it."""
    extents = old.extents if isinstance(old, Parallel) else (old.extent,)
    for var, extent in zip(old.vars, extents, strict=True):
        work.facts = work.facts.with_extent(var, extent)
    stops: list[Expr] = [Const(extent) for extent in extents]
    body, tests = _cut(work, old.vars, stops, old.body)
    inner = work.body(body)
    if not inner:
        return []
    in_order = isinstance(old, Vectorized) and not turns_apart(old)
    alone = (
        in_order
        or _keeps_state(old.body)
        or any(isinstance(node, Vectors) for each in inner for node in walk(each))
    )
    vectored = None if alone else _best(old.vars, inner)
    if vectored is None or not _uniform_control(inner, old.vars[vectored]):
        return list(nest(old.vars, stops, _guarded(work, old, tests, inner)))
    var = old.vars[vectored]
    uniform = [test for test in tests if not reads_var(test, {var.name})]
    varying = [test for test in tests if test not in uniform]
    loop = vector_loop(work, var, stops[vectored], _guarded(work, old, varying, inner))
    outer = [k for k in range(len(stops)) if k != vectored]
    guarded = _guarded(work, old, uniform, (loop,))
    return list(nest([old.vars[k] for k in outer], [stops[k] for k in outer], guarded))


def _guarded(work: Work, old: LoopStmt, tests: list[Expr], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The body under the tests, if there are any."""
    return (If(work.swapped(all_of(tests)), body, (), place=old.place),) if tests else body


def _cut(
    work: Work, vars_: Sequence[Var], stops: list[Expr], body: tuple[Stmt, ...]
) -> tuple[tuple[Stmt, ...], list[Expr]]:
    """Tests around the whole body become stops of loops where they can; the body inside, and the rest."""
    rest: list[Expr] = []
    names = {var.name for var in vars_}
    while len(body) == 1 and isinstance(body[0], If) and not body[0].orelse:
        for test in conjuncts(body[0].condition):
            found = _stop(test, vars_, names)
            if found is None:
                rest.append(test)
                continue
            k, base, limit = found
            stops[k] = _cut_stop(work, stops[k], base, limit)
        body = body[0].then
    return body, rest


def _cut_stop(work: Work, stop: Expr, base: Expr, limit: int) -> Expr:
    """Where a loop ends whose index from `base` on must stay under `limit`."""
    size = const_of(stop)
    if size is not None:
        return work.valid(base, size, limit)
    room = Const(limit) - base
    return Call("min", (stop, room), type=room.dtype)


def _stop(test: Expr, vars_: Sequence[Var], names: set[str]) -> tuple[int, Expr, int] | None:
    """Which variable `base + var < limit` bounds, with base and limit; None for another kind of test."""
    limit = const_of(test.args[1]) if isinstance(test, Arith) and test.op == "<" else None
    if limit is None or not isinstance(test, Arith):
        return None
    form = linear(test.args[0])
    moving = [term for term, _ in form.terms if reads_var(term, names)]
    if len(moving) != 1 or moving[0] not in vars_ or form.coefficient(moving[0]) != 1 or loads_memory(test):
        return None
    k = next(k for k, var in enumerate(vars_) if var == moving[0])
    return k, form.without(moving[0]).expr(), limit


def _keeps_state(body: Sequence[Stmt]) -> bool:
    """Whether a turn keeps state of its own in a scalar or array, of which there is one for all lanes."""
    return any(
        isinstance(node, AllocStmt)
        or (isinstance(node, Store) and (node.buffer.scope in ("var", "local") or not node.plain))
        for node in statements(tuple(body))
    )


def _uniform_control(body: Sequence[Stmt], var: Var) -> bool:
    """Whether inner loops run the same for every lane."""
    names = {var.name}
    for node in (node for statement in body for node in walk(statement)):
        if isinstance(node, Let) and reads_var(node.value, names):
            names.add(node.var.name)
        if isinstance(node, LoopStmt):
            if node.condition is not None:
                return False
            ends = [getattr(node, field, None) for field in ("start", "stop", "step")]
            if any(isinstance(end, Expr) and reads_var(end, names) for end in ends):
                return False
    return True


def _best(vars_: Sequence[Var], body: Sequence[Stmt]) -> int:
    """The variable along which most accesses are contiguous; the last one when that does not tell."""
    scores = [0] * len(vars_)
    for access in (node for statement in body for node in walk(statement)):
        if isinstance(access, (Load, Store)) and access.index:
            weight = 3 if isinstance(access, Store) else 2
            for k, var in enumerate(vars_):
                scores[k] += weight * _step(access, var)
    return max(range(len(vars_)), key=lambda k: (scores[k], k))


def _step(access: Load | Store, var: Var) -> int:
    """2 where the access moves by one element with the variable, 1 where it stays, -1 where it jumps."""
    stays = True
    for d, index in enumerate(access.index):
        factor = linear(index).coefficient(var)
        nested = any(reads_var(term, {var.name}) and term != var for term, _ in linear(index).terms)
        if nested or (factor and (factor != 1 or access.buffer.element_strides[d] != 1)):
            return -1
        stays = stays and not factor
    return 1 if stays else 2


LOWERINGS = (Lowering(Parallel, elementwise), Lowering(Vectorized, elementwise))
