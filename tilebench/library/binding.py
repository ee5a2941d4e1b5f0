"""From the arrays and options of a call to its `Problem`; whatever does not fit is refused by its name here,
before anything is compiled or launched."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError, OptionError, TargetError, nearest
from ..runtime.describe import ArrayInfo, describe
from ..targets import manifest, names, resolve
from .definition import ANY, ArrayArgument, Operator, OptionArgument, Problem


@dataclass(frozen=True)
class Bound:
    """A call that fits. `leading` has the extents that each `*` dimension stands for."""

    problem: Problem
    leading: Mapping[str, tuple[int, ...]]
    infos: Mapping[str, ArrayInfo]
    device: str


def bind(operator: Operator, arrays: Sequence[Any], options: Mapping[str, Any]) -> Bound:
    """The problem of a call. Raises `ArgumentError` or `OptionError` for what does not fit."""
    infos = _described(operator, arrays)
    first = next(iter(infos.values()))
    chosen: dict[str, Any] = checked_options(operator, options)
    seen: dict[str, tuple[int | tuple[int, ...], str]] = {}
    for argument in operator.arguments:
        info = infos.get(argument.name)
        if argument.optional:
            chosen[f"has_{argument.name}"] = info is not None
        if argument.orders:
            chosen[f"{argument.name}_order"] = 0
        if argument.by_dims:
            chosen[f"{argument.name}_each"] = False
        if info is None:
            continue
        _check_dtype(argument, info, first, operator)
        _check_device(argument, info, first, operator)
        if {*argument.dtypes} & {*operator.arguments[0].dtypes} and info is not first:
            chosen[f"{argument.name}_dtype"] = info.dtype.name
        if argument.by_dims:
            chosen[f"{argument.name}_each"] = _one_or_each(argument, info, seen)
            continue
        _bind_dims(argument, info.shape, seen)
        if argument.orders:
            chosen[f"{argument.name}_order"] = order_of(argument, info)
        elif not is_contiguous(info.shape, info.strides):
            raise _strided(argument, info)
    _refuse_gradients(arrays)
    if operator.result.orders:  # as the first array lies
        chosen[f"{operator.result.name}_order"] = chosen[f"{operator.arguments[0].name}_order"]
    leading = {dim: size for dim, (size, _) in seen.items() if isinstance(size, tuple)}
    sizes = {dim: math.prod(size) if isinstance(size, tuple) else size for dim, (size, _) in seen.items()}
    for dim, whole in operator.divides:
        if sizes[dim] and sizes[whole] % sizes[dim]:
            raise ArgumentError(
                "{operator} has {dim} = {size} and {whole} = {total}", operator=operator.name, dim=dim,
                whole=whole, size=sizes[dim], total=sizes[whole], expected="{whole} a multiple of {dim}",
            )  # fmt: skip
    problem = Problem(sizes, first.dtype.name, chosen)
    operator.accepts(problem)
    return Bound(problem, leading, infos, first.device)


def _described(operator: Operator, arrays: Sequence[Any]) -> dict[str, ArrayInfo]:
    """The arrays that are there, by name."""
    names = ", ".join(a.name + (" (or None)" if a.optional else "") for a in operator.arguments)
    if len(arrays) > len(operator.arguments):
        raise ArgumentError(
            "{operator} takes {most} arrays", operator=operator.name, most=len(operator.arguments),
            expected=names, found=f"{len(arrays)} arrays",
        )  # fmt: skip
    padded = (*arrays, *[None] * (len(operator.arguments) - len(arrays)))
    out: dict[str, ArrayInfo] = {}
    for argument, array in zip(operator.arguments, padded, strict=True):
        if array is not None:
            out[argument.name] = describe(array, argument.name)
        elif not argument.optional:
            raise ArgumentError(
                "{operator} needs {name}", operator=operator.name, name=argument.name, expected=names
            )
    return out


def checked_options(operator: Operator, given: Mapping[str, Any]) -> dict[str, Any]:
    """All options, with those given. Raises `OptionError` for a name or value that there is not."""
    known = {option.name: option for option in operator.options}
    for name in given:
        if name not in known:
            close = nearest(name, list(known), limit=1)
            hint = f"did you mean {close[0]}?" if close else "options: " + (", ".join(known) or "none")
            raise OptionError("{operator} has no option {name}", operator=operator.name, name=name, hint=hint)
    out: dict[str, Any] = {}
    for name, option in known.items():
        value = given.get(name, option.default)
        if option.words and value not in option.words:
            raise OptionError(
                "{name} of {operator} cannot be {value!r}", name=name, operator=operator.name, value=value,
                expected="one of " + ", ".join(map(repr, option.words)),
            )  # fmt: skip
        if isinstance(option.default, bool) and not isinstance(value, bool):
            raise OptionError("{name} of {operator} is True or False", name=name, operator=operator.name)
        if isinstance(option.default, float):
            value = _number(operator, name, value)
        if option.least is not None:
            value = _whole(operator, option, value)
        out[name] = value
    return out


def _number(operator: Operator, name: str, value: Any) -> float:
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise OptionError(
            "{name} of {operator} cannot be {value!r}", name=name, operator=operator.name, value=value,
            expected="a finite number",
        )  # fmt: skip
    return float(value)


def _whole(operator: Operator, option: OptionArgument, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < (option.least or 0):
        raise OptionError(
            "{name} of {operator} cannot be {value!r}", name=option.name, operator=operator.name, value=value,
            expected=f"a whole number from {option.least} on",
        )  # fmt: skip
    return value


def _check_dtype(argument: ArrayArgument, info: ArrayInfo, first: ArrayInfo, operator: Operator) -> None:
    name = info.dtype.name
    if argument.dtypes and name not in argument.dtypes:
        raise ArgumentError(
            "{name} of {operator} has elements of {dtype}", name=argument.name, operator=operator.name,
            dtype=name, expected="one of " + ", ".join(argument.dtypes),
        )  # fmt: skip
    if not argument.dtypes and name != first.dtype.name:
        raise ArgumentError(
            "{name} of {operator} has elements of {dtype}, and {other} of {wanted}", name=argument.name,
            operator=operator.name, dtype=name, other=operator.arguments[0].name, wanted=first.dtype.name,
            hint="convert one of them; nothing is converted in silence",
        )  # fmt: skip


def _check_device(argument: ArrayArgument, info: ArrayInfo, first: ArrayInfo, operator: Operator) -> None:
    if info.device != first.device:
        raise ArgumentError(
            "{name} of {operator} is on {device}, and {other} on {wanted}", name=argument.name,
            operator=operator.name, device=info.device, other=operator.arguments[0].name,
            wanted=first.device,
        )  # fmt: skip


def spelled(dims: Sequence[str]) -> str:
    """Dimensions as people write them: (..., N)."""
    names = ["..." if dim.startswith(ANY) else dim for dim in dims]
    return f"({', '.join(names)}{',' if len(names) == 1 and names[0] != '...' else ''})"


def _bind_dims(
    argument: ArrayArgument, shape: tuple[int, ...], seen: dict[str, tuple[int | tuple[int, ...], str]]
) -> None:
    """Note each extent under its dimension. Raises `ArgumentError` where another array has another one."""
    many = argument.dims[0].startswith(ANY)
    least = len(argument.dims) - many
    if len(shape) != len(argument.dims) if not many else len(shape) < max(least, 1):
        raise ArgumentError(
            "{name} has {rank} dimensions", name=argument.name, rank=len(shape), found="the shape {shape}",
            shape=shape, expected=spelled(argument.dims),
        )  # fmt: skip
    extents: list[int | tuple[int, ...]] = list(shape)
    if many:
        extents = [shape[: len(shape) - least], *shape[len(shape) - least :]]
    for dim, extent in zip(argument.dims, extents, strict=True):
        key = dim.lstrip(ANY)
        before = seen.setdefault(key, (extent, argument.name))
        if before[0] != extent:
            raise ArgumentError(
                "{name} has the shape {shape}, which does not fit {other}", name=argument.name, shape=shape,
                other=before[1], expected="{dims} with {dim} = {want}", dims=spelled(argument.dims),
                dim=key if isinstance(extent, int) else "...", want=before[0],
            )  # fmt: skip


def _one_or_each(
    argument: ArrayArgument, info: ArrayInfo, seen: Mapping[str, tuple[int | tuple[int, ...], str]]
) -> bool:
    """Whether an argument has a number for each of its dimensions, and not one for all.

    Dimensions of extent 1 may stand anywhere. Raises `ArgumentError` for any other shape.
    """
    wanted: list[int] = []
    for dim in argument.dims:
        size = seen[dim.lstrip(ANY)][0]
        wanted += [size] if isinstance(size, int) else size
    found = [extent for extent in info.shape if extent != 1]
    if found and found != [extent for extent in wanted if extent != 1]:
        raise ArgumentError(
            "{name} has the shape {shape}, which does not fit {other}", name=argument.name, shape=info.shape,
            other=seen[argument.dims[0].lstrip(ANY)][1], want=tuple(wanted),
            expected="one number, or the shape {want} but for extents of 1",
        )  # fmt: skip
    if not is_contiguous(info.shape, info.strides):
        raise _strided(argument, info)
    return bool(found)


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Row-major, strides of extents of 1 aside."""
    if 0 in shape:
        return True
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def order_of(argument: ArrayArgument, info: ArrayInfo) -> int:
    """Which of an argument's orders of axes its memory has. Raises `ArgumentError` for another one."""
    if len(info.shape) != len(argument.dims):
        # Leading dimensions are one to the kernel, and only in row-major order.
        if is_contiguous(info.shape, info.strides):
            return 0
        raise _strided(argument, info)
    for number, order in enumerate(argument.orders):
        if is_contiguous([info.shape[k] for k in order], [info.strides[k] for k in order]):
            return number
    raise _strided(argument, info)


