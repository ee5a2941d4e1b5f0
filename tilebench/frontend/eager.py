"""The eager form: a kernel function whose own body is the kernel.

Annotations without a value say which parameters are arrays, `T.const` names sizes that are read from their
shapes, `T.empty` makes what the function returns. The constants are settled first: the statements before
`with T.Kernel` are traced with names in their place, and the shapes that come out are compared with those of
the call. Then the whole function is traced with numbers, as any kernel is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import ArgumentError, LanguageError, Place, TileError
from ..ir import Buffer, DType, Expr, Function, Var, show, walk
from ..ir.arith import linear
from ..ir.dtypes import ALL
from ..language.annotations import TensorSpec
from ..language.closing.printed_rows import Speech
from ..language.eager import EagerTrace, names_of_const
from ..language.tracing.builder import Builder, Tracing
from ..language.tracing.values import BufferView
from .finish import finished
from .forms import bare_names, called_name, form_of_node, is_array, is_bare
from .macros import inliner
from .parameters import bind_param, refuse_size, scalar_dtype, sizes_in
from .scope import Binding, Scope
from .source import SourceFunction
from .statements import HANDLERS, Statements

Shape = tuple[int, ...]


@dataclass(frozen=True)
class EagerForm:
    """What the syntax of such a function says: its parameters that a call passes, and its constants.

    `strided`: it names `T.StridedTensor`, of which strides may tell constants.
    """

    passed: tuple[str, ...]
    constants: tuple[str, ...]
    strided: bool = False


def eager_form(node: ast.FunctionDef) -> EagerForm | None:
    """The form of a function whose body is the kernel; None for one that returns a `@T.prim_func`."""
    if form_of_node(node) != "eager":
        return None
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    said = {*bare_names(node.body), *(each.arg for each in arguments if is_array(each.annotation))}
    passed = tuple(argument.arg for argument in arguments if argument.arg in said)
    constants: dict[str, None] = {}
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and called_name(call.func) == "const" and call.args:
            text = call.args[0]
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                constants.update(dict.fromkeys(names_of_const(text.value)))
    strided = any(
        called_name(part) == "StridedTensor" for part in ast.walk(node) if isinstance(part, ast.expr)
    )
    return EagerForm(passed, tuple(constants), strided)


def _in_signature(node: ast.FunctionDef) -> list[ast.stmt]:
    """What the signature says of arrays, as the bare annotations that it stands for."""
    said = set(bare_names(node.body))
    return [
        ast.copy_location(
            ast.AnnAssign(ast.copy_location(ast.Name(each.arg), each), each.annotation, None, 1), each
        )
        for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        if each.annotation is not None and is_array(each.annotation) and each.arg not in said
    ]


class EagerStatements(Statements):
    """The statements of such a function: those of a kernel, its parameters, and `return`."""

    form: EagerForm
    eager: EagerTrace

    def __init__(
        self,
        source: SourceFunction,
        scope: Scope,
        form: EagerForm,
        values: Mapping[str, Any],
        eager: EagerTrace,
    ) -> None:
        super().__init__(source, scope, Builder(eager=eager))
        self.builder.locate = self.locate
        self.builder.inline = inliner(self)
        self.form, self.eager = form, eager
        self.specs: dict[str, TensorSpec] = {}
        self.parameters: dict[str, Buffer | Var] = {}
        self.returned: list[str] | None = None
        self.sizes: set[str] = set()
        for name, value in values.items():
            if name not in form.passed and name not in form.constants:
                scope.bind(name, Binding(value, self.builder.frames[0], None))

    def parameter(self, node: ast.AnnAssign) -> None:
        """`A: T.Tensor(...)`: what a parameter is, or the declaration of an array with a value."""
        if node.value is not None:
            self.annotated(node)
            return
        if not isinstance(node.target, ast.Name) or node.target.id not in self.form.passed:
            self.refuse(
                node, "a bare annotation says what a parameter of the function is",
                "give the name a value, or make it a parameter",
            )  # fmt: skip
        name = node.target.id
        if name in self.parameters:
            self.refuse(node, "{name} is said twice", name=name)
        spec = self.expr(node.annotation)
        self.current = node
        if isinstance(spec, TensorSpec):
            self.take_sizes(spec, node)
            self.specs[name] = spec
        elif isinstance(spec, DType) or (isinstance(spec, str) and spec in ALL):
            spec = scalar_dtype(ALL[spec if isinstance(spec, str) else spec.name], node, self)
        else:
            self.refuse(
                node.annotation, "{name} is annotated with what is no array and no dtype",
                'A: T.Tensor((M, N), "float16") for an array, n: T.int32 for a scalar', name=name,
            )  # fmt: skip
        self.parameters[name] = bind_param(self, name, spec, node)

    def take_sizes(self, spec: TensorSpec, node: ast.AnnAssign) -> None:
        """Names of T.dynamic are taken from their first array on: a loop's variable gets another one."""
        for var in sizes_in(spec):
            if var.name in self.form.passed:
                refuse_size(var.name, self, node)
            if var.name not in self.sizes:
                self.sizes.add(self.builder.unique(var.name))

    def return_(self, node: ast.Return) -> None:
        """`return C`: the arrays of `T.empty` that a call gives back, in this order."""
        if self.returned is not None or len(self.builder.frames) > 1:
            self.refuse(node, "the function returns once, at its end")
        parts: list[ast.expr] = []
        if node.value is not None:
            parts = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else [node.value]
        self.returned = []
        for part in parts:
            value = self.expr(part)
            if not isinstance(value, BufferView) or value.buffer.name not in self.eager.made:
                self.refuse(part, "only arrays of T.empty are returned",
                            "C = T.empty((M, N), dtype), written by the kernel")  # fmt: skip
            if value.buffer.name in self.returned:
                self.refuse(part, "{name} is returned twice", name=value.buffer.name)
            self.returned.append(value.buffer.name)

    of_statements: ClassVar = {**HANDLERS, ast.AnnAssign: parameter, ast.Return: return_}


