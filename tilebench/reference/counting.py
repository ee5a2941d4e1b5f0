"""Work counted while a kernel runs: what the reference does to elements of the problem, one by one.

It knows nothing of the counts that a compilation makes from the text (`passes.analysis.count_work`), and the
two are held to each other. What is counted is what the stored elements needed (see `tape`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import Place
from ..ir import Buffer, Function, Store
from ..ir.dtypes import DType
from ..ir.room import with_room
from ..language.gemm import Gemm
from ..language.meanings.inexact import Inexact, inexact
from ..language.meanings.tiles import TileMeaning
from ..language.reduce import Reduce, Scan
from ..passes.analysis.reads_writes import reads_and_writes
from .atomics import atomic_store
from .numbers import Plain, choose
from .run import Arrays, check_arguments
from .state import Run, State
from .statements import StatementRunner
from .tape import GIVEN, OUTSIDE, OWN, Tape, elementwise, product, reduction, scan


@dataclass(frozen=True)
class CountedWork:
    """What a run did: `flops` as `CompileRecord.flops` counts them, and distinct bytes of each array.

    `read` and `written` are by the names of parameters, without those that are not touched.
    """

    flops: float
    read: Mapping[str, int]
    written: Mapping[str, int]

    @property
    def bytes(self) -> int:
        """Each element that is read and each that is written, moved once."""
        return sum(self.read.values()) + sum(self.written.values())


def count_running(function: Function, arrays: Arrays) -> CountedWork:
    """Run a function of stage `tile` on arrays, which are not changed, and count what it does.

    Counted are operations on floats, and products, reductions and scans of anything, as far as a stored
    element or a condition needs them; index arithmetic, conversions and copies are none. Takes some hundred
    bytes an operation, so it is for small sizes. Raises as `run_reference` does.
    """
    check_arguments(function, arrays)
    return with_room(lambda: _counted(function, arrays))


def _counted(function: Function, arrays: Arrays) -> CountedWork:
    written = reads_and_writes(function)[1]
    stored = {name: np.zeros(arrays[name].shape, np.bool_) for name in written}
    numbers = CountingNumbers()
    numbers.state = State(numbers, {}, touched=stored)
    run = CountingRunner(numbers).body(function.body)
    names = {each.name: numbers.given(arrays[each.name].copy(), each) for each in function.arrays}
    numbers.state.names.update(names)
    with np.errstate(all="ignore"):
        run(numbers.state)
    left = [numbers.state.names[name].error[stored[name]] for name in written]
    buffers = {each.name: each for each in function.arrays}
    read = {name: memory.seen for name, memory in names.items()}
    return CountedWork(numbers.tape.operations(left), _bytes_of(read, buffers), _bytes_of(stored, buffers))


def _bytes_of(marks: Mapping[str, Any], buffers: Mapping[str, Buffer]) -> dict[str, int]:
    """The bytes of marked elements; two of 4 bits share one."""
    counts = {name: int(np.count_nonzero(marked)) for name, marked in marks.items()}
    return {name: -(-count * buffers[name].dtype.bits // 8) for name, count in counts.items() if count}


class Given(Inexact):
    """A caller's array: its elements' marks, and which of them were read before the kernel wrote them."""

    __slots__ = ("places", "seen")

    def __init__(self, value: Any) -> None:
        super().__init__(value, np.full(np.shape(value), GIVEN))
        self.seen = np.zeros(np.shape(value), np.bool_)
        self.places = np.arange(self.seen.size).reshape(self.seen.shape)

    def look(self, key: Any, mask: Any = None) -> None:
        """These elements are read, where `mask` holds."""
        places = self.places[key]
        if mask is not None:
            places, chosen = np.broadcast_arrays(places, mask)
            places = places[chosen]
        # What the kernel has made itself is a result on its way.
        fresh: Any = self.error.reshape(-1)[places] == GIVEN
        self.seen.reshape(-1)[np.asarray(places)[fresh]] = True

    def __getitem__(self, key: Any) -> Inexact:
        self.look(key)
        return Inexact(self.value[key], self.error[key])


class CountingNumbers(Plain):
    """Plain numbers in pairs with marks (in the place of `Inexact`'s error)."""

    def __init__(self) -> None:
        self.tape = Tape()
        self.state: State

    # -- memory
    def given(self, array: Any, buffer: Buffer, written: bool = True) -> Any:
        return Given(array)

    def new(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return Inexact(super().new(shape, dtype), np.full(shape, OWN))

    def zeros(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return Inexact(super().zeros(shape, dtype), np.full(shape, OUTSIDE))

    def read(self, memory: Any, key: Any, mask: Any, dtype: DType, place: Place | None) -> Any:
        if isinstance(memory, Given):
            memory.look(key, mask)
        return Inexact(memory.value[key], memory.error[key])

    def put(self, memory: Any, key: Any, value: Any, mask: Any, doubt: Any, dtype: DType) -> None:
        new = inexact(value)
        before = memory.error[key]
        # What lies outside stays there, whatever a kernel fills it with.
        marks = np.where((before == OUTSIDE) & (new.error == OWN), OUTSIDE, new.error)
        if mask is not None:
            plain = np.where(mask, np.asarray(new.value, dtype.numpy), memory.value[key])
            new, marks = Inexact(plain, marks), np.where(mask, marks, before)
        memory[key] = Inexact(new.value, marks)

    def spread(self, value: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        return Inexact(super().spread(_plain(value), shape, dtype), np.broadcast_to(_mark(value), shape))

    def integer(self, value: Any, place: Place | None) -> Any:
        self.tape.ask(_mark(value))
        plain = _plain(value)
        return plain if np.ndim(plain) or not hasattr(plain, "item") else plain.item()

    # -- values
    def operator(self, op: str, dtype: DType) -> Callable[..., Any]:
        plain = super().operator(op, dtype)
        return lambda *values: self._applied(op, plain, values, dtype.is_float)

    def function(self, word: str, dtype: DType) -> Callable[..., Any] | None:
        plain = super().function(word, dtype)
        return plain and (lambda *values: self._applied(word, plain, values, dtype.is_float, 1))

    def cast(self, value: Any, source: DType, target: DType) -> Any:
        return self._passed(super().cast(_plain(value), source, target), value)

    def reinterpret(self, value: Any, source: DType, target: DType) -> Any:
        return self._passed(super().reinterpret(_plain(value), source, target), value)

    def _passed(self, plain: Any, value: Any) -> Any:
        """The same element in another dtype."""
        marked = isinstance(value, Inexact) and np.asarray(plain).dtype != np.bool_
        return Inexact(plain, value.error) if marked else plain

    def select(self, condition: Any, a: Any, b: Any, dtype: DType) -> Any:
        """Both sides are computed, whichever is taken."""
        self.tape.ask(_mark(condition))
        test = _plain(condition)
        value = super().select(test, _plain(a), _plain(b), dtype)
        marks: Any = elementwise(self.tape, "select", [_mark(a), _mark(b)], np.shape(value), 0)
        taken: Any = choose(test, _mark(a), _mark(b))
        return Inexact(value, choose((taken == OUTSIDE) | (marks <= OWN), taken, marks))

    def may(self, condition: Any, place: Place | None) -> tuple[Any, Any, Any]:
        self.tape.ask(_mark(condition))
        return super().may(_plain(condition), place)

    def _applied(
        self, op: str, plain: Any, values: Sequence[Any], counts: bool, weight: int = 0, *, box: bool = True
    ) -> Any:
        """A function of plain values as one of pairs, done for each element of the open loop."""
        result = plain(*[_plain(each) for each in values])
        if not counts and not any(isinstance(each, Inexact) for each in values):
            return result
        shape = np.broadcast_shapes(np.shape(result), self.state.box) if box else np.shape(result)
        weight = (weight or max(1, len(values) - 1)) if counts else 0
        marks = elementwise(self.tape, op, [_mark(each) for each in values], shape, weight)
        if np.asarray(result).dtype == np.bool_:
            mask = self.state.mask if box else None
            self.tape.ask(marks if mask is None else marks[np.broadcast_to(mask, shape)])
            return result  # a condition is no element
        return Inexact(np.broadcast_to(result, shape), marks)

    # -- tiles
    def tile(self, meaning: TileMeaning) -> Callable[..., Any]:
        def apply(operation: Any, *operands: Any) -> Any:
            plain = meaning.plain(operation, *[_plain(each) for each in operands])
            boxes = [each.error for each in operands if isinstance(each, Inexact) and np.ndim(each.value)]
            marks = _of_tile(self.tape, operation, meaning.operations, boxes, np.shape(plain))
            return Inexact(plain, marks.reshape(np.shape(plain)))

        return apply


class AtomicNumbers(CountingNumbers):
    """The same where elements are taken in turns: those of a turn have a shape of their own."""

    def __init__(self, whole: CountingNumbers) -> None:
        self.tape, self.state = whole.tape, whole.state

    def _applied(
        self, op: str, plain: Any, values: Sequence[Any], counts: bool, weight: int = 0, *, box: bool = True
    ) -> Any:
        return super()._applied(op, plain, values, counts, weight, box=False)


class CountingRunner(StatementRunner):
    """Statements on counting numbers."""

    numbers: CountingNumbers

    def store_atomic(self, store: Store, index: Run, value: Run) -> Run:
        return atomic_store(AtomicNumbers(self.numbers), store, index, value)


def _of_tile(tape: Tape, operation: Any, weight: float, boxes: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """The marks of what a statement on tiles gives."""
    match operation:
        case Gemm():
            a, b = (box.reshape(box.shape[-2:]) for box in boxes[:2])
            a, b = (a.T if operation.transpose_A else a), (b.T if operation.transpose_B else b)
            before = boxes[2].reshape(len(a), -1) if len(boxes) > 2 else None
            return product(tape, a, b, before)
        case Reduce():
            return reduction(tape, boxes[0], operation.dim, boxes[1] if len(boxes) > 1 else None, weight)
        case Scan():
            return scan(tape, boxes[0], operation.dim, operation.reverse, weight)
        case _:
            same = boxes and boxes[0].size == np.prod(shape, dtype=np.int64)
            return boxes[0] if same else np.full(shape, OWN)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Inexact) else value


def _mark(value: Any) -> Any:
    return value.error if isinstance(value, Inexact) else np.asarray(OWN)
