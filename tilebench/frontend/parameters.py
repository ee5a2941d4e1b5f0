"""A kernel's parameters: sizes of `T.dynamic`, arrays and scalars, from the annotations of its signature."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from ..errors import LanguageError
from ..ir import Buffer, DType, Expr, Function, Let, Node, Region, Stmt, Var, walk
from ..ir.arith import linear
from ..ir.dtypes import ALL
from ..ir.expr_walks import seen
from ..ir.node import operands
from ..ir.stmt import statements
from ..language.annotations import PrimFunc, TensorSpec
from ..language.structure import KernelLaunch
from ..language.tracing.builder import Builder, Tracing
from ..language.tracing.values import BufferView, Value
from .scope import Binding, Scope
from .source import SourceFunction
from .statements import Statements


def bind_params(prim: PrimFunc, source: SourceFunction, tracer: Statements) -> tuple[Buffer | Var, ...]:
    """The kernel's parameters, from its annotations: the sizes that shapes name, then arrays and scalars."""
    arguments = source.node.args
    if (
        arguments.vararg
        or arguments.kwarg
        or arguments.kwonlyargs
        or arguments.posonlyargs
        or arguments.defaults
    ):
        tracer.refuse(
            source.node, "a @T.prim_func takes plain parameters, each with a T.Tensor annotation or a dtype"
        )
    specs = [annotated(prim, source, tracer, argument) for argument in arguments.args]
    sizes = sizes_of(specs, source, tracer)
    out: list[Buffer | Var] = list(sizes)
    for argument, spec in zip(arguments.args, specs, strict=True):
        out.append(bind_param(tracer, argument.arg, spec, argument))
    return tuple(out)


def bind_param(tracer: Statements, name: str, spec: TensorSpec | DType, node: ast.AST) -> Buffer | Var:
    """A parameter of the kernel, under a name of its own, as the statements see it."""
    place, fresh = tracer.place(node), tracer.builder.unique(name)
    if isinstance(spec, TensorSpec):
        param: Buffer | Var = Buffer(fresh, spec.shape, spec.dtype, "global", spec.strides)
        value: Any = BufferView(param, None, place)
    else:
        param = Var(fresh, type=spec, place=place)
        value = Value(param)
    tracer.scope.bind(name, Binding(value, tracer.builder.frames[0], place, "param"))
    return param


def sizes_in(array: TensorSpec | Buffer) -> Iterator[Var]:
    """The names that an array's shape and strides have, in order, some perhaps more than once."""
    for size in (*array.shape, *(array.strides or ())):
        for part in walk(size) if isinstance(size, Expr) else ():
            if isinstance(part, Var):
                yield part


def refuse_size(name: str, tracer: Statements, node: ast.AST) -> NoReturn:
    """Raise `LanguageError` for a size that has the name of a parameter."""
    raise LanguageError(
        "{name} is a parameter of {function} and a size of T.dynamic", at=tracer.place(node),
        name=name, function=tracer.source.node.name, hint="give one of them another name",
    )  # fmt: skip


def sizes_of(
    specs: Sequence[TensorSpec | DType], source: SourceFunction, tracer: Statements
) -> tuple[Var, ...]:
    """The sizes that shapes and strides name, in order. Their names are taken before those of parameters."""
    found: dict[str, Var] = {}
    for spec, node in zip(specs, source.node.args.args, strict=True):
        for var in sizes_in(spec) if isinstance(spec, TensorSpec) else ():
            found.setdefault(var.name, var.at(tracer.place(node)))
    for node in source.node.args.args:
        if node.arg in found:
            refuse_size(node.arg, tracer, node)
    for name in found:
        tracer.builder.unique(name)
    return tuple(found.values())


