"""Where the elements of an array in global memory lie: `T.annotate_layout` of a parameter, as a statement.

`for i, j in T.annotate_layout(A): T.lies_at(j, i)` says that element (i, j) of A lies where (j, i) of an
array with the extents of these indices, row-major, would. It holds for the whole `T.Kernel` in which it
stands and for no other, and does nothing: `passes/bounded/place_elements.py` rewrites the accesses, and the
reference sees the caller's array through it.
"""

from __future__ import annotations

from ..errors import LayoutError, Place
from ..ir import (
    Buffer,
    Expr,
    Function,
    LoopStmt,
    OpStmt,
    Stmt,
    Var,
    Word,
    attribute,
    binder,
    body,
    node,
    operand,
    substitute,
)
from ..ir.node import ADDRESSES
from ..ir.stmt import statements
from ..layout.permutation import Permutation
from .structure import KernelLaunch

PLACED = frozenset({"tile", "scheduled"})


@node
class LiesAt(OpStmt):
    """`T.lies_at(j, i // 8, i % 8)`: the place of an element, in `T.annotate_layout`."""

    word = "lies_at"
    stages = PLACED
    index: tuple[Expr, ...] = operand(star=True)


@node
class AnnotatedLayout(LoopStmt):
    """`for i, j in T.annotate_layout(A):` with one `T.lies_at(...)`: where the elements of A lie."""

    word = "annotate_layout"
    stages = PLACED
    of: Buffer = attribute(effect=ADDRESSES)
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()

    @property
    def index(self) -> tuple[Expr, ...]:
        """The indices that the place of an element has. `LayoutError` where they are not said."""
        if len(self.body) == 1 and isinstance(self.body[0], LiesAt):
            return self.body[0].index
        raise LayoutError("the body of T.annotate_layout is one T.lies_at(...)", at=self.place)

    @property
    def permutation(self) -> Permutation:
        """The order of the array's elements. Raises `LayoutError`, at the line, where it is none."""
        buffer, names = self.of, [var.name for var in self.vars]
        if len(names) != buffer.rank:
            raise LayoutError(
                "the layout of {name} has {count} variables, and {name} {rank} dimensions", at=self.place,
                name=buffer.name, count=len(names), rank=buffer.rank,
            )  # fmt: skip
        if buffer.strides is not None or buffer.dtype.per_byte > 1:
            raise LayoutError(
                "a layout orders the elements of an array without gaps, of whole bytes each: {name} is none",
                at=self.place, name=buffer.name, hint="pass it as a contiguous array",
            )  # fmt: skip
        try:
            return Permutation(buffer.shape, names, self.index)
        except LayoutError as error:
            error.place = error.place or self.place
            raise


def placements(kernel: Function | KernelLaunch) -> dict[str, Permutation]:
    """The order of the elements of each array that has one of its own in a kernel, by name.

    Raises `LayoutError` where two are said of one array.
    """
    found: dict[str, AnnotatedLayout] = {}
    for stmt in statements(kernel.body):
        if isinstance(stmt, AnnotatedLayout):
            before = found.setdefault(stmt.of.name, stmt)
            if not same_place(before, stmt):
                raise clash(stmt.of.name, stmt.place, before.place)
    return {name: stmt.permutation for name, stmt in found.items()}


def same_place(one: AnnotatedLayout, two: AnnotatedLayout) -> bool:
    """Whether two annotations say the same; the names of their variables do not matter."""
    if one.of != two.of:
        return False
    names = dict(zip([var.name for var in two.vars], one.vars, strict=True))
    return one.index == tuple(substitute(part, names) for part in two.index)


def clash(name: str, here: Place | None, there: Place | None) -> LayoutError:
    """The error of two annotations of one buffer that say different things."""
    return LayoutError(
        "{name} is given two different layouts", name=name, at=here,
        also=[("the other one is given here", there)], hint="leave one of them out",
    )  # fmt: skip


WORDS = ((AnnotatedLayout.word, Word(AnnotatedLayout)), (LiesAt.word, Word(LiesAt)))
