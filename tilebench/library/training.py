"""Attention for training: its result with the logarithms of its sums, and its gradients.

Each is a few kernels in turn, on arrays of the caller's library and device. They are chosen and made once
for arrays that lie alike; a call makes its results and workspaces and launches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError
from ..kernel import Kernel
from ..kernel.calls.host_arrays import empty_like
from .alignment import aligned, is_aligned, is_copied
from .binding import bind, target_of
from .calls import MOST_READY, MemoryView, inverse, kernel_for, key_of
from .definition import KernelStep, Problem
from .kernels.attention import ALL
from .kernels.attention_training import (
    attention_after_kernel,
    attention_backward_kernel,
    attention_before_kernel,
    attention_saving_kernel,
    padded,
)
from .scores import ATTENTION, ORDERS, sides_of

SAVING = KernelStep("attention_saving", attention_saving_kernel, ("B",))
BEFORE = KernelStep("attention_before", attention_before_kernel, ("B",))
BACKWARD = KernelStep("attention_backward", attention_backward_kernel, ("B",))
AFTER = KernelStep("attention_after", attention_after_kernel, ("B",))


@dataclass(frozen=True)
class Steps:
    """The kernels of a problem, and the order of axes in memory of each array by its name. Where they are
    `copied`, arrays that start off the alignment are copied first."""

    kernels: tuple[Kernel, ...]
    orders: Mapping[str, int]
    dtype: str
    copied: bool

    def given(self, *arrays: Any) -> Sequence[Any]:
        """A call's arrays as the kernels take them."""
        return [aligned(array) for array in arrays] if self.copied else arrays

    def seen(self, name: str, array: Any) -> Any:
        """An array as the kernels see it."""
        number = self.orders.get(name, 0)
        return MemoryView(ORDERS[number])(array) if number else array

    def empty(self, name: str, like: Any, shape: Sequence[int], dtype: str) -> Any:
        """Memory for a result, as its caller sees it."""
        order = ORDERS[self.orders.get(name, 0)]
        memory = empty_like(like, tuple(shape[k] for k in order), dtype)
        return MemoryView(inverse(order))(memory)


_ready: dict[Any, Steps] = {}


def _made_ready(names: Sequence[KernelStep], arrays: Sequence[Any], options: Mapping[str, Any]) -> Steps:
    """The kernels of some steps for arrays: q, k and v, and where there are, o and g."""
    bound = bind(ATTENTION, arrays[:3], options)
    sizes = bound.problem.sizes
    if 0 in sizes.values():
        raise ArgumentError(
            "attention of no elements has no gradient",
            found=", ".join(f"{dim} = {size}" for dim, size in sizes.items()),
        )  # fmt: skip
    own = {f"{n}_order": _order_of(n, x, arrays) for n, x in zip("og", arrays[3:5], strict=False)}
    problem = Problem(sizes, bound.problem.dtype, {**bound.problem.options, **own})
    orders = {name.removesuffix("_order"): n for name, n in problem.options.items() if "_order" in name}
    target = target_of(bound.device)
    straight = all(map(is_aligned, arrays))
    copied = not straight and is_copied(arrays[0], ATTENTION.effort(problem))
    kernels = tuple(kernel_for(step, problem, target, straight or copied) for step in names)
    return Steps(kernels, orders, problem.dtype, copied)


def _order_of(name: str, array: Any, arrays: Sequence[Any]) -> int:
    """The order of axes of what lies as a result does. Raises `ArgumentError` where it is none."""
    _check_shape(name, array, arrays[0].shape)
    return bind(ATTENTION, (array, *arrays[1:3]), {}).problem.options["q_order"]


def _check_shape(name: str, array: Any, shape: Sequence[int]) -> None:
    if tuple(array.shape) != tuple(shape):
        raise ArgumentError(
            "{name} has the shape {shape}", name=name, shape=tuple(array.shape), expected="{wanted}",
            wanted=tuple(shape),
        )  # fmt: skip


def _steps(
    names: tuple[KernelStep, ...], arrays: Sequence[Any], causal: bool, window: tuple[int, int]
) -> Steps:
    """The kernels for these arrays, made once for arrays that lie so."""
    options = {"causal": causal, **sides_of(window)}
    known = key_of(ATTENTION, arrays, options)
    key = (names[0].name, known)
    found = _ready.get(key) if known is not None else None
    if found is None:
        found = _made_ready(names, arrays, options)
        if known is not None:
            if len(_ready) >= MOST_READY:
                _ready.clear()
            _ready[key] = found
    return found


def attention_lse(
    q: Any, k: Any, v: Any, causal: bool = False, window: tuple[int, int] = (ALL, ALL)
) -> tuple[Any, Any]:
    """What `attention` gives, and the natural logarithm of each query's sum of weights: (B, H, SQ), float32.

    The logarithm is of sum(exp(q k^T / sqrt(D))) over the keys that the query sees, plus infinity where it
    sees none. Raises what `attention` raises.
    """
    steps = _steps((SAVING,), (q, k, v), causal, window)
    q, k, v = steps.given(q, k, v)
    o = steps.empty("o", q, q.shape, steps.dtype)
    lse = empty_like(q, tuple(q.shape[:3]), "float32")
    steps.kernels[0](*_seen(steps, q=q, k=k, v=v, o=o), lse)
    return o, lse


def attention_backward(
    g: Any, q: Any, k: Any, v: Any, o: Any, lse: Any, causal: bool = False,
    window: tuple[int, int] = (ALL, ALL),
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The gradients of q, k and v for the gradient g of attention's result o.

    `lse` is what `attention_lse` gave. g lies in memory in one of the orders of axes that q may have; each
    gradient lies as what it is of. Sums are float32; dq is added up in no fixed order, so that its last bits
    may differ from run to run. Raises what `attention` raises.
    """
    _check_shape("lse", lse, q.shape[:3])
    steps = _steps((BEFORE, BACKWARD, AFTER), (q, k, v, o, g), causal, window)
    q, k, v, o, g, lse = steps.given(q, k, v, o, g, lse)
    before, backward, after = steps.kernels
    rows = tuple(q.shape[:3])
    lse2, delta = (empty_like(q, (*rows[:2], padded(rows[2])), "float32") for _ in range(2))
    sums = empty_like(q, (*rows, q.shape[3]), "float32")
    before(*_seen(steps, o=o, g=g), lse, lse2, delta, sums)
    dq, dk, dv = (steps.empty(n, x, x.shape, steps.dtype) for n, x in (("q", q), ("k", k), ("v", v)))
    backward(*_seen(steps, q=q, k=k, v=v, g=g), lse2, delta, sums, *_seen(steps, k=dk, v=dv))
    after(sums, *_seen(steps, q=dq))
    return dq, dk, dv


def _seen(steps: Steps, **arrays: Any) -> list[Any]:
    return [steps.seen(name, array) for name, array in arrays.items()]


__all__ = ["attention_backward", "attention_lse"]