def annotated(
    prim: PrimFunc, source: SourceFunction, tracer: Statements, argument: ast.arg
) -> TensorSpec | DType:
    """What one parameter is by its annotation: an array, or a scalar of a dtype."""
    notes = Statements(source, Scope(prim.function, prim.scope), Builder())
    tracer.builder.locate = tracer.locate
    spec = prim.function.__annotations__.get(argument.arg)
    if isinstance(spec, str) and argument.annotation is not None and spec not in ALL:
        with Tracing(notes.builder):
            spec = notes.expr(argument.annotation)
    if isinstance(spec, TensorSpec):
        return spec
    if isinstance(spec, DType) or (isinstance(spec, str) and spec in ALL):
        return scalar_dtype(ALL[spec if isinstance(spec, str) else spec.name], argument, tracer)
    what = "has no annotation" if argument.annotation is None else "is annotated with something else"
    raise LanguageError(
        "the parameter {name} needs an annotation that says what it is; it {what}", at=tracer.place(argument),
        name=argument.arg, what=what,
        hint='{name}: T.Tensor((M, N), "float16") for an array, {name}: T.int32 for a scalar',
    )  # fmt: skip


def scalar_dtype(dtype: DType, argument: ast.AST, tracer: Statements) -> DType:
    """The dtype of a scalar parameter. `LanguageError` for one that no argument of a call has."""
    if dtype.bits < 8 or (dtype.is_float and dtype.bits < 16):
        raise LanguageError(
            "a scalar parameter cannot be {dtype}", at=tracer.place(argument), dtype=dtype,
            hint="pass it as T.float32 and convert it in the kernel: {dtype}",
        )  # fmt: skip
    return dtype


def check_sizes(function: Function) -> None:
    """Raise `LanguageError` for a size that no call could tell: every size is read from an array."""
    bound = {param.name for param in function.params}
    for statement in statements(function.body):
        bound.update([var.name for var in getattr(statement, "vars", ())])
        if isinstance(statement, Let):
            bound.add(statement.var.name)
    # Most kernels name nothing else: only where one does it is looked for, with its place.
    for var, node in _named(function) if _mentioned(function) - bound else ():
        if var.name not in bound:
            raise LanguageError(
                "the size {name} of T.dynamic is in no array's shape", at=node.place or function.place,
                name=var.name, hint="each call reads it from an array: A: T.Tensor(({name}, ...), dtype)",
            )  # fmt: skip
    for buffer in function.workspaces:
        for size in buffer.shape:
            _check_workspace(function, buffer, size)
    sizes = [size for array in function.arrays for size in (*array.shape, *(array.strides or ()))]
    forms = [linear(size) for size in sizes if isinstance(size, Expr)]
    alone = {form.terms[0][0] for form in forms if len(form.terms) == 1}
    for var in function.dimensions:
        if var not in alone:
            raise LanguageError(
                "the size {name} cannot be read from the arrays: it is in no extent by itself", at=var.place,
                name=var.name, hint="an extent {name}, or {name} * 2 + 1, tells it; {name} * n does not",
            )  # fmt: skip


def _check_workspace(function: Function, buffer: Buffer, size: int | Expr) -> None:
    """Raise `LanguageError` for an extent of `T.alloc_global` that is no size of the arrays."""
    known = {var.name for var in function.dimensions}
    for part in walk(size) if isinstance(size, Expr) else ():
        if isinstance(part, Var) and part.name not in known:
            raise LanguageError(
                "the extent {name} of {buffer} is no size of an array", name=part.name, buffer=buffer.name,
                at=next(each.place for each in function.body if getattr(each, "buffer", None) is buffer),
                hint="make extents of T.alloc_global of numbers and of names of T.dynamic in arrays' shapes",
            )  # fmt: skip


def _mentioned(function: Function) -> set[str]:
    """The names of the variables in all expressions, grids too."""
    found: set[str] = set()
    for statement in statements(function.body):
        for part in operands(statement):
            for expr in part.start if isinstance(part, Region) else (part,):
                found |= seen(expr).names
        for size in statement.grid if isinstance(statement, KernelLaunch) else ():
            found |= seen(size).names if isinstance(size, Expr) else set()
    return found


def _named(function: Function) -> Iterator[tuple[Var, Node]]:
    """The variables that expressions name, grids too, each with the statement that it is in."""
    here: Node = function
    for node in walk(function):
        here = node if isinstance(node, Stmt) else here
        if isinstance(node, Var):
            yield node, here
        for size in node.grid if isinstance(node, KernelLaunch) else ():
            for part in walk(size) if isinstance(size, Expr) else ():
                if isinstance(part, Var):
                    yield part, node
