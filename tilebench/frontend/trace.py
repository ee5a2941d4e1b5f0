"""From a Python function to the `tile` stage."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import ArgumentError, LanguageError, Place, TileError, nearest
from ..ir import Function
from ..language.annotations import PrimFunc
from ..language.closing.printed_rows import Speech
from ..language.knobs import Knob
from ..language.tracing.builder import Builder, Tracing
from .eager import EagerForm, eager_form, trace_eager
from .finish import finished
from .frames import chained, users_steps
from .macros import inliner
from .parameters import bind_params
from .scope import Scope
from .source import SourceFunction, source_of
from .statements import Statements


@dataclass(frozen=True)
class Traced:
    """A kernel in the `tile` stage and what it came from.

    `parameters` are the values of the jit function's parameters, `knobs` the domains that its
    signature gives them. `text` is the source of the whole function, from `first_line` of `file`.
    `places` are those of the kernel's arrays in its signature, by name; `outputs` the positions of arrays
    that the function itself says are made by each call, among the parameters that a caller sees. `printed` is
    what the kernel says when it runs; its arrays are the last parameters, and no caller sees them.
    """

    function: Function
    file: str
    first_line: int
    text: str
    parameters: dict[str, Any]
    knobs: dict[str, Knob]
    name: str
    places: dict[str, Place] = field(default_factory=dict[str, Place])
    outputs: tuple[int, ...] = ()
    printed: Speech | None = None


def trace(
    function: Callable[..., Any] | PrimFunc,
    arguments: Mapping[str, Any] | None = None,
    *,
    text: str | None = None,
    file: str | None = None,
    first_line: int = 1,
    kept: Sequence[Sequence[str]] = (),
) -> Traced:
    """The kernel that a jit function (or a bare `@T.prim_func`) describes, for these parameters.

    `text` is the text that holds the function where Python cannot find it, with its file name and
    the number of its first line; `kept` are texts that it may be from, as they were when it was made.
    Raises a `TileError` at the user's line for whatever is wrong.
    """
    if isinstance(function, PrimFunc):
        source = source_of(function.function, text, file, first_line, kept)
        kernel, printed = _traced_prim_func(function, source)
        return Traced(
            kernel, source.file, source.first_line, source.text, {}, {}, kernel.name, _param_places(source),
            printed=printed,
        )  # fmt: skip
    source = source_of(function, text, file, first_line, kept)
    knobs = knobs_of(function, source)
    form = eager_form(source.node)
    if form is not None:
        return _traced_eager(function, source, form, arguments or {}, knobs)
    values = bound_arguments(function, source, arguments or {}, knobs)
    prim = run_outer(function, source, values)
    # The kernel may have been made by a function of another file, whose text nobody passed.
    same = prim.function.__code__.co_filename == function.__code__.co_filename
    inner = source_of(prim.function, text, file, first_line, kept) if same else source_of(prim.function)
    kernel, printed = _traced_prim_func(prim, inner)
    return Traced(
        kernel,
        source.file,
        source.first_line,
        source.text,
        values,
        knobs,
        function.__name__,
        _param_places(inner),
        printed=printed,
    )


def _traced_eager(
    function: Callable[..., Any], source: SourceFunction, form: EagerForm, arguments: Mapping[str, Any],
    knobs: dict[str, Knob],
) -> Traced:  # fmt: skip
    """The kernel of a function whose own body it is."""
    values = bound_arguments(function, source, arguments, knobs, form)
    kernel = trace_eager(function, source, form, values)
    # Sizes stand in front, and no caller sees them.
    hidden = 0 if kernel.printed is None else len(kernel.printed.arrays)
    made = len(kernel.function.params) - len(kernel.function.dimensions) - kernel.outputs - hidden
    return Traced(
        kernel.function, source.file, source.first_line, source.text, values, knobs, function.__name__,
        _param_places(source), tuple(range(made, made + kernel.outputs)), kernel.printed,
    )  # fmt: skip


def _param_places(source: SourceFunction) -> dict[str, Place]:
    return {each.arg: source.place(each) for each in source.node.args.args}


def compile_parameters(signature: inspect.Signature, form: EagerForm | None) -> dict[str, inspect.Parameter]:
    """What a kernel is compiled for, by name: the parameters, in the eager form without arrays and scalars
    that a call passes, and its constants by keyword."""
    parameters = dict(signature.parameters)
    if form is None:
        return parameters
    kept = {name: parameter for name, parameter in parameters.items() if name not in form.passed}
    constants = {name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in form.constants}
    return {**kept, **constants}


def knobs_of(
    function: Callable[..., Any], source: SourceFunction | None = None, kept: Sequence[Sequence[str]] = ()
) -> dict[str, Knob]:
    """The domains that a jit function's signature gives its parameters, by annotation or default."""
    out: dict[str, Knob] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        note = parameter.annotation
        if isinstance(note, str) and "nob(" in note:
            note = annotation_value(function, source or source_of(function, kept=kept), note)
        for domain in (note, parameter.default):
            if isinstance(domain, Knob):
                out[name] = domain
                break
    return out


