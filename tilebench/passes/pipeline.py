"""The ordered road every target shares, visible in one place.

`tile` comes from the front end. A target's road follows `bounded`, or a later row it borrows from
`GPU`. The reason for an order stands on its row.
"""

from __future__ import annotations

from .bounded.bound_accesses import bound_accesses
from .bounded.check_packed import check_packed
from .bounded.copy_aside import copy_aside
from .bounded.find_padding import find_padding
from .bounded.inline_indices import inline_indices
from .bounded.name_reads import name_reads
from .bounded.name_values import name_values
from .bounded.open_placed import open_placed
from .bounded.place_elements import place_elements
from .bounded.plan_pipeline import plan_pipeline
from .bounded.plan_roles import plan_roles
from .context import StageRow
from .forms import BOUNDED_FORMS, SCHEDULED_FORMS, TILE_FORMS
from .scheduled.apply_schedule import apply_schedule
from .scheduled.make_clusters import make_clusters
from .scheduled.make_persistent import make_persistent
from .scheduled.split_loops import split_loops
from .scheduled.stage_operands import stage_operands
from .scheduled.tell_notes import tell_notes
from .scheduled.widen_operands import widen_operands

COMMON: tuple[StageRow, ...] = (
    StageRow(
        "scheduled",
        (
            # First: nothing else has to know of them.
            ("tell_notes", tell_notes),
            # Staging first: the tiles it makes can be addressed by the schedule like any other.
            ("stage_operands", stage_operands),
            # What has been staged may be of 4 bits; its tile of bytes can be addressed too.
            ("widen_operands", widen_operands),
            ("apply_schedule", apply_schedule),
            # Before blocks are counted: a tile has several from here on.
            ("split_loops", split_loops),
            # A block has its number in the grid before clusters take one place of it after another.
            ("make_clusters", make_clusters),
            # Behind them, which say how many blocks stay and in which order they take tiles.
            ("make_persistent", make_persistent),
        ),
        SCHEDULED_FORMS,
        # A schedule addresses what stands in any of the launches.
        whole=True,
    ),
    StageRow(
        "bounded",
        (
            # Before names are replaced: an integer that a variable held is one of them then.
            ("name_values", name_values),
            # Proofs read index expressions, not the names a person gave their parts.
            ("inline_indices", inline_indices),
            # Before anything is proved or planned of bounds and starts that would not stay what they are.
            ("name_reads", name_reads),
            # Before bounds are tested: each element of a loop has a test of its own.
            ("open_placed", open_placed),
            # Extents before the plan: a copy can run ahead only when its box is known.
            ("bound_accesses", bound_accesses),
            # Behind the tests, which are of the index that was written.
            ("place_elements", place_elements),
            # Extents say which copies overlap; tiles that they go through are tiles like others from here on.
            ("copy_aside", copy_aside),
            # As soon as it is known which copies reach past their arrays, and before a target's own passes.
            ("find_padding", find_padding),
            # As soon as extents are known, for every target: blocks must not share a byte.
            ("check_packed", check_packed),
            ("plan_pipeline", plan_pipeline),
            # Behind it, which says which copies run ahead: those are a producer's.
            ("plan_roles", plan_roles),
        ),
        BOUNDED_FORMS,
    ),
)

__all__ = ["COMMON", "TILE_FORMS"]
