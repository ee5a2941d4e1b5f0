"""Causes that the compilation itself shows: nothing has to run for them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from ...ir.dtypes import dtype_of
from .case import Case, Cause, Evidence, line_of
from .observe import GlobalAccess, Product

Row = Callable[[Case], "Cause | None"]

# Below this share of a whole, a figure is not worth a reader's time.
NOTABLE = 0.1
# Bytes that a multiprocessor has to have asked for, so that memory is busy: bandwidth times latency over the
# units; 32 KiB on an H200 (4.2 TB/s, about 1 us under load, 132 multiprocessors).
IN_FLIGHT = 32 << 10
# Below this share of the warps nothing that is in flight makes up for them.
FEW_WARPS = 0.15


def percent(part: float) -> str:
    """A share in percent, to two digits."""
    return f"{100 * part:.2g} %"


def missing_instruction(case: Case) -> Cause | None:
    """A product on the ordinary lanes although the machine has a matrix instruction for other dtypes."""
    rows = [row for row in case.machine.instructions_for("gemm") if row.name != "fma"]
    slow = [p for p in case.observed.products if p.instruction == "fma"]
    if not slow:
        return None
    worst = max(slow, key=lambda p: prod(p.mnk))
    dtypes = " x ".join(worst.dtypes[:2]) + f" into {worst.dtypes[2]}"
    figures = (Evidence("instruction", "fma"), Evidence("dtypes", dtypes))
    what = (
        f"this product is done by multiply-adds: {case.machine.name} has no matrix instruction for {dtypes}"
    )
    to_try = "a card that has matrix instructions for these dtypes"
    if rows:
        to_try = "operands of float16 or bfloat16 (or tf32, asked for), or a schedule that does not say fma"
        if any(row.dtypes == worst.dtypes and not row.asked for row in rows):
            shape = " x ".join(map(str, worst.mnk))
            what = f"this product of {shape} is done by multiply-adds: it is no tile of a matrix instruction"
            to_try = "a tile of 16 x 8 x 16 or more; a single row or column may be a sum along k instead"
        if any(c.value == "fma" and c.origin != "default" for c in case.record.choices):
            what = "this product is done by multiply-adds because the schedule says so"
    return Cause("missing_instruction", "compute", what, to_try, figures, 0.9, worst.line)


def padded_tile(case: Case) -> Cause | None:
    """Tiles that stick far out of the problem: most of their work is done on nothing."""
    blocks = case.blocks
    products = [p for p in case.observed.products if prod(p.mnk)]
    if blocks is None or not products or not case.record.flops:
        return None
    useful = _share_of_tiles(case)
    if useful is None or useful > 0.6:
        return None
    product = max(products, key=lambda p: prod(p.mnk))
    m, n, _ = product.mnk
    return Cause(
        "tile_too_large", "schedule", f"only {percent(useful)} of the tiles' area lies inside the result",
        "smaller blocks along the short dimension, or several narrow problems in one launch",
        (Evidence("tile", f"{m} x {n}"), Evidence("blocks", str(blocks))), 1 - useful, product.line,
    )  # fmt: skip


def _share_of_tiles(case: Case) -> float | None:
    """The written elements over those of all blocks' tiles; None where it cannot be told."""
    written = [a for a in case.record.arguments if a.written and all(isinstance(s, int) for s in a.shape)]
    product = max(case.observed.products, key=lambda p: prod(p.mnk))
    if len(written) != 1 or not case.blocks:
        return None
    m, n, _ = product.mnk
    return prod(written[0].extents) / (case.blocks * m * n)


