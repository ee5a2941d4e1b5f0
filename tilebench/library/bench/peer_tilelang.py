"""TileLang kernels as its users write them, in the configuration that a run was given or a common one."""

from __future__ import annotations

import importlib
from typing import Any

from ..scores import has_window
from .peers import Run, Setup

# How configurations call the rows of products by the instructions of older cards.
OLDER = " without wgmma and TMA"


def build_older(setup: Setup) -> Run | None:
    """Products by mma.sync and cp.async, which are the library's own instructions."""
    return build(setup, older=True)


def build(setup: Setup, older: bool = False) -> Run | None:
    """Products (A row-major) and attention with as many heads of k as of q; None else."""
    work, dtype = setup.work, setup.work.dtype
    kernels: Any = importlib.import_module(".tilelang_kernels", __package__)
    if work.operator_name == "matmul" and len(setup.arrays) == 2 and not work.problem.options["a_order"]:
        orders = "nt" if work.problem.options["b_order"] else "nn"
        m, n, k = (work.sizes[dim] for dim in ("M", "N", "K"))
        name = f"tilelang gemm_{orders} {dtype} {m}x{n}x{k}{OLDER if older else ''}"
        config = setup.configs.get(name, (128, 128, 32, 3, 128))
        return kernels.product(setup["a"], setup["b"], orders == "nt", config, older)
    if older:
        return None
    if work.operator_name != "attention" or has_window(work.problem):
        return None
    if work.sizes["H"] == work.sizes["KV"] and dtype == "float16":
        b, h, s, d = (work.sizes[dim] for dim in ("B", "H", "SK", "D"))
        causal = work.problem.options["causal"]
        name = f"tilelang attention f16 b{b} h{h} s{s} d{d}{' causal' if causal else ''}"
        config = setup.configs.get(name, (64, 64, 2, 128))
        return kernels.attention(setup["q"], setup["k"], setup["v"], causal, config)
    return None
