"""What is different from one language like C to the next: a `Dialect`, a value that a target fills.

Spellings are templates of `str.format`. Those of functions and conversions give an atom (a call, or
something in parentheses), unless `Spelled` says how strongly the text binds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ...errors import TargetError
from ...ir import Buffer, Call, DType, Expr
from .prelude import Prelude

# A text, and how strongly its outermost operator binds.
Spelled = tuple[str, int]
# Binding strength in C. Python binds & ^ | tighter than comparisons, C looser; hence its own table.
LEVEL = {
    "or": 1, "and": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10,
}  # fmt: skip
TERNARY, UNARY, ATOM = 0, 11, 20


class ExpressionWriter(Protocol):
    """What the row of a scalar function may ask for: texts of its arguments, names of types."""

    @property
    def dialect(self) -> Dialect: ...

    def text(self, expr: Expr) -> str: ...

    def at_least(self, expr: Expr, level: int) -> str:
        """The text, in parentheses unless it binds at least as strongly as `level`."""
        ...

    def type_of(self, dtype: DType) -> str: ...


@dataclass(frozen=True)
class ScalarText:
    """How a scalar function is spelled, and for results of which dtypes (by name; None: of any)."""

    text: Callable[[ExpressionWriter, Call], Spelled]
    dtypes: frozenset[str] | None = None

    def takes(self, dtype: DType) -> bool:
        return self.dtypes is None or dtype.name in self.dtypes


@dataclass(frozen=True)
class Packed:
    """Elements that share a byte of memory; in registers each has one of its own.

    `memory` is the type that a pointer to them has; `load` and `store` spell an element there (`name` of
    the pointer, `offset` in elements, `value`), and `cut` an integer `value` cut to the bits of an element.
    """

    memory: str
    load: str
    store: str
    cut: str


@dataclass(frozen=True)
class Dialect:
    """A language like C. Fields with a default are those in which C and C++ agree.

    `types` has the type of an element by the dtype's name, `packed` what is different of those that
    share a byte. `kernel` is the line that opens the kernel's body, from `threads`, `blocks` (how many are
    to run on a multiprocessor at a time), `cluster`, `entry` and `params`; `cluster` says that so many blocks
    along x run together (empty: there is no way); `parameter` one of its parameters, from
    `const` (empty where the kernel writes it), `type` and `name`. `thread` and `blocks` give the numbers of
    the thread and of the block in x, y and z, as `int`. `shared_block` declares the block's shared
    memory in front of the kernel, `shared` a buffer in it (`type`, `name`, `offset` in bytes) and
    `registers` an array of the thread's own (`type`, `name`, `size` in elements).
    `functions` has a row for each scalar function. `floor_division` spells `//` and `%` of integers
    that may be negative (`word` is floordiv or floormod), `narrow_float` a value made one of fewer
    than 32 bits, `to_integer` a float cut to an integer of 32 bits or more and `narrow_integer` to one of
    fewer (`least` and `most` are its ends); `without_nan` makes a NaN 0 where 64 bits are converted from
    or to, `special` an infinity or a NaN (`word` is inf or nan, `suffix` as
    f32). `unrolled`, `unrolled_by` (`factor` turns in a row) and `rolled` are the
    lines in front of a loop that is written out, or must not be.
    """

    language: str
    types: Mapping[str, str]
    kernel: str
    parameter: str
    thread: str
    blocks: tuple[str, ...]
    shared_block: str
    shared: str
    registers: str
    functions: Mapping[str, ScalarText]
    prelude: Prelude
    floor_division: str
    special: str
    cluster: str = ""
    # An atomic, from `how`, the `element` and the `value`, and what orders memory in front of and behind one.
    atomic: str = "tb_atomic_{how}(&{element}, {value})"
    atomic_load: str = "tb_atomic_load(&{element})"
    fence: str = "tb_fence();"
    fence_of_all: str = "tb_fence_sc();"
    packed: Mapping[str, Packed] = field(default_factory=dict[str, Packed])
    # The language's own type by the dtype's name, for functions of the kernel's own text, and what of that
    # text says that it knows the type.
    own_types: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    # Names that such text takes to be there, and their declarations, which a text of its own may repeat.
    own_names: Mapping[str, str] = field(default_factory=dict[str, str])
    narrow_float: str = "({type})({value})"
    to_integer: str = "({type}){value}"
    narrow_integer: str = "({type}){value}"
    without_nan: str = "{value}"
    # The bits of a `value` as one of another `type` of the same size; empty where there is no way.
    same_bits: str = ""
    reserved: frozenset[str] = field(default_factory=frozenset[str])
    reserved_starts: tuple[str, ...] = ()
    unrolled: str = ""
    unrolled_by: str = ""
    rolled: str = ""
    suffixes: Mapping[str, str] = field(
        default_factory=lambda: {"int64": "ll", "uint64": "ull", "uint32": "u", "float32": "f"}
    )

    def memory_type(self, dtype: DType) -> str:
        """The type that a pointer to elements has."""
        packed = self.packed.get(dtype.name)
        return self.type_of(dtype) if packed is None else packed.memory

    def packed_in(self, buffer: Buffer) -> Packed | None:
        """How elements of a buffer are spelled that share bytes there; None where each has its own."""
        return self.packed.get(buffer.dtype.name) if buffer.scope in ("shared", "global") else None

    def type_of(self, dtype: DType) -> str:
        """The type of an element. Raises `TargetError` for a dtype without one."""
        found = self.types.get(dtype.name)
        if found is None:
            raise TargetError(
                "there is no {language} code for {dtype} yet",
                language=self.language,
                dtype=dtype,
                known=", ".join(self.types),
                expected="one of {known}",
            )
        return found

    def scalars(self) -> dict[str, frozenset[str]]:
        """The functions of elements that have a row, with the dtypes of their results."""
        every = frozenset(self.types)
        rows = self.functions.items()
        return {word: every if row.dtypes is None else row.dtypes & every for word, row in rows}
