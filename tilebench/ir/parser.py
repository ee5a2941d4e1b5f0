"""From text to nodes: the one parser of every stage.

Closed world: an `ast` walk over the forms of `stmt.py` with the registry passed in. Nothing is
evaluated or imported, so text from a stranger is safe. Every node gets its place in the text.
"""

from __future__ import annotations

import ast
from typing import Any, cast

from ..errors import IRError, Place, nearest, remember_source
from .dtypes import ALL, DType
from .expr import Buffer, Const, Expr, Load, Region, Var, zero_of
from .node import ATTRIBUTE, RESULT, FieldMark
from .parse_types import expected_by, fits
from .parse_values import ValueParser
from .printer import printed_marks
from .registry import Registry, Word
from .stmt import (
    ATOMICS,
    MEMORY_ORDERS,
    AllocStmt,
    Function,
    If,
    Let,
    LoopStmt,
    OpStmt,
    Stmt,
    Store,
    While,
    WithStmt,
    WordStmt,
)


def parse_function(text: str, registry: Registry, name: str = "<stage>") -> Function:
    """The function that `text` prints. Raises `IRError` at the line that is wrong."""
    remember_source(name, text)
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        place = Place(name, error.lineno or 1, max(0, (error.offset or 1) - 1))
        raise IRError("this is not Python: {why}", at=place, why=error.msg) from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise IRError("the text is nested too deeply to parse: {why}", at=Place(name, 1), why=error) from None
    functions = [each for each in module.body if isinstance(each, ast.FunctionDef)]
    if len(functions) != 1 or len(module.body) != 1:
        found = f"{len(module.body)} statements" if len(module.body) != 1 else "another statement"
        raise IRError("a stage is one function, found {n}", at=Place(name, 1), n=found)
    return _Parser(registry, name).function(functions[0])


