"""Drawn schedules of four kernel families: right in the simulator, or refused at a line with a reason."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import ml_dtypes
import numpy as np

import tilebench
import tilebench.language as T
from tests.simulated import run_threaded
from tilebench.errors import InternalError, TileError
from tilebench.schedule import Schedule

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """A kernel with its parameters, its arrays and what the last of them must hold."""

    kernel: Any
    options: dict[str, Any]
    arrays: Arrays
    wanted: Any
    bound: float
    target: str
    # Choices of a schedule over those in the kernel.
    schedule: dict[str, Any] = field(default_factory=dict[str, Any])

    def found_wrong(self) -> str:
        """What is wrong about the kernel; empty where it is right, or refused as a kernel may be."""
        try:
            made = self.kernel.using(target=self.target, schedule=Schedule.of(**self.schedule))(
                **self.options
            )
            made.stage("cuda")
        except InternalError:
            raise
        except TileError as error:
            return "" if error.place is not None and error.hint + error.message else f"no place: {error}"
        after = {name: array.copy() for name, array in self.arrays.items()}
        run_threaded(made.compilation.functions["threaded"], after, warp=32)
        out = after[list(after)[-1]].astype(np.float64)
        off = np.abs(out - self.wanted).max(initial=0.0)
        return "" if off <= self.bound else f"off by {off}"


def numbers(random: Random, *shape: int, dtype: Any = np.float16) -> Any:
    """Small whole numbers, whose products and sums are exact."""
    rng = np.random.default_rng(random.randrange(1 << 30))
    return rng.integers(-2, 3, shape).astype(dtype)


@tilebench.jit
def product(
    M,
    N,
    K,
    bM,
    bN,
    bK,
    stages,
    threads,
    a_turned,
    b_turned,
    dtype,
    accum,
    out,
    policy,
    swizzle,
    width,
    skip,
    outer,
):
    @T.prim_func
    def main(
        A: T.Tensor((K, M) if a_turned else (M, K), dtype),
        B: T.Tensor((N, K) if b_turned else (K, N), dtype),
        C: T.Tensor((M, N), out),
    ):
        with T.Kernel(T.ceildiv(N, bN), T.ceildiv(T.ceildiv(M, bM), outer), threads=threads) as (bx, by):
            A_s = T.alloc_shared((bK, bM) if a_turned else (bM, bK), dtype)
            B_s = T.alloc_shared((bN, bK) if b_turned else (bK, bN), dtype)
            C_l = T.alloc_fragment((bM, bN), accum)
            if swizzle:
                T.swizzle(A_s)
            for turn in T.serial(outer):
                row = by * outer + turn
                T.clear(C_l)
                for ko in T.Pipelined(T.ceildiv(K, bK), num_stages=stages):
                    if a_turned:
                        T.copy(A[ko * bK, row * bM], A_s, coalesced_width=width)
                    else:
                        T.copy(A[row * bM, ko * bK], A_s, coalesced_width=width)
                    if b_turned:
                        T.copy(B[bx * bN, ko * bK], B_s)
                    else:
                        T.copy(B[ko * bK, bx * bN], B_s)
                    if ko % 3 != skip:
                        T.gemm(A_s, B_s, C_l, transpose_A=a_turned, transpose_B=b_turned, policy=policy)
                T.copy(C_l, C[row * bM, bx * bN])

    return main


DTYPES = [
    ("float16", "float32", "float16"), ("float16", "float32", "float32"), ("bfloat16", "float32", "float32"),
    ("float16", "float16", "float16"), ("float32", "float32", "float32"), ("int8", "int32", "int32"),
]  # fmt: skip
POLICIES = [T.GemmWarpPolicy.Square, T.GemmWarpPolicy.FullRow, T.GemmWarpPolicy.FullCol]
TARGETS = ["cuda:sm_75", "cuda:sm_80", "cuda:sm_80", "cuda:sm_89", "cuda:sm_90a"]


def _of_blocks(random: Random) -> dict[str, Any]:
    """Choices of a schedule about blocks: their order, and how few take all tiles."""
    chosen: dict[str, Any] = {}
    if random.random() < 0.3:
        chosen["persistent"] = random.choice([1, 2, 3, True])
    if random.random() < 0.3:
        chosen["order"] = {"panels": random.choice([1, 2, 3]), "axis": random.choice(["row", "column"])}
    return chosen


def _dtype(name: str) -> Any:
    return getattr(ml_dtypes, name) if name == "bfloat16" else np.dtype(name)


def drawn_product(random: Random) -> Drawn:
    m, n = random.choice([16, 33, 64, 70, 96]), random.choice([8, 40, 63, 64, 72])
    k = random.choice([1, 15, 16, 31, 48, 64, 100, 120])
    dtype, accum, out = random.choice(DTYPES)
    turned = random.random() < 0.4, random.random() < 0.5
    skip = random.choice([-1, -1, -1, 1])
    options = {
        "M": m, "N": n, "K": k,
        "bM": random.choice([16, 32, 64, 48]), "bN": random.choice([8, 16, 32, 64, 40]),
        "bK": random.choice([8, 16, 32, 24]), "stages": random.choice([0, 1, 2, 3, 4, 5]),
        "threads": random.choice([32, 64, 128, 128, 256]), "a_turned": turned[0], "b_turned": turned[1],
        "dtype": dtype, "accum": accum, "out": out, "policy": random.choice(POLICIES),
        "swizzle": random.random() < 0.2, "width": random.choice([None, None, 1, 2, 4, 8]), "skip": skip,
        "outer": random.choice([1, 1, 2]),
    }  # fmt: skip
    own = _dtype(dtype)
    a, b = numbers(random, m, k, dtype=own), numbers(random, k, n, dtype=own)
    left = a.astype(np.float64)
    if skip >= 0:
        step = np.arange(k) // options["bK"] % 3
        left = left * (step != skip)
    arrays = {
        "A": np.ascontiguousarray(a.T) if turned[0] else a,
        "B": np.ascontiguousarray(b.T) if turned[1] else b,
        "C": np.full((m, n), 7, _dtype(out)),
    }
    chosen = _of_blocks(random)
    if random.random() < 0.25 and options["outer"] == 1:
        chosen["loop"] = {"ko": {"split": random.choice([2, 3, 7])}}
    wanted = left @ b.astype(np.float64)
    return Drawn(product, options, arrays, wanted, 0.0, random.choice(TARGETS), chosen)


@tilebench.jit
def attention(S, D, bM, bN, stages, threads, causal):
    scale = (1.0 / D) ** 0.5 * 1.44269504

    @T.prim_func
    def main(
        Q: T.Tensor((S, D), "float16"), K: T.Tensor((S, D), "float16"), V: T.Tensor((S, D), "float16"),
        Out: T.Tensor((S, D), "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(S, bM), threads=threads) as bx:
            Q_s = T.alloc_shared((bM, D), "float16")
            K_s = T.alloc_shared((bN, D), "float16")
            V_s = T.alloc_shared((bN, D), "float16")
            scores = T.alloc_fragment((bM, bN), "float32")
            weights = T.alloc_fragment((bM, bN), "float16")
            out = T.alloc_fragment((bM, D), "float32")
            top = T.alloc_fragment((bM,), "float32")
            before = T.alloc_fragment((bM,), "float32")
            part = T.alloc_fragment((bM,), "float32")
            total = T.alloc_fragment((bM,), "float32")
            T.copy(Q[bx * bM, 0], Q_s)
            T.fill(out, 0)
            T.fill(total, 0)
            T.fill(top, -1e30)
            turns = T.ceildiv((bx + 1) * bM, bN) if causal else T.ceildiv(S, bN)
            for k in T.Pipelined(turns, num_stages=stages):
                T.copy(K[k * bN, 0], K_s)
                T.copy(V[k * bN, 0], V_s)
                for i, j in T.Parallel(bM, bN):
                    inside = k * bN + j < S and (k * bN + j <= bx * bM + i if causal else True)
                    scores[i, j] = T.if_then_else(inside, 0, -1e30)
                T.gemm(Q_s, K_s, scores, transpose_B=True)
                T.copy(top, before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i, j in T.Parallel(bM, bN):
                    scores[i, j] = T.exp2((scores[i, j] - top[i]) * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(bM):
                    before[i] = T.exp2((before[i] - top[i]) * scale)
                    total[i] = total[i] * before[i] + part[i]
                for i, j in T.Parallel(bM, D):
                    out[i, j] *= before[i]
                T.copy(scores, weights)
                T.gemm(weights, V_s, out)
            for i, j in T.Parallel(bM, D):
                out[i, j] /= total[i]
            T.copy(out, Out[bx * bM, 0])

    return main


def drawn_attention(random: Random) -> Drawn:
    s, d, causal = random.choice([16, 40, 64, 77]), random.choice([16, 32, 64]), random.random() < 0.5
    options = {
        "S": s, "D": d, "bM": random.choice([16, 32, 64]), "bN": random.choice([16, 32, 64]),
        "stages": random.choice([1, 2, 3, 4]), "threads": random.choice([32, 64, 128]), "causal": causal,
    }  # fmt: skip
    q, k, v = (numbers(random, s, d) for _ in range(3))
    scores = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(d)
    if causal:
        scores = np.where(np.tril(np.ones((s, s), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    wanted = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
    arrays = {"Q": q, "K": k, "V": v, "Out": np.full((s, d), 7, np.float16)}
    return Drawn(attention, options, arrays, wanted, 0.02, random.choice(TARGETS), _of_blocks(random))


@tilebench.jit
def rms_norm(M, N, bM, bN, stages, threads, dtype):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, bM), threads=threads) as bx:
            A_s = T.alloc_shared((bM, bN), dtype)
            A_2 = T.alloc_shared((bM, bN), dtype)
            squares = T.alloc_fragment((bM, bN), "float32")
            part = T.alloc_fragment((bM,), "float32")
            total = T.alloc_fragment((bM,), "float32")
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(N, bN), num_stages=stages):
                T.copy(A[bx * bM, k * bN], A_s)
                for i, j in T.Parallel(bM, bN):
                    squares[i, j] = T.cast(A_s[i, j], "float32") * T.cast(A_s[i, j], "float32")
                T.reduce_sum(squares, part, dim=1)
                for i in T.Parallel(bM):
                    total[i] += part[i]
            for k in T.Pipelined(T.ceildiv(N, bN), num_stages=stages):
                T.copy(A[bx * bM, k * bN], A_2)
                for i, j in T.Parallel(bM, bN):
                    B[bx * bM + i, k * bN + j] = T.cast(A_2[i, j], "float32") * T.rsqrt(total[i] / N + 1e-3)

    return main


def drawn_norm(random: Random) -> Drawn:
    m, n = random.choice([1, 7, 16, 33]), random.choice([1, 30, 64, 100, 129, 200])
    dtype = random.choice(["float16", "float32", "int8", "bfloat16"])
    options = {
        "M": m, "N": n, "bM": random.choice([1, 4, 8, 16]), "bN": random.choice([16, 32, 64, 96, 128]),
        "stages": random.choice([1, 2, 3, 4, 5]), "threads": random.choice([32, 64, 128, 256]),
        "dtype": dtype,
    }  # fmt: skip
    a = numbers(random, m, n, dtype=_dtype(dtype))
    wide = a.astype(np.float64)
    wanted = wide / np.sqrt((wide * wide).mean(1, keepdims=True) + 1e-3)
    arrays = {"A": a, "B": np.full((m, n), 7, np.float32)}
    return Drawn(rms_norm, options, arrays, wanted, 1e-4, random.choice(TARGETS), _of_blocks(random))


@tilebench.jit
def chain(count, stage, order, threads, rows, dtype):
    @T.prim_func
    def main(A: T.Tensor((64, 48), dtype), B: T.Tensor((16, 48), "float32")):
        with T.Kernel(1, threads=threads):
            first = T.alloc_shared((rows, 48), dtype)
            second = T.alloc_shared((rows, 48), dtype)
            mixed = T.alloc_shared((rows, 48), "float32")
            one = T.alloc_fragment((rows, 48), "float32")
            two = T.alloc_fragment((rows, 48), "float32")
            T.clear(one)
            T.clear(two)
            for k in T.Pipelined(count, stage=stage, order=order):
                T.copy(A[k * 8, 0], first)
                T.copy(A[56 - k * 8, 0], second)
                for i, j in T.Parallel(rows, 48):
                    mixed[i, j] = first[rows - 1 - i, j] * (k + 1) - second[i, 47 - j]
                for i, j in T.Parallel(rows, 48):
                    one[i, j] = one[i, j] + mixed[i, 47 - j]
                for i, j in T.Parallel(rows, 48):
                    two[i, j] = two[i, j] + mixed[rows - 1 - i, j] * second[i, j]
            T.copy(one, B[0, 0])
            T.copy(two, B[8, 0])

    return main


def drawn_chain(random: Random) -> Drawn:
    """Stages and an order for each statement of a loop: many cannot be had."""
    stage = sorted(random.choice([0, 0, 1, 1, 2, 3]) for _ in range(5))
    if random.random() < 0.3:
        random.shuffle(stage)
    order = list(range(5))
    random.shuffle(order)
    count, rows = random.choice([0, 1, 2, 5, 8]), 8
    options = {
        "count": count, "stage": stage, "order": random.choice([order, None]), "rows": rows,
        "threads": random.choice([32, 64, 128]), "dtype": random.choice(["float16", "float32"]),
    }  # fmt: skip
    a = numbers(random, 64, 48, dtype=_dtype(options["dtype"]))
    wide, wanted = a.astype(np.float64), np.zeros((16, 48))
    for k in range(count):
        left, right = wide[k * 8 : k * 8 + 8], wide[56 - k * 8 : 64 - k * 8]
        mixed = left[::-1] * (k + 1) - right[:, ::-1]
        wanted[:8] += mixed[:, ::-1]
        wanted[8:] += mixed[::-1] * right
    arrays = {"A": a, "B": np.full((16, 48), 7, np.float32)}
    return Drawn(chain, options, arrays, wanted, 0.0, random.choice(TARGETS))


def drawn_groups(random: Random) -> Drawn:
    """Products and attention by warp groups, in tiles that they like and others."""
    if random.random() < 0.3:
        drawn = drawn_attention(random)
        own = {"threads": random.choice([128, 128, 256]), "bM": random.choice([32, 64, 128])}
        names: tuple[str, ...] = ("scores", "out")
    else:
        drawn = drawn_product(random)
        own = {
            "threads": random.choice([128, 128, 256, 256, 384, 64]),
            "bM": random.choice([32, 64, 64, 96, 128]),
            "bN": random.choice([8, 16, 24, 40, 64, 72, 96]), "bK": random.choice([16, 16, 32, 48, 64, 24]),
        }  # fmt: skip
        names = ("C_l",)
    asked = {name: {"instruction": "wgmma"} for name in names}
    options = {**drawn.options, **own}
    wanted = drawn.wanted
    if options.get("skip", -1) >= 0:
        # Which terms are left out is told by tiles along k.
        a, b = (drawn.arrays[name].astype(np.float64) for name in "AB")
        a, b = (a.T if options["a_turned"] else a), (b.T if options["b_turned"] else b)
        wanted = a * (np.arange(a.shape[1]) // options["bK"] % 3 != options["skip"]) @ b
    schedule = {**drawn.schedule, "gemm": asked}
    if len(names) == 1 and random.random() < 0.4:
        schedule["copy"] = {name: {"instruction": "tma"} for name in ("A_s", "B_s")}
    return replace(drawn, options=options, target="cuda:sm_90a", schedule=schedule, wanted=wanted)


FAMILIES = {
    "product": drawn_product, "attention": drawn_attention, "norm": drawn_norm, "chain": drawn_chain,
    "warp groups": drawn_groups,
}  # fmt: skip


def campaign(family: str, first: int, count: int) -> list[str]:
    """The drawn schedules that went wrong, each with its seed."""
    wrong: list[str] = []
    for seed in range(first, first + count):
        drawn = FAMILIES[family](Random(seed))
        try:
            what = drawn.found_wrong()
        except Exception as error:  # a fault, or the simulator's refusal: the campaign goes on
            what = f"{type(error).__name__}: {error}"
        if what:
            wrong.append(f"{family} {seed} {drawn.target} {drawn.options} {drawn.schedule}: {what}")
    return wrong


if __name__ == "__main__":
    import sys

    for line in campaign(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])):
        print(line, flush=True)