@dataclass(frozen=True)
class EagerKernel:
    """The `tile` stage of such a function, and how many of its last parameters a call makes and returns."""

    function: Function
    outputs: int
    printed: Speech | None = None


def trace_eager(
    function: Callable[..., Any], source: SourceFunction, form: EagerForm, values: Mapping[str, Any]
) -> EagerKernel:
    """The kernel for these values of parameters and constants.

    Raises a `TileError` at the user's line for whatever is wrong.
    """
    numbers = {name: values[name] for name in form.constants if name in values}
    tracer = EagerStatements(source, Scope(function), form, values, EagerTrace(numbers))
    with Tracing(tracer.builder):
        tracer.statements([*_in_signature(source.node), *source.node.body])
    made, returned = tracer.eager.made, tracer.returned or []
    for name in made:
        if name not in returned:
            raise LanguageError(
                "{name} of T.empty is not returned, so nobody could read it", name=name,
                at=source.place(source.node), hint="end the function with `return {name}`",
            )  # fmt: skip
    arrays = [tracer.parameters[name] for name in form.passed if name in tracer.parameters]
    arrays += [made[name] for name in returned]
    sizes = {var.name: var for array in arrays if isinstance(array, Buffer) for var in sizes_in(array)}
    params = (*sizes.values(), *arrays)
    return EagerKernel(finished(tracer, source, params), len(returned), tracer.builder.printed)


def constants_of(
    function: Callable[..., Any],
    source: SourceFunction,
    form: EagerForm,
    values: Mapping[str, Any],
    shapes: Mapping[str, Shape],
    strides: Mapping[str, Shape] | None = None,
    in_bytes: Collection[str] = (),
) -> dict[str, int]:
    """The constants of a call whose arrays have these shapes and, where they may tell some, strides.

    Those that are named `in_bytes` are arrays of bytes, which may hold several elements each.

    Raises `ArgumentError` where shapes contradict each other, or do not tell a constant.
    """
    known = {name: values[name] for name in form.constants if name in values}
    tracer = EagerStatements(source, Scope(function), form, values, EagerTrace(known, symbolic=True))
    with Tracing(tracer.builder):
        _head(tracer, [*_in_signature(source.node), *source.node.body])
    solver = _Solver(tracer, {name: (number, "the call", None) for name, number in known.items()})
    for name, spec in tracer.specs.items():
        if name in shapes:
            per_byte = spec.dtype.per_byte if name in in_bytes else 1
            solver.array(name, spec, *_in_elements(per_byte, shapes[name], (strides or {}).get(name)))
    missing = [name for name in form.constants if name in tracer.eager.named and name not in solver.found]
    if missing:
        none = [name for name in tracer.specs if name in form.passed and name not in shapes]
        if none:
            raise ArgumentError(
                "{name} is no array: it has no shape", name=none[0], at=solver.places[none[0]],
                expected="an array, whose shape tells {size}", size=missing[0],
                hint="numpy.asarray(...) makes an array of a list or number; its dtype then has to fit too",
            )  # fmt: skip
        raise ArgumentError(
            "no shape tells the constant {name}", name=missing[0], at=source.place(source.node),
            function=source.node.name, hint="name it in the call: {function}(..., {name}=1024)",
        )  # fmt: skip
    return {name: number for name, (number, _, _) in solver.found.items()}


