"""From a call to its kernel: chosen and made once for a problem, kept, launched on the caller's arrays."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from .. import settings
from ..errors import ArgumentError, TargetError
from ..kernel import Kernel
from ..kernel.calls.host_arrays import empty_like
from ..runtime.describe import describe
from ..targets import resolve
from .alignment import aligned, are_aligned, is_aligned, is_copied, write_back
from .binding import Bound, bind, is_contiguous, target_of
from .definition import ANY, ArrayArgument, KernelStep, Operator, Problem
from .schedules import schedule_for

# What stands for a call of an operator in a trace of torch's, by its name; `torch_ops` fills it.
traced: dict[str, Callable[..., Any]] = {}
# Calls of different shapes that are kept ready; one is a kilobyte and its kernel.
MOST_READY = 4096


@dataclass(frozen=True)
class MemoryView:
    """How a kernel sees an array: its axes in the order of memory, and the extents that it has then."""

    order: tuple[int, ...] | None = None
    shape: tuple[int, ...] | None = None

    def __call__(self, array: Any) -> Any:
        if self.order is not None:
            array = array.permute(*self.order) if hasattr(array, "permute") else array.transpose(self.order)
        return array if self.shape is None else array.reshape(self.shape)


@dataclass(frozen=True)
class ReadyCall:
    """A call with everything chosen: the kernel (None where there is nothing to compute), how it sees each
    array that is there, and the result: its shape, its dtype, and how the kernel sees it. `spare` are arrays
    for parameters of the kernel that this problem has not, which it does not touch; `empty` makes memory for
    the result, as the kernel sees it but for leading dimensions. Where it is `copied`, arrays that start off
    the alignment are copied first, and a result that does afterwards."""

    kernel: Kernel | None
    views: tuple[MemoryView | None, ...]
    spare: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: str
    result: MemoryView
    empty: Callable[[Any], Any]
    copied: bool = False

    def empty_result(self, like: Any) -> Any:
        """Memory for the result, as its caller sees it, of the library and on the device of an array."""
        memory = self.empty(like)
        return memory if self.result.order is None else MemoryView(inverse(self.result.order))(memory)

    def __call__(self, arrays: Sequence[Any], out: Any) -> None:
        """Compute the result of these arrays into `out`."""
        if self.kernel is None:
            return
        given, result = arrays, out
        if self.copied:
            # Whatever a launch refuses of the caller's own arrays, it would not find in copies.
            self.kernel.calls.described(self._seen(arrays, out))
            given = [aligned(array) for array in arrays]
            result = out if is_aligned(out) else self.empty_result(given[0])
        self.kernel(*self._seen(given, result))
        if result is not out:
            write_back(result, out)

    def _seen(self, arrays: Sequence[Any], out: Any) -> list[Any]:
        """The arguments of the kernel."""
        spare = iter(self.spare)
        seen = [next(spare) if view is None else view(arrays[k]) for k, view in enumerate(self.views)]
        return [*seen, *spare, self.result(out)]


def maker(like: Any, shape: tuple[int, ...], dtype: str) -> Callable[[Any], Any]:
    """What makes an empty array like one, of which the key of a call says library and device."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and type(like) is torch.Tensor:
        kind, device = getattr(torch, dtype), like.device
        return lambda _: torch.empty(shape, dtype=kind, device=device)
    return lambda like: empty_like(like, shape, dtype)


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes one."""
    return tuple(order.index(k) for k in range(len(order)))


_ready: dict[Any, ReadyCall] = {}
_kernels: dict[Any, Kernel] = {}


def call(operator: Operator, *arrays: Any, out: Any = None, **options: Any) -> Any:
    """The result of an operator on these arrays, in `out` where one is given.

    Raises `ArgumentError` or `OptionError` for what does not fit, before anything is launched.
    """
    torch: Any = sys.modules.get("torch")
    if torch is not None and out is None and operator.name in traced and torch.compiler.is_compiling():
        return traced[operator.name](*arrays, **options)
    key = key_of(operator, arrays, options, out)
    ready = _ready.get(key) if key is not None else None
    if ready is None:
        bound = bind(operator, arrays, options)
        straight = are_aligned(bound.infos.values()) and (out is None or is_aligned(out))
        ready = _made_ready(operator, bound, arrays[0], straight)
        if out is not None:
            _check_out(operator, out, arrays[0], ready)
        if key is not None:
            if len(_ready) >= MOST_READY:
                _ready.clear()
            _ready[key] = ready
    if out is None:
        out = ready.empty_result(arrays[0])
    ready(arrays, out)
    return out


def key_of(operator: Operator, arrays: Sequence[Any], options: Mapping[str, Any], out: Any = None) -> Any:
    """What says that a call is like one before, with an `out` that fits; None for arrays that are looked at
    each time."""
    parts: list[Any] = [operator.name, settings.target(), *options.items()]
    for array in (*arrays, out):
        like = likeness(array) if array is not None else ()
        if like is None:
            return None
        parts.append(like)
    try:
        hash(key := tuple(parts))
    except TypeError:  # an option that is no number or word: refused where it is looked at
        return None
    return key


def likeness(array: Any) -> tuple[Any, ...] | None:
    """What two arrays have in common that are taken alike; None of one that is looked at each time."""
    kind = cast(Any, type(array))
    if kind is np.ndarray:
        return array.shape, array.strides, array.dtype, is_aligned(array)
    torch: Any = sys.modules.get("torch")
    if torch is None or kind is not torch.Tensor or (array.requires_grad and torch.is_grad_enabled()):
        return None
    try:
        return array.shape, array.stride(), array.dtype, array.device, is_aligned(array)
    except (RuntimeError, TargetError):  # without memory, or no kernels there: told when it is bound
        return None


def _made_ready(operator: Operator, bound: Bound, like: Any, straight: bool) -> ReadyCall:
    """What stands for all calls like one: of arrays that start at the alignment (`straight`), or anywhere."""
    problem, result = bound.problem, operator.result
    shape: list[int] = []
    for dim in result.dims:
        shape += bound.leading[dim[1:]] if dim.startswith(ANY) else [problem.sizes[dim]]
    kernel, copied = None, False
    if 0 not in problem.sizes.values():
        copied = not straight and is_copied(like, operator.effort(problem))
        kernel = kernel_for(operator, problem, target_of(bound.device), straight or copied)
    elif 0 not in shape:
        raise ArgumentError(
            "{operator} of no elements has no value", operator=operator.name,
            found=", ".join(f"{dim} = {size}" for dim, size in problem.sizes.items()),
        )  # fmt: skip
    none: Mapping[str, tuple[int, ...]] = {}
    seen = none if kernel is None else operator.seen(problem, kernel.parameters)
    views = tuple(
        view_of(argument, problem, bound.leading, seen) if argument.name in bound.infos else None
        for argument in operator.arguments
    )
    dtype = operator.result_dtype(problem)
    records = kernel.arguments[:-1] if kernel is not None else ()
    missing = [r for r in records if not r.is_scalar and r.name not in bound.infos]
    spare = tuple(empty_like(like, record.extents, record.dtype) for record in missing)
    view = view_of(result, problem, bound.leading, seen)
    memory = tuple(shape[k] for k in view.order or range(len(shape)))
    return ReadyCall(kernel, views, spare, tuple(shape), dtype, view, maker(like, memory, dtype), copied)


def view_of(
    argument: ArrayArgument,
    problem: Problem,
    leading: Mapping[str, tuple[int, ...]] | None = None,
    seen: Mapping[str, tuple[int, ...]] | None = None,
) -> MemoryView:
    """How a problem's kernel sees an array: its axes as they lie in memory, leading dimensions as one.

    `seen` has the shapes of arrays that the kernel sees otherwise.
    """
    number: int = problem.options[f"{argument.name}_order"] if argument.orders else 0
    order = argument.orders[number] if number else None
    if argument.by_dims:
        each = problem.options[f"{argument.name}_each"]
        count = math.prod(problem.sizes[dim.lstrip(ANY)] for dim in argument.dims)
        return MemoryView(None, (count if each else 1,))
    if seen and argument.name in seen:
        return MemoryView(order, seen[argument.name])
    first = argument.dims[0]
    if not first.startswith(ANY) or len((leading or {}).get(first[1:], (0,))) == 1:
        return MemoryView(order)
    return MemoryView(order, tuple(problem.sizes[dim.lstrip(ANY)] for dim in argument.dims))


def _check_out(operator: Operator, out: Any, like: Any, ready: ReadyCall) -> None:
    """Raise `ArgumentError` where the result does not fit the array that it should go to."""
    info, first = describe(out, "out"), describe(like)
    found = f"shape {info.shape}, {info.dtype.name}, on {info.device}"
    wanted = f"shape {ready.shape}, {ready.dtype}, on {first.device}"
    order = ready.result.order or tuple(range(len(ready.shape)))
    if found == wanted:
        if is_contiguous([info.shape[k] for k in order], [info.strides[k] for k in order]):
            return
        found = f"strides {info.strides}"
        wanted = "elements in memory in the order of the axes " + ", ".join(map(str, order))
    raise ArgumentError(
        "out does not fit the result of {operator}", operator=operator.name, wanted=wanted, got=found,
        expected="{wanted}", found="{got}",
    )  # fmt: skip


def kernel_for(
    operator: Operator | KernelStep, problem: Problem, target: str | None = None, aligned: bool = True
) -> Kernel:
    """The kernel for a problem on a target (`auto` by default), made once.

    It is a kernel like any: `.stage(...)`, `.resources`, `.check(sizes=...)`. Sizes in the operator's
    `symbolic` are given with each call. One for arrays that are not `aligned` (a call takes it where one of
    its arrays starts off the machine's alignment) is right for any, and has a schedule for those.
    """
    machine = resolve(target)[1]
    schedule = schedule_for(operator, problem, machine, aligned)
    sizes = {dim: None if dim in operator.symbolic else size for dim, size in problem.sizes.items()}
    values = {**sizes, "dtype": problem.dtype, **problem.options, **operator.fixed}
    known = operator.kernel.signature.parameters
    values = {name: value for name, value in values.items() if name in known}
    key = (operator.name, machine.name, schedule.key, tuple(values.items()))
    kernel = _kernels.get(key)
    if kernel is None:
        function = operator.kernel.using(target=target, schedule=schedule)
        kernel = _kernels[key] = function.kernel((), values)
    return kernel


__all__ = [
    "MemoryView",
    "ReadyCall",
    "call",
    "inverse",
    "kernel_for",
    "key_of",
    "maker",
    "traced",
    "view_of",
]
