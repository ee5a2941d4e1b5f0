"""The operators as operations of torch: `torch.ops.tilebench.softmax(x)` and the same by name here.

    from tilebench.library import torch_ops
    torch.compile(lambda x: torch_ops.softmax(x) * 2)(x)

Importing this registers them. Each has a fake kernel, which says the result's shape, dtype and strides to
whoever traces (`torch.compile`, `torch.export`), also of sizes that are symbols. They take and return tensors
and change none, and run on the current stream. Attention has gradients (`torch_attention.py`); torch refuses
to go back through another one. The library's functions are these operations while they are traced: a program
that has imported torch in front of the first of them need not import this.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from ..runtime.describe import dtype_name
from .calls import call, traced
from .definition import ANY, ArrayArgument, Operator, Problem
from .table import OPERATORS

NAMESPACE = "tilebench"
_TYPES = {bool: "bool", float: "float", str: "str", int: "int"}


def schema(operator: Operator) -> str:
    """An operator's arguments in torch's words: arrays, then options with their defaults."""
    words = [
        f"Tensor{'?' if a.optional else ''} {a.name}{'=None' if a.optional else ''}"
        for a in operator.arguments
    ]
    for option in operator.options:
        default = f'"{option.default}"' if isinstance(option.default, str) else option.default
        words.append(f"{_TYPES[type(option.default)]} {option.name}={default}")
    return f"({', '.join(words)}) -> Tensor"


def _split(
    operator: Operator, given: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arrays and the options of a call."""
    count = len(operator.arguments)
    names = [argument.name for argument in operator.arguments]
    arrays = [*given[:count], *[named.get(name) for name in names[len(given) :]]]
    options = {o.name: v for o, v in zip(operator.options, given[count:], strict=False)}
    return arrays, options | {o.name: named[o.name] for o in operator.options if o.name in named}


def _run(operator: Operator) -> Callable[..., Any]:
    def run(*given: Any, **named: Any) -> Any:
        arrays, options = _split(operator, given, named)
        return call(operator, *arrays, **options)

    return run


def _fake(operator: Operator) -> Callable[..., Any]:
    def fake(*given: Any, **named: Any) -> Any:
        return fake_result(operator, *_split(operator, given, named))

    return fake


def fake_result(operator: Operator, arrays: list[Any], options: Mapping[str, Any] | None = None) -> Any:
    """An empty tensor of the result's shape, dtype and strides. Sizes may be symbols of a trace."""
    torch: Any = importlib.import_module("torch")
    sizes: dict[str, Any] = {}
    for argument, array in zip(operator.arguments, arrays, strict=True):
        if array is not None and not argument.by_dims:
            _note(argument, tuple(array.shape), sizes, torch)
    shape: list[Any] = []
    for dim in operator.result.dims:
        shape += sizes[dim] if dim.startswith(ANY) else [sizes[dim]]
    first = arrays[0]
    named = {option.name: option.default for option in operator.options} | dict(options or {})
    name = operator.result_dtype(Problem({}, dtype_name(first.dtype), named))
    dtype = getattr(torch, name)
    for order in operator.result.orders[1:]:
        if not first.is_contiguous() and first.permute(*order).is_contiguous():
            memory = first.new_empty([shape[k] for k in order], dtype=dtype)
            return memory.permute(*[order.index(k) for k in range(len(order))])
    return first.new_empty(shape, dtype=dtype)


def _note(argument: ArrayArgument, shape: tuple[Any, ...], sizes: dict[str, Any], torch: Any) -> None:
    """Each extent under its dimension; two of one name are equal, which the trace is told."""
    least = len(argument.dims) - argument.dims[0].startswith(ANY)
    extents = list(shape[len(shape) - least :]) if least else []
    if argument.dims[0].startswith(ANY):
        extents.insert(0, list(shape[: len(shape) - least]))
    for dim, extent in zip(argument.dims, extents, strict=True):
        before = sizes.setdefault(dim, extent)
        pairs: Any = zip(before, extent, strict=True) if dim.startswith(ANY) else [(before, extent)]
        for one, other in pairs:
            torch._check(one == other, lambda: f"{argument.name} does not fit the arrays before it")


def registered() -> dict[str, Any]:
    """All operators as torch's custom operations, by name."""
    torch: Any = importlib.import_module("torch")
    out: dict[str, Any] = {}
    for name, operator in OPERATORS.items():
        made: Any = torch.library.custom_op(
            f"{NAMESPACE}::{name}", _run(operator), mutates_args=(), schema=schema(operator)
        )
        made.register_fake(_fake(operator))
        out[name] = made
    return out


operations = registered()
globals().update(operations)
traced.update(operations)
__all__ = [*operations]  # pyright: ignore[reportUnsupportedDunderAll]

# Its gradients, for whoever has the operations: it imports what stands above.
importlib.import_module(".torch_attention", __package__)
