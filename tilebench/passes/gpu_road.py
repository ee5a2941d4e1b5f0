"""The road of targets with warps and shared memory: `laid_out`, `pipelined`, `threaded`.

A target of that kind names `GPU` in its manifest, or `gpu_road(rows)` with lowerings of its own
instructions; it fills the instruction table of its machine, not a pipeline of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from .context import StageRow
from .forms import LAID_OUT_FORMS, PIPELINED_FORMS
from .laid_out.align_rows import align_rows
from .laid_out.allow_boxes import allow_boxes
from .laid_out.check_tiles import check_tiles
from .laid_out.choose_boxes import choose_boxes
from .laid_out.choose_instructions import choose_instructions
from .laid_out.choose_products import choose_products
from .laid_out.choose_shared import choose_shared
from .laid_out.count_registers import count_registers
from .laid_out.cut_boxes import cut_boxes
from .laid_out.infer_layouts import infer_layouts
from .laid_out.late_sums import late_sums
from .laid_out.open_parts import open_parts
from .laid_out.own_rows import own_rows
from .laid_out.place_operands import place_operands
from .laid_out.spill_elements import spill_elements
from .laid_out.spill_operands import spill_operands
from .laid_out.stage_results import stage_results
from .laid_out.start_sums import start_sums
from .laid_out.store_alike import store_alike
from .pipelined.late_stores import late_stores
from .pipelined.late_waits import late_waits
from .pipelined.make_ring import make_ring
from .thread_road import THREAD_ROW, thread_row
from .threads.lowering import Lowering, with_rows

LAYOUT_ROW = StageRow(
    "laid_out",
    (
        # First: what is a thread's own has no layout, and takes registers as such.
        ("own_rows", own_rows),
        # Behind it, which has one thread store where it can: what is left is stored by several.
        ("store_alike", store_alike),
        # Before anything is made of tiles that no thread or block can have.
        ("check_tiles", check_tiles),
        # First of the instructions those that ask more of tiles, and of each other.
        ("choose_products", choose_products),
        # Before others look at copies in boxes: what lies in registers reaches none by itself.
        ("stage_results", stage_results),
        # Behind products: what they read decides which copies go in boxes.
        ("choose_boxes", choose_boxes),
        # Then the others: a row says where operands may lie and in which fragments.
        ("choose_instructions", choose_instructions),
        # Before inference: the copies it inserts take part in it.
        ("spill_operands", spill_operands),
        # What is left of a fragment's parts after that are plain loops.
        ("open_parts", open_parts),
        # After it: those loops are over whole fragments, and what others index stays where it can.
        ("spill_elements", spill_elements),
        # Of loops as they will be; the inference sees vectors where rows begin.
        ("align_rows", align_rows),
        # Then a fill that it makes superfluous takes no part in the inference.
        ("start_sums", start_sums),
        # Before it: copies see which layouts are given, and how narrow those make them.
        ("place_operands", place_operands),
        # Behind every layout that is given: a copy in boxes needs one of its own kind.
        ("allow_boxes", allow_boxes),
        ("infer_layouts", infer_layouts),
        # After it, which says between which lanes a row is added up.
        ("late_sums", late_sums),
        # After it: conflicts are counted on the addresses that threads really form.
        ("choose_shared", choose_shared),
        # Layouts say how a tile is cut into boxes.
        ("cut_boxes", cut_boxes),
        # Layouts say how many registers of a thread a fragment takes.
        ("count_registers", count_registers),
    ),
    LAID_OUT_FORMS,
)
RING_ROW = StageRow(
    "pipelined",
    (
        ("make_ring", make_ring),
        # Behind it, which makes the waits: of those for products that stand alone, each goes where it is
        # needed.
        ("late_waits", late_waits),
        # Behind it too: those for stores of tiles.
        ("late_stores", late_stores),
    ),
    PIPELINED_FORMS,
)

GPU: tuple[StageRow, ...] = (LAYOUT_ROW, RING_ROW, THREAD_ROW)


def gpu_road(extra: Iterable[Lowering]) -> tuple[StageRow, ...]:
    """The road of a target that brings lowerings of its own besides the built-in ones."""
    return LAYOUT_ROW, RING_ROW, thread_row(with_rows(extra))
