"""Expressions over all lanes at once: each gives an array of one value a lane, or a number all share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir import Arith, Buffer, Call, Cast, Const, Expr, Extern, Load, Reinterpret, Var
from ..ir.dtypes import boolean
from ..ir.expr import LOGIC
from ..language.meanings.extern import meaning_of
from ..language.meanings.rounding import number_in
from .arithmetic import apply, computed, convert, operate, settle
from .refusal import refuse
from .registers import LaneRegisters
from .state import Mask, Value

OWN = ("local", "var")
_where: Any = np.where


def uniform(value: Any) -> bool:
    """Whether all lanes share the value."""
    return not hasattr(value, "ndim") or value.ndim == 0


class LaneExpressions(LaneRegisters):
    """What an expression gives each lane; accesses in it are made by the active lanes alone."""

    functions: Mapping[str, Callable[..., Any]]

    def value(self, expr: Expr, mask: Mask) -> Value:
        """The value of an expression for the active lanes; what idle lanes hold means nothing."""
        kind = type(expr)
        if kind is Var:
            return self.values[expr.name]  # type: ignore[attr-defined]
        if kind is Const:
            return constant(expr)  # type: ignore[arg-type]
        if isinstance(expr, Load):
            return self._load(expr, mask)
        if isinstance(expr, Arith):
            return self._arith(expr, mask)
        if isinstance(expr, Cast):
            return _cast(expr, self.value(expr.value, mask))
        if isinstance(expr, Call):
            return self._call(expr, mask)
        raise InternalError("the simulator has no expression {name}", at=expr.place, name=type(expr).__name__)

    def register_of(
        self, buffer: Buffer, index: tuple[Expr, ...], mask: Mask, node: Any, count: int = 1
    ) -> Any:
        """The number of a register of a thread's own buffer, by its index expressions."""
        if not index:
            return 0
        return self.register(buffer, self.value(index[0], mask), mask, node, count)

    def _load(self, expr: Load, mask: Mask) -> Value:
        buffer = expr.buffer
        if buffer.scope in OWN:
            number = self.register_of(buffer, expr.index, mask, expr)
            value = self.get(buffer, number, 1, mask, expr)[0]
            value = value.copy() if isinstance(number, int) else value
        else:
            value = self.fetch(expr, buffer, [self.value(e, mask) for e in expr.index], 1, mask)[0]
        kind = computed(buffer.dtype)
        return value if kind == value.dtype else value.astype(kind)

    def _arith(self, expr: Arith, mask: Mask) -> Value:
        op, args = expr.op, expr.args
        if op in LOGIC:
            return self._logic(expr, mask)
        dtype = args[0].dtype
        total = self.value(args[0], mask)
        if len(args) == 1:
            if op == "-" and not dtype.is_float:
                zero = np.asarray(0).astype(computed(dtype))
                return operate("-", zero, total, dtype, expr, self.data, mask)
            return -total if op == "-" else settle(~total, dtype, expr, self.data, mask)
        for arg in args[1:]:
            total = operate(op, total, self.value(arg, mask), dtype, expr, self.data, mask)
        return total

    def _logic(self, expr: Arith, mask: Mask) -> Value:
        """`and` and `or` stop where the answer is known, so that a guard guards what stands behind it."""
        if expr.op == "not":
            value = self.value(expr.args[0], mask)
            return not value if isinstance(value, bool) else ~value
        stop = expr.op == "or"
        total: Value = self.value(expr.args[0], mask)
        for arg in expr.args[1:]:
            if uniform(total):
                if bool(total) == stop:
                    return total
                total = self.value(arg, mask)
                continue
            undecided: Any = ~total if stop else total
            inner: Any = undecided if mask is None else undecided & mask
            total = total | self.value(arg, inner) if stop else total & self.value(arg, inner)
        return total

    def _call(self, expr: Call, mask: Mask) -> Value:
        if expr.word == "thread_id":
            return self.tid
        if expr.word == "if_then_else":
            return self._select(expr, mask)
        args = [self.value(arg, mask) for arg in expr.args]
        if expr.word in ("shfl_xor", "shfl_down", "shfl"):
            return self._shuffle(expr, args, mask)
        if expr.word in ("vote_ballot", "vote_match"):
            return self._vote(expr, args[0], mask)
        if expr.word in ("min", "max") and all(isinstance(arg, int) for arg in args):
            return min(args) if expr.word == "min" else max(args)
        if isinstance(expr, Extern):
            return apply(meaning_of(expr), args, expr.type, expr, self.data, mask)
        function = self.functions.get(expr.word)
        if function is None:
            raise InternalError(
                "the simulator has no function {word}", at=expr.place, word=expr.word,
                hint="add a row to the functions that it is run with: the word, and its meaning on arrays",
            )  # fmt: skip
        return apply(function, args, expr.type, expr, self.data, mask)

    def _select(self, expr: Call, mask: Mask) -> Value:
        condition: Any = self.value(expr.args[0], mask)
        if uniform(condition):
            return self.value(expr.args[1 if condition else 2], mask)
        yes: Any = condition if mask is None else condition & mask
        no: Any = ~condition if mask is None else ~condition & mask
        kind = computed(expr.type)
        return _where(
            condition,
            self.wide(self.value(expr.args[1], yes), kind),
            self.wide(self.value(expr.args[2], no), kind),
        )

    def _shuffle(self, expr: Call, args: list[Any], mask: Mask) -> Value:
        if mask is not None and self.whole_warps(mask) is None:
            refuse("not all lanes of a warp take part in a shuffle", expr)
        value = self.wide(args[0], computed(expr.type))
        lane = self.tid % self.warp
        distance = self.wide(args[1], np.int64)
        source = {"shfl": distance, "shfl_xor": lane ^ distance}.get(expr.word, lane + distance)
        last = np.minimum(self.tid - lane + self.warp, self.threads) - (self.tid - lane)
        return value[np.where(source < last, source, lane) - lane + self._all]

    def _vote(self, expr: Call, given: Value, mask: Mask) -> Value:
        """The bits of a warp's lanes, in each of them."""
        if (mask is not None and self.whole_warps(mask) is None) or self.threads % self.warp:
            refuse("not all lanes of a warp take part in a vote", expr)
        mine: Any = self.wide(given, computed(expr.args[0].dtype)).reshape(-1, self.warp)
        same: Any = mine[:, :, None] == mine[:, None, :]
        if expr.word == "vote_ballot":
            same = np.broadcast_to((mine != 0)[:, None, :], same.shape)
        bits: Any = (same.astype(np.uint64) << np.arange(self.warp, dtype=np.uint64)).sum(-1)
        return bits.reshape(-1).astype(np.uint32)


def constant(expr: Const) -> Value:
    """A literal: a Python number where that is exact, so that index arithmetic stays cheap."""
    if expr.type == boolean:
        return bool(expr.value)
    if expr.type.is_integer and expr.type.bits <= 32:
        return int(expr.value)
    return number_in(expr.value, expr.type) if expr.type.is_float else expr.type.numpy.type(expr.value)


def _cast(expr: Cast, value: Value) -> Value:
    source, target = expr.value.dtype, expr.type
    if isinstance(expr, Reinterpret):
        bits: Any = np.asarray(value).astype(source.numpy).view(target.numpy)
        return bits.astype(computed(target))
    if isinstance(value, int) and target.is_integer and target.least <= value <= target.most:
        return value
    return convert(value, source, target)
