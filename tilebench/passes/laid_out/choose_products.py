"""Products by instructions that read shared memory themselves, where their rules hold and they pay.

`T.gemm(A_s, B_s, C_l)` -> `T.gemm(A_s, B_s, C_l, by=T.Instr("wgmma"))` where the table has a row for it that
costs less than the others, with what its tiles pad and what shared memory hands out for it, and every rule of
it holds: threads, k, where operands are and how they may lie. What a kernel or schedule names stays; where a
rule forbids it a remark says which. Other products are left to `choose_instructions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, prod
from typing import Any

from ...errors import LayoutError
from ...ir import Function, Region, const_of, map_bodies
from ...ir.stmt import statements
from ...language.gemm import Gemm
from ...language.lowered.decisions import Instr
from ...layout.tiling import split_groups
from ...machine import Instruction, Machine
from ..analysis.thread_groups import Threads, threads_by_statement
from ..context import Context
from .choose_instructions import choose, dtypes_of, is_meant, price_of
from .place_operands import unreadable
from .warp_policies import SQUARE

NAME = "choose_products"
# Bytes after which the widest swizzle begins again.
PLANE = 1024
# Warps whose instructions a multiprocessor issues at a time: the others of a block share these cycles.
PARTITIONS = 4


def choose_products(function: Function, context: Context) -> Function:
    """The function whose products have such an instruction where it is the best."""
    machine = context.machine
    rows = [row for row in machine.instructions_for(Gemm.word) if row.optional and row.by_proxy]
    gemms = [node for node in statements(function.body) if isinstance(node, Gemm)]
    if not rows or not gemms:
        return function
    return _settled(function, rows, gemms, context)


def _settled(function: Function, rows: list[Instruction], gemms: list[Gemm], context: Context) -> Function:
    """The function with those of the rows on products that all of its products together allow."""
    threads = threads_by_statement(function, context.machine)
    wanted = {
        id(gemm): _cheapest(gemm, rows, context.machine, threads[id(gemm)], context)
        for gemm in gemms
        if gemm.by is None
    }
    while any(wanted.values()):
        trial, origins = _with_rows(function, wanted, threads, context.machine)
        found = [(origins.get(id(gemm)), why) for gemm, why in unreadable(trial, context)]
        refused = [(gemm, why) for gemm, why in found if gemm is not None and wanted[id(gemm)] is not None]
        if not refused:
            for gemm in gemms:
                if row := wanted.get(id(gemm)):
                    _applied(gemm, row, threads[id(gemm)], context)
            return trial
        for gemm, why in refused:
            _missed(gemm, wanted[id(gemm)], why, context)
            wanted[id(gemm)] = None
    return function


def _applied(gemm: Gemm, row: Instruction, threads: Threads, context: Context) -> None:
    ordinary = choose(gemm, context.machine, threads.count)
    costs = {each.name: _cycles(each, gemm, context.machine, threads) for each in (row, ordinary) if each}
    said = ", ".join(f"{name} {cycles:.0f}" for name, cycles in costs.items() if name != row.name)
    context.remark(
        NAME, "applied", f"{row.name} carries out this product: {costs[row.name]:.0f} cycles, {said}", gemm,
        **{f"cycles_{name}": round(cycles, 1) for name, cycles in costs.items()},
    )  # fmt: skip


def _missed(gemm: Gemm, row: Instruction | None, why: str, context: Context) -> None:
    if row is not None:
        context.remark(NAME, "missed", f"{row.name} does not take this product: {why}", gemm)


def _cheapest(
    gemm: Gemm, rows: list[Instruction], machine: Machine, threads: Threads, context: Context
) -> Instruction | None:
    """The row that a product is best carried out by, of these; None where an ordinary one is as good."""
    dtypes = dtypes_of(gemm)
    fitting = [row for row in rows if row.dtypes == dtypes and is_meant(row, gemm)]
    if not fitting:
        return None
    best = min(fitting, key=lambda row: _cycles(row, gemm, machine, threads))
    if why := _why_not(best, gemm, threads):
        _missed(gemm, best, why, context)
        return None
    ordinary = choose(gemm, machine, threads.count)
    own, other = (_cycles(row, gemm, machine, threads) for row in (best, ordinary or best))
    if ordinary is None or own < other:
        return best
    why = f"its tiles of {best.shape[0]} rows take {own:.0f} cycles here, {ordinary.name} {other:.0f}"
    context.remark(NAME, "note", f"{best.name} does not pay for this product: {why}", gemm)
    return None


def _cycles(row: Instruction, gemm: Gemm, machine: Machine, threads: Threads) -> float:
    """What a product costs: issuing its instructions, or what shared memory hands out for them, whichever is
    more. Tiles of 16 to 64 rows of a product of 2048 on an H200 are ordered so (64x64: 60 us by warps, 40 by
    groups; 32x64: 95 and 82; 16x64: the same)."""
    issued, atom = price_of(row, gemm, machine, threads.count), row.operand("c").fragment
    if atom is None:
        return issued
    (m, n, k), groups = gemm.mnk, max(1, threads.count // max(row.group, 1))
    try:
        split = split_groups((m, n), atom.extents, groups, gemm.policy or SQUARE, rows_first=bool(row.most))
    except LayoutError:
        return issued  # whoever makes the layout says it
    blocks = [ceil(extent / size) for extent, size in zip((m, n), atom.extents, strict=True)]
    own = [ceil(count / parts) for count, parts in zip(blocks, split, strict=True)]
    busy = ceil(blocks[0] / own[0]) * ceil(blocks[1] / own[1])
    rows, columns = own[0] * atom.extents[0], own[1] * atom.extents[1]
    # What an instruction reads by itself it reads for each block of its rows.
    again = own[0] if row.by_proxy else 1
    read = sum(
        reach * times * k * region.buffer.dtype.bits / 8
        for region, reach, times in ((gemm.a, rows, 1), (gemm.b, columns, again))
        if region.buffer.scope == "shared"
    )
    handed_out = busy * read / (machine.shared.banks * machine.shared.bank_bytes)
    return max(issued, handed_out * PARTITIONS * machine.warp / threads.count)


def _why_not(row: Instruction, gemm: Gemm, threads: Threads) -> str:
    """The rule by which an instruction cannot be taken, of those that need no layout; empty: none."""
    depth, unit = gemm.mnk[2], row.shape[2]
    if threads.count % row.group or threads.first % row.group:
        last = threads.first + threads.count - 1
        return f"it has threads {threads.first} to {last}, no whole groups of {row.group}"
    if depth % unit:
        return f"k is {depth}, no multiple of {unit}"
    for field in ("a", "b"):
        region: Region = getattr(gemm, field)
        memory = row.operand(field).memory
        if region.buffer.scope not in memory:
            return f"{region.buffer.name} lies in {region.buffer.scope} memory"
        if region.buffer.scope == "fragment" and region.buffer.name == gemm.c.buffer.name:
            return f"{region.buffer.name} is an operand and the sum"
        if region.buffer.scope == "shared" and not _starts_whole(region, field, gemm, row):
            return f"it reads a part of {region.buffer.name} that is not known to start at whole blocks"
    if row.exact_k and not gemm.fast_accum:
        return f"it forms sums of {row.exact_k} terms in fewer bits, and is taken where it is named"
    return ""


def _starts_whole(region: Region, field: str, gemm: Gemm, row: Instruction) -> bool:
    """Whether a part of a tile starts where blocks of it do: at steps along k, at rows of an instruction, and
    in planes of whole swizzles."""
    if region.is_whole:
        return True
    turned = gemm.transpose_A if field == "a" else gemm.transpose_B
    k_last = (field == "a") != turned
    units = (row.shape[0], row.shape[2]) if k_last else (row.shape[2], row.shape[0])
    starts = [const_of(start) for start in region.start]
    inside = all(
        start is not None and start % unit == 0 for start, unit in zip(starts[-2:], units, strict=True)
    )
    plane = prod(region.buffer.extents[-2:]) * region.buffer.dtype.bits // 8
    return inside and (plane % PLANE == 0 or all(start == 0 for start in starts[:-2]))


def _with_rows(
    function: Function, wanted: Mapping[int, Instruction | None], threads: Mapping[int, Threads],
    machine: Machine,
) -> tuple[Function, dict[int, Gemm]]:  # fmt: skip
    """The function with an instruction on each product, and the old node of each one that got one."""
    origins: dict[int, Gemm] = {}

    def step(node: Any) -> Any:
        if isinstance(node, Gemm) and node.by is None:
            row = wanted.get(id(node)) or choose(node, machine, threads[id(node)].count)
            changed = node if row is None else node.but(by=Instr(row.name))
            origins[id(changed)] = node
            return changed
        return map_bodies(node, step)

    return step(function), origins