def annotation_value(function: Callable[..., Any], source: SourceFunction, note: str) -> Any:
    """The value of an annotation that `from __future__ import annotations` left as text."""
    for argument in (*source.node.args.posonlyargs, *source.node.args.args, *source.node.args.kwonlyargs):
        if argument.annotation is not None and ast.unparse(argument.annotation) == note:
            return Statements(source, Scope(function), Builder()).expr(argument.annotation)
    return note


def bound_arguments(
    function: Callable[..., Any],
    source: SourceFunction,
    given: Mapping[str, Any],
    knobs: Mapping[str, Knob],
    form: EagerForm | None = None,
) -> dict[str, Any]:
    """The value of every parameter, in the eager form those that no call passes, and the constants.

    Raises `ArgumentError` for a missing or unknown one.
    """
    parameters = compile_parameters(inspect.signature(function), form)
    place = source.place(source.node)
    for name in given:
        if name not in parameters:
            close = nearest(name, list(parameters), limit=1)
            raise ArgumentError(
                "{function} has no parameter {name}",
                at=place,
                function=function.__name__,
                name=name,
                hint=f"did you mean {close[0]}?" if close else "known: " + ", ".join(parameters),
            )
    out: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if name in given:
            out[name] = given[name]
        elif isinstance(parameter.default, Knob):
            out[name] = parameter.default.default
        elif parameter.default is not inspect.Parameter.empty:
            out[name] = parameter.default
        elif name in knobs:
            out[name] = knobs[name].default
        else:
            missing = ", ".join(n for n, p in parameters.items() if n not in given and p.default is p.empty)
            raise ArgumentError(
                "{function} needs a value for {missing}",
                at=place,
                function=function.__name__,
                missing=missing,
            )
    return out


def run_outer(function: Callable[..., Any], source: SourceFunction, values: Mapping[str, Any]) -> PrimFunc:
    """Run the jit function, which is plain Python, for the `@T.prim_func` it returns."""
    place = source.place(source.node)
    try:
        prim = function(**values)
    except TileError as error:
        if error.place is None:
            error.place = chained(users_steps(error.__traceback__), None) or place
        raise
    except Exception as error:
        raised = chained(users_steps(error.__traceback__), None) or place
        raise LanguageError(
            "{kind}: {text}", at=raised, kind=type(error).__name__, text=str(error) or "no message"
        ) from error
    if not isinstance(prim, PrimFunc):
        raise LanguageError(
            "{name} returns {kind}, a @T.prim_func is expected",
            at=place,
            name=function.__name__,
            kind=type(prim).__name__,
            hint="end the function with `return main`, main being its @T.prim_func",
        )
    return prim


def trace_prim_func(prim: PrimFunc, source: SourceFunction) -> Function:
    """The `tile` stage of one `@T.prim_func`."""
    return _traced_prim_func(prim, source)[0]


def _traced_prim_func(prim: PrimFunc, source: SourceFunction) -> tuple[Function, Speech | None]:
    builder = Builder()
    tracer = Statements(source, Scope(prim.function), builder)
    builder.inline = inliner(tracer)
    with Tracing(builder):
        params = bind_params(prim, source, tracer)
        tracer.statements(source.node.body)
    return finished(tracer, source, params), builder.printed


__all__ = ["Place", "Traced", "bound_arguments", "knobs_of", "trace", "trace_prim_func"]
