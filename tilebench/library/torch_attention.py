"""Attention as operations of torch with gradients, for eager programs, `torch.compile` and `torch.export`.

`tilebench::attention_lse` gives the result and the logarithms of its sums and goes back through
`tilebench::attention_backward`. `tilebench::attention` alone keeps no logarithms: going back through it makes
them again, which costs a forward. `with_gradient` is what `library.attention` calls for tensors. None of them
can be gone back through twice.
"""

from __future__ import annotations

import importlib
from typing import Any

from .calls import traced
from .decoding import DECODE, decode
from .kernels.attention import ALL
from .scores import ATTENTION, WITH_GRADIENT
from .torch_ops import NAMESPACE, fake_result, operations
from .training import attention_backward, attention_lse

torch: Any = importlib.import_module("torch")
_SEEN = "bool causal=False, int left=-1, int right=-1"
_SAVING = f"(Tensor q, Tensor k, Tensor v, {_SEEN}) -> (Tensor, Tensor)"
_SIX = "Tensor g, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse"
_DECODE = (
    "(Tensor q, Tensor k, Tensor v, Tensor? lengths=None, Tensor? table=None, int? longest=None) -> Tensor"
)
_BACKWARD = f"({_SIX}, {_SEEN}) -> (Tensor, Tensor, Tensor)"


def _run_saving(
    q: Any, k: Any, v: Any, causal: bool = False, left: int = ALL, right: int = ALL
) -> tuple[Any, Any]:
    return attention_lse(q, k, v, causal, (left, right))


def _fake_saving(q: Any, k: Any, v: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
    return fake_result(ATTENTION, [q, k, v]), q.new_empty(q.shape[:3], dtype=torch.float32)


def _run_backward(
    g: Any, q: Any, k: Any, v: Any, o: Any, lse: Any, causal: bool = False, left: int = ALL, right: int = ALL
) -> tuple[Any, Any, Any]:
    return attention_backward(_readable(g), q, k, v, o, lse, causal, (left, right))


def _readable(g: Any) -> Any:
    """A gradient in an order of axes that the kernels read: one of an expanded tensor has none."""
    known = any(g.permute(*order).is_contiguous() for order in ATTENTION.arguments[0].orders)
    return g if known else g.contiguous()


def _fake_backward(g: Any, q: Any, k: Any, v: Any, *_: Any, **__: Any) -> tuple[Any, Any, Any]:
    return _like(q), _like(k), _like(v)


def _like(x: Any) -> Any:
    """An empty tensor that lies as another does, in the first order of axes that it has."""
    for order in ATTENTION.arguments[0].orders:
        if x.permute(*order).is_contiguous():
            memory = x.new_empty([x.shape[k] for k in order])
            return memory.permute(*[order.index(k) for k in range(len(order))])
    return x.new_empty(x.shape)


def _operation(name: str, run: Any, fake: Any, schema: str) -> Any:
    made = torch.library.custom_op(f"{NAMESPACE}::{name}", run, mutates_args=(), schema=schema)
    made.register_fake(fake)
    return made


attention_lse_op = _operation("attention_lse", _run_saving, _fake_saving, _SAVING)
attention_backward_op = _operation("attention_backward", _run_backward, _fake_backward, _BACKWARD)


def _run_decode(
    q: Any, k: Any, v: Any, lengths: Any = None, table: Any = None, longest: int | None = None
) -> Any:
    return decode(q, k, v, lengths, table, longest=longest)


def _fake_decode(q: Any, *_: Any) -> Any:
    return q.new_empty(q.shape)


decode_op = _operation(DECODE.name, _run_decode, _fake_decode, _DECODE)


def _keep_saved(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, Any]) -> None:
    q, k, v, *ctx.seen = inputs
    o, lse = output
    ctx.mark_non_differentiable(lse)
    ctx.save_for_backward(q, k, v, o, lse)


def _back_from_saved(ctx: Any, g: Any, _: Any) -> tuple[Any, ...]:
    return (*attention_backward_op(g, *ctx.saved_tensors, *ctx.seen), None, None, None)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    q, k, v, *ctx.seen = inputs
    ctx.save_for_backward(q, k, v, output)


def _back(ctx: Any, g: Any) -> tuple[Any, ...]:
    q, k, v, o = ctx.saved_tensors
    _, lse = attention_lse_op(q, k, v, *ctx.seen)
    return (*attention_backward_op(g, q, k, v, o, lse, *ctx.seen), None, None, None)


attention_op: Any = operations["attention"]
attention_lse_op.register_autograd(_back_from_saved, setup_context=_keep_saved)
attention_op.register_autograd(_back, setup_context=_keep)


def with_gradient(q: Any, k: Any, v: Any, causal: bool = False, left: int = ALL, right: int = ALL) -> Any:
    """Attention of tensors: what its gradients need is kept where one of them requires a gradient."""
    needed = q.requires_grad or k.requires_grad or v.requires_grad
    if needed and torch.is_grad_enabled():
        return attention_lse_op(q, k, v, causal, left, right)[0]
    return attention_op(q, k, v, causal, left, right)


traced[WITH_GRADIENT] = with_gradient
traced[DECODE.name] = decode_op
__all__ = ["attention_backward_op", "attention_lse_op", "decode_op", "with_gradient"]