def _in_elements(per_byte: int, shape: Shape, strides: Shape | None) -> tuple[Shape, Shape | None]:
    """Shape and strides of an array whose bytes hold so many elements: rows are whole bytes."""
    if per_byte == 1 or not shape:
        return shape, strides
    steps = None if strides is None else (*(step * per_byte for step in strides[:-1]), strides[-1])
    return (*shape[:-1], shape[-1] * per_byte), steps


def _head(tracer: EagerStatements, body: list[ast.stmt]) -> None:
    """The statements in front of the kernel, as far as they need no constant's number."""
    for statement in body:
        if isinstance(statement, ast.With):
            return
        try:
            tracer.statement(statement)
        except TileError:
            # What needs a number is of no use here, and said again when the function is traced with numbers.
            if is_bare(statement) or _names_constants(statement):
                raise


def _names_constants(statement: ast.stmt) -> bool:
    """Whether a statement is `M, N = T.const(...)`, which needs no number."""
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
        and called_name(statement.value.func) == "const"
    )


class _Solver:
    """Reads constants from shapes: the number of each, what said it, and where that array is annotated."""

    def __init__(self, tracer: EagerStatements, found: dict[str, tuple[int, str, Place | None]]) -> None:
        self.named = tracer.eager.named
        self.places = {name: binding.place for name, binding in tracer.scope.locals.items()}
        self.found = found

    def array(self, name: str, spec: TensorSpec, shape: Shape, strides: Shape | None) -> None:
        """What one array of the call says."""
        if len(shape) != len(spec.shape):
            raise ArgumentError(
                "{name} has the shape {shape}, which is of another rank", name=name, shape=shape,
                expected=f"{len(spec.shape)} dimension{'s' * (len(spec.shape) != 1)}", at=self.places[name],
            )  # fmt: skip
        for axis, (size, extent) in enumerate(zip(spec.shape, shape, strict=True)):
            if isinstance(size, Expr):
                self.extent(name, f"extent {axis} of {name}", size, extent)
        steps = list(enumerate(zip(spec.strides or (), strides or (), shape, strict=False)))
        # The stride of an extent of 1 means nothing: it is asked where nothing else tells.
        for axis, (size, step, extent) in sorted(steps, key=lambda row: row[1][2] == 1):
            if isinstance(size, Expr) and (extent != 1 or not self.knows(size)):
                self.extent(name, f"stride {axis} of {name}", size, step)

    def knows(self, size: Expr) -> bool:
        """Whether the names of a size have their numbers."""
        return all(part.name in self.found for part in walk(size) if isinstance(part, Var))

    def extent(self, array: str, what: str, size: Expr, extent: int) -> None:
        """`factor * constant + rest` is the extent."""
        form = linear(size)
        var = form.terms[0][0] if len(form.terms) == 1 else None
        if not isinstance(var, Var) or var.name not in self.named:
            return
        place = self.places[array]
        number, rest = divmod(extent - form.constant, form.terms[0][1])
        if rest or number < 0:
            raise ArgumentError(
                "{what} is {extent}, which is no {size}", what=what, extent=extent, size=show(size), at=place,
                name=var.name, hint="{name} is a whole number",
            )  # fmt: skip
        old, first, there = self.found.setdefault(var.name, (number, what, place))
        if old != number:
            raise ArgumentError(
                "{name} is {old} by {first} and {number} by {what}", name=var.name, old=old, first=first,
                number=number, what=what, at=place, also=[("the other is here", there)] if there else [],
                hint="the same name is the same number in one call",
            )  # fmt: skip


__all__ = ["EagerForm", "EagerKernel", "constants_of", "eager_form", "trace_eager"]
