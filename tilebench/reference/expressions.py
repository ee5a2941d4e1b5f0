"""Expressions as functions of the state: prepared once, run for every block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import LanguageError, Place
from ..ir import Arith, Call, Cast, Const, Expr, Extern, Load, Reinterpret, Var
from ..language.meanings.extern import bounded_meaning_of, meaning_of
from .boxes import clipped, gather, read_box, within
from .numbers import BoundedNumbers, Numbers
from .races import note
from .scope import BoxAxis, LoopScope
from .state import Run, State

LOCAL = ("local", "var")


class ExpressionRunner:
    """Prepares expressions of one function for one kind of numbers."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.scope: LoopScope = LoopScope()

    def prepare(self, expr: Expr) -> Run:
        """The function that gives the value: a Python number where it is one for the whole block."""
        match expr:
            case Const():
                value = self.numbers.constant(expr.value, expr.type)
                return lambda state: value
            case Var():
                name = expr.name
                return lambda state: state.names[name]
            case Load():
                return self.load(expr)
            case Cast():
                inner, source, target = self.prepare(expr.value), expr.value.dtype, expr.type
                same_bits = isinstance(expr, Reinterpret)
                cast = self.numbers.reinterpret if same_bits else self.numbers.cast
                return lambda state: cast(inner(state), source, target)
            case Arith():
                return self.arith(expr)
            case Call():
                return self.call(expr)
            case _:
                kind = type(expr).__name__
                raise LanguageError("the reference has no meaning of {kind}", kind=kind, at=expr.place)

    def integers(self, index: Sequence[Expr]) -> Run:
        """The function that gives a list of indices."""
        parts = [(self.prepare(each), each.place) for each in index]
        whole = self.numbers.integer
        return lambda state: [whole(run(state), place) for run, place in parts]

    # -- operators
    def arith(self, expr: Arith) -> Run:
        parts = [self.prepare(each) for each in expr.args]
        op, dtype, place = expr.op, expr.args[0].dtype, expr.place
        apply = self.numbers.operator(op, dtype)
        if op in ("and", "or"):
            return self.logic(op, parts, place)
        if len(parts) == 2:
            a, b = parts
            return lambda state: apply(a(state), b(state))
        return lambda state: apply(*[each(state) for each in parts])

    def logic(self, op: str, parts: list[Run], place: Place | None) -> Run:
        """Conditions from left to right; what follows is evaluated only for elements it can matter to."""
        apply, may = self.numbers.operator(op, _BOOL), self.numbers.may
        decides = op == "or"

        def run(state: State) -> Any:
            result = parts[0](state)
            for part in parts[1:]:
                if _uniform(result):
                    result = result if bool(_plain(result)) is decides else part(state)
                    continue
                yes, no, _ = may(result, place)
                with state.narrowed(no if decides else yes) as some:
                    if some:
                        result = apply(result, part(state))
            return result

        return run

    # -- functions
    def call(self, expr: Call) -> Run:
        if expr.word == "if_then_else":
            return self.choose(expr)
        if isinstance(expr, Extern):
            apply = bounded_meaning_of(expr) if isinstance(self.numbers, BoundedNumbers) else meaning_of(expr)
            own = [self.prepare(each) for each in expr.args]
            return lambda state: apply(*[each(state) for each in own])
        apply = self.numbers.function(expr.word, expr.args[0].dtype if expr.args else expr.type)
        if apply is None:
            raise too_late(f"T.{expr.word}", expr.place)
        parts = [self.prepare(each) for each in expr.args]
        return lambda state: apply(*[each(state) for each in parts])

    def choose(self, expr: Call) -> Run:
        condition, then, other = (self.prepare(each) for each in expr.args)
        numbers, dtype, place = self.numbers, expr.type, expr.place

        def run(state: State) -> Any:
            test = condition(state)
            if _uniform(test) and not _unsure(test):
                return then(state) if _plain(test) else other(state)
            yes, no, _ = numbers.may(test, place)
            with state.narrowed(yes) as some:
                a = then(state) if some else numbers.constant(0, dtype)
            with state.narrowed(no) as some:
                b = other(state) if some else numbers.constant(0, dtype)
            return numbers.select(test, a, b, dtype)

        return run

    # -- loads
    def load(self, expr: Load) -> Run:
        buffer, place, name = expr.buffer, expr.place, expr.buffer.name
        if expr.version is not None:
            raise too_late(f"versions of {name}", place)
        if buffer.scope == "var":
            variable = self.numbers.variable
            return lambda state: variable(state.names[name], state.mask, place)
        index = self.integers(expr.index)
        if buffer.scope == "local":
            return lambda state: read_local(state, expr, index(state))
        if not self.scope.parallel:
            return lambda state: read_single(state, expr, index(state))
        plan = self.scope.box_of(expr.index)
        if plan is None:
            run: Run = lambda state: gather(state, buffer, index(state), place)  # noqa: E731
        else:
            run = self.load_box(expr, plan)
        if name not in self.scope.suspects:
            return run

        def noted(state: State) -> Any:
            note(state, buffer, index(state), None, place)
            return run(state)

        return noted

    def load_box(self, expr: Load, plan: tuple[BoxAxis, ...]) -> Run:
        buffer, place = expr.buffer, expr.place
        start = self.integers([each.start for each in plan])
        extent, order, shape = box_shape(plan, self.scope.extents)
        flat = tuple(n for n, each in zip(extent, plan, strict=True) if each.axis is not None)
        plain = order == tuple(range(len(order))) and shape == extent

        def run(state: State) -> Any:
            corner = corner_of(start(state))
            if plain:
                return read_box(state, buffer, corner, extent, state.mask, place)
            mask = None if state.mask is None else turned(state.mask)
            elements = read_box(state, buffer, corner, extent, mask, place)
            return elements.reshape(flat).transpose(order).reshape(shape)

        def turned(mask: Any) -> Any:
            """The elements of the box that some element of the loop reads."""
            mask = np.broadcast_to(mask, box)
            unused = tuple(k for k, n in enumerate(shape) if n == 1)
            read = mask.any(axis=unused, keepdims=True).reshape(tuple(flat[k] for k in order))
            return read.transpose(np.argsort(order)).reshape(extent)

        box = self.scope.extents
        return run


