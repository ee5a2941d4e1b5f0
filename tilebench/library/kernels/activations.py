"""Activations of a tile in registers: what products of matrices and operators of elements share."""

from __future__ import annotations

import tilebench.language as T

# sqrt(1/2), and sqrt(2/pi) with its product with 0.044715.
HALF_ROOT = 0.7071067811865476
OUTER = 0.7978845608028654
CUBE = 0.044715


@T.macro
def activated(v, activation, block_M, block_N):
    """The tile v under an activation. relu of NaN is NaN."""
    if activation == "relu":
        for i, j in T.Parallel(block_M, block_N):
            v[i, j] = T.if_then_else(v[i, j] < 0.0, 0.0, v[i, j])
    if activation == "gelu":
        for i, j in T.Parallel(block_M, block_N):
            v[i, j] = 0.5 * v[i, j] * (1.0 + T.erf(v[i, j] * HALF_ROOT))
    if activation == "gelu_tanh":
        for i, j in T.Parallel(block_M, block_N):
            v[i, j] = 0.5 * v[i, j] * (1.0 + T.tanh(OUTER * v[i, j] * (1.0 + CUBE * v[i, j] * v[i, j])))
