"""Bodies of a vector: wide loads in front, the elements unrolled, wide stores behind."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...ir import (
    Arith,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    If,
    Let,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    all_of,
    map_children,
    refold,
    zero_of,
)
from ...ir.expr_walks import replaced, seen
from ...ir.facts import is_pure, is_small
from ...language.lowered.threads import VectorAdd, VectorStore
from ...language.memory import AllocLocal
from .addresses import lower_access, lower_expr
from .places import placed
from .scalars import lower_body
from .vector import MEMORY, MIXED, UNIFORM, Vector

Guards = tuple[Expr, ...]
# A load under more conditions is left where it stands: in front of the elements it would repeat all of
# them, so that text and time of a chain of choices would grow with the square of its length.
MOST_GUARDS = 8


@dataclass
class _Group:
    """One run of stores and lets: the vectors its loads come from and its stores go to."""

    vector: Vector
    loads: dict[tuple[Load, Guards], Buffer] = field(default_factory=dict[tuple[Load, Guards], Buffer])
    before: list[Stmt] = field(default_factory=list[Stmt])
    allocations: list[Stmt] = field(default_factory=list[Stmt])
    # What is being lowered: accesses in front of the elements and behind them are its own, not the loop's.
    source: Let | Store | None = None

    def placed(self, found: list[Stmt]) -> list[Stmt]:
        """Statements with the place of what is being lowered."""
        if self.source is None or self.source.place is None:
            return found
        return placed(found, self.source)


def guarded_loads(expr: Expr, guards: Guards = ()) -> list[tuple[Load, Guards]]:
    """Each load of memory with the conditions under which it is evaluated."""
    if not seen(expr).loads:
        return []
    if isinstance(expr, Call) and expr.word == "if_then_else":
        condition, yes, no = expr.args
        return [
            *guarded_loads(condition, guards),
            *guarded_loads(yes, (*guards, condition)),
            *guarded_loads(no, (*guards, Arith("not", (condition,)))),
        ]
    if isinstance(expr, Load):
        own = [(expr, guards)] if expr.buffer.scope in MEMORY else []
        return own + [load for part in expr.index for load in guarded_loads(part, guards)]
    parts: tuple[Expr, ...] = ()
    if isinstance(expr, (Arith, Call)):
        parts = expr.args
    elif isinstance(expr, Cast):
        parts = (expr.value,)
    return [load for part in parts for load in guarded_loads(part, guards)]


def scalar_buffers(group: list[Let | Store]) -> set[str]:
    """Buffers that a group reads after it wrote them: their accesses keep their order, one by one."""
    written: set[str] = set()
    reread: set[str] = set()
    for statement in group:
        reread |= {load.buffer.name for load, _ in guarded_loads(statement.value)} & written
        if isinstance(statement, Store):
            written.add(statement.buffer.name)
    return reread


def gathered(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The body with neighbours under one guard together, and the names that they alone use with them.

    A name and a branch behind it share no run of vectors: what is read for the name would be out of sight
    in the branch. The guards of edges end up around all that they guard.
    """
    out: list[Stmt] = []
    for inner in body:
        statement = _merged(inner) if isinstance(inner, If) else inner
        last = out[-1] if out else None
        if isinstance(statement, If) and isinstance(last, If) and _is_one_guard(last, statement):
            out[-1] = last.but(then=(*last.then, *statement.then))
        else:
            out.append(statement)
    *lets, guard = out or [None]
    if not lets or not isinstance(guard, If) or guard.orelse or not all(isinstance(s, Let) for s in lets):
        return tuple(out)
    names = {statement.var.name for statement in lets if isinstance(statement, Let)}
    if not names.isdisjoint(seen(guard.condition).names):
        return tuple(out)
    return (guard.but(then=(*lets, *guard.then)),)


def _merged(guard: If) -> If:
    """A branch around nothing but another is one of both conditions."""
    if guard.orelse:
        return guard
    then = gathered(guard.then)
    if len(then) != 1 or not isinstance(then[0], If) or then[0].orelse:
        return guard
    return then[0].but(condition=all_of([guard.condition, then[0].condition]))


def _is_one_guard(first: If, second: If) -> bool:
    """Whether two branches that follow each other are taken together: nothing in the first changes that."""
    alike = not first.orelse and not second.orelse and first.condition == second.condition
    return alike and is_pure(first.condition)


def widest(vector: Vector, body: tuple[Stmt, ...]) -> int:
    """The widest access that a body has; 0 when it is no body for vectors at all."""
    lets = any(isinstance(statement, Let) for statement in body)
    best = 1
    for statement in body:
        if isinstance(statement, If):
            if lets or vector.kind(statement.condition) == MIXED:
                return 0
            inner = [widest(vector, part) for part in (statement.then, statement.orelse) if part]
            if 0 in inner:
                return 0
            best = max([best, *inner])
        elif isinstance(statement, (Store, Let)):
            if isinstance(statement, Let) and not _is_seen_through(vector, statement):
                return 0  # what stands in it is not looked at, so nothing is known of neighbours
            for load, _ in guarded_loads(statement.value):
                best = max(best, vector.load_width(load))
            if isinstance(statement, Store) and statement.buffer.scope in MEMORY:
                best = max(best, vector.access_width(statement))
        else:
            return 0
    return best


