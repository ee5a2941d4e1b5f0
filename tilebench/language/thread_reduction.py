"""TileLang's idiom for a sum over threads of a block, and products of bytes that one thread adds up.

    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.cast(0, "float32")]), "reduce_scope", handle):
        T.evaluate(T.tvm_thread_allreduce(T.uint32(1), part[0], True, total[0], tk, dtype="handle"))

A fragment with an element for each thread is reduced along the dimensions of the threads that are named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import DTypeError, LanguageError, ShapeError
from ..ir import Arith, Buffer, Call, Cast, Expr, Load, Store, Var, int32, whole
from .memory import AllocFragment
from .reduce import Reduce
from .threads.block import BlockThreads, block_of
from .tracing.builder import Builder, for_tiles, inside_kernel
from .tracing.expressions import Value
from .tracing.promote import expr_of
from .tracing.stores import store_element
from .tracing.values import BufferView, ElementRef, RegionRef

_BYTES = ("int8", "uint8")

if TYPE_CHECKING:
    from .tracing.taken import Number, Tile


@dataclass(frozen=True)
class CommReducer:
    """How two values are combined: `sum`, `max` or `min`."""

    kind: str


@dataclass(frozen=True)
class AttrSpec:
    """`with T.attr(reducer, "reduce_scope", ...):`, waiting for its body."""

    reducer: CommReducer

    def __enter__(self) -> NoReturn:
        raise LanguageError("T.attr belongs in the body of a @T.prim_func")

    def __exit__(self, *_: object) -> None:
        return None


def comm_reducer(combine: Callable[[Any, Any], Any], identity: Sequence[Number]) -> CommReducer:
    """How `T.tvm_thread_allreduce` combines two values: a sum, `T.max` or `T.min` of them.

    `identity` is the value that changes none. Raises `LanguageError` for another function.
    """
    kinds = {expr_of(each).dtype for each in identity}
    if len(kinds) == 1:
        a, b = (Var(name, type=next(iter(kinds))) for name in ("x", "y"))
        made = expr_of(combine(Value(a), Value(b)))
        if isinstance(made, Arith) and made.op == "+" and set(made.args) == {a, b}:
            return CommReducer("sum")
        if isinstance(made, Call) and made.word in ("max", "min") and set(made.args) == {a, b}:
            return CommReducer(made.word)
    raise LanguageError(
        "T.comm_reducer combines two values by something else than a sum, T.max or T.min",
        expected="lambda x, y: x + y, with one identity",
    )


def attr(node: CommReducer, key: str, value: Number | None = None) -> AttrSpec:
    """`with T.attr(T.comm_reducer(...), "reduce_scope", ...):` says how the reduction inside combines.

    Raises `LanguageError` for other attributes.
    """
    if key != "reduce_scope" or not isinstance(node, CommReducer):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person's own
        raise LanguageError(
            "T.attr({key!r}) is TileLang's, not here yet", key=key,
            expected='T.attr(T.comm_reducer(...), "reduce_scope", ...)',
        )  # fmt: skip
    return AttrSpec(node)


def evaluate(value: Number | None = None) -> None:
    """What an expression does by itself has been done: `T.evaluate(T.tvm_thread_allreduce(...))`."""
    inside_kernel("T.evaluate")


def tvm_thread_allreduce(
    size: Number, value: Number, condition: bool, result: Number, *threads: Number, dtype: str = "handle"
) -> None:
    """Combine `value` over the threads along the dimensions whose numbers are named; all get the `result`.

    `result` is an element that is assigned to. How, the `with T.attr(...)` around it says, or a sum. Raises
    `LanguageError` for another number than those of `T.get_thread_binding`.
    """
    word = "T.tvm_thread_allreduce"
    builder = for_tiles(word)
    block = block_of(builder)
    if not isinstance(result, ElementRef) or condition is not True:
        raise LanguageError("{word} takes (1, value, True, element, numbers of threads)", word=word)
    coordinates = block.coordinates(builder)
    axes = [_axis(each, coordinates, word) for each in threads]
    total = _reduced(builder, block, expr_of(value), axes)
    rest = tuple(var for axis, var in enumerate(coordinates) if axis not in axes)
    index = rest or tuple(expr_of(0) for _ in total.shape)
    store_element(result, Value(Load(total, index, place=builder.place)))


def _axis(number: object, coordinates: tuple[Var, ...], word: str) -> int:
    expr = number.expr if isinstance(number, Value) else None
    if expr not in coordinates:
        raise LanguageError(
            "{word} reduces over threads by their numbers", word=word, expected="tk = T.get_thread_binding(1)"
        )
    return coordinates.index(expr)  # type: ignore[arg-type]


def _reduced(builder: Builder, block: BlockThreads, value: Expr, axes: list[int]) -> Buffer:
    """The fragment of the results, an element for each thread along the dimensions that are left."""
    place = builder.place
    found = Buffer(builder.unique("parts"), block.extents, value.dtype, "fragment")
    builder.emit(AllocFragment(found, place=place))
    builder.emit(Store(found, block.coordinates(builder), value, place=place))
    for axis in sorted(axes, reverse=True):
        shape = (*found.extents[:axis], *found.extents[axis + 1 :]) or (1,)
        result = Buffer(builder.unique("combined"), shape, value.dtype, "fragment")
        builder.emit(AllocFragment(result, place=place))
        dim = -1 if axis == found.rank - 1 else axis
        builder.emit(Reduce(builder.reducer or "sum", whole(found), whole(result), dim=dim, place=place))
        found = result
    return found


def dp4a(A: Tile, B: Tile, C: Tile) -> None:
    """`C[0] += A[0] * B[0] + A[1] * B[1] + A[2] * B[2] + A[3] * B[3]`, of bytes, summed in int32.

    Each is a buffer, or the first of elements that follow each other. Raises `ShapeError` for other sides,
    `DTypeError` for elements of A and B that are no bytes, and of C that are no int32.
    """
    inside_kernel("T.dp4a")
    target = _elements(C, 1)[0]
    total, sides = target.expr, (_elements(A, 4), _elements(B, 4))
    for side, known in ((sides[0][0], _BYTES), (sides[1][0], _BYTES), (target, ("int32",))):
        if side.dtype.name not in known:
            raise DTypeError(
                "T.dp4a sums products of bytes in int32, and {name} is of {dtype}", name=side.name,
                dtype=side.dtype, known=" or ".join(known), expected="{known}",
                also=[("{name} is declared here", side.view.place)],
            )  # fmt: skip
    for a, b in zip(*sides, strict=True):
        product = Arith("*", tuple(Cast(side.expr, type=int32) for side in (a, b)))
        total = Arith("+", (total, product))
    store_element(target, Value(total))


def _elements(given: object, count: int) -> list[ElementRef]:
    """The first elements of a side."""
    if isinstance(given, ElementRef):
        view, start = given.view, given.index
    elif isinstance(given, RegionRef):
        view, start = given.view, given.region.start
    elif isinstance(given, BufferView):
        view, start = given, tuple(expr_of(0) for _ in given.shape)
    else:
        raise ShapeError("T.dp4a takes arrays, or elements of arrays")
    return [ElementRef(view, (*start[:-1], start[-1] + k)) for k in range(count)]


__all__ = ["attr", "comm_reducer", "dp4a", "evaluate", "tvm_thread_allreduce"]
