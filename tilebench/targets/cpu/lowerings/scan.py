"""Running sums: along rows by vectors that hand their last sum on, along columns by whole rows."""

from __future__ import annotations

from ....ir import Arith, Buffer, Call, Cast, Const, Expr, Load, Region, Stmt, Store, Var
from ....ir.dtypes import DType, float32
from ....language.accumulation import reduction_dtype
from ....language.memory import AllocVar
from ....language.reduce import Scan
from ....language.structure import Serial
from ..llvm import bytes_of
from ..loops.lowering import Lowering
from ..loops.vectors import nest
from ..loops.words import Running, Vectors
from ..loops.work import Work
from ..numbers.convert import COMPUTE


def scan(work: Work, old: Scan) -> list[Stmt]:
    """The loops of a running sum."""
    src, dst = work.swapped(old.src).buffer, work.swapped(old.dst).buffer
    axis = old.dim % src.rank
    total = reduction_dtype(old.kind, old.src.buffer.dtype, old.dst.buffer.dtype)
    total = float32 if COMPUTE[total.name] == "float" else total
    vars_ = [work.fresh("ijklmn"[d % 6]) for d in range(src.rank)]
    line = _Line(work, old, src, dst, vars_, axis, total)
    if axis == src.rank - 1:
        return line.along()
    return line.across() if dst.dtype == total else line.one_by_one()


class _Line:
    """One scan: `vars_` go over the elements, that of `axis` over the steps of a sum."""

    def __init__(
        self, work: Work, old: Scan, src: Buffer, dst: Buffer, vars_: list[Var], axis: int, total: DType
    ) -> None:
        self.work, self.old, self.src, self.dst = work, old, src, dst
        self.vars, self.axis, self.total = vars_, axis, total
        self.stops = [Const(extent) for extent in src.extents]

    def index(self, step: Expr) -> tuple[Expr, ...]:
        """The element at a step of the sum."""
        last = Const(self.src.extents[self.axis] - 1)
        place = Arith("-", (last, step)) if self.old.reverse else step
        return tuple(place if d == self.axis else var for d, var in enumerate(self.vars))

    def value(self, step: Expr) -> Expr:
        return _cast(Load(self.src, self.index(step), place=self.old.place), self.total)

    def joined(self, a: Expr, b: Expr) -> Expr:
        """Two values of a line made one."""
        return Arith("+", (a, b)) if self.old.kind == "sum" else Call("max", (a, b), type=self.total)

    def nothing(self) -> Const:
        """What a line starts from."""
        start = self.total.least if self.old.kind == "max" else 0
        return Const(float(start) if self.total.is_float else start, type=self.total)

    def around(self, inner: tuple[Stmt, ...], left_out: set[int]) -> list[Stmt]:
        """Serial loops over the other dimensions."""
        outer = [d for d in range(len(self.vars)) if d not in left_out]
        return list(nest([self.vars[d] for d in outer], [self.stops[d] for d in outer], inner))

    def along(self) -> list[Stmt]:
        """A sum within rows."""
        var, place = self.vars[self.axis], self.old.place
        sums = Running(
            self.old.kind, Region(self.dst, self.index(var), place=place), self.value(var), place=place
        )
        wide = max(bytes_of(COMPUTE[dtype.name]) for dtype in (self.src.dtype, self.total))
        lanes = self.work.isa.vector_bytes // wide
        loop = Vectors(self.stops[self.axis], (var,), (sums,), lanes=lanes, place=place)
        return self.around((loop,), {self.axis})

    def across(self) -> list[Stmt]:
        """Sums beside each other: a row is the one before it and the source's."""
        var, place, last = self.vars[self.axis], self.old.place, len(self.vars) - 1
        before = Load(self.dst, self.index(var - 1), place=place)
        start = self.value(Const(0))
        if self.old.kind == "max" and self.total.is_float:
            start = self.joined(self.nothing(), start)  # a NaN in front loses too
        first = Store(self.dst, self.index(Const(0)), start, place=place)
        further = Store(self.dst, self.index(var), self.joined(before, self.value(var)), place=place)
        lanes = self.work.isa.vector_bytes // bytes_of(COMPUTE[self.total.name])
        rows = [
            Vectors(self.stops[last], (self.vars[last],), (store,), lanes=lanes, place=place)
            for store in (first, further)
        ]
        steps = Serial(self.stops[self.axis], (var,), (rows[1],), start=Const(1), place=place)
        return self.around((rows[0], steps), {self.axis, last})

    def one_by_one(self) -> list[Stmt]:
        """A sum at a time, in a scalar: where the result is too narrow to be added to."""
        var, place = self.vars[self.axis], self.old.place
        total = Buffer(self.work.names.fresh("sum"), (), self.total, "var")
        added = Store(total, (), self.joined(Load(total, ()), self.value(var)), place=place)
        kept = Store(self.dst, self.index(var), _cast(Load(total, ()), self.dst.dtype), place=place)
        line: tuple[Stmt, ...] = (
            AllocVar(total, init=self.nothing(), place=place),
            Serial(self.stops[self.axis], (var,), (added, kept), place=place),
        )
        return self.around(line, {self.axis})


def _cast(value: Expr, dtype: DType) -> Expr:
    return value if value.dtype == dtype else Cast(value, type=dtype)


LOWERINGS = (Lowering(Scan, scan),)