def _is_seen_through(vector: Vector, let: Let) -> bool:
    """Note what a name stands for; False for an index that is too long to be written out.

    Of a long value that is no index all that counts is that it is another one for each element.
    """
    seen = replaced(let.value, vector.lets)
    if not is_small(seen):
        if let.var.type.is_integer:
            return False
        seen = Cast(vector.var, type=let.var.type)
    vector.lets[let.var.name] = seen
    return True


def vector_body(vector: Vector, body: tuple[Stmt, ...]) -> list[Stmt]:
    """The statements of one vector: `widest` has said that the body allows it.

    The loads of a body that is one run of stores are left in `vector.first`.
    """
    if all(isinstance(statement, (Let, Store)) for statement in body):
        loads, rest = _straight(vector, [s for s in body if isinstance(s, (Let, Store))])
        vector.first += loads
        return rest
    if len(body) == 1 and isinstance(body[0], If) and _is_gated(vector, body[0]):
        return _gated(vector, body[0])
    return _pieces(vector, body)


def _pieces(vector: Vector, body: tuple[Stmt, ...]) -> list[Stmt]:
    lowered: list[Stmt] = []
    group: list[Let | Store] = []
    for statement in body:
        if isinstance(statement, If):
            lowered += straight(vector, group)
            group = []
            lowered += _branch(vector, statement)
        else:
            assert isinstance(statement, (Let, Store))
            group.append(statement)
    return lowered + straight(vector, group)


def _branch(vector: Vector, statement: If) -> list[Stmt]:
    emitter = vector.emitter
    condition = vector.folded(statement.condition)
    if condition == all_of([]):
        return _pieces(vector, statement.then)
    before: list[Stmt] = []
    uniform = vector.kind(condition) == UNIFORM
    test = lower_expr(emitter, condition if uniform else vector.all_inside(condition), vector.base, before)
    with emitter.scope():
        then = _pieces(vector, statement.then)
    with emitter.scope():
        if uniform:
            return [*before, If(test, tuple(then), tuple(_pieces(vector, statement.orelse)))]
        single = lower_body(emitter, (statement.but(condition=condition),), vector.element)
        orelse = (vector.element_loop(single),)
        return [
            *before,
            If(test, tuple(then), orelse if statement.orelse else vector.edge(condition, orelse)),
        ]


def _is_gated(vector: Vector, statement: If) -> bool:
    """Whether a branch is one around stores of wholes, of what wide loads alone bring.

    Then the condition is one of the loads and stores, and what is computed between is so for all vectors.
    """
    group = [s for s in statement.then if isinstance(s, (Let, Store))]
    if statement.orelse or len(group) < len(statement.then) or vector.kind(statement.condition) == MIXED:
        return False
    condition = vector.folded(statement.condition)
    if condition == all_of([]) or vector.kind(condition) == UNIFORM or scalar_buffers(group):
        return False
    for part in group:
        if isinstance(part, Store) and (part.buffer.scope not in MEMORY or vector.access_width(part) == 1):
            return False
        for load, guards in guarded_loads(part.value):
            kinds = {vector.kind(guard) for guard in guards}
            named = any(_is_named(vector, guard) for guard in guards)
            if MIXED in kinds or named or len(guards) >= MOST_GUARDS or vector.load_width(load) == 1:
                return False
    return True


def _gated(vector: Vector, statement: If) -> list[Stmt]:
    """Loads under the condition, the elements, stores under it: whole ones or one by one."""
    emitter = vector.emitter
    condition = vector.folded(statement.condition)
    group = [s for s in statement.then if isinstance(s, (Let, Store))]
    vectors, elements, stores = _Group(vector), list[Stmt](), list[Stmt]()
    singles: list[Stmt] = []
    with emitter.scope():
        for part in group:
            vectors.source = part
            value = _with_vectors(vectors, part.value, set(), elements, (condition,))
            if isinstance(part, Let):
                elements.append(emitter.let(part.var, value).at(part.place))
                continue
            stores += _vector_stores(vectors, part, vector.access_width(part), value, elements)
            singles += lower_body(emitter, (part.but(value=_stored(stores[-1], vector)),), vector.element)
        holds: list[Stmt] = []
        test = lower_expr(emitter, vector.all_inside(condition), vector.base, holds)
        each = lower_expr(emitter, condition, vector.element, singles)
        edge = vector.element_loop([If(each, tuple(singles), ())])
        done = [
            *vectors.allocations, *([vector.element_loop(elements)] if elements else []),
            *holds, If(test, tuple(stores), (edge,)),
        ]  # fmt: skip
    emitter.rebind(vectors.before)
    vector.first += vectors.before
    return list(vector.edge(condition, tuple(done)))


def _stored(store: Stmt, vector: Vector) -> Load:
    """The element of the registers that a wide store takes."""
    assert isinstance(store, (VectorAdd, VectorStore))
    return Load(store.src.buffer, (vector.e,))


