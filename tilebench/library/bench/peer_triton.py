"""Triton kernels as its users write them: a persistent product by tensor descriptors, a matrix times a
vector, a transpose, a few of elements and rows. More of those Triton does by torch.compile, its own peer.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

from .peers import Run, Setup

# Operators that `sweeps.triton_kernels` has, by the same names and arguments.
ROWS = ("add", "softmax", "rms_norm", "layer_norm")


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
    if work.operator_name not in ROWS:
        return None
    known: Any = importlib.import_module("tilebench.sweeps.triton_kernels")
    function = getattr(known, work.operator_name)
    options = {name: value for name, value in work.problem.options.items() if name == "eps"}
    return partial(function, *(setup[argument.name] for argument in work.operator.arguments), **options)
