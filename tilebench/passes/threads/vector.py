"""Vectors of one thread: which accesses of an element body are one wide access, and under which test."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from typing import Any

from ...ir import (
    Arith,
    Buffer,
    Call,
    Const,
    Expr,
    If,
    Load,
    Region,
    Stmt,
    Store,
    Var,
    all_of,
    int32,
    zero_of,
)
from ...ir.arith import Linear, linear
from ...ir.dtypes import float32
from ...ir.expr import COMPARE
from ...ir.expr_walks import mentions, replaced
from ...ir.facts import Facts, conjuncts
from ...language.lowered.threads import FromPieces, LoadPieces, VectorLoad
from ...language.memory import AllocLocal
from ...language.structure import Unroll
from ...layout import SharedLayout
from ...machine import VECTOR_ADDS
from .addresses import lower_expr, shared_offset
from .emitter import Emitter
from .tiles import NOWHERE, Coordinates

MEMORY = ("global", "shared")
# A condition holds for all elements of a vector alike, is told by its two ends, or by neither.
UNIFORM, ENDS, MIXED = "uniform", "ends", "mixed"
# A load from any address is two accesses and a few shifts: as much as four accesses.
UNALIGNED_PAYS = 4


@dataclass
class Vector:
    """`width` elements in a row along the coordinate `var`, which names the first of them."""

    emitter: Emitter
    element: Coordinates
    var: Var
    width: int
    lets: dict[str, Expr] = field(default_factory=dict[str, Expr])
    # What is loaded in front of all that the body does: the loads of other vectors may stand beside it.
    first: list[Stmt] = field(default_factory=list[Stmt])
    # By identity; the expression is kept with the answer, so that its identity stays its own.
    _spelled: dict[int, tuple[Expr, Expr]] = field(default_factory=dict[int, "tuple[Expr, Expr]"])
    _kinds: dict[int, tuple[Expr, str]] = field(default_factory=dict[int, "tuple[Expr, str]"])
    _widths: dict[int, tuple[Any, int]] = field(default_factory=dict[int, "tuple[Any, int]"])
    _folded: dict[int, tuple[Expr, Facts, Expr]] = field(
        default_factory=dict[int, "tuple[Expr, Facts, Expr]"]
    )

    # -- analysis
    def folded(self, condition: Expr) -> Expr:
        """What of a condition is not proved for the elements of a vector."""
        facts = self.emitter.facts
        known = self._folded.get(id(condition))
        if known is None or known[1] is not facts:
            rest = fold_condition(self.emitter, condition, self.element)
            known = self._folded[id(condition)] = condition, facts, rest
        return known[2]

    def spelled(self, expr: Expr) -> Expr:
        """All names resolved but the vector's own coordinate."""
        known = self._spelled.get(id(expr))
        if known is None:
            spelled = replaced(expr, self.lets) if self.lets else expr
            lets = self.emitter.facts.lets
            # Of the coordinate's own name nothing is known, or it would be written out.
            own = self.var.name
            spelled = replaced(
                spelled, lets if own not in lets else {n: v for n, v in lets.items() if n != own}
            )
            known = self._spelled[id(expr)] = expr, spelled
        return known[1]

    def _varies(self, expr: Expr) -> bool:
        return mentions(expr, self.var.name)

    def _form(self, expr: Expr) -> tuple[Linear, int] | None:
        """The linear form and the factor of the coordinate, None where it is not linear in it."""
        form = linear(self.spelled(expr))
        factor = form.coefficient(self.var)
        if any(self._varies(term) for term, _ in form.terms if term != self.var):
            return None
        return form, factor

    def access_width(self, access: Load | Store) -> int:
        """The elements one aligned access can take; 1 where the elements are not neighbours."""
        if isinstance(access, Store) and access.atomic and not self._adds_vectors(access):
            return 1
        known = self._widths.get(id(access))
        if known is None:
            width = self._access_width(access.buffer, access.index, access.version)
            known = self._widths[id(access)] = access, width
        return known[1]

    def _adds_vectors(self, store: Store) -> bool:
        """Whether an atomic store of neighbours is one access on this machine."""
        plain = store.atomic == "add" and store.found is None and store.order == "relaxed"
        inside = store.buffer.scope == "global" and store.buffer.dtype == float32
        return plain and inside and VECTOR_ADDS in self.emitter.machine.features

    def load_width(self, load: Load) -> int:
        """The elements that one load takes: from any address where aligned ones would be many."""
        aligned, any_address = self.access_width(load), self._unaligned_width(load)
        return any_address if any_address >= UNALIGNED_PAYS * aligned else aligned

    def _unaligned_width(self, load: Load) -> int:
        """The elements of one access from any address; 0 where there is none."""
        buffer, machine = load.buffer, self.emitter.machine
        if buffer.scope != "global" or buffer.dtype.per_byte > 1 or not machine.unaligned_bytes:
            return 0
        width = min(self.width, buffer.dtype.elements_in(max(machine.unaligned_bytes)))
        if buffer.dtype.bytes_of(width) not in machine.unaligned_bytes or not self._are_neighbours(load):
            return 0
        last = buffer.shape[-1]
        return width if buffer.strides is None and isinstance(last, int) and last >= 2 * width else 0

    def _are_neighbours(self, access: Load) -> bool:
        """Whether the elements of a vector follow each other along the last dimension."""
        forms = [self._form(part) for part in access.index]
        factors = [form[1] if form is not None else None for form in forms]
        return factors[-1:] == [1] and not any(factor != 0 for factor in factors[:-1])

    def _around(self, load: Load, width: int) -> Expr:
        """Where the aligned pieces around the elements of a vector are inside their buffer.

        Behind a row there is another, but behind the last; before it too, which counts where the buffer
        starts anywhere.
        """
        if width == self.access_width(load):
            return all_of([])
        buffer, index = load.buffer, load.index
        tests: list[Expr] = []
        past = self.width + width - 1
        if not self._ends_aligned(buffer, width) or not self._starts_aligned(buffer, width):
            tests.append(
                _or_another_row(buffer, index, (index[-1] + past).compare("<=", buffer.shape[-1]), last=True)
            )
        if not self._starts_aligned(buffer, width):
            tests.append(_or_another_row(buffer, index, index[-1].compare(">=", width - 1), last=False))
        return all_of(tests)

    def _ends_aligned(self, buffer: Buffer, width: int) -> bool:
        if not all(isinstance(extent, int) for extent in buffer.shape):
            return False
        return buffer.dtype.bytes_of(buffer.size) % buffer.dtype.bytes_of(width) == 0

    def _starts_aligned(self, buffer: Buffer, width: int) -> bool:
        return buffer.align % buffer.dtype.bytes_of(width) == 0

    def _access_width(self, buffer: Buffer, index: tuple[Expr, ...], version: Expr | None) -> int:
        width = min(self.width, max(1, buffer.dtype.elements_in(self.emitter.machine.vector_bytes[0])))
        tile = self.emitter.shared.get(buffer.name)
        if tile is not None:
            width = width if version is None else gcd(width, tile.layout.cosize)
            return self._shared_width(tile.layout, index, width)
        width = min(width, max(1, buffer.dtype.elements_in(buffer.align)))
        step, offset = 0, Linear((), 0)
        for k, (part, stride) in enumerate(zip(index, buffer.element_strides, strict=True)):
            split = self._form(part)
            if split is None:
                return 1
            form, factor = split
            if factor and (stride != 1 or k != len(index) - 1):
                return 1
            step += factor
            along = form.times(stride) if isinstance(stride, int) and stride else linear(form.expr() * stride)
            offset = offset.plus(along)
        return gcd(width, self.emitter.facts.divisor_of(offset)) if step == 1 else 1

    def _shared_width(self, layout: SharedLayout, index: tuple[Expr, ...], width: int) -> int:
        """The same in a shared tile: what the layout keeps together, along the dimension that moves."""
        moved = False
        for dim, part in enumerate(index):
            split = self._form(part)
            if split is None:
                return 1
            form, factor = split
            if factor and (moved or factor != 1 or layout.run(dim) == 1):
                return 1
            if factor:
                moved = True
                width = gcd(width, layout.vector, self.emitter.facts.divisor_of(form))
        return width if moved else 1

    def kind(self, condition: Expr) -> str:
        """Whether a condition holds for all elements of a vector alike, or is told by its two ends."""
        known = self._kinds.get(id(condition))
        if known is None:
            known = self._kinds[id(condition)] = condition, self._kind(condition)
        return known[1]

    def _kind(self, condition: Expr) -> str:
        if not self._varies(self.spelled(condition)):
            return UNIFORM
        if isinstance(condition, Arith) and condition.op == "and":
            kinds = {self.kind(part) for part in condition.args}
            return MIXED if MIXED in kinds else ENDS if ENDS in kinds else UNIFORM
        if not _is_inequality(condition):
            return MIXED
        split = self._form(condition.args[0] - condition.args[1])  # type: ignore[attr-defined]
        if split is None:
            return MIXED
        form, factor = split
        edge = 1 if condition.op in ("<=", ">") else 0  # type: ignore[attr-defined]
        aligned = self.emitter.facts.divisor_of(form.plus(Linear((), 0), 1, -edge)) % self.width == 0
        return UNIFORM if factor == 1 and aligned else ENDS

    def ends_early(self, part: Arith) -> bool:
        """Whether a comparison holds for the first elements of a vector, as many as its sides differ by."""
        if part.op != "<" or any(side.dtype != int32 for side in part.args):
            return False
        split = self._form(part.args[0] - part.args[1])
        return split is not None and split[1] == 1

    def all_inside(self, condition: Expr) -> Expr:
        """The condition for all elements of the vector: a linear comparison is told by one end."""
        return self._at_ends(condition, worst=True)

    def any_inside(self, condition: Expr) -> Expr:
        """What holds where the condition does for an element: each comparison at the better of its ends."""
        return self._at_ends(condition, worst=False)

    def _at_ends(self, condition: Expr, worst: bool) -> Expr:
        last = {self.var.name: self.var + (self.width - 1)}
        tests: list[Expr] = []
        for part in conjuncts(condition):
            if self.kind(part) == UNIFORM:
                tests.append(part)
                continue
            assert isinstance(part, Arith)
            split = self._form(part.args[0] - part.args[1])
            rising = split is None or split[1] > 0
            ends_last = (rising == (part.op in ("<", "<="))) == worst
            tests.append(replaced(part, last) if ends_last else part)
        return all_of(tests)

    # -- emission
    @property
    def e(self) -> Var:
        """The number of an element in its vector."""
        assert self.element.shift is not None
        assert isinstance(self.element.shift[1], Var)
        return self.element.shift[1]

    @property
    def base(self) -> Coordinates:
        """The coordinates of the vector's first element, as code in front of its elements sees them."""
        first = (Const(0), *self.element.digits[1:])
        return Coordinates(self.element.map, self.element.vars, first, place=self.element.place)

    def element_loop(self, body: list[Stmt]) -> Unroll:
        """`body` for each element."""
        return Unroll(Const(self.width), (self.e,), tuple(body))

    def chunks(self, width: int) -> range:
        """The first elements of the accesses that the vector takes."""
        return range(0, self.width, width)

    def memory(self, access: Load | Store, width: int, lead: int, before: list[Stmt]) -> Region:
        """The region of one access, `lead` elements into the vector."""
        index = tuple(lower_expr(self.emitter, part, self.base, before) for part in access.index)
        tile = self.emitter.shared.get(access.buffer.name)
        if tile is not None:
            fast = _fast_dim(index, tile.layout, self.var)
            index = tuple(part + lead if k == fast else part for k, part in enumerate(index))
            offset = shared_offset(self.emitter, access.buffer.name, index, access.version, before)
            return Region(tile.flat, (offset,), extent=(width,))
        start = (*index[:-1], index[-1] + lead)
        return Region(access.buffer, start, extent=(1,) * (len(start) - 1) + (width,))

    def load(self, access: Load, width: int, registers: Buffer, guards: tuple[Expr, ...]) -> list[Stmt]:
        """Fill `registers` with a vector of memory; elements outside `guards` become zero."""
        condition = self.folded(all_of(list(guards)))
        if condition == all_of([]):
            return self._vector_loads(access, width, registers)
        tests: list[Stmt] = []
        if self.kind(condition) == UNIFORM:
            test = lower_expr(self.emitter, condition, self.base, tests)
            with self.emitter.scope():
                inside = self._vector_loads(access, width, registers)
            fill: Stmt = Store(registers, (self.e,), zero_of(access.dtype))
            return [*tests, If(test, tuple(inside), (self.element_loop([fill]),))]
        test = lower_expr(self.emitter, self.all_inside(condition), self.base, tests)
        with self.emitter.scope():
            inside = self._vector_loads(access, width, registers)
        return [*tests, If(test, tuple(inside), self._singly(access, registers, condition))]

    def load_pieces(
        self, access: Load, width: int, registers: Buffer, guards: tuple[Expr, ...]
    ) -> tuple[list[Stmt], list[Stmt]]:
        """The same from any address: the loads, and what makes elements of pieces, which waits for them."""
        condition = self.folded(all_of(list(guards)))
        around = fold_condition(self.emitter, self._around(access, width), self.element)
        pieces = self.emitter.buffer(f"{access.buffer.name}_p", 2 * self.width, access.buffer)
        loads: list[Stmt] = []
        moves: list[Stmt] = []
        for lead in self.chunks(width):
            source = self.memory(access, width, lead, loads)
            both = Region(pieces, (Const(2 * lead),), extent=(2 * width,))
            loads.append(LoadPieces(both, source))
            moves.append(FromPieces(Region(registers, (Const(lead),), extent=(width,)), both, source))
        first: list[Stmt] = [AllocLocal(pieces)]
        whole = all_of([self.all_inside(condition), around])
        if whole == all_of([]):
            return [*first, *loads], moves
        test = lower_expr(self.emitter, whole, self.base, first)
        edge = self._singly(access, registers, condition)
        return [*first, If(test, tuple(loads), ())], [If(test, tuple(moves), edge)]

    def _singly(self, access: Load, registers: Buffer, condition: Expr) -> tuple[Stmt, ...]:
        """Element by element, zero where the condition does not hold."""
        with self.emitter.scope():
            singles: list[Stmt] = []
            single = lower_expr(self.emitter, access, self.element, singles)
            holds = lower_expr(self.emitter, condition, self.element, singles)
            if condition != all_of([]):
                single = Call("if_then_else", (holds, single, zero_of(access.dtype)), type=access.dtype)
            singles.append(Store(registers, (self.e,), single))
        zeros = self.element_loop([Store(registers, (self.e,), zero_of(access.dtype))])
        return self.edge(condition, (self.element_loop(singles),), (zeros,))

    def edge(
        self, condition: Expr, singles: tuple[Stmt, ...], outside: tuple[Stmt, ...] = ()
    ) -> tuple[Stmt, ...]:
        """What is done of a vector that is not inside as a whole: element by element where one may be."""
        if condition == all_of([]):
            return singles
        before: list[Stmt] = []
        test = lower_expr(self.emitter, self.any_inside(condition), self.base, before)
        return (*before, If(test, singles, outside))

    def _vector_loads(self, access: Load, width: int, registers: Buffer) -> list[Stmt]:
        loads: list[Stmt] = []
        for lead in self.chunks(width):
            source = self.memory(access, width, lead, loads)
            loads.append(VectorLoad(Region(registers, (Const(lead),), extent=(width,)), source))
        return loads


