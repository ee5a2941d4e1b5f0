"""The packed register-blocked micro-kernel: C += A B on tiles in scratch memory.

A register block is `rows` x (`vectors` x lanes) accumulators. The loop over k loads `vectors`
vectors of B, broadcasts `rows` scalars of A, and does rows x vectors multiply-adds. What it wants:

* B in *column panels* as wide as the register block (`panel_layout`), so that it is one stream;
  copying a tile of a row-major matrix into panels is the packing.
* A in any strides (row-major with a padded row stride is as fast as row panels, measured).
* C in any row stride or in panels; `padded=True` on all three lets the last block run over ghost
  rows and lanes: no masks, two kernels to compile instead of five.

Products are summed from zero in registers over all of k and added to C once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....errors import TargetError
from ..llvm import Function, Index, Value, bytes_of, const, vector
from ..llvm.lanes import whole_steps
from ..machine import Isa
from ..numbers.convert import COMPUTE, convert, load_value, store_value, widen
from .pack import TileOperand, emit_pack

# Integer products are summed in float lanes, exactly, as long as every sum stays below 2^24.
_EXACT = {"int8": 1024, "uint8": 256}


@dataclass(frozen=True)
class Block:
    """A register block: `rows` x (`vectors` vectors), k unrolled `unroll` times."""

    rows: int
    vectors: int
    unroll: int = 1


@dataclass(frozen=True)
class PrefetchedRegion:
    """A region that will be copied after this gemm: `rows` rows of `row_bytes`, `stride` bytes apart.

    A gemm hardly uses the way to the outer caches; a copy waits for it. Spread over the register
    blocks, these prefetches bring the next tiles to the second-level cache. Measured on 1024^3 and
    1000x1100x1200 with the matrices in the third level: between -2 and +2 %, 5 ms more to compile,
    so leave it out unless measured better. An address need not be valid.
    """

    pointer: Value
    stride: Index
    rows: int
    row_bytes: int
    aligned: bool = False


def register_block(isa: Isa) -> Block:
    """The register block for an instruction set.

    With operands in cache on a quiet AVX-512 Xeon, 6x4, 9x3 and 8x3 vectors of 16 reached 0.97 to 1.0
    of the FMA peak and 12x2 0.94 to 0.98 (on the same machine under load all fell to 0.75 to 0.85).
    Of these 6x4 is taken because 64 columns divide the usual tiles. Other processors: not measured.
    """
    if isa.registers == 32:
        return Block(6, 4)
    return Block(6, 2) if isa.vector_bytes == 32 else Block(4, 2)


def compute_element(a: str, b: str, c: str) -> str:
    """The LLVM element type a gemm of these dtypes computes in.

    Raises `TargetError` for a combination that has no kernel.
    """
    if "float64" in (a, b, c):
        good = a == b == c == "float64"
        return _known("double" if good else "", a, b, c)
    if COMPUTE[c] == "float":
        return _known("float" if COMPUTE[a] == COMPUTE[b] == "float" else "", a, b, c)
    integers = all(each.startswith(("int", "uint")) for each in (a, b, c))
    if integers and c in ("int32", "uint32"):
        return "float" if a in _EXACT and b in _EXACT else "i32"
    if integers and c in ("int64", "uint64"):
        return "i64"
    return _known("", a, b, c)


def _known(found: str, a: str, b: str, c: str) -> str:
    if found:
        return found
    raise TargetError("the CPU has no gemm of {a} by {b} into {c}", a=a, b=b, c=c)


def panel_width(isa: Isa, compute: str = "float") -> int:
    """Columns of a panel: the width of the register block for the element type computed in."""
    return register_block(isa).vectors * isa.lanes(bytes_of(compute))


def row_stride(isa: Isa, columns: int, element_bytes: int) -> int:
    """A padded row stride for a row-major tile in scratch: whole vectors, never a multiple of 512 B.

    Rows a power of two apart would fall into the same few cache sets.
    """
    lanes = isa.lanes(element_bytes)
    stride = -(-columns // lanes) * lanes
    return stride + lanes if stride * element_bytes % 512 == 0 else stride


def emit_gemm(
    f: Function,
    a: TileOperand,
    b: TileOperand,
    c: TileOperand,
    m: Index,
    n: Index,
    k: Index,
    *,
    accumulate: bool | Value = True,
    block: Block | None = None,
    prefetch: Sequence[PrefetchedRegion] = (),
    most: tuple[int, int] | None = None,
) -> None:
    """Emit C[:m, :n] (+)= A[:m, :k] B[:k, :n] at the open block of `f`.

    m, n, k are the valid extents: ints, or i64 values known at run time; m and n may be 0, k is at
    least 1. For a
    transposed operand swap its strides (`TileOperand.transposed`): any strides are right, but B is
    only fast with column stride 1 or panels. `accumulate=False`, or an i1 value that is 0, writes
    the product alone. `prefetch` are regions to bring near meanwhile, spread evenly over a tile of
    `most` = (m, n) (needed with it when those are run-time values). A float16 or bfloat16 C is read,
    added to in float32 and rounded once.
    Raises `TargetError` for dtypes without a kernel.
    """
    compute = compute_element(a.dtype, b.dtype, c.dtype)
    limit = _EXACT.get(a.dtype, 0) and min(_EXACT[a.dtype], _EXACT.get(b.dtype, 0))
    emitter = GemmEmitter(f, a, b, c, f.value(m), f.value(n), compute, block or register_block(f.isa))
    if prefetch:
        emitter.spread(prefetch, most or (int(f.value(m).name), int(f.value(n).name)))
    k = f.value(k)
    if compute == "float" and limit and (k.integer is None or k.integer > limit):
        with f.loop(0, k, limit) as part:
            first = f.compare("ne", part.index, 0)
            add = accumulate if accumulate is True else f.binary("or", first, _flag(accumulate))
            emitter.run(part.index, f.imin(f.sub(k, part.index), limit), add)
        return
    emitter.run(Value("0", "i64"), k, accumulate)


def _flag(given: bool | Value) -> Value:
    return given if isinstance(given, Value) else Value(str(int(given)), "i1")


# A strip one vector wide takes 12 rows at once: 6, 4 and 2 divide it, so row padding is the same.
_STRIP_ROWS = 12


def padded_rows(rows: int) -> int:
    """Rows to allocate for an A or C tile that is to count as `padded`."""
    return -(-rows // _STRIP_ROWS) * _STRIP_ROWS


class GemmEmitter:
    """The loops around the register block of one gemm."""

    def __init__(
        self,
        f: Function,
        a: TileOperand,
        b: TileOperand,
        c: TileOperand,
        m: Value,
        n: Value,
        compute: str,
        block: Block,
    ) -> None:
        self.f, self.a, self.b, self.c = f, a, b, c
        self.m, self.n = m, n
        self.compute = compute
        self.block = block
        self.lanes = f.isa.lanes(bytes_of(compute))
        self.width = block.vectors * self.lanes
        self.shares: list[tuple[PrefetchedRegion, int, int]] = []
        for operand in (b, c):
            if operand.panel and operand.panel % self.lanes:
                raise TargetError(
                    "a panel of {panel} columns does not hold whole vectors of {lanes}",
                    panel=operand.panel,
                    lanes=self.lanes,
                )

    def spread(self, regions: Sequence[PrefetchedRegion], most: tuple[int, int]) -> None:
        """Give each register block the same number of lines of each region."""
        self.down = -(-most[0] // self.block.rows)
        blocks = self.down * max(1, most[1] // self.width)
        for region in regions:
            across = -(-region.row_bytes // 64) + (0 if region.aligned else 1)
            self.shares.append((region, across, -(-region.rows * across // blocks)))

    def bring_near(self, i: Value, j: Value) -> None:
        """The prefetches of the register block at (i, j)."""
        f = self.f
        if not self.shares:
            return
        turn = f.add(f.mul(f.binary("udiv", j, self.width), self.down), f.binary("udiv", i, self.block.rows))
        for region, across, count in self.shares:
            first = f.mul(turn, count)
            for number in range(count):
                line = f.add(first, number)
                row = f.binary("udiv", line, across)
                inside = f.mul(f.sub(line, f.mul(row, across)), 64)
                where = f.at(region.pointer, f.add(f.mul(row, region.stride), inside), "i8")
                f.prefetch(where)

    def bring_result(self, i: Value, j: Value) -> None:
        """The block of C, which lies in the second-level cache, to the first while the products are summed.

        Its 24 loads at the end would wait one after the other: 3 to 5 % of a 1024^3 product.
        """
        if self.accumulate is False or self.c.column != 1:
            return
        f, start = self.f, self.c.at(self.f, i, j)
        for row in range(self.block.rows):
            for byte in range(0, self.width * bytes_of(self.c.storage), 64):
                f.prefetch(f.at(f.at(start, f.mul(row, self.c.row), self.c.storage), byte, "i8"), 1)

    def run(self, k0: Value, k: Value, accumulate: bool | Value) -> None:
        f = self.f
        self.k0, self.k, self.accumulate = k0, k, accumulate
        padded = self.b.padded and self.c.padded
        # A rest that fills all but the last vector of the block goes through the full block.
        room = self.lanes - 1 if padded else 0
        wide = whole_steps(f, f.add(self.n, room), self.width)
        if not self._panels_fit():
            wide = Value("0", "i64")
        with f.loop(0, wide, self.width) as j:
            self.columns(j.index, self.block.vectors, None)
        rest = f.sub(self.n, wide)
        if rest.integer is not None and rest.integer <= 0:
            return
        # One more kernel body costs about 2 ms to compile: where a mask is free, masked strips do all.
        whole_rest = wide if f.isa.masked else f.add(wide, whole_steps(f, rest, self.lanes))
        narrow_end = self.n if padded or (rest.integer or 1) % self.lanes == 0 else whole_rest
        with f.loop(wide, narrow_end, self.lanes) as j:
            self.columns(j.index, 1, None)
        if padded or (rest.integer is not None and rest.integer % self.lanes == 0):
            return
        with f.loop(narrow_end, self.n, self.lanes) as j:
            self.columns(j.index, 1, f.lane_mask(f.sub(self.n, j.index), self.lanes))

    def _panels_fit(self) -> bool:
        """Whether a register block's columns never straddle two panels."""
        return all(not each.panel or each.panel % self.width == 0 for each in (self.b, self.c))

    def columns(self, j: Value, vectors: int, mask: Value | None) -> None:
        """All rows of one column strip: whole blocks of rows, then the rest by two and by one.

        With padded A and C the last block simply runs over rows that nobody reads: that costs no
        more time than narrower kernels, which cannot fill the FMA units, and saves compiling them.
        """
        f = self.f
        # One vector wide, a block needs at least 8 rows to keep two 4-cycle FMA units busy.
        rows = self.block.rows if vectors > 1 else _STRIP_ROWS
        if self.a.padded and self.c.padded:
            with f.loop(0, self.m, rows) as i:
                self.micro(i.index, j, rows, vectors, mask, self.block.unroll)
            return
        start = Value("0", "i64")
        for height in (rows, 2, 1) if vectors > 1 else (rows, 1):
            left = f.sub(self.m, start)
            if left.integer == 0:
                return
            end = f.add(start, whole_steps(f, left, height))
            unroll = self.block.unroll if height == rows else 1
            with f.loop(start, end, height) as i:
                self.micro(i.index, j, height, vectors, mask, unroll)
            start = end

    def micro(self, i: Value, j: Value, rows: int, vectors: int, mask: Value | None, unroll: int) -> None:
        """One register block: the loop over k and the update of C."""
        f = self.f
        if rows == self.block.rows and vectors == self.block.vectors:
            self.bring_near(i, j)
            self.bring_result(i, j)
        zero = const(0, vector(self.compute, self.lanes))
        sums: list[Value] = [zero] * (rows * vectors)
        a_at, b_at = self.a.at(f, i, self.k0), self.b.at(f, self.k0, j)
        whole = whole_steps(f, self.k, unroll) if unroll > 1 else self.k
        start = Value("0", "i64")
        for end, times in ((whole, unroll), (self.k, 1)):
            if start == end:
                continue
            # The addresses walk by themselves: LLVM's search for such induction variables is slow.
            with f.loop(start, end, times, [a_at, b_at, *sums], runs=unroll == 1) as loop:
                a_now, b_now, *inside = loop.carried
                for turn in range(times):
                    inside = self.step(a_now, b_now, turn, rows, vectors, mask, inside)
                a_next = f.at(a_now, f.mul(times, self.a.column), self.a.storage)
                loop.next = [a_next, f.at(b_now, f.mul(times, self.b.row), self.b.storage), *inside]
            (a_at, b_at, *sums), start = loop.results, end
        self.update(i, j, rows, vectors, mask, sums)

    def step(
        self,
        a_at: Value,
        b_at: Value,
        ahead: int,
        rows: int,
        vectors: int,
        mask: Value | None,
        sums: Sequence[Value],
    ) -> list[Value]:
        f, a, b = self.f, self.a, self.b
        b_row = f.at(b_at, f.mul(ahead, b.row), b.storage)
        right = [self.load_b(b_row, each * self.lanes, mask) for each in range(vectors)]
        a_column = f.at(a_at, f.mul(ahead, a.column), a.storage)
        out = list(sums)
        for row in range(rows):
            raw = load_value(f, f.at(a_column, f.mul(row, a.row), a.storage), a.dtype)
            left = f.splat(self.to_compute(raw, a.dtype), self.lanes)
            for v in range(vectors):
                slot = row * vectors + v
                out[slot] = self.multiply_add(left, right[v], out[slot])
        return out

    def multiply_add(self, left: Value, right: Value, total: Value) -> Value:
        if self.compute in ("i32", "i64"):
            return self.f.add(self.f.mul(left, right), total)
        return self.f.fma(left, right, total)

    def to_compute(self, value: Value, dtype: str) -> Value:
        goal = {"float": "float32", "double": "float64", "i32": "int32", "i64": "int64"}[self.compute]
        return value if COMPUTE[dtype] == self.compute else convert(self.f, value, dtype, goal)

    def load_b(self, row: Value, column: int, mask: Value | None) -> Value:
        f, b = self.f, self.b
        if b.panel or b.column == 1:
            return self.to_compute(
                load_value(f, f.at(row, column, b.storage), b.dtype, self.lanes, mask), b.dtype
            )
        # Column stride other than 1: lane by lane. Right everywhere, slow; pack B to avoid it.
        raw = const(0, vector(b.storage, self.lanes))
        for lane in range(self.lanes):
            offset = f.mul(column + lane, b.column)
            if mask is not None:
                inside = f.cast("zext", f.extract(mask, lane), "i64")
                offset = f.mul(offset, inside)
            raw = f.insert(raw, f.load(f.at(row, offset, b.storage), b.storage), lane)
        return self.to_compute(widen(f, raw, b.dtype), b.dtype)

    def update(
        self, i: Value, j: Value, rows: int, vectors: int, mask: Value | None, sums: Sequence[Value]
    ) -> None:
        """Add the sums to C, or write them."""
        f, c = self.f, self.c
        start = c.at(f, i, j)
        for row in range(rows):
            for v in range(vectors):
                total = self.from_compute(sums[row * vectors + v])
                offset = f.add(f.mul(row, c.row), v * self.lanes)
                self.update_vector(f.at(start, offset, c.storage), total, mask)

    def update_vector(self, pointer: Value, total: Value, mask: Value | None) -> None:
        f, c, add = self.f, self.c, self.accumulate
        if c.column != 1 and not c.panel:
            raise TargetError("the accumulator of a gemm needs columns next to each other")
        if add is not False:
            old = load_value(f, pointer, c.dtype, self.lanes, mask)
            op = "fadd" if COMPUTE[c.dtype] in ("float", "double") else "add"
            summed = f.binary(op, old, total)
            total = summed if add is True else f.select(add, summed, total)
        store_value(f, total, pointer, c.dtype, mask)

    def from_compute(self, value: Value) -> Value:
        goal = COMPUTE[self.c.dtype]
        if goal == "i32" and self.compute == "float":
            return self.f.cast("fptosi", value, vector("i32", self.lanes))
        return value


__all__ = [
    "Block",
    "PrefetchedRegion",
    "TileOperand",
    "compute_element",
    "emit_gemm",
    "emit_pack",
    "padded_rows",
    "panel_width",
    "register_block",
    "row_stride",
]