def small_tile(case: Case) -> Cause | None:
    """A tile so small that bringing its operands costs more than multiplying them."""
    products = [p for p in case.observed.products if prod(p.mnk) and p.instruction]
    if not products:
        return None
    worst = min(products, key=_intensity)
    m, n, k = worst.mnk
    least = 64 if worst.instruction != "fma" else 16
    if _intensity(worst) >= least or min(m, n) >= 64:
        return None
    return Cause(
        "tile_too_small", "schedule",
        f"a block multiplies {m} x {n} x {k}: {_intensity(worst):.3g} operations for each byte it fetches",
        "larger blocks, 64 x 64 at least and 128 x 128 where registers allow",
        (Evidence("operations a byte", f"{_intensity(worst):.3g}"),
         Evidence("enough", str(least))), 0.5, worst.line,
    )  # fmt: skip


def _intensity(product: Product) -> float:
    """Operations of a step for each byte of its operands."""
    m, n, k = product.mnk
    return 16 * m * n * k / (dtype_of(product.dtypes[0]).bits * (m * k + k * n))


def no_overlap(case: Case) -> Cause | None:
    """Stages that were asked for and do nothing."""
    missed = [r for r in case.remarks("plan_pipeline", "missed") if "has no effect" in r.message]
    if not missed:
        return None
    first = missed[0]
    return Cause(
        "stages_do_not_overlap", "latency", f"the pipeline does not overlap: {first.message}",
        "copy each operand into a tile of its own at the head of the loop, before anything uses it",
        tuple(Evidence("also", r.message) for r in missed[1:3]), 0.4, line_of(first.place),
    )  # fmt: skip