def _or_another_row(buffer: Buffer, index: tuple[Expr, ...], test: Expr, last: bool) -> Expr:
    """The test, or that there is a row behind (before) that of the index, whose memory may be read."""
    others = [
        position.compare("<", extent - 1) if last else position.compare(">", 0)
        for position, extent in zip(index[:-1], buffer.shape[:-1], strict=True)
    ]
    return Arith("or", (*others[-1:], test)) if others else test


def _is_inequality(condition: Expr) -> bool:
    """Whether a condition is `<`, `<=`, `>` or `>=` of integers."""
    if not isinstance(condition, Arith) or condition.op not in COMPARE[:4]:
        return False
    return condition.args[0].dtype.is_integer


def _fast_dim(index: tuple[Expr, ...], layout: SharedLayout, var: Var) -> int | None:
    """The dimension the vector runs along: of neighbours, indexed with the vector's coordinate."""
    for dim, part in enumerate(index):
        if layout.run(dim) > 1 and mentions(part, var.name):
            return dim
    return layout.contiguous_dim


def fold_condition(emitter: Emitter, condition: Expr, element: Coordinates = NOWHERE) -> Expr:
    """The condition without the comparisons that are proved.

    Inside a vector the coordinate names the first element, and all of them must pass.
    """
    shift = {} if element.shift is None else {element.shift[0]: Var(element.shift[0]) + element.shift[1]}
    kept: list[Expr] = []
    for part in conjuncts(condition):
        shifted = replaced(part, shift) if shift else part
        if not (_is_inequality(part) and emitter.facts.proves(shifted)):
            kept.append(part)
    return all_of(kept)
