"""NumPy's operations on the host."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .peers import Run, Setup


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _attention(q: Any, k: Any, v: Any) -> Any:
    s = q @ k.swapaxes(-1, -2) * np.float32(1 / math.sqrt(q.shape[-1]))
    return _softmax(s) @ v


def _functions(setup: Setup) -> Mapping[str, Callable[..., Any]]:
    options = setup.work.problem.options
    eps = np.float32(options.get("eps", 0))

    def rms_norm(x: Any, w: Any) -> Any:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w

    def layer_norm(x: Any, w: Any, b: Any) -> Any:
        away = x - x.mean(-1, keepdims=True)
        return away / np.sqrt((away * away).mean(-1, keepdims=True) + eps) * w + b

    def product(a: Any, b: Any, *_: Any) -> Any:
        return a @ b

    def transpose(x: Any) -> Any:
        return np.ascontiguousarray(x.T)

    return {
        "add": np.add,
        "softmax": _softmax,
        "rms_norm": rms_norm,
        "layer_norm": layer_norm,
        "row_reduce": functools.partial(getattr(np, options.get("kind", "sum")), axis=-1),
        "column_reduce": functools.partial(getattr(np, options.get("kind", "sum")), axis=0),
        "transpose": transpose,
        "gemv": np.matmul,
        "matmul": product,
        "batched_matmul": np.matmul,
        "attention": _attention,
    }


def build(setup: Setup) -> Run | None:
    """What a program without another library writes; None where that is far from one call (erf, masks)."""
    options = setup.work.problem.options
    plain = options.get("activation", "none") == "none" and not options.get("causal")
    plain = plain and options.get("left", -1) == options.get("right", -1) == -1
    found = _functions(setup).get(setup.work.operator_name)
    arrays = [setup[argument.name] for argument in setup.work.operator.arguments]
    return functools.partial(found, *arrays) if found is not None and plain else None