def shallow_pipeline(case: Case) -> Cause | None:
    """A pipeline of one version where there is room for more."""
    loops = [r for r in case.remarks("plan_pipeline", "applied") if r.values.get("stages") == 2]
    used = case.record.resources
    if not loops or used is None or not case.observed.products:
        return None
    a_stage = float(loops[0].values.get("bytes_per_stage", 0))
    room = case.machine.shared.per_block - used.shared_bytes
    if not a_stage or room < a_stage or used.threads > 256:
        return None
    more = int(room // a_stage)
    return Cause(
        "too_few_stages", "latency", "one copy is in flight while the block computes",
        f"num_stages={2 + min(more, 2)}: shared memory has room for {more} more",
        (Evidence("bytes a stage", f"{a_stage:.0f}"), Evidence("free", f"{room} B")), 0.15,
        line_of(loops[0].place),
    )  # fmt: skip


def uncoalesced(case: Case) -> Cause | None:
    """Warps that move more sectors than they ask for."""
    total = sum(a.total for a in case.observed.accesses) or 1
    bad = [a for a in case.observed.accesses if a.efficiency < 0.6 and a.total / total > NOTABLE]
    if not bad:
        return None
    worst = min(bad, key=lambda a: a.efficiency)
    verb = "stores to" if worst.written else "loads from"
    return Cause(
        "uncoalesced", "memory",
        f"{verb} {worst.buffer} move {1 / worst.efficiency:.2g} times the bytes that are used",
        "let neighbouring threads touch neighbouring elements: the last dimension innermost, or a tile",
        (Evidence("of moved bytes used", percent(worst.efficiency)),
         Evidence("bytes of one access", str(worst.width))), 1 - worst.efficiency, worst.line,
    )  # fmt: skip


def scalar_copies(case: Case) -> Cause | None:
    """Accesses that are narrower than the array allows."""
    total = sum(a.total for a in case.observed.accesses) or 1
    narrow = [
        a
        for a in case.observed.accesses
        if a.width < 8
        and a.possible >= 4 * a.width
        and a.total / total > NOTABLE
        and (a.efficiency >= 0.6 or _odd_rows(case, a))
    ]
    if not narrow:
        return None
    worst = max(narrow, key=lambda a: a.possible / a.width)
    if _odd_rows(case, worst):
        why = "its rows are no multiples of 16 bytes"
        to_try = "row lengths that are multiples of 16 bytes (pad the array), or blocks that divide"
    else:
        why = "what a thread takes beside each other does not fill a vector"
        to_try = (
            f"blocks that give a thread {worst.possible} bytes in a row (a longer last dimension, or fewer "
            "threads), and that begin at multiples of 16 bytes"
        )
    return Cause(
        "scalar_copies", "memory", f"{worst.buffer} is accessed {worst.width} bytes at a time: {why}",
        to_try,
        (Evidence("bytes of one access", str(worst.width)), Evidence("possible", str(worst.possible))), 0.4,
        worst.line,
    )  # fmt: skip


def _odd_rows(case: Case, access: GlobalAccess) -> bool:
    """Whether a row of the array is no whole number of the widest accesses."""
    found = next((each for each in case.record.arguments if each.name == access.buffer), None)
    last = found.shape[-1] if found is not None and found.shape else 0
    return isinstance(last, int) and last * access.element % access.possible != 0


def _in_flight(case: Case) -> int:
    """Bytes of loads that a multiprocessor has under way, by the statement that asks for most."""
    used = case.record.resources
    if used is None or not used.blocks_per_sm:
        return 0
    a_thread = max((a.in_flight for a in case.observed.accesses if not a.written), default=0)
    return a_thread * used.threads * used.blocks_per_sm


def little_in_flight(case: Case) -> Cause | None:
    """Too few bytes asked for at a time to keep memory busy."""
    used = case.record.resources
    reads = [a for a in case.observed.accesses if not a.written]
    if used is None or not used.blocks_per_sm or not reads or case.observed.products:
        return None
    have = _in_flight(case)
    a_thread = have // (used.threads * used.blocks_per_sm)
    if have >= IN_FLIGHT:
        return None
    return Cause(
        "little_parallelism", "latency",
        f"a multiprocessor has {have} bytes of loads in flight, {IN_FLIGHT >> 10} KiB keep memory busy",
        "more elements a thread (larger blocks), or more threads a block",
        (Evidence("bytes a thread", str(a_thread)), Evidence("threads", str(used.threads)),
         Evidence("blocks a multiprocessor", str(used.blocks_per_sm))), 1 - have / IN_FLIGHT,
        reads[0].line,
    )  # fmt: skip


def low_occupancy(case: Case) -> Cause | None:
    """Few warps, because a block takes much of one resource."""
    used = case.record.resources
    if used is None or used.occupancy is None or used.occupancy >= 0.25 or used.limited_by in ("", "blocks"):
        return None
    if case.observed.products and used.occupancy >= 0.06:
        return None  # a product hides its latency in one or two large blocks
    if used.occupancy >= FEW_WARPS and _in_flight(case) >= IN_FLIGHT:
        return None  # what a thread has in flight hides it
    name = {"shared": "shared memory", "registers": "registers"}.get(used.limited_by, used.limited_by)
    advice = {
        "registers": "smaller blocks or more threads a block, so that a thread holds less",
        "shared": "smaller tiles or fewer stages",
    }.get(used.limited_by, "more blocks that fit")
    return Cause(
        "low_occupancy", "latency", f"{percent(used.occupancy)} of the warps fit: {name} allow no more",
        advice,
        (Evidence("registers a thread", str(used.registers)),
         Evidence("shared bytes", str(used.shared_bytes)),
         Evidence("blocks a multiprocessor", str(used.blocks_per_sm))), 0.25,
    )  # fmt: skip


def spills(case: Case) -> Cause | None:
    """Registers that went to memory."""
    used = case.record.resources
    stored = (used.spill_store_bytes or 0) if used is not None else 0
    loaded = (used.spill_load_bytes or 0) if used is not None else 0
    if used is None or not stored + loaded:
        return None
    return Cause(
        "spills", "latency", "values do not fit the registers and go through memory",
        "smaller tiles a thread: smaller blocks, or more threads",
        (Evidence("stored a thread", f"{stored} B"), Evidence("loaded a thread", f"{loaded} B"),
         Evidence("registers", str(used.registers))), 0.5,
    )  # fmt: skip


def few_blocks(case: Case) -> Cause | None:
    """Multiprocessors without work, in the only wave or in the last one."""
    used, blocks, units = case.record.resources, case.blocks, case.machine.units
    if used is None or blocks is None or units < 2 or not used.blocks_per_sm:
        return None
    waves = blocks / (units * used.blocks_per_sm)
    if blocks < units:
        idle, what = (
            1 - blocks / units,
            f"{blocks} blocks on {units} multiprocessors: the others have nothing to do",
        )
        to_try = "smaller blocks, or a split of the long dimension (split-K, stream-K)"
        return _blocks_finding("too_few_blocks", what, to_try, idle, blocks, waves)
    whole = -(-blocks // units)
    idle = 1 - blocks / (whole * units)
    if used.blocks_per_sm == 1 and whole <= 4 and idle > NOTABLE:
        what = f"the last of {whole} rounds is {percent(1 - whole + blocks / units)} full"
        to_try = "blocks that fill whole rounds, or a persistent launch that shares the rest out"
        return _blocks_finding("tail_wave", what, to_try, idle, blocks, waves)
    return None


def _blocks_finding(cause: str, what: str, to_try: str, idle: float, blocks: int, waves: float) -> Cause:
    figures = (
        Evidence("blocks", str(blocks)),
        Evidence("waves", f"{waves:.2f}"),
        Evidence("idle", percent(idle)),
    )
    return Cause(cause, "launch", what, to_try, figures, idle)


def replicated(case: Case) -> Cause | None:
    """Fragments that several threads hold in full."""
    held = [
        f
        for f in case.observed.fragments
        if f.copies > 1 and f.elements * f.copies > 4 * case.observed.threads
    ]
    if not held:
        return None
    worst = max(held, key=lambda f: f.values)
    return Cause(
        "replicated_fragment", "schedule", f"each element of {worst.name} is held by {worst.copies} threads",
        "shared memory for what all threads read, or a fragment that both dimensions of a tile use",
        (Evidence("values a thread", str(worst.values)), Evidence("copies", str(worst.copies))), 0.2,
        worst.line,
    )  # fmt: skip


def bank_conflicts(case: Case) -> Cause | None:
    """A shared tile whose accesses take more passes over the banks than they need."""
    worst = max(case.observed.shared, key=lambda tile: tile.wavefronts, default=None)
    if worst is None or worst.wavefronts < 1.5:
        return None
    ways = worst.wavefronts
    return Cause(
        "bank_conflicts", "latency",
        f"accesses to {worst.name} take {ways:.2g} passes over the banks where one would do",
        "no layout of your own (the compiler's has none), or a row length that is a multiple of 16 bytes",
        (Evidence("passes for each ideal one", f"{ways:.2f}"),
         Evidence("swizzled", "yes" if worst.swizzled else "no")), min(0.5, 1 - 1 / ways), worst.line,
    )  # fmt: skip


def broken_vectors(case: Case) -> Cause | None:
    """A swizzle of single elements: fewer conflicts, and several accesses where a vector would do."""
    if not case.swizzles:
        return None
    worst = max(case.swizzles, key=lambda each: each.instructions - each.plain_instructions)
    ahead = worst.passes < worst.plain_passes
    verdict = "it still takes fewer passes over the banks" if ahead else "and saves no passes over the banks"
    widths = f"accesses of {worst.plain_width} bytes into ones of {worst.width}"
    return Cause(
        "swizzle_breaks_vectors", "latency", f"the swizzle of {worst.tile} turns {widths}; {verdict}",
        "a swizzle that moves 16 bytes at a time (T.make_swizzled_layout, or no layout of your own)",
        (Evidence("passes with it", str(worst.passes)), Evidence("passes without", str(worst.plain_passes)),
         Evidence("instructions with it", str(worst.instructions)),
         Evidence("instructions without", str(worst.plain_instructions))),
        0.15 if ahead else 0.35, worst.line,
    )  # fmt: skip


STATIC: tuple[Row, ...] = (
    missing_instruction, padded_tile, small_tile, no_overlap, shallow_pipeline, uncoalesced, scalar_copies,
    little_in_flight, low_occupancy, spills, few_blocks, replicated, bank_conflicts,
    broken_vectors,
)  # fmt: skip
