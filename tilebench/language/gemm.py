"""Matrix products of tiles: `T.gemm`."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any

from ..errors import DTypeError, LanguageError, ShapeError
from ..ir import (
    FALSE,
    TRUE,
    Arith,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    If,
    Load,
    OpStmt,
    Region,
    Store,
    Var,
    Word,
    accumulates,
    attribute,
    decision,
    node,
    operand,
    reads,
    whole,
)
from ..ir.dtypes import ALL, bytes_of
from .copy import Fill
from .lowered.decisions import Instr
from .memory import AllocFragment
from .notes import note_unused
from .own_products import check_own, product_of_own
from .stages import TILES
from .structure import Parallel
from .tracing.arithmetic import truth
from .tracing.builder import Builder, for_tiles, holds_nothing, inside_kernel
from .tracing.expressions import Value
from .tracing.operands import TileOperand, on_chip_reach, part_of
from .tracing.promote import expr_of
from .tracing.stores import stored

if TYPE_CHECKING:
    from .tracing.taken import Condition, Tile


@node
class Gemm(OpStmt):
    """`T.gemm(A, B, C)`: `C[m, n] += op(A)[m, k] * op(B)[k, n]`, summed in C's dtype or wider.

    `policy` splits the tile over warps (`square`, `full_row`, `full_col`, `4x2`; None: nobody chose,
    `square` is taken); `clear_accum` (a bool expression) starts from zero instead of C. `allow_tf32` lets
    float32 operands be cut off to 10 bits of mantissa, `fast_accum` lets sums of 8-bit floats stay in a
    matrix unit's own. `a_within`/`b_within` appear in `bounded` where an operand is a global region. An
    asynchronous instruction completes when its `token` has been waited for.
    """

    word = "gemm"
    stages = TILES
    a: Region = reads()
    b: Region = reads()
    c: Region = accumulates(unless="clear_accum")
    transpose_A: bool = attribute(default=False)
    transpose_B: bool = attribute(default=False)
    policy: str | None = attribute(default=None, used="laid_out")
    clear_accum: Expr = operand(default=FALSE)
    label: str = attribute(default="")
    allow_tf32: bool = attribute(default=False)
    fast_accum: bool = attribute(default=False)
    by: Instr | None = decision("laid_out", default=None, early=True)
    token: str = attribute(default="")

    @property
    def mnk(self) -> tuple[int, int, int]:
        """Extents m, n, k of the product; the regions must have extents."""
        a, b = self.a.extent, self.b.extent
        if a is None or b is None:
            raise ValueError("a gemm on head addresses has no extents yet")
        m, k = (a[-1], a[-2]) if self.transpose_A else (a[-2], a[-1])
        return m, (b[-2] if self.transpose_B else b[-1]), k


WORDS = ((Gemm.word, Word(Gemm)),)


# -- as a kernel writes it


class GemmWarpPolicy(Enum):
    """How the warps of a block split the result: in both directions, along rows, along columns."""

    Square = "square"
    FullRow = "full_row"
    FullCol = "full_col"


def is_split(policy: Any) -> bool:
    """Whether a policy says how many warps there are along rows and columns: `4x2`."""
    return isinstance(policy, str) and re.fullmatch(r"[1-9]\d{0,2}x[1-9]\d{0,2}", policy) is not None


# Dtype of both operands -> dtypes of the accumulator. Operands of 8 bits may differ within their row; those
# of 4 bits are summed like those of 8.
_ACCUMULATORS = {
    "float16": ("float16", "float32"),
    "bfloat16": ("bfloat16", "float32"),
    "float32": ("float32",),
    "float64": ("float64",),
    "float8_e4m3fn": ("float16", "float32"),
    "float8_e5m2": ("float16", "float32"),
    "int8": ("int32",),
    "uint8": ("int32",),
    "int16": ("int32",),
    "uint16": ("int32",),
    "int32": ("int32",),
    "uint32": ("uint32",),
    "int64": ("int64",),
    "uint64": ("uint64",),
}
_MIXED = ({"float8_e4m3fn", "float8_e5m2"}, {"int8", "uint8"})


def gemm_dtypes() -> tuple[tuple[str, str, str], ...]:
    """The dtypes of A, B and C that every target has to have code for. Operands of 4 bits, which `T.gemm`
    takes too, become some of these where a target has no row for them (`widen_operands`)."""
    pairs = [
        (a, b) for a in _ACCUMULATORS for b in _ACCUMULATORS if a == b or any({a, b} <= m for m in _MIXED)
    ]
    return tuple((a, b, c) for a, b in pairs for c in _ACCUMULATORS[a])


def gemm(
    A: Tile,
    B: Tile,
    C: Tile,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy | str | None = None,
    clear_accum: Condition = False,
    k_pack: int = 1,
    mbar: None = None,
    annotations: Any = None,
    *,
    label: str = "",
    allow_tf32: bool = False,
    fast_accum: bool = False,
) -> None:
    """Add a product of tiles: `C[m, n] += op(A)[m, k] * op(B)[k, n]`.

    A is (m, k), or (k, m) with `transpose_A`; B is (k, n), or (n, k) with `transpose_B`; both are
    shared tiles, fragments, or regions of global buffers; leading dimensions must be 1. C is a
    whole fragment. Floats are multiplied and summed in float32 (float64 in its own), from C's old value
    on, and the sum is rounded to C's dtype once, at the end of each T.gemm: a float16 C is rounded once a
    step of a loop. Integers are summed in C's dtype and wrap; bytes may be summed into a float32. Where C is
    a thread's own array (`T.alloc_local`) each thread adds the whole product to its own; then operands are
    its own arrays too, shared tiles, or regions of global buffers.
    `clear_accum` (a bool, or a condition such as `k == 0`) starts from zero. `label` is an address for
    schedules. Float32 operands keep all their bits unless `allow_tf32` says that they may be cut off to 10
    bits of mantissa, which tensor cores from sm_80 on multiply. Of 8-bit floats a matrix unit keeps about 14
    bits of a sum: what 128 terms give is added to C in float32, unless `fast_accum`. Raises `ShapeError` or
    `DTypeError`, with both tiles' lines, where operands do not fit or an option means nothing for them,
    `LanguageError` for an option that is not here yet.
    """
    builder = inside_kernel("T.gemm")
    if mbar is not None:
        raise LanguageError("T.gemm(mbar=...) belongs to the asynchronous words of Blackwell, not here yet")
    note_unused("T.gemm", k_pack=None if k_pack == 1 else k_pack, annotations=annotations)
    a, b, c = (part_of(each, "T.gemm") for each in (A, B, C))
    a, b = _checked(a, b, c, transpose_A, transpose_B)
    _check_promises(a, allow_tf32, fast_accum)
    start = truth(clear_accum.expr) if isinstance(clear_accum, Value) else expr_of(bool(clear_accum))
    if holds_nothing(a.region) or holds_nothing(b.region):
        _add_nothing(c, start)
        return
    product = Gemm(
        a.region, b.region, c.region, transpose_A=bool(transpose_A), transpose_B=bool(transpose_B),
        policy=_policy(policy), clear_accum=start, label=label,
        allow_tf32=bool(allow_tf32), fast_accum=bool(fast_accum), place=builder.place,
    )  # fmt: skip
    _emit(builder, product, _in_whole_numbers(a, c))


def _emit(builder: Builder, product: Gemm, whole_sum: bool) -> None:
    """The statements of a product."""
    if product.c.buffer.scope == "local":
        turned = product.transpose_A, product.transpose_B
        product_of_own(builder, product.a, product.b, product.c, turned, product.clear_accum, whole_sum)
    elif whole_sum:
        _by_whole_numbers(product)
    else:
        builder.emit(product)


def _checked(
    a: TileOperand, b: TileOperand, c: TileOperand, transpose_a: bool, transpose_b: bool
) -> tuple[TileOperand, TileOperand]:
    """The operands with their extents, which fit each other."""
    if c.view.scope != "local":
        for_tiles("T.gemm")
    _check_places(a, b, c)
    a, b = _with_extents(a, b, c, transpose_a, transpose_b)
    _check_extents(a, b, c, transpose_a, transpose_b)
    _check_dtypes(a, b, c)
    return a, b


def _in_whole_numbers(a: TileOperand, c: TileOperand) -> bool:
    """Whether a product of bytes is added to a float32: its sums are formed as integers, exactly."""
    return bytes_of(a.view.buffer.dtype).name in ("int8", "uint8") and c.view.buffer.dtype.name == "float32"


def _by_whole_numbers(product: Gemm) -> None:
    """The product into a tile of int32, and that added to C, rounded once."""
    builder, c = for_tiles("T.gemm"), product.c.buffer
    whole_sum = Buffer(builder.unique(f"{c.name}_sum"), c.shape, ALL["int32"], "fragment")
    builder.emit(AllocFragment(whole_sum, place=builder.place))
    builder.emit(product.but(c=whole(whole_sum).at(builder.place), clear_accum=TRUE))
    names = tuple(Var(builder.unique(f"i{axis}")) for axis in range(c.rank))
    old = Load(c, names, place=builder.place)
    zero = Const(0.0, type=c.dtype)
    start = Call("if_then_else", (product.clear_accum, zero, old), type=c.dtype, place=builder.place)
    value: Expr = old if product.clear_accum == FALSE else zero if product.clear_accum == TRUE else start
    added = Arith("+", (value, Cast(Load(whole_sum, names), type=c.dtype)), place=builder.place)
    store = Store(c, names, added, place=builder.place)
    builder.emit(Parallel(c.extents, names, (store,), place=builder.place))


def _add_nothing(c: TileOperand, start: Expr) -> None:
    """A product of no terms: at most C is set to zero."""
    builder = for_tiles("T.gemm")
    zero = Fill(c.region, stored(0, c.view.buffer.dtype), place=builder.place)
    if start != expr_of(False):
        builder.emit(zero if start == expr_of(True) else If(start, (zero,), (), place=builder.place))


def _policy(given: GemmWarpPolicy | str | None) -> str | None:
    if given is None or (isinstance(given, str) and is_split(given)):
        return given
    try:
        return GemmWarpPolicy(given).value
    except ValueError:
        raise LanguageError(
            "T.gemm has no policy {policy!r}", policy=given,
            hint="T.GemmWarpPolicy.Square, T.GemmWarpPolicy.FullRow or T.GemmWarpPolicy.FullCol, or warps "
            'along rows and columns: "4x2"',
        ) from None  # fmt: skip


def _check_places(a: TileOperand, b: TileOperand, c: TileOperand) -> None:
    if c.view.scope == "local":
        check_own(a, b, c)
    elif c.view.scope != "fragment" or not c.region.is_whole:
        raise LanguageError(
            "the result of T.gemm must be a whole fragment",
            name=c.name,
            scope=c.view.scope,
            found="{name}, in {scope} memory",
            hint="accumulate in T.alloc_fragment(...) and copy the sum out with T.copy",
            also=[c.declared],
        )
    for part in (a, b):
        if part.view.scope == "local" and c.view.scope != "local":
            raise LanguageError(
                "{name} is each thread's own, and {c} is the block's: T.gemm takes tiles of the block then",
                name=part.name, c=c.name, also=[part.declared, c.declared],
                hint="T.alloc_shared(...) for the operand, or T.alloc_local(...) for the sum of each thread",
            )  # fmt: skip
        if part.view.scope == "fragment" and not part.region.is_whole:
            raise LanguageError("a fragment is an operand of T.gemm only as a whole: {name}", name=part.name)
        if part.view.ndim < 2:
            raise ShapeError(
                "T.gemm takes matrices, {name} has one dimension", name=part.name, also=[part.declared]
            )
    if c.view.ndim < 2:
        raise ShapeError("T.gemm takes matrices, {name} has one dimension", name=c.name, also=[c.declared])


def _with_extents(
    a: TileOperand, b: TileOperand, c: TileOperand, transpose_a: bool, transpose_b: bool
) -> tuple[TileOperand, TileOperand]:
    """Head addresses as boxes: m and n come from C, k from the other operand."""
    if a.extent is not None and b.extent is not None:
        return a, b
    m, n = c.view.shape[-2:]
    if a.extent is not None:
        k = a.extent[-2] if transpose_a else a.extent[-1]
    elif b.extent is not None:
        k = b.extent[-1] if transpose_b else b.extent[-2]
    else:
        raise ShapeError(
            "both operands of this gemm are head addresses, so nothing says how long k is",
            hint="write one of them as a region: {a}[i : i + block_M, k : k + block_K]",
            a=a.name,
        )
    return _boxed(a, (k, m) if transpose_a else (m, k)), _boxed(b, (n, k) if transpose_b else (k, n))


def _boxed(part: TileOperand, matrix: tuple[int, int]) -> TileOperand:
    if part.extent is not None:
        return part
    extent = (1,) * (part.view.ndim - 2) + matrix
    on_chip_reach(part, extent, "T.gemm")
    return TileOperand(part.view, part.region.but(extent=extent))


def _check_extents(
    a: TileOperand, b: TileOperand, c: TileOperand, transpose_a: bool, transpose_b: bool
) -> None:
    for part in (a, b, c):
        if any(each != 1 for each in (part.extent or ())[:-2]):
            raise ShapeError(
                "the leading extents of an operand of T.gemm must be 1",
                what=part.described,
                found="{what}",
                also=[part.declared],
                hint="T.copy the slice to a shared tile of two dimensions, and multiply that",
            )
    # Axis of each letter in each operand, counted from the end.
    m_a, k_a = (-1, -2) if transpose_a else (-2, -1)
    k_b, n_b = (-1, -2) if transpose_b else (-2, -1)
    for letter, x, x_axis, y, y_axis in (("m", a, m_a, c, -2), ("n", b, n_b, c, -1), ("k", a, k_a, b, k_b)):
        first, second = (x.extent or ())[x_axis], (y.extent or ())[y_axis]
        if first != second:
            raise ShapeError(
                "the operands of this gemm disagree on {letter}",
                letter=letter,
                x=_axis(x, x_axis, first, transpose_a if x is a else transpose_b),
                y=_axis(y, y_axis, second, transpose_b if y is b else False),
                expected="the same {letter} in both",
                found="{x}; {y}",
                also=[x.declared, y.declared],
            )


def _axis(part: TileOperand, axis: int, extent: int, transposed: bool) -> str:
    flag = ", transposed" if transposed else ""
    return f"{extent} in dimension {part.view.ndim + axis} of {part.name} ({part.described}{flag})"


def _check_promises(a: TileOperand, allow_tf32: bool, fast_accum: bool) -> None:
    """What is allowed has to mean something for the operands."""
    dtype = a.view.buffer.dtype
    for asked, option, meant in (
        (allow_tf32, "allow_tf32", dtype.name == "float32"),
        (fast_accum, "fast_accum", dtype.is_float and dtype.bits == 8),
    ):
        if asked and not meant:
            raise DTypeError(
                "{option}=True means nothing for operands of {dtype}", option=option, dtype=dtype,
                expected="operands of {which}", also=[a.declared],
                which="float32" if option == "allow_tf32" else "8-bit floats",
            )  # fmt: skip


def _check_dtypes(a: TileOperand, b: TileOperand, c: TileOperand) -> None:
    names = {bytes_of(part.view.buffer.dtype).name for part in (a, b)}
    if len(names) > 1 and not any(names <= each for each in _MIXED):
        raise DTypeError(
            "the operands of T.gemm have different dtypes",
            x=f"{a.name} is {a.view.buffer.dtype}, {b.name} is {b.view.buffer.dtype}",
            found="{x}",
            hint="copy one of them into a tile of the other's dtype",
            also=[a.declared, b.declared],
        )
    if _in_whole_numbers(a, c):
        return
    allowed = _ACCUMULATORS.get(bytes_of(a.view.buffer.dtype).name, ())
    if c.view.buffer.dtype.name not in allowed:
        raise DTypeError(
            "T.gemm of {dtype} cannot be summed in {acc}",
            dtype=a.view.buffer.dtype,
            acc=c.view.buffer.dtype,
            known=" or ".join(allowed),
            expected="an accumulator of {known}" if allowed else "operands of 8 bits or wider",
            also=[a.declared, c.declared],
        )
