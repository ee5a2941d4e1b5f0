"""Checking a stage: names, scopes, dtypes, ranks, and the forms that are legal in it.

The table of legal forms is passed in: the room knows how to check, the pipeline knows what.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..errors import IRError
from .dtypes import boolean
from .expr import LOGIC, TRUTH, Arith, Buffer, Const, Expr, Load, Region, Var
from .node import Node, children, operands, walk
from .stmt import AllocStmt, Function, If, Let, LoopStmt, Stmt, Store, While, WithStmt, WordStmt

# What a literal of each kind may be for Python. Others print, and parse back as something else.
_LITERALS: dict[str, tuple[type, ...]] = {
    "float": (float, int), "int": (int,), "uint": (int,), "bool": (bool, int),
}  # fmt: skip


@dataclass(frozen=True)
class LegalForms:
    """What a stage may hold: words of statements, scopes of buffers, and rules of its own.

    `words` None leaves it to the words, whose classes say in which stages they may stand. A rule takes
    a node and returns what is wrong with it, or None.
    """

    stage: str
    words: frozenset[str] | None
    scopes: frozenset[str]
    rules: tuple[Callable[[Node], str | None], ...] = field(default=())

    def allows(self, statement: WordStmt) -> bool:
        """Whether the word of a statement may stand in this stage."""
        if self.words is not None:
            return statement.spelling() in self.words
        return self.stage in statement.stages


def verify(function: Function, forms: LegalForms | None = None) -> None:
    """Raise `IRError`, at the node, when the function breaks a rule of its stage."""
    _Verifier(forms).function(function)


class _Verifier:
    def __init__(self, forms: LegalForms | None) -> None:
        self.forms = forms
        self.names: dict[str, Var | Buffer] = {}
        # The same names in the order in which they were bound: those of a body go at its end.
        self.order: list[str] = []
        # How many bodies are open; allocations of device memory stand in the outermost.
        self.depth = 0

    def fail(self, node: Node, what: str, **values: Any) -> NoReturn:
        stage = f" in stage {self.forms.stage}" if self.forms else ""
        raise IRError(what + stage, at=node.place, **values)

    def bind(self, node: Node, name: str, value: Var | Buffer) -> None:
        if name in self.names:
            self.fail(node, "the name {name} is bound twice", name=name)
        self.names[name] = value
        self.order.append(name)

    def leave(self, bound: int) -> None:
        """The end of a scope that began when so many names were bound."""
        for name in self.order[bound:]:
            del self.names[name]
        del self.order[bound:]

    def function(self, function: Function) -> None:
        for each in function.params:
            self.bind(function, each.name, each)
        for buffer in function.arrays:
            for size in (*buffer.shape, *(buffer.strides or ())):
                if isinstance(size, Expr):
                    self.operand(size)
        self.body(function.body)

    def body(self, body: tuple[Stmt, ...]) -> None:
        bound = len(self.order)
        self.depth += 1
        for each in body:
            self.statement(each)
        self.depth -= 1
        self.leave(bound)

    def statement(self, stmt: Stmt) -> None:
        self.legal(stmt)
        for part in operands(stmt):
            self.operand(part)
        match stmt:
            case Let():
                if stmt.var.type != stmt.value.dtype:
                    self.fail(
                        stmt,
                        "{name} is {a}, its value {b}",
                        name=stmt.var.name,
                        a=stmt.var.type,
                        b=stmt.value.dtype,
                    )
                self.bind(stmt, stmt.var.name, stmt.var)
            case Store():
                self.access(stmt, stmt.buffer, len(stmt.index))
                if stmt.value.dtype != stmt.buffer.dtype:
                    self.fail(
                        stmt, "{name} holds {a}, the value is {b}",
                        name=stmt.buffer.name, a=stmt.buffer.dtype, b=stmt.value.dtype,
                    )  # fmt: skip
                if stmt.found is not None:
                    self.finds(stmt, stmt.found)
            case AllocStmt():
                self.allocation(stmt)
            case If():
                if stmt.condition.dtype != boolean:
                    self.fail(stmt, "a condition is a bool, found {a}", a=stmt.condition.dtype)
                self.body(stmt.then)
                self.body(stmt.orelse)
            case LoopStmt() | WithStmt():
                self.turns(stmt)
                bound = len(self.order)
                for each in stmt.vars:
                    self.bind(stmt, each.name, each)
                self.body(stmt.body)
                self.leave(bound)
            case _:
                pass

    def finds(self, stmt: Store, found: Buffer) -> None:
        """Check where what an atomic finds goes: into a scalar of the thread, of the element's dtype."""
        self.access(stmt, found, 0)
        if found.scope != "var" or found.dtype != stmt.buffer.dtype:
            self.fail(
                stmt, "{name} takes what is found in {buffer}: a scalar of {dtype}", name=found.name,
                buffer=stmt.buffer.name, dtype=stmt.buffer.dtype, found="{a} ({scope})", a=found.dtype,
                scope=found.scope,
            )  # fmt: skip

    def turns(self, stmt: LoopStmt | WithStmt) -> None:
        """Check what a loop goes on by: something that no other thread changes between two looks."""
        condition = stmt.condition if isinstance(stmt, LoopStmt) else None
        if condition is None:
            return
        if condition.dtype != boolean:
            self.fail(stmt, "a condition is a bool, found {a}", a=condition.dtype)
        for part in walk(condition):
            if isinstance(part, Load) and part.buffer.scope != "var":
                self.fail(
                    stmt,
                    "the condition of a loop reads {name}, which is no T.alloc_var",
                    name=part.buffer.name,
                )

    def allocation(self, stmt: AllocStmt) -> None:
        buffer = stmt.buffer
        if buffer.scope == "global":
            if self.depth > 1 and stmt.of_call:
                self.fail(stmt, "{name} is memory of the whole call, and stands in a block", name=buffer.name)
            for size in buffer.shape:
                if isinstance(size, Expr):
                    self.operand(size)
        elif not all(isinstance(size, int) for size in buffer.shape):
            self.fail(stmt, "an extent of {name}, which is on chip, is no number", name=buffer.name)
        self.bind(stmt, buffer.name, buffer)

    def legal(self, stmt: Stmt) -> None:
        if self.forms is None:
            return
        if isinstance(stmt, WordStmt) and not isinstance(stmt, While) and not self.forms.allows(stmt):
            self.fail(stmt, "T.{word} is not legal", word=stmt.spelling())
        if isinstance(stmt, AllocStmt) and not (
            stmt.buffer.scope == "global" or stmt.buffer.scope in self.forms.scopes
        ):
            self.fail(stmt, "memory {scope} is not legal", scope=stmt.buffer.scope)
        for rule in self.forms.rules:
            wrong = rule(stmt)
            if wrong is not None:
                self.fail(stmt, "{wrong}", wrong=wrong)

    def access(self, node: Node, buffer: Buffer, rank: int) -> None:
        known = self.names.get(buffer.name)
        if not isinstance(known, Buffer):
            self.fail(node, "{name} is not in scope", name=buffer.name)
        if known is not buffer and known != buffer:
            self.fail(node, "{name} is used as {a} but declared as {b}", name=buffer.name, a=buffer, b=known)
        if rank != buffer.rank:
            self.fail(
                node, "{name} has rank {a}, used with {b} indices", name=buffer.name, a=buffer.rank, b=rank
            )

    def operand(self, root: Any) -> None:
        """Check an expression or region and all below it."""
        names = self.names
        stack: list[Any] = [root]
        while stack:
            node = stack.pop()
            # By class, most frequent first: nine tenths of what is checked are these three.
            kind: type = node.__class__
            if kind is Const:
                dtype = node.type
                if node.value.__class__ not in _LITERALS[dtype.kind]:
                    self.fail(node, "{value} is no literal of {dtype}", value=node.value, dtype=dtype)
            elif kind is Var:
                known = names.get(node.name)
                if known is not node and known != node:
                    self.fail(node, "the name {name} is not in scope", name=node.name)
            elif kind is Arith:
                self.arith(node)
                stack += reversed(node.args)
            else:
                self.access_in(node)
                stack += reversed(children(node))

    def access_in(self, node: Node) -> None:
        """Check the memory that an expression or region names."""
        if isinstance(node, Load):
            self.access(node, node.buffer, len(node.index))
            self.integers(node, node.index)
        elif isinstance(node, Region):
            self.access(node, node.buffer, len(node.start))
            self.integers(node, node.start)

    def integers(self, node: Node, index: tuple[Expr, ...]) -> None:
        for part in index:
            if not part.dtype.is_integer:
                self.fail(node, "an index is an integer, found {a}", a=part.dtype)

    def arith(self, node: Arith) -> None:
        first = node.args[0].dtype
        for part in node.args[1:]:
            other = part.dtype
            if other is not first and other != first:
                self.fail(node, "the arguments of {op} are {a} and {b}", op=node.op, a=first, b=other)
        if first.kind == "bool":
            if node.op not in TRUTH and node.op not in ("&", "|", "^"):
                self.fail(node, "{op} does not take bools", op=node.op)
        elif node.op in LOGIC:
            self.fail(node, "{op} takes bools, found {a}", op=node.op, a=first)
        elif node.op == "/" and not first.is_float:
            self.fail(node, "/ divides floats, found {a}; use // for integers", a=first)