def _strided(argument: ArrayArgument, info: ArrayInfo) -> ArgumentError:
    dims = [dim.lstrip(ANY) for dim in argument.dims]
    orders = [", ".join(dims[k] for k in order) for order in argument.orders]
    wanted = (
        "row-major elements" if not orders else "in memory one of the orders (" + "), (".join(orders) + ")"
    )
    return ArgumentError(
        "{name} has strides that this operator does not read", name=argument.name, expected=wanted,
        found="the shape {shape} with strides {strides}", shape=info.shape, strides=info.strides,
        hint="{name}.contiguous() of torch or numpy.ascontiguousarray({name}) lies so",
    )  # fmt: skip


def _refuse_gradients(arrays: Sequence[Any]) -> None:
    """Raise `ArgumentError` for a tensor of which torch would expect a gradient."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return
    for array in arrays:
        if isinstance(array, torch.Tensor) and array.requires_grad and torch.is_grad_enabled():
            raise ArgumentError(
                "operators have no backward, and a tensor of this call requires a gradient",
                hint="call it under torch.no_grad(), or on x.detach()",
            )  # fmt: skip


def target_of(device: str) -> str | None:
    """The target whose kernels work where arrays are: the one that is set where it does, else the first."""
    kind = device.partition(":")[0]
    if resolve()[0].device == kind:
        return None
    for name in names():
        found = manifest(name)
        if found.device == kind and found.presentation.machines:
            return name
    raise TargetError(
        "no target works on arrays of {device}", device=device, hint="copy them to the host or to a card"
    )


__all__ = ["Bound", "bind", "checked_options", "is_contiguous", "order_of", "spelled", "target_of"]
