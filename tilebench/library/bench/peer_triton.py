"""Triton kernels as its users write them: a persistent product by tensor descriptors, a matrix times a vector
and a transpose. Everything of elements and rows Triton does by torch.compile, a peer of its own.
"""

from __future__ import annotations

import importlib
from typing import Any

from .peers import Run, Setup


def build(setup: Setup) -> Run | None:
    """A kernel in the configuration that the run was given for it, else in one that is good on most cards."""
    kernels: Any = importlib.import_module(".triton_kernels", __package__)
    work, dtype = setup.work, setup.work.dtype
    if work.operator_name == "matmul" and "bias" not in setup.arrays and not work.problem.options["a_order"]:
        orders = "nt" if work.problem.options["b_order"] else "nn"
        m, n, k = (work.sizes[dim] for dim in ("M", "N", "K"))
        config = setup.configs.get(f"triton gemm_{orders} {dtype} {m}x{n}x{k}", (128, 128, 64, 8, 3, False))
        return kernels.product(setup["a"], setup["b"], orders, config)
    if work.operator_name == "gemv":
        return kernels.gemv(setup["w"], setup["x"], setup.configs.get("triton gemv", (4, 1024, 4)))
    if work.operator_name == "transpose":
        return kernels.transpose(setup["x"], setup.configs.get("triton transpose", (64, 64, 4)))
    return None
