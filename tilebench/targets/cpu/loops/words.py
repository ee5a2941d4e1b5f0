"""Words of the `loops` stage: a kernel as loops over vectors, for targets whose block is one thread.

Tiles are scratch memory with a layout, an element-wise loop is taken several elements at a time, a
gemm names the register block of its micro-kernel. A region without extents is one element. Nobody
writes these words in a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....ir import (
    FALSE,
    ZERO,
    AllocStmt,
    Buffer,
    Expr,
    LoopStmt,
    OpStmt,
    Region,
    Stmt,
    Var,
    Word,
    accumulates,
    addresses,
    attribute,
    binder,
    body,
    node,
    operand,
    reads,
    result,
    writes,
)
from ....language.reduce import KINDS

# Bytes of a cache line.
LINE = 64


@dataclass(frozen=True)
class PaddedRows:
    """Rows one after the other, `stride` elements apart, `rows` of them (some for nobody, so that a
    register block may run over the end)."""

    stride: int
    rows: int

    @property
    def elements(self) -> int:
        return self.stride * self.rows


@dataclass(frozen=True)
class ColumnPanels:
    """A matrix cut into panels of `width` columns, each row-major: column c of row r is element
    `c // width * width * rows + r * width + c % width`. `transposed` does that to the transpose. With `pairs`
    two rows lie together, element beside element: that of row r at
    `r // 2 * 2 * width + c % width * 2 + r % 2` of its panel, which has an even number of rows."""

    width: int
    rows: int
    panels: int
    transposed: bool = False
    pairs: bool = False

    @property
    def elements(self) -> int:
        return self.width * self.rows * self.panels


@dataclass(frozen=True)
class RegisterBlock:
    """What a micro-kernel keeps in registers: `rows` x (`vectors` x `lanes`) accumulators."""

    rows: int
    vectors: int
    lanes: int


@node
class AllocScratch(AllocStmt):
    """A tile in the worker's scratch memory, from byte `offset` on.

    With `beside` it starts as far behind the start of a line as the array of that name does: what is aligned
    in the one is aligned in the other.
    """

    word = "alloc_scratch"
    scope = "scratch"
    buffer: Buffer = result()
    layout: PaddedRows | ColumnPanels | None = attribute(default=None)
    offset: int = attribute(default=0)
    beside: str | None = attribute(default=None)


def slack(alloc: AllocScratch) -> int:
    """Bytes behind a tile's last element: vectors may read past it, and it may start later in a line."""
    return LINE if alloc.beside is None else 2 * LINE


@node
class Vectors(LoopStmt):
    """`for j in T.vectors(stop, lanes=16)`: independent turns, `lanes` at a time, the rest masked.

    `unroll` vectors are written out in one turn of the main loop. With `overrun` the last vector is
    whole: every access is to scratch memory whose rows are padded for it. With `streaming` the store to
    global memory goes past the caches: a turn's vectors are whole lines, and stored at its end.
    """

    word = "vectors"
    stop: Expr = operand()
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()
    start: Expr = operand(default=ZERO)
    lanes: int = attribute(default=1)
    unroll: int = attribute(default=1)
    overrun: bool = attribute(default=False)
    streaming: bool = attribute(default=False)


@node
class MicroGemm(OpStmt):
    """`T.micro_gemm(A_s, B_s, C_l, m, n, k, block=...)`: C[:m, :n] += A[:m, :k] B[:k, :n] by register blocks.

    Transposes and `clear_accum` as in `T.gemm`. Elements of C outside m x n, up to the next whole
    register block, are nobody's and may change. `near` are boxes to bring into the cache meanwhile,
    because a copy will want them.
    """

    word = "micro_gemm"
    a: Region = reads()
    b: Region = reads()
    c: Region = accumulates(unless="clear_accum")
    m: Expr = operand()
    n: Expr = operand()
    k: Expr = operand()
    block: RegisterBlock | None = attribute(default=None)
    transpose_A: bool = attribute(default=False)
    transpose_B: bool = attribute(default=False)
    clear_accum: Expr = operand(default=FALSE)


@node
class PackTransposed(OpStmt):
    """`T.pack_transposed(B_s, B[n : n + 64, k : k + 32], rows, columns)`: `B_s[i, j] = B[n + i, k + j]`.

    Only `rows` x `columns` of it, those inside. B_s lies in panels of the transpose; blocks of `lanes` x
    `lanes` are turned in registers.
    """

    word = "pack_transposed"
    dst: Region = writes()
    src: Region = reads()
    rows: Expr = operand()
    columns: Expr = operand()
    lanes: int = attribute(default=1)


@node
class PackPairs(OpStmt):
    """`T.pack_pairs(B_s, B[k : k + 32, n : n + 64], rows, columns)`: panels of pairs from an array.

    `rows` x `columns` of the source are inside; with `fill` the rest of B_s becomes zero.
    """

    word = "pack_pairs"
    dst: Region = writes()
    src: Region = reads()
    rows: Expr = operand()
    columns: Expr = operand()
    lanes: int = attribute(default=1)
    fill: bool = attribute(default=False)


@node
class Prefetch(OpStmt):
    """`T.prefetch(A[i + 1, j])`: bring the element's line near; the address need not be inside the array."""

    word = "prefetch"
    src: Region = addresses()


@node
class Fold(OpStmt):
    """`T.fold_sum(s[i], X[i : i + 1, 0 : n])`: one element from a box, by its sum, greatest or least.

    Inside a loop over vectors each lane folds a box of its own; elsewhere the box's last dimension
    is taken in vectors, `chains` of them side by side. `clear=False` folds the old value in.
    """

    word = "fold"
    kind: str = attribute()
    dst: Region = accumulates(unless="clear")
    src: Region = reads()
    lanes: int = attribute(default=1)
    chains: int = attribute(default=1)
    clear: bool = attribute(default=True)

    def spelling(self) -> str:
        return f"fold_{self.kind}"

    def hidden(self) -> frozenset[str]:
        return frozenset({"kind"})


@node
class Accumulate(OpStmt):
    """`T.accumulate_sum(s[i], X[i, j])` in a loop over vectors along j: a fold of the values of all turns.

    Each lane keeps its own; they are combined into the element when the loop ends.
    """

    word = "accumulate"
    kind: str = attribute()
    dst: Region = accumulates(unless="clear")
    value: Expr = operand()
    clear: bool = attribute(default=True)

    def spelling(self) -> str:
        return f"accumulate_{self.kind}"

    def hidden(self) -> frozenset[str]:
        return frozenset({"kind"})


@node
class Running(OpStmt):
    """`T.running_sum(X[i, j], Y[i, j])` in a loop over vectors along j: the fold of
    this turn's value and all before it.

    The turns of such a loop are taken in their order.
    """

    word = "running"
    kind: str = attribute()
    dst: Region = writes()
    value: Expr = operand()

    def spelling(self) -> str:
        return f"running_{self.kind}"

    def hidden(self) -> frozenset[str]:
        return frozenset({"kind"})


VALUES = (PaddedRows, ColumnPanels, RegisterBlock)
WORDS = (
    *(
        (each.word, Word(each))
        for each in (AllocScratch, Vectors, MicroGemm, PackTransposed, PackPairs, Prefetch)
    ),
    *((f"fold_{kind}", Word(Fold, {"kind": kind})) for kind in KINDS),
    *((f"accumulate_{kind}", Word(Accumulate, {"kind": kind})) for kind in KINDS),
    *((f"running_{kind}", Word(Running, {"kind": kind})) for kind in KINDS),
)
