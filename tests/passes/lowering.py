# ruff: noqa: E501 -- stages and CUDA text are one statement a line
"""From hand-written `pipelined` text to `threaded`, checked after every pass, and run in the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.simulated import card_road, card_words, run_threaded
from tilebench.ir import Function, parse_function, print_function, rewrite, verify, walk
from tilebench.language.copy import Copy
from tilebench.language.gemm import Gemm
from tilebench.language.lowered.decisions import Instr
from tilebench.language.memory import AllocFragment
from tilebench.language.reduce import Reduce
from tilebench.language.structure import Parallel
from tilebench.layout import gemm_microtile, spread
from tilebench.machine import Machine
from tilebench.passes.analysis.exchanges import exchange_instruction, exchange_row
from tilebench.passes.context import Context
from tilebench.passes.threads.widths import widest_access
from tilebench.targets.cuda.machines import machine_of


def with_instructions(function: Function, machine: Machine) -> Function:
    """The function with the plain instruction on every operation that a test left without one.

    Loops that say no `vector=` have the widest.
    """
    layouts = {n.buffer.name: n.layout for n in walk(function) if isinstance(n, AllocFragment)}

    def fill(node: Any) -> Any:
        if getattr(node, "by", None) is not None:
            return node
        if isinstance(node, Parallel) and node.map is not None and node.vector == 1:
            return node.but(vector=widest_access(machine, node, node.map))
        if isinstance(node, Copy):
            return node.but(by=Instr("ld.st"))
        if isinstance(node, Gemm):
            return node.but(by=Instr("fma"))
        layout = layouts.get(node.src.buffer.name) if isinstance(node, Reduce) else None
        if layout is not None:
            row = exchange_row(node, machine.instructions_for("reduce"), layout, machine)
            return node.but(by=exchange_instruction(node, row, layout))
        return node

    return rewrite(function, fill)


def lower(text: str, arch: str = "sm_80") -> tuple[Function, Context]:
    """The `threaded` form; every pass must leave a function that verifies and prints back."""
    context = Context(machine_of(arch))
    function = with_instructions(parse_function(text, card_words()), context.machine)
    verify(function)
    row = card_road()[-1]
    for name, step in row.passes:
        function = step(function, context)
        verify(function)
        assert parse_function(print_function(function).text, card_words()) == function, name
    verify(function, row.forms)
    return function, context


def run(text: str, arch: str = "sm_80", **arrays: Any) -> None:
    """Lower and run on arrays, which are changed in place."""
    function, _ = lower(text, arch)
    run_threaded(function, arrays, warp=32)


def random(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """Small numbers of a dtype: integers in -4..4, floats in -1..1."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        low = 0 if kind.kind == "u" else -4
        return rng.integers(low, 5, shape).astype(kind)
    return rng.uniform(-1, 1, shape).astype(np.float32).astype(kind)


def ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def box(start: str, extent: int) -> str:
    """One dimension of a region, as the printer writes it."""
    return f"{start} : {int(start) + extent}" if start.isdigit() else f"{start} : {start} + {extent}"


def within(shape: tuple[int, int], tile: tuple[int, int], name: str) -> str:
    """The attribute that tests the dimensions which the tile does not divide."""
    held = tuple(n if n % t else None for n, t in zip(shape, tile, strict=True))
    return "" if held == (None, None) else f", {name}={held}"


def gemm_text(
    m: int, n: int, k: int, *, tile: tuple[int, int, int] = (32, 32, 16), threads: int = 64, ab: str = "float32",
    c: str = "float32", out: str = "float32", transpose_a: bool = False, transpose_b: bool = False, stages: int = 1,
    layout_a: str = "", layout_b: str = "", per_thread: tuple[int, int] = (4, 4), clear: str = "", order: str = "",
) -> str:  # fmt: skip
    """A GEMM in `pipelined` form: C[m, n] = op(A) op(B), any sizes, ring of `stages` as the ring pass makes it."""
    bm, bn, bk = tile
    a_tile, b_tile = ((bk, bm) if transpose_a else (bm, bk)), ((bn, bk) if transpose_b else (bk, bn))
    a_shape, b_shape = ((k, m) if transpose_a else (m, k)), ((n, k) if transpose_b else (k, n))
    size = np.dtype("float16" if ab == "bfloat16" else ab).itemsize
    frag = gemm_microtile(bm, bn, threads, *per_thread, 32)
    a_map, b_map = spread(a_tile, threads, 16 // size, 32), spread(b_tile, threads, 16 // size, 32)
    a_layout = layout_a or f"T.SharedLayout({a_tile}, ({a_tile[1]}, 1))"
    b_layout = layout_b or f"T.SharedLayout({b_tile}, ({b_tile[1]}, 1))"
    versions = f", versions={stages}" if stages > 1 else ""
    steps = ceildiv(k, bk)

    def at(name: str, step: str) -> str:
        return name if stages == 1 else f"{name}.version({step})"

    def copies(step: str, version: str, pad: str) -> str:
        a0, a1 = (step, f"by * {bm}") if transpose_a else (f"by * {bm}", step)
        b0, b1 = (f"bx * {bn}", step) if transpose_b else (step, f"bx * {bn}")
        return (
            f"{pad}T.copy(A[{box(a0, a_tile[0])}, {box(a1, a_tile[1])}], {at('A_s', version)}"
            f"{within(a_shape, a_tile, 'src_within')}, by=T.Instr('ld.st'), map={a_map})\n"
            f"{pad}T.copy(B[{box(b0, b_tile[0])}, {box(b1, b_tile[1])}], {at('B_s', version)}"
            f"{within(b_shape, b_tile, 'src_within')}, by=T.Instr('ld.st'), map={b_map})\n"
        )

    ahead = stages - 1
    prologue = "".join(copies(str(p * bk), str(p), " " * 8) for p in range(min(ahead, steps)))
    if stages == 1:
        body = copies(f"ko * {bk}", "", " " * 12)
        version = ""
    else:
        body = f"            if ko + {ahead} < {steps}:\n"
        body += copies(f"(ko + {ahead}) * {bk}", f"(ko + {ahead}) % {stages}", " " * 16)
        version = f"ko % {stages}"
    flags = (", transpose_A=True" if transpose_a else "") + (", transpose_B=True" if transpose_b else "")
    flags += f", clear_accum={clear}" if clear else ""
    return f"""@T.prim_func
def gemm(A: T.Tensor({a_shape}, T.{ab}), B: T.Tensor({b_shape}, T.{ab}), C: T.Tensor({(m, n)}, T.{out})):
    with T.Kernel({ceildiv(n, bn)}, {ceildiv(m, bm)}, threads={threads}{order}) as (bx, by):
        A_s = T.alloc_shared({a_tile}, T.{ab}, layout={a_layout}{versions})
        B_s = T.alloc_shared({b_tile}, T.{ab}, layout={b_layout}{versions})
        C_l = T.alloc_fragment({(bm, bn)}, T.{c}, layout={frag})
        T.fill(C_l, T.{c}(0), map={frag})
{prologue}        for ko in T.serial({steps}):
{body}            T.gemm({at("A_s", version)}, {at("B_s", version)}, C_l{flags}, by=T.Instr("fma"))
        T.copy(C_l, C[by * {bm} : by * {bm} + {bm}, bx * {bn} : bx * {bn} + {bn}]{within((m, n), (bm, bn), "dst_within")}, by=T.Instr("ld.st"), map={frag})
"""
