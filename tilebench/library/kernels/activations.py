"""Activations of a tile in registers: what products of matrices and operators of elements share."""

from __future__ import annotations

import math

import tilebench.language as T

# sqrt(1/2), and sqrt(2/pi) with its product with 0.044715.
HALF_ROOT = 0.7071067811865476
OUTER = 0.7978845608028654
CUBE = 0.044715


# erfc(z / sqrt 2) / 2 is 2 to the power of this polynomial of z = |x| within 3.4e-7, fitted by least squares
# under weights until the largest errors were equal. That is a thousandth of a 16-bit float's rounding, for a
# third of the instructions of erf, which bound gelu at 0.67 of an H200's memory.
HALF_TAIL = (-1.0, -1.1510913, -0.45925465, -0.052561264, 0.0073975269, -0.00052046159)


@T.macro
def gelu_of_narrow(v, block_M, block_N):
    """gelu by erf, as good as an element of 16 bits can show."""
    for i, j in T.Parallel(block_M, block_N):
        z = T.abs(v[i, j])
        power = HALF_TAIL[4] + z * HALF_TAIL[5]
        power = HALF_TAIL[2] + z * (HALF_TAIL[3] + z * power)
        tail = T.exp2(HALF_TAIL[0] + z * (HALF_TAIL[1] + z * power))
        v[i, j] = v[i, j] * T.if_then_else(v[i, j] < 0.0, tail, 1.0 - tail)


# e^-2u of u = OUTER x as a power of two.
TWICE_OUTER = 2.0 * OUTER * math.log2(math.e)


@T.macro
def gelu_tanh_of_narrow(v, block_M, block_N):
    """gelu by tanh, as good as an element of 16 bits can show: (1 + tanh u) / 2 is 1 / (1 + e^-2u).

    By a square of rsqrt, one instruction of a card where a division has ten: half as many in all as of tanh.
    """
    for i, j in T.Parallel(block_M, block_N):
        other = T.exp2(v[i, j] * (-TWICE_OUTER - TWICE_OUTER * CUBE * v[i, j] * v[i, j]))
        root = T.rsqrt(1.0 + other)
        v[i, j] = v[i, j] * (root * root)


@T.macro
def activated(v, activation, dtype, block_M, block_N):
    """The tile v of float32 under an activation, on its way to a dtype. relu of NaN is NaN."""
    if activation == "relu":
        for i, j in T.Parallel(block_M, block_N):
            v[i, j] = T.if_then_else(v[i, j] < 0.0, 0.0, v[i, j])
    if activation == "gelu" and dtype in ("float16", "bfloat16"):
        gelu_of_narrow(v, block_M, block_N)
    elif activation == "gelu":
        for i, j in T.Parallel(block_M, block_N):
            v[i, j] = 0.5 * v[i, j] * (1.0 + T.erf(v[i, j] * HALF_ROOT))
    if activation == "gelu_tanh" and dtype in ("float16", "bfloat16"):
        gelu_tanh_of_narrow(v, block_M, block_N)
    elif activation == "gelu_tanh":
        for i, j in T.Parallel(block_M, block_N):
            v[i, j] = 0.5 * v[i, j] * (1.0 + T.tanh(OUTER * v[i, j] * (1.0 + CUBE * v[i, j] * v[i, j])))
