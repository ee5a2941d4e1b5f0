"""Writing a macro's statements into the kernel where it is called.

Each call is read anew, with the values of its arguments: names are the macro's own, places carry the call.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from ..errors import LanguageError, Place
from ..ir import Load, Var, walk
from ..language.annotations import TensorSpec
from ..language.macros import Macro, Ref, TileSpec, check_argument
from ..language.memory import AllocVar
from ..language.tracing.builder import BodyFrame, Builder, Tracing, shown
from ..language.tracing.expressions import Value
from ..language.tracing.values import BufferView, ElementRef, RegionRef, VarRef
from .inner_macros import InnerMacro, InnerScope
from .scope import Binding, Scope
from .source import SourceFunction, source_of
from .statements import HANDLERS, Statements
from .texts import defined

# A macro that calls itself ends on what Python knows; deeper than this it does not.
DEEPEST = 24


class Returned(BaseException):
    """A macro's `return`, on its way to the call. No error, and caught by nobody who handles those."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class MacroStatements(Statements):
    """The statements of one call of a macro."""

    def __init__(
        self, source: SourceFunction, scope: Scope, builder: Builder, base: BodyFrame, caller: Place | None
    ) -> None:
        super().__init__(source, scope, builder)
        self.caller = caller
        self.base = base
        # Where the macro's own statements begin in the body that it is written into.
        self.first = len(base.statements)

    def take(self, node: ast.arg, value: Any, note: Any) -> None:
        """Bind a parameter: a number as it is now, anything else, and what is annotated T.Ref, itself."""
        self.current = node
        how = "name"
        if note is Ref:
            value, how = self.reference(node, value), "ref"
        elif isinstance(note, (TileSpec, TensorSpec)):
            with self.place(node):
                check_argument(node.arg, note, value)
        elif isinstance(value, Value) and not isinstance(value.expr, Var):
            value = self.named(value, node.arg)
        self.scope.bind(node.arg, Binding(value, self.base, self.place(node), how))

    def reference(self, node: ast.arg, value: Any) -> Any:
        """What a macro may assign. The index of an element is what it was at the call."""
        if isinstance(value, ElementRef):
            index = tuple(self.read_now(Value(part)).expr for part in value.index)
            return ElementRef(value.view, index)
        if not isinstance(value, (VarRef, BufferView, RegionRef)):
            self.refuse(
                node, "the parameter {name} is a T.Ref, found {text}", "pass {name} by value, without T.Ref",
                name=node.arg, text=shown(value),
            )  # fmt: skip
        return value

    def return_(self, node: ast.Return) -> None:
        """`return value`, outside of what the running kernel decides."""
        if self.builder.frames[-1] is not self.base:
            self.refuse(
                node, "a macro returns after its loops and branches, not inside one",
                "make x = T.alloc_var(dtype) before the block, assign x inside, and return x after it",
            )  # fmt: skip
        raise Returned(None if node.value is None else self.given_back(self.expr(node.value)))

    def given_back(self, value: Any) -> Any:
        """A number as it is when the macro ends; a variable that the macro made is the caller's now."""
        if isinstance(value, tuple):
            return tuple(self.given_back(part) for part in value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        own = isinstance(value, VarRef) and any(
            isinstance(made, AllocVar) and made.buffer is value.view.buffer
            for made in self.base.statements[self.first :]
        )
        return value if own or not _reads(value) else self.read_now(value)

    def nonlocal_(self, node: ast.Nonlocal) -> None:
        """`nonlocal x`: assignments are those of the function around."""
        for name in node.names:
            binding = self.scope.enclosing(name)
            if binding is None:
                self.refuse(node, "no function around this one has the name {name}", name=name)
            self.scope.bind(name, binding)

    of_statements: ClassVar = {**HANDLERS, ast.Return: return_, ast.Nonlocal: nonlocal_}


def _reads(value: Any) -> bool:
    return isinstance(value, Value) and any(isinstance(part, Load) for part in walk(value.expr))


def inliner(tracer: Statements) -> Callable[..., Any]:
    """What a kernel's builder calls for a macro."""
    return partial(inline_macro, tracer)


def inline_macro(tracer: Statements, macro: Macro | InnerMacro, args: Any, keys: dict[str, Any]) -> Any:
    """Write the macro's statements into the innermost body, and give what it returns.

    Raises a `TileError` at the macro's line, with the call's, for whatever is wrong.
    """
    builder = tracer.builder
    place, locate, target = builder.place, builder.locate, builder.target
    _check_depth(builder, macro, place)
    try:
        bound = macro.signature.bind(*args, **keys)
    except TypeError as error:
        raise LanguageError(
            "the macro {name} is not called as it is defined: {text}",
            at=place,
            name=macro.__name__,
            text=error,
        ) from None
    bound.apply_defaults()
    call, notes = _call_of(tracer, macro, place)
    builder.target = ""
    builder.macros.append(macro)
    try:
        for node in _parameters(call.source.node):
            call.take(node, bound.arguments[node.arg], notes.get(node.arg))
        call.statements(call.source.node.body)
    except Returned as returned:
        return returned.value
    finally:
        builder.macros.pop()
        builder.locate, builder.target = locate, target
    return None


def _check_depth(builder: Builder, macro: Macro | InnerMacro, place: Place | None) -> None:
    if builder.macros.count(macro) >= DEEPEST:
        raise LanguageError(
            "the macro {name} calls itself without end", name=macro.__name__, at=place,
            hint="a macro is written out at each call: one that calls itself ends on a value that Python"
            " knows, within {deepest} calls", deepest=DEEPEST,
        )  # fmt: skip


def _call_of(
    tracer: Statements, macro: Macro | InnerMacro, place: Place | None
) -> tuple[MacroStatements, dict[str, Any]]:
    """What reads one call of a macro, and the values of its annotations."""
    builder = tracer.builder
    if isinstance(macro, InnerMacro):
        around = macro.around
        source = SourceFunction(around.source.file, macro.node, around.source.lines)
        return MacroStatements(
            source, InnerScope(around.scope), builder, builder.frames[-1], place
        ), macro.notes
    source = _source(tracer.source, macro)
    notes = _notes(source, macro)
    scope = Scope(macro.function)
    return MacroStatements(source, scope, builder, builder.frames[-1], place), notes


def _source(kernel: SourceFunction, macro: Macro) -> SourceFunction:
    """The macro's text: that of the kernel where both are in it, which may be none that a file holds."""
    code: Any = macro.function.__code__
    found = defined(kernel.lines, code)
    if found is not None and found.gives(code):
        return SourceFunction(kernel.file, found.node, kernel.lines)
    return source_of(macro.function, kept=macro.texts)


def _notes(source: SourceFunction, macro: Macro) -> dict[str, Any]:
    notes = dict(macro.function.__annotations__)
    for argument in _parameters(source.node):
        if isinstance(notes.get(argument.arg), str) and argument.annotation is not None:
            reader = Statements(source, Scope(macro.function, macro.scope), Builder())
            with Tracing(reader.builder):
                notes[argument.arg] = reader.expr(argument.annotation)
    return notes


def _parameters(node: ast.FunctionDef) -> list[ast.arg]:
    given = node.args
    extra = [part for part in (given.vararg, given.kwarg) if part is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *extra]
