"""What a kernel says of its values: `T.assume` of what holds, `T.annotate_safe_value` of what lies outside.

Both are statements of the first stages, and `passes/bounded/bound_accesses.py`, which tests whether accesses
are inside, makes of them what it knows and what it writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import LanguageError
from ..ir import Buffer, Cast, Const, Expr, OpStmt, Word, attribute, node, operand
from ..ir.node import ADDRESSES
from .tracing.arithmetic import truth
from .tracing.builder import in_trace, inside_kernel, shown
from .tracing.expressions import Value
from .tracing.promote import expr_of, literal
from .tracing.stores import stored
from .tracing.values import BufferView

if TYPE_CHECKING:
    from .tracing.taken import Condition, Number

__all__ = ["annotate_safe_value", "assume"]
PROMISED = frozenset({"tile", "scheduled"})


@node
class Assume(OpStmt):
    """`T.assume(condition)`: it holds from here on, to the end of the body. The reference checks it."""

    word = "assume"
    stages = PROMISED
    condition: Expr = operand()


@node
class SafeValue(OpStmt):
    """`T.annotate_safe_value(A, value)`: what a read outside A gives, in the whole kernel."""

    word = "annotate_safe_value"
    stages = PROMISED
    of: Buffer = attribute(effect=ADDRESSES)
    value: Expr = operand()


WORDS = tuple((each.word, Word(each)) for each in (Assume, SafeValue))


# -- as a kernel writes them


def assume(cond: Condition) -> None:
    """Say that a condition holds here, so that what follows from it is not tested: `T.assume(n % 128 == 0)`.

    It is the kernel's own promise: where it is broken, accesses of a card may leave their arrays; a processor
    tests them all the same. The reference, and with it `kernel.check`, raise `LanguageError` then.
    """
    builder = in_trace("T.assume")
    condition = truth(cond.expr) if isinstance(cond, Value) else expr_of(bool(cond))
    if condition == expr_of(True):
        return
    if condition == expr_of(False):
        raise LanguageError("what T.assume says never holds")
    builder.say(Assume(condition, place=builder.place))


def annotate_safe_value(safe_value_map: Mapping[BufferView, Number]) -> None:
    """What reads outside of arrays give, instead of 0, in the whole kernel: `{A: -T.infinity("float32")}`.

    A value is a constant, converted to the array's dtype. Raises `LanguageError` for one that is none, for
    memory on chip, and where two values are given for one array.
    """
    builder = inside_kernel("T.annotate_safe_value")
    if not isinstance(safe_value_map, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person's own
        raise LanguageError(
            "T.annotate_safe_value takes {{buffer: value}}", text=shown(safe_value_map), found="{text}"
        )
    for buffer, given in safe_value_map.items():
        if not isinstance(buffer, BufferView) or buffer.scope != "global":  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LanguageError(
                "T.annotate_safe_value is for arrays in global memory", text=shown(buffer), found="{text}"
            )
        if buffer.name in builder.views:
            root = builder.views[buffer.name].name
            raise LanguageError(
                "{name} is a view of {root}: give {root} the safe value", name=buffer.name, root=root
            )
        value = _folded(stored(given, buffer.buffer.dtype))
        if not isinstance(value, Const):
            raise LanguageError(
                "the safe value of {name} is a constant", name=buffer.name, text=shown(given), found="{text}"
            )
        body = builder.frames[1].statements
        before = next((s for s in body if isinstance(s, SafeValue) and s.of.name == buffer.name), None)
        if before is not None and before.value != value:
            raise LanguageError(
                "{name} is given two safe values", name=buffer.name, also=[("the other one", before.place)]
            )
        if before is None:
            body.insert(0, SafeValue(buffer.buffer, value, place=builder.place))


def _folded(value: Expr) -> Expr:
    """A constant that is converted to a float of another width, as a constant of that width."""
    if isinstance(value, Cast) and isinstance(value.value, Const) and value.type.is_float:
        return literal(value.value.value, value.type)
    return value
