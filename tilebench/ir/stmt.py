"""Statements: the forms of Python that a stage can use.

The room knows forms, not operations: `T.word(...)` as a statement, a loop, a `with`, an
allocation. Which words exist, and the classes behind them, come from the registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .expr import Buffer, Expr, Var
from .node import ACCUMULATES, WRITES, Node, attribute, binder, body, node, operand, result, walk


class Stmt(Node):
    """The base of statements."""


class WordStmt(Stmt):
    """A statement spelled `T.word(...)` in one of its forms; `word` names it in the text.

    `stages` are those in which it may stand, by name.
    """

    word: ClassVar[str] = ""
    stages: ClassVar[frozenset[str]] = frozenset()

    def spelling(self) -> str:
        """The word this node prints as; a family of words in one class overrides it."""
        return self.word

    def settled(self) -> frozenset[str]:
        """Fields whose decision follows from the others here, so that they stay None."""
        return frozenset()

    def hidden(self) -> frozenset[str]:
        """Fields that the word itself says, so that they are not printed."""
        return frozenset()


class OpStmt(WordStmt):
    """`T.word(operands, attribute=value)`.

    `by_proxy`: what it does to shared memory it does by itself, and not thread by thread.
    """

    by_proxy: ClassVar[bool] = False


class LoopStmt(WordStmt):
    """`for i, j in T.word(...):`. Subclasses declare `vars` and `body`.

    Turns are taken while `condition` holds, where a subclass declares one. It is of a thread's own scalars
    alone and is read in front of each turn; what else a loop reads, it reads once, in front of all turns.
    """

    vars: tuple[Var, ...]
    body: tuple[Stmt, ...]
    condition: Any = None  # an Expr in classes that have one


@node
class While(LoopStmt):
    """`while condition:`; it has no variable."""

    word = "while"
    condition: Expr = operand()
    vars: tuple[Var, ...] = binder()
    body: tuple[Stmt, ...] = body()


class WithStmt(WordStmt):
    """`with T.word(...) as (x, y):`. Subclasses declare `vars` and `body`."""

    vars: tuple[Var, ...]
    body: tuple[Stmt, ...]


class AllocStmt(WordStmt):
    """`name = T.word(shape, dtype, ...)`. Subclasses declare `buffer`, and `scope`."""

    scope: ClassVar[str] = ""
    buffer: Buffer

    @property
    def of_call(self) -> bool:
        """Whether the memory is the whole call's, and not made or named by a block."""
        return self.scope == "global"

    @classmethod
    def named(cls, buffer: Buffer, fields: Mapping[str, Any]) -> Buffer:
        """The buffer of an allocation with these other fields, from what every text of one says."""
        return buffer


@node
class Let(Stmt):
    """`x: T.int32 = value`: a name for a value, bound once."""

    var: Var = result()
    value: Expr = operand()


# The words of stores that are one step whoever else is there, and what each does.
ATOMICS = {
    "atomic_add": "add", "atomic_max": "max", "atomic_min": "min", "atomic_or": "or",
    "atomic_store": "store", "atomic_load": "load",
}  # fmt: skip
# What else a thread's atomic orders, by the names of C++: those that hand on what was done before it, and
# those behind which is seen what another handed on.
RELEASES = ("release", "acq_rel", "seq_cst")
ACQUIRES = ("acquire", "acq_rel", "seq_cst")
MEMORY_ORDERS = ("relaxed", "acquire", "release", "acq_rel", "seq_cst")


@node
class Store(Stmt):
    """`buffer[index] = value`; for a `var`, `name = value`.

    With `atomic` (one of `ATOMICS`) the element becomes itself and the value combined, as one step whoever
    else does so: `T.atomic_add(buffer[index], value)`. What was there before goes into the scalar `found` of
    the thread, where there is one, `old = T.atomic_add(...)`; outside of the buffer that is left as it is.
    An atomic load changes nothing, and its value says nothing. `order` is what else it orders.
    """

    buffer: Buffer = attribute(effect=ACCUMULATES, unless="overwrites", only_read="looks")
    index: tuple[Expr, ...] = operand()
    value: Expr = operand()
    version: Expr | None = operand(default=None)
    atomic: str = attribute(default="")
    found: Buffer | None = attribute(default=None, effect=WRITES)
    order: str = attribute(default="relaxed")

    @property
    def plain(self) -> bool:
        """Whether it is a store like any, and no atomic."""
        return not self.atomic

    @property
    def overwrites(self) -> bool:
        """Whether the old value does not matter."""
        return not self.atomic or (self.atomic == "store" and self.found is None)

    @property
    def own(self) -> Buffer | None:
        """What a thread has to itself that is changed: the buffer, or where what was found goes."""
        return self.buffer if self.buffer.scope in ("var", "local") else self.found

    @property
    def looks(self) -> bool:
        """Whether the element stays what it is."""
        return self.atomic == "load"


@node
class If(Stmt):
    """`if condition: ... else: ...`."""

    condition: Expr = operand()
    then: tuple[Stmt, ...] = body()
    orelse: tuple[Stmt, ...] = body()


@node
class Function(Stmt):
    """A whole kernel. `params` are its arrays, as buffers, and its scalars, as variables, in order.

    Scalars that an array's shape or strides name stand first: they are read from the arrays of a call.
    `info` holds what is known of the function as a whole, printed as decorator arguments.
    """

    name: str = attribute()
    params: tuple[Buffer | Var, ...] = attribute()
    body: tuple[Stmt, ...] = body()
    info: tuple[tuple[str, Any], ...] = attribute(default=())

    @property
    def arrays(self) -> tuple[Buffer, ...]:
        """The parameters that are arrays."""
        return tuple(param for param in self.params if isinstance(param, Buffer))

    @property
    def workspaces(self) -> tuple[Buffer, ...]:
        """Arrays of device memory that live as long as a call: the body allocates them, beside launches."""
        return tuple(
            statement.buffer
            for statement in self.body
            if isinstance(statement, AllocStmt) and statement.of_call
        )

    @property
    def dimensions(self) -> tuple[Var, ...]:
        """The scalars that shapes and strides name: known from the arrays of a call."""
        named = {
            part.name
            for buffer in self.arrays
            for size in (*buffer.shape, *(buffer.strides or ()))
            if isinstance(size, Expr)
            for part in walk(size)
            if isinstance(part, Var)
        }
        return tuple(param for param in self.params if isinstance(param, Var) and param.name in named)

    @property
    def scalars(self) -> tuple[Var, ...]:
        """The scalars that a caller passes."""
        named = {var.name for var in self.dimensions}
        return tuple(param for param in self.params if isinstance(param, Var) and param.name not in named)

    def known(self, key: str, default: Any = None) -> Any:
        """The value of a key of `info`."""
        return dict(self.info).get(key, default)


def statements(body: tuple[Stmt, ...]) -> list[Stmt]:
    """Every statement of a body and of the bodies inside, parents first; no expressions."""
    found: list[Stmt] = []
    stack = list(reversed(body))
    while stack:
        statement = stack.pop()
        found.append(statement)
        if statement.bodies:
            for name in reversed(statement.bodies):
                stack += reversed(statement.__dict__[name])
    return found
