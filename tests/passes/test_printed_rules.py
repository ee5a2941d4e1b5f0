"""What a stage prints rules: an edit of any decision in the text changes the code, or is refused at its line.

Each decision of `bounded`, `laid_out` and `pipelined` is replaced in turn by what a person might write
instead (`decisions.py`). Nothing may be ignored silently, and what is obeyed computes the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import tilebench
import tilebench.language as T
from tests import kernels
from tests.passes.decisions import Edit, edits_of
from tests.simulated import run_threaded
from tilebench.errors import TileError
from tilebench.kernel import Kernel, compile_from
from tilebench.schedule import Schedule

STAGES = ("bounded", "laid_out", "pipelined")
# Where kernels are written: the file of an error about a line that was not edited.
USER = (kernels.__file__, __file__)


@tilebench.jit
def attention(L, D, block_M=32, block_N=32, threads=64):
    @T.prim_func
    def main(
        Q: T.Tensor((L, D), "float16"),
        K: T.Tensor((L, D), "float16"),
        V: T.Tensor((L, D), "float16"),
        R: T.Tensor((L, D), "float16"),
    ):
        with T.Kernel(T.ceildiv(L, block_M), threads=threads) as bx:
            Q_s = T.alloc_shared((block_M, D), "float16")
            K_s = T.alloc_shared((block_N, D), "float16")
            V_s = T.alloc_shared((block_N, D), "float16")
            P_s = T.alloc_shared((block_M, block_N), "float16")
            S = T.alloc_fragment((block_M, block_N), "float32")
            O_l = T.alloc_fragment((block_M, D), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            old = T.alloc_fragment((block_M,), "float32")
            part = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(Q[bx * block_M, 0], Q_s)
            T.clear(O_l)
            T.clear(total)
            T.fill(top, -1e30)
            for k in T.Pipelined(T.ceildiv(L, block_N), num_stages=2):
                T.copy(K[k * block_N, 0], K_s)
                T.copy(V[k * block_N, 0], V_s)
                T.gemm(Q_s, K_s, S, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_M, block_N):
                    S[i, j] = T.if_then_else(k * block_N + j < L, S[i, j], -1e30)
                T.copy(top, old)
                T.reduce_max(S, top, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    S[i, j] = T.exp(S[i, j] - top[i])
                T.reduce_sum(S, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * T.exp(old[i] - top[i]) + part[i]
                for i, j in T.Parallel(block_M, D):
                    O_l[i, j] = O_l[i, j] * T.exp(old[i] - top[i])
                T.copy(S, P_s)
                T.gemm(P_s, V_s, O_l)
            for i, j in T.Parallel(block_M, D):
                O_l[i, j] = O_l[i, j] / total[i]
            T.copy(O_l, R[bx * block_M, 0])

    return main


@tilebench.jit
def conversions(L):
    @T.prim_func
    def main(A: T.Tensor((L, L), "float16"), B: T.Tensor((L, L), "float16")):
        with T.Kernel(T.ceildiv(L, 32), threads=64) as bx:
            pairs = T.alloc_fragment((32, 32), "float16")
            vectors = T.alloc_fragment((32, 32), "float16")
            rows = T.alloc_fragment((32, 32), "float16")
            T.annotate_layout(
                {
                    pairs: T.Fragment(
                        (32, 32),
                        lambda i, j: (
                            i // 16 * 32 + i % 8 * 4 + j % 8 // 2,
                            i // 8 % 2 + j % 2 * 2 + j // 8 * 4,
                        ),
                    ),
                    vectors: T.Fragment(
                        (32, 32), lambda i, j: (i // 16 * 32 + i % 8 * 4 + j // 8, i // 8 % 2 * 8 + j % 8)
                    ),
                    rows: T.Fragment((32, 32), lambda i, j: (i % 2 * 32 + i // 2 * 2 + j // 16, j % 16)),
                }
            )
            T.copy(A[bx * 32, 0], pairs)
            T.copy(pairs, vectors)
            T.copy(vectors, rows)
            T.copy(rows, B[bx * 32, 0])

    return main


@dataclass(frozen=True)
class Case:
    """A kernel, its arrays, its result in NumPy, by how much it may be off, and the target and a schedule."""

    kernel: Callable[..., Any]
    values: dict[str, Any]
    shapes: tuple[tuple[int, ...], ...]
    result: Callable[..., Any]
    bound: float = 0.0
    target: str = "cuda:sm_80"
    schedule: Schedule | None = None


def soft(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


TILE = {"block_M": 32, "block_N": 32, "block_K": 16, "threads": 64}
CASES = {
    "gemm": Case(kernels.gemm_kernel, {"M": 40, "N": 44, "K": 72, **TILE, "num_stages": 3},
                 ((40, 72), (72, 44), (40, 44)), lambda a, b: a @ b),
    "regions": Case(kernels.gemm_regions, {"M": 40, "N": 44, "K": 72, **TILE, "num_stages": 2},
                    ((40, 72), (72, 44), (40, 44)), lambda a, b: a @ b),
    "sum": Case(kernels.reduce_kernel, {"M": 20, "N": 300}, ((20, 300), (20,)), lambda a: a.sum(axis=1)),
    "max": Case(kernels.reduce_kernel, {"M": 20, "N": 300, "kind": "max"}, ((20, 300), (20,)),
                lambda a: a.max(axis=1)),
    "softmax": Case(kernels.softmax_kernel, {"M": 6, "N": 100}, ((6, 100), (6, 100)), soft, 2.0**-10),
    "attention": Case(attention, {"L": 40, "D": 32}, ((40, 32),) * 4,
                      lambda q, k, v: soft(q @ k.T) @ v, 2.0**-6),
    "conversions": Case(conversions, {"L": 32}, ((32, 32), (32, 32)), lambda a: a),
    "warp groups": Case(
        kernels.gemm_kernel,
        {"M": 60, "N": 44, "K": 72, "block_M": 64, "block_N": 32, "block_K": 16, "threads": 128,
         "num_stages": 3},
        ((60, 72), (72, 44), (60, 44)), lambda a, b: a @ b, target="cuda:sm_90a",
        schedule=Schedule.of(gemm={"C_l": {"instruction": "wgmma"}}),
    ),
}  # fmt: skip


@cache
def plain(name: str) -> Kernel:
    case = CASES[name]
    return case.kernel.using(target=case.target, schedule=case.schedule)(**case.values)


@cache
def edits(name: str, stage: str) -> tuple[Edit, ...]:
    """One edit of each kind for each kind of statement: the same on a later copy says nothing new."""
    seen: dict[tuple[str, ...], Edit] = {}
    for edit in edits_of(plain(name).stage(stage)):
        seen.setdefault((edit.word, edit.argument, edit.change), edit)
    return tuple(seen.values())


def compiled(edit: Edit, stage: str, kernel: Kernel) -> tuple[Kernel, str] | TileError:
    """The kernel and its code of one thread, or why there is none."""
    try:
        edited = compile_from(stage, edit.text, like=kernel)
        return edited, edited.stage("threaded")
    except TileError as error:
        return error


def refused_wrongly(error: TileError, edit: Edit, stage: str, kernel: Kernel) -> str:
    """What is wrong about an error; empty when it stands at the edited line.

    Where two lines disagree, a layout and a statement that uses it, it may stand at the other one.
    """
    # A layout that others can read is none for an instruction that reads it by itself.
    if edit.legal and not error.message.startswith("wgmma cannot read "):
        return "a legal edit is refused"
    if error.place is None or type(error).__name__ == "InternalError":
        return "the error is no message for a user"
    disagree = edit.word == "head" or edit.argument in ("layout", "versions", "map")
    if disagree and error.place.file in USER:
        return "" if edit.word in ("head", "alloc_shared", "alloc_fragment") else "it stands elsewhere"
    own = error.place.file == f"<{stage} stage>" and error.place.line == edit.line
    return "" if own else f"it stands at {error.place.file}:{error.place.line}"


def results_differ(name: str, kernel: Kernel) -> str:
    """What is wrong about the results in the simulator; empty when they are those of NumPy."""
    case = CASES[name]
    random = np.random.default_rng(7)
    inputs = [random.integers(-2, 3, shape).astype(np.float16) for shape in case.shapes[:-1]]
    out = np.zeros(case.shapes[-1], np.float16)
    function = kernel.compilation.functions["threaded"]
    arrays = dict(zip([param.name for param in function.params], [*inputs, out], strict=True))
    try:
        run_threaded(function, arrays, warp=32)
    except TileError as error:
        return f"the simulator refuses it: {error.message}"
    wanted = case.result(*(array.astype(np.float64) for array in inputs))
    off = np.abs(out.astype(np.float64) - wanted).max()
    return "" if off <= case.bound else f"results are off by {off}"


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", list(CASES))
def test_an_edit_is_obeyed_or_refused_at_its_line(name: str, stage: str) -> None:
    kernel = plain(name)
    before = kernel.stage("threaded")
    faults: list[str] = []
    for edit in edits(name, stage):
        found = compiled(edit, stage, kernel)
        if isinstance(found, TileError):
            fault = refused_wrongly(found, edit, stage, kernel)
            faults += [f"{edit}\n  {fault}: {found.message}"] if fault else []
            continue
        edited, after = found
        if after == before:
            faults += [] if edit.may_be_the_same else [f"{edit}\n  it is ignored"]
        elif not edit.masks and (fault := results_differ(name, edited)):
            faults.append(f"{edit}\n  {fault}")
    assert not faults, "\n" + "\n".join(faults)
