"""torch's own operations, eager (cuBLAS and cuDNN are behind them) and compiled."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..scores import has_window, seen_keys
from .peers import Run, Setup

PRODUCTS = ("matmul", "batched_matmul", "grouped_matmul", "scaled_matmul", "int_matmul")
Function = Callable[..., Any]


def _product(torch: Any, a: Any, b: Any, bias: Any, residual: Any, activation: str) -> Any:
    """Line by line, as a program writes it."""
    c = torch.matmul(a, b)
    c = c if bias is None else c + bias
    if activation == "relu":
        c = torch.relu(c)
    elif activation != "none":
        c = torch.nn.functional.gelu(c, approximate="tanh" if activation == "gelu_tanh" else "none")
    return c if residual is None else c + residual


def _eight_bits(torch: Any, options: Mapping[str, Any]) -> Function:
    """The product of 8-bit floats with a scale an operand, in the same mode of accumulation."""
    dtype, fast = getattr(torch, options.get("out_dtype", "bfloat16")), options.get("fast_accum", False)

    def product(a: Any, b: Any, scale_a: Any, scale_b: Any) -> Any:
        scales = {"scale_a": scale_a.reshape(()), "scale_b": scale_b.reshape(())}
        return torch._scaled_mm(a, b, **scales, out_dtype=dtype, use_fast_accum=fast)

    return product


def _grouped(torch: Any, a: Any, b: Any, ends: Any) -> Any:
    """torch's own product of groups where it has one, of bfloat16 on a card; else one after another."""
    if a.is_cuda and a.dtype is torch.bfloat16 and hasattr(torch, "_grouped_mm"):
        return torch._grouped_mm(a, b, offs=ends)
    out, first = torch.zeros((a.shape[0], b.shape[2]), dtype=a.dtype, device=a.device), 0
    for group, last in zip(b, ends.tolist(), strict=True):
        torch.mm(a[first:last], group, out=out[first:last])
        first = last
    return out


def _scores(torch: Any, setup: Setup) -> Function:
    """Attention; of a window, which torch's own words do not have, by a mask that is made beforehand."""
    sizes, options = setup.work.sizes, setup.work.problem.options
    how: dict[str, Any] = {"is_causal": options["causal"], "enable_gqa": sizes["H"] != sizes["KV"]}
    if has_window(setup.work.problem):
        with torch.device(setup.space.device):
            how |= {"is_causal": False, "attn_mask": seen_keys(torch, setup.work.problem)}
    return functools.partial(torch.nn.functional.scaled_dot_product_attention, **how)


def _flex(torch: Any, setup: Setup) -> Function:
    """Attention of a window by torch's compiler, which leaves out blocks that nothing is seen of."""
    flex: Any = importlib.import_module("torch.nn.attention.flex_attention")
    sizes, options = setup.work.sizes, setup.work.problem.options
    left, right = options["left"], 0 if options["causal"] else options["right"]

    def seen(batch: Any, head: Any, query: Any, key: Any) -> Any:
        place = query + (sizes["SK"] - sizes["SQ"])
        before = place - key <= left if left >= 0 else place == place
        return before & (key - place <= right) if right >= 0 else before

    mask = flex.create_block_mask(seen, None, None, sizes["SQ"], sizes["SK"], device=setup.space.device)
    return functools.partial(flex.flex_attention, block_mask=mask, enable_gqa=sizes["H"] != sizes["KV"])


def _functions(torch: Any, setup: Setup) -> Mapping[str, Function]:
    """What torch calls an operator, by its name here."""
    nn, options = torch.nn.functional, setup.work.problem.options
    row = (setup.work.sizes.get("N", 0),)

    def reduced(x: Any, axis: int) -> Any:
        extreme = {"sum": torch.sum, "max": torch.amax, "min": torch.amin}[options["kind"]]
        return extreme(x, axis)

    def bias_gelu(x: Any, bias: Any) -> Any:
        return nn.gelu(x + bias, approximate=options["approximate"])

    def product(a: Any, b: Any, bias: Any, residual: Any) -> Any:
        return _product(torch, a, b, bias, residual, options["activation"])

    def transpose(x: Any) -> Any:
        return x.t().contiguous()

    functions: dict[str, Any] = {
        "add": torch.add,
        "bias_gelu": bias_gelu,
        "softmax": functools.partial(torch.softmax, dim=-1),
        "rms_norm": lambda x, w: nn.rms_norm(x, row, w, options["eps"]),  # pyright: ignore[reportUnknownLambdaType]
        "layer_norm": lambda x, w, b: nn.layer_norm(x, row, w, b, options["eps"]),  # pyright: ignore[reportUnknownLambdaType]
        "row_reduce": functools.partial(reduced, axis=-1),
        "column_reduce": functools.partial(reduced, axis=0),
        "transpose": transpose,
        "gemv": torch.mv,
        "matmul": product,
        "batched_matmul": torch.matmul,
        "grouped_matmul": functools.partial(_grouped, torch),
        "int_matmul": torch._int_mm,
        "scaled_matmul": _eight_bits(torch, options),
        "attention": _scores(torch, setup) if setup.work.operator_name == "attention" else None,
    }
    return functions


def _tensor(torch: Any, array: Any) -> Any:
    """A tensor on the memory of an array of NumPy, which knows narrow floats by other packages alone."""
    if array.dtype.isbuiltin:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.uint8)).view(getattr(torch, array.dtype.name))


def _function(setup: Setup) -> tuple[Function, tuple[Any, ...]] | None:
    """A function of torch and the tensors that it takes."""
    torch: Any = importlib.import_module("torch")
    found = _functions(torch, setup).get(setup.work.operator_name)
    arrays = tuple(setup[argument.name] for argument in setup.work.operator.arguments)
    if setup.space.on_host:
        arrays = tuple(None if a is None else _tensor(torch, a) for a in arrays)
    return None if found is None else (found, arrays)


def build(setup: Setup) -> Run | None:
    """As torch does it when it is asked line by line."""
    found = _function(setup)
    return None if found is None else functools.partial(found[0], *found[1])


def build_compiled(setup: Setup) -> Run | None:
    """By torch.compile; of products and attention it calls what torch itself calls, so there is none, but for
    attention of a window."""
    scored = setup.work.operator_name == "attention"
    if setup.work.operator_name in PRODUCTS or (scored and not has_window(setup.work.problem)):
        return None
    found = _function(setup)
    if found is None:
        return None
    torch: Any = importlib.import_module("torch")
    found = (_flex(torch, setup), found[1]) if scored else found
    torch.compiler.reset()
    compiled = torch.compile(found[0], dynamic=False)
    return functools.partial(compiled, *found[1])