class _Parser(ValueParser):
    # -- functions and parameters
    def function(self, syntax: ast.FunctionDef) -> Function:
        params = tuple(self.param(each) for each in syntax.args.args)
        info: list[tuple[str, Any]] = []
        for decorator in syntax.decorator_list:
            if isinstance(decorator, ast.Call):
                info.extend((k.arg or "", self.value(k.value)) for k in decorator.keywords)
        defined = self.definitions(syntax.body)
        body = self.body(syntax.body[defined:])
        return Function(syntax.name, params, body, info=tuple(info), place=self.place(syntax))

    def definitions(self, statements: list[ast.stmt]) -> int:
        """Read the definitions of long values at the head of a function; how many lines they are."""
        for count, syntax in enumerate(statements):
            match syntax:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                    if self.word_of(call.func) not in self.registry.values:
                        return count
                    self.bind(syntax, name, None)
                    del self.names[name]
                    self.values[name] = self.value(call)
                case _:
                    return count
        return len(statements)

    def param(self, syntax: ast.arg) -> Buffer | Var:
        note = syntax.annotation
        scalar = ALL.get(self.word_of(note) or "") if isinstance(note, ast.Attribute) else None
        if scalar is not None:
            return self.bind(syntax, syntax.arg, Var(syntax.arg, type=scalar, place=self.place(syntax)))
        if not isinstance(note, ast.Call) or self.word_of(note.func) not in ("Tensor", "StridedTensor"):
            self.fail(syntax, "the parameter {name} needs a T.Tensor annotation, or a dtype", name=syntax.arg)
        values = [self.value(each) for each in note.args]
        strides = values[1] if self.word_of(note.func) == "StridedTensor" else None
        if not isinstance(values[0], tuple) or not isinstance(values[-1], DType):
            self.fail(note, "a tensor is T.Tensor(shape, dtype)")
        self.check_extents(note.args[0], cast(tuple[Any, ...], values[0]), least=0)
        keys = {key.arg: self.value(key.value) for key in note.keywords}
        align = keys.pop("align", 16)
        if keys:
            self.fail(note, "a tensor has no {name}", name=next(iter(keys)), hint="known: align")
        buffer = Buffer(syntax.arg, values[0], values[-1], "global", strides, align)  # pyright: ignore[reportUnknownArgumentType]
        return self.bind(syntax, syntax.arg, buffer)

    def check_extents(self, syntax: ast.expr, shape: tuple[Any, ...], least: int) -> None:
        """Refuse an extent that is no number of elements; sizes of a launch are of arrays alone."""
        places = syntax.elts if isinstance(syntax, ast.Tuple) else [syntax] * len(shape)
        for place, extent in zip(places, shape, strict=True):
            size = isinstance(extent, Expr) and not isinstance(extent, Const) and extent.dtype.is_integer
            if not (size and least == 0) and (type(extent) is not int or not least <= extent < 2**31):
                self.fail(
                    place, "an extent is a whole number from {least} to 2147483647",
                    least=least, found="{text}", text=ast.unparse(place),
                )  # fmt: skip

    def bind(self, syntax: Any, name: str, value: Any) -> Any:
        if name in self.names or name in self.values:
            self.fail(syntax, "the name {name} is bound twice", name=name)
        self.names[name] = value
        return value

    # -- statements
    def body(self, statements: list[ast.stmt]) -> tuple[Stmt, ...]:
        before = set(self.names)
        out = tuple(self.statement(each) for each in statements if not isinstance(each, ast.Pass))
        for name in set(self.names) - before:
            del self.names[name]
        return out

    def statement(self, syntax: ast.stmt) -> Stmt:
        place = self.place(syntax)
        match syntax:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                dtype = ALL.get(self.word_of(syntax.annotation) or "")
                if dtype is None:
                    self.fail(syntax.annotation, "a name is annotated with its dtype, T.int32 say")
                bound = self.expr(value)
                return Let(self.bind(syntax, name, Var(name, type=dtype)), bound, place=place)
            case ast.Assign(targets=[target], value=value):
                return self.assign(syntax, target, value)
            case ast.If():
                condition = self.expr(syntax.test)
                return If(condition, self.body(syntax.body), self.body(syntax.orelse), place=place)
            case ast.While():
                return While(self.expr(syntax.test), (), self.body(syntax.body), place=place)
            case ast.For(iter=ast.Call() as call):
                return self.block(call, syntax.target, syntax.body, LoopStmt, place)
            case ast.With(items=[ast.withitem(context_expr=ast.Call() as call, optional_vars=names)]):
                return self.block(call, names, syntax.body, WithStmt, place)
            case ast.Expr(value=ast.Call() as call) if self.word_of(call.func) in ATOMICS:
                return self.atomic(call, place)
            case ast.Expr(value=ast.Call() as call):
                return self.operation(call, OpStmt, {}, place)
            case _:
                return self.fail(syntax, "a stage has no such statement")

    def assign(self, syntax: ast.stmt, target: ast.expr, value: ast.expr) -> Stmt:
        place = self.place(syntax)
        if isinstance(target, ast.Name) and target.id not in self.names:
            if not isinstance(value, ast.Call):
                self.fail(
                    syntax,
                    "the name {name} is not bound; a value is bound as `name: T.dtype = ...`",
                    name=target.id,
                )
            return self.allocation(value, target.id, place)
        if isinstance(value, ast.Call) and self.word_of(value.func) in ATOMICS:
            known = self.element(target)
            if known.buffer.scope != "var":
                self.fail(target, "what an atomic finds goes into a scalar of T.alloc_var")
            return self.atomic(value, place).but(found=known.buffer)
        return self.stored(target, value, place)

    def element(self, target: ast.expr) -> Load:
        known = self.expr(target)
        if not isinstance(known, Load):
            self.fail(target, "only an element of a buffer can be stored to")
        return known

    def stored(self, target: ast.expr, value: ast.expr, place: Place) -> Store:
        known = self.element(target)
        return Store(known.buffer, known.index, self.expr(value), version=known.version, place=place)

    def atomic(self, call: ast.Call, place: Place) -> Store:
        """`T.atomic_add(buffer[index], value, memory_order="acquire")`; a load has no value."""
        how = ATOMICS[self.word_of(call.func) or ""]
        if len(call.args) != (1 if how == "load" else 2):
            self.fail(call, "T.atomic_{how} takes an element and a value, a load the element alone", how=how)
        order: object = "relaxed"
        for keyword in call.keywords:
            order = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if keyword.arg != "memory_order" or order not in MEMORY_ORDERS:
                self.fail(
                    keyword.value, "an atomic has a memory_order and nothing else",
                    found=ast.unparse(keyword), expected=", ".join(MEMORY_ORDERS),
                )  # fmt: skip
        known = self.element(call.args[0])
        value = zero_of(known.dtype) if how == "load" else self.expr(call.args[1])
        return Store(
            known.buffer, known.index, value, version=known.version, atomic=how, order=str(order), place=place
        )

    def lookup(self, call: ast.Call, form: type[WordStmt]) -> tuple[str, Word]:
        name = self.word_of(call.func)
        if name is None:
            self.fail(call, "only words of the language (T.name) can be called")
        word = self.registry.statement(name)
        if word is None or not issubclass(word.cls, form):
            known = [n for n, w in self.registry.statements.items() if issubclass(w.cls, form)]
            close = nearest(name, known)
            self.fail(
                call,
                "T.{name} is no such word here",
                hint=f"did you mean T.{close[0]}?" if close else "",
                name=name,
            )
        return name, word

    def block(
        self,
        call: ast.Call,
        targets: ast.expr | None,
        body: list[ast.stmt],
        form: type[WordStmt],
        place: Place,
    ) -> Stmt:
        _, word = self.lookup(call, form)
        names = self.targets(targets)
        fields = self.fields(call, word, list(call.args))
        for mark in word.cls.marks:
            if mark.star and names and len(fields[mark.name]) != len(names):
                self.fail(
                    call, "{count} names for {n} of {name}",
                    count=len(names), n=len(fields[mark.name]), name=mark.name,
                    hint="one name for each",
                )  # fmt: skip
        variables = tuple(self.bind(call, each, Var(each)) for each in names)
        fields["vars"] = variables
        fields["body"] = self.body(body)
        for each in names:
            del self.names[each]
        return word.cls(**fields, place=place)

    def targets(self, syntax: ast.expr | None) -> list[str]:
        if syntax is None:
            return []
        parts = syntax.elts if isinstance(syntax, ast.Tuple) else [syntax]
        return [
            each.id if isinstance(each, ast.Name) else self.fail(each, "a name is expected") for each in parts
        ]

    def allocation(self, call: ast.Call, name: str, place: Place) -> Stmt:
        _, word = self.lookup(call, AllocStmt)
        cls: Any = word.cls
        lead: list[Any] = [self.value(each) for each in call.args[:2]]
        # A scalar has no shape: its dtype comes first.
        shaped = bool(lead) and isinstance(lead[0], tuple)
        shape = cast("tuple[int, ...]", lead[0]) if shaped else ()
        used = 2 if shaped else 1
        dtype: Any = lead[used - 1] if len(lead) >= used else None
        if not isinstance(dtype, DType):
            self.fail(call, "an allocation is T.alloc_...(shape, dtype)")
        if shaped:
            self.check_extents(call.args[0], shape, least=0 if cls.scope == "global" else 1)
        buffer = Buffer(name, shape, dtype, cls.scope)
        fields = self.fields(call, word, list(call.args[used:]))
        buffer = cls.named(buffer, fields)
        self.bind(call, name, buffer)
        return cls(buffer=buffer, **fields, place=place)

    def operation(self, call: ast.Call, form: type[WordStmt], extra: dict[str, Any], place: Place) -> Stmt:
        _, word = self.lookup(call, form)
        return word.cls(**self.fields(call, word, list(call.args)), **extra, place=place)

    def fields(self, call: ast.Call, word: Word, args: list[ast.expr]) -> dict[str, Any]:
        """The fields that positional and keyword arguments of a word mean."""
        out: dict[str, Any] = dict(word.presets)
        marks = [m for m in printed_marks(word.cls) if m.name not in out and m.mark != RESULT]
        for mark in [m for m in marks if m.required]:
            if mark.star:
                count = len(args)
                out[mark.name] = tuple(self.argument(each, mark) for each in args[:count])
                args = args[count:]
            elif args:
                out[mark.name] = self.argument(args.pop(0), mark)
            else:
                self.fail(call, "the argument {name} is missing", name=mark.name)
        if args:
            self.fail(args[0], "one argument too many")
        known = {m.name: m for m in marks if not m.required}
        for keyword in call.keywords:
            mark = known.get(keyword.arg or "")
            if mark is None:
                self.fail(
                    keyword.value,
                    "there is no argument {name} here",
                    hint="known: " + ", ".join(known),
                    name=keyword.arg,
                )
            out[mark.name] = self.argument(keyword.value, mark)
        return out

    def argument(self, syntax: ast.expr, mark: FieldMark) -> Any:
        if mark.mark == ATTRIBUTE:
            value = self.value(syntax)
            if not fits(value, mark):
                self.fail(
                    syntax, "{name} is {kinds}", name=mark.name, kinds=expected_by(mark),
                    text=ast.unparse(syntax), found="{text}",
                )  # fmt: skip
            return value
        value = self.operand(syntax)
        if mark.region and isinstance(value, Load):
            return Region(value.buffer, value.index, version=value.version, place=value.place)
        return value
