"""Results that iterations of `T.Parallel` form together: `T.alloc_reducer` and its kin.

While a kernel is traced a reducer is a fragment, and an update of it a store of the old value combined with a
new one. At the end of the trace a loop with updates becomes one that fills a tile, and a reduction of that
(`closing/open_reducers.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DTypeError, LanguageError
from ..ir import Arith, Call, Const, DType, Expr, Load, Store
from ..ir import expr as fold
from .copy import copy, fill
from .memory import alloc_fragment
from .notes import note_unused
from .reduce import BITS
from .tracing.builder import Builder, inside_kernel, shown
from .tracing.dtype_words import plain
from .tracing.promote import convert
from .tracing.stores import stored
from .tracing.values import BufferView, ElementRef

if TYPE_CHECKING:
    from .tracing.taken import DTypeLike, Number, Shape, Tile

OPERATIONS = ("sum", "max", "min", *BITS)


def alloc_reducer(
    shape: Shape, dtype: DTypeLike, op: str = "sum", replication: str | None = None
) -> BufferView:
    """A fragment whose elements the iterations of a T.Parallel form together.

    `op` is "sum", "max", "min" or, of integers, "bitand", "bitor" or "bitxor". Begun with `T.clear`, `T.fill`
    or `T.reducer_init`, it is updated by `r[i] += x` (`r[i] = T.max(r[i], x)`, `r[i] ^= x`) or
    `T.reducer_update(r[i], x)`, where i are variables of the loop, in its order, and holds the result after
    the loop. Where it lies (`replication`) is the compiler's choice.
    Raises `LanguageError` for another operation, `DTypeError` for bits of what is no integer.
    """
    if op not in OPERATIONS:
        raise LanguageError(
            "T.alloc_reducer has no operation {op!r}", op=op, known=", ".join(map(repr, OPERATIONS)),
            expected="one of {known}", found="{op!r}",
        )  # fmt: skip
    if op in BITS and not plain(dtype).is_integer:
        raise DTypeError("a reducer of {op} takes integers, found {dtype}", op=op, dtype=plain(dtype))
    if replication not in (None, "all", "none"):
        raise LanguageError("T.alloc_reducer has no replication {name!r}", name=replication)
    made = alloc_fragment(shape, dtype)
    inside_kernel("T.alloc_reducer").reducers[made.name] = op
    return made


def _reducer(given: object, word: str) -> tuple[Builder, Any, str]:
    builder = inside_kernel(word)
    name = given.name if isinstance(given, (BufferView, ElementRef)) else ""
    if name not in builder.reducers:
        raise LanguageError(
            "{word} takes what T.alloc_reducer made", word=word, text=shown(given), found="{text}"
        )
    return builder, given, builder.reducers[name]


def reducer_init(reducer: BufferView, value: Number | None = None) -> None:
    """Begin a reducer: with `value`, or with what changes no result (0, the least, the most)."""
    _, view, op = _reducer(reducer, "T.reducer_init")
    fill(view, nothing(op, view.buffer.dtype).value if value is None else value)


def nothing(op: str, dtype: DType) -> Const:
    """What changes no result of an operation: 0, the least, the most, or all bits."""
    if op == "bitand":
        value = dtype.most if dtype.kind == "uint" else -1
    else:
        value = dtype.least if op == "max" else dtype.most if op == "min" else 0
    return Const(float(value) if dtype.is_float else value, type=dtype)


def reducer_update(element: ElementRef, value: Number) -> None:
    """Combine an element of a reducer with a value: `T.reducer_update(r[i], x)`.

    In a T.Parallel each iteration does so, elsewhere the block once, as T.atomic_add does. Raises
    `LanguageError` for what is no element of a reducer.
    """
    builder, target, op = _reducer(element, "T.reducer_update")
    if not isinstance(target, ElementRef):
        raise LanguageError(
            "T.reducer_update takes an element: T.reducer_update({name}[i], x)", name=target.name
        )
    buffer = target.view.buffer
    before = Load(buffer, target.index, place=builder.place)
    new = stored(value, buffer.dtype)
    builder.emit(Store(buffer, target.index, combined(op, before, new), place=builder.place))


def combined(op: str, a: Expr, b: Expr) -> Expr:
    """Two values made one."""
    b = convert(b, a.dtype)
    if op in BITS:
        return Arith(BITS[op], (a, b), place=b.place)
    return fold.add(a, b) if op == "sum" else Call(op, (a, b), type=a.dtype, place=b.place)


def finalize_reducer(reducer: BufferView, dst: Tile | None = None, batch: int = 1) -> None:
    """The end of a reducer's updates; with `dst` its results are copied there. `batch` (how many results
    threads exchange at once) is the compiler's to choose."""
    _, view, _ = _reducer(reducer, "T.finalize_reducer")
    note_unused("T.finalize_reducer", batch=None if batch == 1 else batch)
    if dst is not None:
        copy(view, dst)


__all__ = ["alloc_reducer", "finalize_reducer", "reducer_init", "reducer_update"]
