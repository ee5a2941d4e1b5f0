"""A row of a target's instruction table: all that passes have to know of an instruction.

The row is what the choice of instructions, the inference of layouts, the ring of a pipeline and the
cost model read; the code behind it is found by the same name in the table of lowerings. A new
instruction is a row, a lowering, and the words that it lowers to.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import TargetError
from ..layout import Fragment

# `group` of an instruction that all threads of a block carry out together.
WHOLE_BLOCK = 0


@dataclass(frozen=True)
class MatrixLoad:
    """An instruction that brings matrices of `rows` rows of `row_bytes` from shared memory into registers.

    Each thread names one row, and gets 4 bytes of one: thread t those of row `t // 4` from byte `t % 4 * 4`
    on, of each of up to `most` matrices. Of elements of `turned` bytes it can hand out the transposed matrix.
    """

    name: str
    rows: int
    row_bytes: int
    most: int
    turned: int = 0


@dataclass(frozen=True)
class OperandForm:
    """How one operand of an instruction has to lie.

    `field` is the operation's field that it fills. `memory` are the scopes it may lie in; empty: any.
    `fragment` maps (thread of the group, register) to a coordinate of the instruction's own tile, in
    the order of the region's dimensions as the operation is written without transposes; None: any
    layout. `load` brings the operand there from shared memory where its layout has the rows for it; None:
    element by element. Where the instruction reads shared memory itself, `panels` are the bytes of the
    swizzle atoms that it can read (`layout.atom_layout`), widest first; empty: any layout. Their rows run
    along k, or with `either_way` along the other dimension too.
    """

    field: str
    memory: tuple[str, ...] = ()
    fragment: Fragment | None = None
    load: MatrixLoad | None = None
    panels: tuple[int, ...] = ()
    either_way: bool = False


@dataclass(frozen=True)
class Boxes:
    """What the boxes of an instruction can be that copies a box of an array at a time.

    An array has at most `rank` dimensions, a box `extent` elements in each; addresses and strides of an
    array are multiples of `align` bytes. In shared memory its rows follow each other, or lie in panels of
    so many bytes as in one of the `swizzles` (`layout.atom_layout`). At most `pieces` boxes make up a tile.
    """

    rank: int = 5
    extent: int = 256
    align: int = 16
    swizzles: tuple[int, ...] = (128, 64, 32)
    pieces: int = 32


@dataclass(frozen=True)
class Instruction:
    """One instruction of a target, for operands of given dtypes.

    `operation` is the word of the operation that it carries out (`gemm`, `copy`, `reduce`, ...) and
    `name` the field's name of the instruction. `dtypes` are those of the operation's regions, in the
    order of its fields; empty: any. `shape` is the tile of one instruction (m, n, k of a gemm; bytes
    of a copy). `group` is how many threads act as one: 1, a warp, a warp group, or `WHOLE_BLOCK`.
    An asynchronous one says in `completes` which mechanism tells that it is done. `asked` is the field of
    the operation that has to be true for it, because it is less exact than others. A sum of products that the
    instruction forms is exact enough up to `exact_k` terms (0: of any length). `cost` counts issue
    cycles of a warp for one instruction; `needs` are features that the machine must have.

    An `optional` one asks more than its dtypes say: a pass that knows its rules takes it, or a schedule. One
    instruction may cover its shape as often as `most` says along each extent (empty: once), at a cost that
    grows alike; groups then share a tile by its rows first. `by_proxy` says that it reads shared memory past
    the view that threads have of it: what they wrote there is seen after a fence of its own. `clears`: it can
    start a sum at zero.
    A copy by one with `boxes` is done by no thread, in boxes of that kind.

    Raises `TargetError` as it is made where the row contradicts itself.
    """

    operation: str
    name: str
    dtypes: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    operands: tuple[OperandForm, ...] = ()
    group: int = 1
    asynchronous: bool = False
    completes: str = ""
    asked: str = ""
    exact_k: int = 0
    cost: float = 1.0
    needs: tuple[str, ...] = ()
    optional: bool = False
    most: tuple[int, ...] = ()
    by_proxy: bool = False
    clears: bool = False
    boxes: Boxes | None = None

    def __post_init__(self) -> None:
        for wrong, what in self._contradictions():
            if wrong:
                raise TargetError(
                    "the instruction {name} for {operation} is no sound row: {what}",
                    name=self.name, operation=self.operation, what=what,
                )  # fmt: skip

    def _contradictions(self) -> list[tuple[bool, str]]:
        fields = [operand.field for operand in self.operands]
        fragments = [operand.fragment for operand in self.operands if operand.fragment is not None]
        return [
            (not self.operation or not self.name, "it needs an operation and a name"),
            (any(extent < 1 for extent in self.shape), f"its shape {self.shape} holds nothing"),
            (len(set(fields)) != len(fields), f"an operand is described twice in {fields}"),
            (self.group < 0, f"{self.group} threads cannot act as one"),
            (
                bool(self.most) and len(self.most) != len(self.shape),
                f"it may cover {self.most} tiles of {self.shape}",
            ),
            (self.cost <= 0, f"its cost {self.cost} is no number of cycles"),
            (
                self.asynchronous != bool(self.completes),
                "what completes it is said of asynchronous ones alone",
            ),
            (
                any(fragment.threads != self.group for fragment in fragments),
                f"a fragment is spread over another number of threads than {self.group}",
            ),
            (
                any(not fragment.is_bijective() for fragment in fragments),
                "a fragment holds an element twice or not at all",
            ),
            (
                any(len(operand.memory) == 0 and operand.fragment is not None for operand in self.operands),
                "an operand with a fragment must say that it lies in one",
            ),
        ]

    def operand(self, field: str) -> OperandForm:
        """How the operand of that field has to lie; anything goes where the row says nothing."""
        for form in self.operands:
            if form.field == field:
                return form
        return OperandForm(field)
