"""The operator library: what a program calls on its arrays, made of kernels of the tile language.

    from tilebench import library
    y = library.softmax(x)

Arrays are NumPy's, torch's, CuPy's or any with DLPack; the result is of the same kind, on the same device
and torch's current stream, and can be captured in a CUDA graph. `operator(name)` gives an operator as a
value: its reference, what it takes, and with `kernel_for` its kernel for a problem. Names are found at first
use.

Arrays may start at any multiple of their elements. On a card, where whole vectors start at multiples of 16
bytes, an operator that computes much for each byte (256 operations: 16-bit products from 768 numbers on,
attention of more than 320 keys) copies those that start off them into memory of their own for the call, and a
result back to `out`; others have kernels that read and write elements as they lie. No argument is changed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .batched import batched_matmul as batched_matmul
    from .batched import grouped_matmul as grouped_matmul
    from .calls import call as call
    from .calls import kernel_for as kernel_for
    from .checking import check as check
    from .decoding import decode as decode
    from .definition import Operator as Operator
    from .elementwise import add as add
    from .elementwise import bias_gelu as bias_gelu
    from .elementwise import transpose as transpose
    from .products import gemv as gemv
    from .products import matmul as matmul
    from .rows import layer_norm as layer_norm
    from .rows import rms_norm as rms_norm
    from .rows import softmax as softmax
    from .scaled import int_matmul as int_matmul
    from .scaled import scaled_matmul as scaled_matmul
    from .scores import attention as attention
    from .sums import column_reduce as column_reduce
    from .sums import row_reduce as row_reduce
    from .table import OPERATORS as OPERATORS
    from .table import operator as operator
    from .training import attention_backward as attention_backward
    from .training import attention_lse as attention_lse

_WHERE = {
    "add": ".elementwise", "bias_gelu": ".elementwise", "softmax": ".rows", "rms_norm": ".rows",
    "layer_norm": ".rows", "row_reduce": ".sums", "column_reduce": ".sums",
    "transpose": ".elementwise", "gemv": ".products", "matmul": ".products", "attention": ".scores",
    "scaled_matmul": ".scaled", "int_matmul": ".scaled",
    "batched_matmul": ".batched", "grouped_matmul": ".batched",
    "attention_lse": ".training", "attention_backward": ".training", "decode": ".decoding",
    "Operator": ".definition", "OPERATORS": ".table", "operator": ".table", "kernel_for": ".calls",
    "call": ".calls",
    "check": ".checking",
}  # fmt: skip

__all__ = [
    "OPERATORS", "Operator", "add", "attention", "attention_backward", "attention_lse", "batched_matmul",
    "bias_gelu", "call", "check", "column_reduce", "decode", "gemv", "grouped_matmul", "int_matmul",
    "kernel_for", "layer_norm", "matmul", "operator", "rms_norm", "row_reduce", "scaled_matmul",
    "softmax", "transpose",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"tilebench.library has no {name}; it has {', '.join(__all__)}")
    _register_for_torch()
    value = globals()[name] = getattr(import_module(where, __name__), name)
    return value


def _register_for_torch() -> None:
    """Make the functions operations of torch, which a trace takes for them, where a program has imported it.

    A trace itself can import nothing; it comes by a name of this module, as every first use does.
    """
    torch = sys.modules.get("torch")
    if hasattr(getattr(torch, "library", None), "custom_op"):
        import_module(".torch_ops", __name__)


def __dir__() -> list[str]:
    return sorted(__all__)
