"""Checking a stage: names, scopes, dtypes, ranks, and the forms that are legal in it.

The table of legal forms is passed in: the room knows how to check, the pipeline knows what.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..errors import IRError
from .dtypes import boolean
from .expr import COMPARE, LOGIC, Arith, Buffer, Const, Expr, Load, Region, Var
from .node import Node, children
from .stmt import AllocStmt, Function, If, Let, LoopStmt, Stmt, Store, WithStmt, WordStmt


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

    def fail(self, at: Node, what: str, **values: Any) -> NoReturn:
        stage = f" in stage {self.forms.stage}" if self.forms else ""
        raise IRError(what + stage, at=at.place, **values)

    def bind(self, at: Node, name: str, value: Var | Buffer) -> None:
        if name in self.names:
            self.fail(at, "the name {name} is bound twice", name=name)
        self.names[name] = value

    def function(self, function: Function) -> None:
        for each in function.params:
            self.bind(function, each.name, each)
        for buffer in function.arrays:
            for size in (*buffer.shape, *(buffer.strides or ())):
                if isinstance(size, Expr):
                    self.operand(size)
        self.body(function.body)

    def body(self, body: tuple[Stmt, ...]) -> None:
        before = dict(self.names)
        for each in body:
            self.statement(each)
        self.names = before

    def statement(self, stmt: Stmt) -> None:
        self.legal(stmt)
        if not isinstance(stmt, (Function,)):
            for each in children(stmt):
                if not isinstance(each, Stmt):
                    self.operand(each)
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
            case AllocStmt():
                if not all(isinstance(size, int) for size in stmt.buffer.shape):
                    self.fail(
                        stmt, "an extent of {name}, which is on chip, is no number", name=stmt.buffer.name
                    )
                self.bind(stmt, stmt.buffer.name, stmt.buffer)
            case If():
                if stmt.condition.dtype != boolean:
                    self.fail(stmt, "a condition is a bool, found {a}", a=stmt.condition.dtype)
                self.body(stmt.then)
                self.body(stmt.orelse)
            case LoopStmt() | WithStmt():
                before = dict(self.names)
                for each in stmt.vars:
                    self.bind(stmt, each.name, each)
                self.body(stmt.body)
                self.names = before
            case _:
                pass

    def legal(self, stmt: Stmt) -> None:
        if self.forms is None:
            return
        if isinstance(stmt, WordStmt) and not self.forms.allows(stmt):
            self.fail(stmt, "T.{word} is not legal", word=stmt.spelling())
        if isinstance(stmt, AllocStmt) and stmt.buffer.scope not in self.forms.scopes:
            self.fail(stmt, "memory {scope} is not legal", scope=stmt.buffer.scope)
        for rule in self.forms.rules:
            wrong = rule(stmt)
            if wrong is not None:
                self.fail(stmt, "{wrong}", wrong=wrong)

    def access(self, at: Node, buffer: Buffer, rank: int) -> None:
        held = self.names.get(buffer.name)
        if not isinstance(held, Buffer):
            self.fail(at, "{name} is not in scope", name=buffer.name)
        if held is not buffer and held != buffer:
            self.fail(at, "{name} is used as {a} but declared as {b}", name=buffer.name, a=buffer, b=held)
        if rank != buffer.rank:
            self.fail(
                at, "{name} has rank {a}, used with {b} indices", name=buffer.name, a=buffer.rank, b=rank
            )

    def operand(self, at: Node) -> None:
        """Check an expression or region and all below it."""
        kind = type(at)
        if kind is Const:
            return
        if isinstance(at, Var):
            held = self.names.get(at.name)
            if held is not at and held != at:
                self.fail(at, "the name {name} is not in scope", name=at.name)
            return
        for each in children(at):
            self.operand(each)
        if isinstance(at, Arith):
            self.arith(at)
        elif isinstance(at, Load):
            self.access(at, at.buffer, len(at.index))
            self.integers(at, at.index)
        elif isinstance(at, Region):
            self.access(at, at.buffer, len(at.start))
            self.integers(at, at.start)

    def integers(self, at: Node, index: tuple[Expr, ...]) -> None:
        for each in index:
            if not each.dtype.is_integer:
                self.fail(at, "an index is an integer, found {a}", a=each.dtype)

    def arith(self, at: Arith) -> None:
        first = at.args[0].dtype
        for each in at.args[1:]:
            if each.dtype is not first and each.dtype != first:
                self.fail(at, "the arguments of {op} are {a} and {b}", op=at.op, a=first, b=each.dtype)
        if at.op in LOGIC and first != boolean:
            self.fail(at, "{op} takes bools, found {a}", op=at.op, a=first)
        if at.op == "/" and not first.is_float:
            self.fail(at, "/ divides floats, found {a}; use // for integers", a=first)
        if first == boolean and at.op not in LOGIC and at.op not in (*COMPARE, "&", "|", "^"):
            self.fail(at, "{op} does not take bools", op=at.op)