def straight(vector: Vector, group: list[Let | Store]) -> list[Stmt]:
    """Vector loads, the unrolled elements, vector stores."""
    loads, rest = _straight(vector, group)
    return [*loads, *rest]


def _straight(vector: Vector, group: list[Let | Store]) -> tuple[list[Stmt], list[Stmt]]:
    """The vector loads, and what follows them."""
    if not group:
        return [], []
    emitter = vector.emitter
    alone = scalar_buffers(group)
    vectors = _Group(vector)
    elements: list[Stmt] = []
    after: list[Stmt] = []
    for statement in group:
        vectors.source = statement
        value = _with_vectors(vectors, statement.value, alone, elements)
        if isinstance(statement, Let):
            elements.append(emitter.let(statement.var, value).at(statement.place))
            continue
        width = 1
        if statement.buffer.scope in MEMORY and statement.buffer.name not in alone:
            width = vector.access_width(statement)
        if width == 1:
            buffer, index = lower_access(
                emitter,
                statement,
                vector.element,
                elements,
                lambda x: lower_expr(emitter, x, vector.element, elements),
            )
            elements.append(statement.but(buffer=buffer, index=index, value=value, version=None))
        else:
            after += _vector_stores(vectors, statement, width, value, elements)
    loop: list[Stmt] = [vector.element_loop(elements)] if elements else []
    return vectors.before, [*vectors.allocations, *loop, *after]


def _vector_stores(group: _Group, store: Store, width: int, value: Expr, elements: list[Stmt]) -> list[Stmt]:
    """The accesses of a wide store, from the registers that hold its values already or from new ones."""
    vector = group.vector
    source = value.buffer if isinstance(value, Load) and value.index == (vector.e,) else None
    if source is None or source not in group.loads.values():
        source = vector.emitter.buffer(f"{store.buffer.name}_w", vector.width, store.buffer)
        group.allocations += group.placed([AllocLocal(source)])
        elements.append(Store(source, (vector.e,), value, place=store.place))
    stores: list[Stmt] = []
    word = VectorAdd if store.atomic else VectorStore
    for lead in vector.chunks(width):
        target = vector.memory(store, width, lead, stores)
        stores.append(word(target, Region(source, (Const(lead),), extent=(width,))))
    return group.placed(stores)


def _registers(group: _Group, load: Load, guards: Guards, alone: set[str]) -> Buffer | None:
    """The registers that a wide load fills, one for each load and its guards; None for a narrow load."""
    vector = group.vector
    if load.buffer.scope not in MEMORY or load.buffer.name in alone:
        return None
    # What was read under fewer conditions is there already, and the same.
    for known in range(len(guards)):
        if (load, guards[:known]) in group.loads:
            return group.loads[load, guards[:known]]
    if len(guards) > MOST_GUARDS or any(vector.kind(guard) == MIXED for guard in guards):
        return None
    # The load stands in front of the elements, where their names are not yet: only what is written out is.
    if any(_is_named(vector, guard) for guard in guards):
        return None
    width = vector.load_width(load)
    if width == 1:
        return None
    registers = group.loads.get((load, guards))
    if registers is None:
        registers = vector.emitter.buffer(f"{load.buffer.name}_v", vector.width, load.buffer)
        if width > vector.access_width(load):
            loads, moves = vector.load_pieces(load, width, registers, guards)
            group.before += group.placed(loads)
            group.allocations += group.placed([AllocLocal(registers), *moves])
        else:
            loads = [AllocLocal(registers), *vector.load(load, width, registers, guards)]
            group.before += group.placed(loads)
        group.loads[load, guards] = registers
    return registers


def _is_named(vector: Vector, guard: Expr) -> bool:
    """Whether a condition speaks of a name that the elements bind."""
    return not seen(guard).names.isdisjoint(vector.lets)


def _is_filled_under(group: _Group, value: Expr, guards: Guards) -> bool:
    """Whether a value is one of registers that these conditions guard: zeros where they do not hold."""
    return isinstance(value, Load) and any(
        registers is value.buffer and own[: len(guards)] == guards
        for (_, own), registers in group.loads.items()
    )


def _with_vectors(
    group: _Group, expr: Expr, alone: set[str], elements: list[Stmt], around: Guards = ()
) -> Expr:
    """The value of element `e`, with wide loads read from their registers."""
    vector = group.vector

    def lower(part: Expr, guards: Guards) -> Expr:
        if isinstance(part, Call) and part.word == "if_then_else":
            condition, a, b = part.args
            test = lower(condition, guards)
            inside = (*guards, condition)
            yes = lower(a, inside)
            if b == zero_of(a.dtype) and _is_filled_under(group, yes, inside):
                return yes
            return part.but(args=(test, yes, lower(b, (*guards, Arith("not", (condition,))))))
        if isinstance(part, Load):
            registers = _registers(group, part, guards, alone)
            if registers is not None:
                return Load(registers, (vector.e,))
            return lower_expr(vector.emitter, part, vector.element, elements)
        if isinstance(part, Var):
            return lower_expr(vector.emitter, part, vector.element, elements)
        below = map_children(part, lambda child: lower(child, guards))
        return refold(below) if below is not part else part

    return lower(expr, around)