def too_late(what: str, place: Place | None) -> LanguageError:
    """The error for a word of a stage below `bounded`."""
    text = "the reference runs up to stage bounded and has no meaning of {what}"
    return LanguageError(text, what=what, at=place)


def corner_of(start: Sequence[Any]) -> list[int]:
    """Where a box begins, as numbers: what data say may come as an array with the same for each element."""
    return [int(each) if np.ndim(each) == 0 else int(np.ravel(each)[0]) for each in start]


def box_shape(
    plan: tuple[BoxAxis, ...], extents: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Of a box access: its extents in the buffer, the order that sorts its axes, its shape in the loop."""
    extent = tuple(1 if each.axis is None else extents[each.axis] for each in plan)
    axes = [each.axis for each in plan if each.axis is not None]
    order = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    return extent, order, tuple(n if k in axes else 1 for k, n in enumerate(extents))


_BOOL = Arith("==", (Const(0), Const(0))).dtype


def _uniform(value: Any) -> bool:
    return type(value) is bool or np.ndim(getattr(value, "value", value)) == 0


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)


def _unsure(value: Any) -> bool:
    error = getattr(value, "error", None)
    return error is not None and bool(np.any(error > 0))


def read_single(state: State, expr: Load, index: list[Any]) -> Any:
    """One element, outside any parallel loop."""
    buffer, numbers = expr.buffer, state.numbers
    location = tuple(int(each) for each in index)
    if not within(buffer, location):
        safe = state.safe.get(buffer.name)
        return numbers.constant(0, buffer.dtype) if safe is None else safe
    return numbers.read(state.names[buffer.name], location, None, buffer.dtype, expr.place)


def local_key(state: State, memory: Any, rank: int, index: list[Any]) -> tuple[Any, ...]:
    """Where in an array that each element has (or that all share) an access goes."""
    if memory.ndim == rank:
        return tuple(index)
    if all(np.ndim(each) == 0 for each in index):
        return (..., *index)
    return (*state.lanes(), *index)


def read_local(state: State, expr: Load, index: list[Any]) -> Any:
    """An element of an array of each thread's own."""
    buffer = expr.buffer
    memory = state.names[buffer.name]
    ok, numbers = np.asarray(within(buffer, index)), state.numbers
    key = local_key(state, memory, buffer.rank, index if ok.all() else clipped(buffer, index))
    elements = numbers.read(memory, key, state.mask, buffer.dtype, expr.place)
    if ok.all():
        return elements
    return numbers.select(ok, elements, numbers.constant(0, buffer.dtype), buffer.dtype)
