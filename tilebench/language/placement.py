"""Where the elements of an array in global memory lie: `T.annotate_layout` of a parameter, as a statement.

`for i, j in T.annotate_layout(A): T.lies_at(j, i)` says that element (i, j) of A lies where (j, i) of an
array with the extents of these indices, row-major, would. It holds for the whole kernel, wherever it
stands, and does nothing: `passes/place_elements.py` rewrites the accesses, and the reference sees the
caller's array through it.
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
from ..ir.effects import effects_in
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


def placements(function: Function) -> dict[str, Permutation]:
    """The order of the elements of each array that has one of its own, by name.

    Raises `LayoutError` where two are said of one array, or a kernel that uses the array says none.
    """
    found: dict[str, AnnotatedLayout] = {}
    launches = [each for each in function.body if isinstance(each, KernelLaunch)]
    for launch in launches:
        for stmt in statements(launch.body):
            if isinstance(stmt, AnnotatedLayout):
                before = found.setdefault(stmt.of.name, stmt)
                if not same_place(before, stmt):
                    raise clash(stmt.of.name, stmt.place, before.place)
    for launch in launches if len(launches) > 1 and found else ():
        _refuse_unsaid(launch, found)
    return {name: stmt.permutation for name, stmt in found.items()}


def _refuse_unsaid(launch: KernelLaunch, found: dict[str, AnnotatedLayout]) -> None:
    effects = effects_in(launch)
    said = {each.buffer.name for each in effects if isinstance(each.node, AnnotatedLayout)}
    for effect in effects:
        name = effect.buffer.name
        if name in found and name not in said:
            raise LayoutError(
                "{name} has a layout of its own in another kernel of this function, and none here",
                at=effect.node.place or launch.place, name=name, hint="annotate it in each",
                also=[("the layout is given here", found[name].place)],
            )  # fmt: skip


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
