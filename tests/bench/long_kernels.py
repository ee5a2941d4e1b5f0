"""Kernels of any length in several forms: the time of each step must grow with the length alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.roads import jitted

A = np.zeros((4096, 4096), np.float32)
BLOCK = (
    "by, bx = b0 // 64, b0 % 64\nX = T.alloc_fragment((64, 64), 'float32')\nT.copy(A[by * 64, bx * 64], X)\n"
)
STORE = "\nT.copy(X, B[by * 64, bx * 64])"
LOOP = "for i, j in T.Parallel(64, 64):\n"


def straight(n: int) -> str:
    """Statements one after the other on one tile."""
    return BLOCK + "".join(f"{LOOP}    X[i, j] = X[i, j] * {k}.5 + {k}.25\n" for k in range(n)) + STORE


def gathers(n: int) -> str:
    """The same with elements of others, as Python's own loop writes them out."""
    return BLOCK.replace("fragment", "shared") + "".join(
        f"{LOOP}    X[i, j] = X[i, j] * 2.0 + X[i, (j + {k}) % 64]\n" for k in range(n)
    ) + STORE  # fmt: skip


def names(n: int) -> str:
    """Integers that are computed from one another."""
    lines = ["v0 = bx", *(f"v{k} = v{k - 1} + {k % 3}" for k in range(1, n))]
    return BLOCK + "\n".join(lines) + f"\n{LOOP}    X[i, j] = X[i, j] + v{n - 1}" + STORE


def fragments(n: int) -> str:
    """A buffer a statement, in registers."""
    allocations = "".join(f"X{k} = T.alloc_fragment((64, 64), 'float32')\n" for k in range(n))
    steps = "".join(f"{LOOP}    X{k}[i, j] = X{k - 1 if k else ''}[i, j] * 1.5\n" for k in range(n))
    return BLOCK + allocations + steps + STORE.replace("(X,", f"(X{n - 1},")


def tiles(n: int) -> str:
    """A buffer a statement, in shared memory."""
    text = "".join(f"X{k} = T.alloc_shared((64, 8), 'float32')\n" for k in range(n))
    text += "".join(f"T.copy(A[b0 * 64, {k % 8 * 8}], X{k})\n" for k in range(n))
    return text + "".join(f"T.copy(X{k}, B[b0 * 64, {k % 8 * 8}])\n" for k in range(n))


def products(n: int) -> str:
    """Pipelined loops one after the other."""
    text = "A_s = T.alloc_shared((64, 32), 'float32')\nB_s = T.alloc_shared((32, 64), 'float32')\n"
    text += "X = T.alloc_fragment((64, 64), 'float32')\nT.clear(X)\n"
    for k in range(n):
        text += f"for k{k} in T.Pipelined(4, num_stages=2):\n    T.copy(A[b0 * 64, k{k} * 32 + {k}], A_s)\n"
        text += f"    T.copy(A[k{k} * 32, {k}], B_s)\n    T.gemm(A_s, B_s, X)\n"
    return text + "T.copy(X, B[b0 * 64, 0])"


def reductions(n: int) -> str:
    """Reductions and loops that use them."""
    step = f"T.reduce_max(X, r, dim=1)\n{LOOP}    X[i, j] = T.exp2(X[i, j] - r[i])\n"
    return BLOCK + "r = T.alloc_fragment((64,), 'float32')\n" + step * n + STORE


def nest(n: int) -> str:
    """Loops inside loops."""
    text = BLOCK
    for k in range(n):
        text += "    " * k + f"for q{k} in T.serial(2):\n"
    inner, total = "    " * n, " + ".join(f"q{k}" for k in range(n))
    return text + f"{inner}{LOOP}{inner}    X[i, j] = X[i, j] + {total}" + STORE


def expression(n: int) -> str:
    """One long expression."""
    return BLOCK + f"{LOOP}    X[i, j] = " + " + ".join(f"X[i, j] * {k}.5" for k in range(n)) + STORE


# By form the length to begin with.
FORMS: dict[str, tuple[Callable[[int], str], int]] = {
    "straight": (straight, 8), "gathers": (gathers, 8), "names": (names, 32), "fragments": (fragments, 8),
    "tiles": (tiles, 8), "products": (products, 4), "reductions": (reductions, 4), "nest": (nest, 4),
    "expression": (expression, 16),
}  # fmt: skip


def long_kernel(form: str, times: int) -> Any:
    """The kernel function of a form, `times` as long as its shortest."""
    write, least = FORMS[form]
    return jitted(write(least * times), launch="64, threads=128", A=A, B=A)
