"""The row `threaded`: from tile statements to the code of one thread."""

from __future__ import annotations

from functools import partial

from .context import StageRow
from .forms import THREADED_FORMS
from .threaded.allocate_workspaces import allocate_workspaces
from .threaded.insert_barriers import insert_barriers
from .threaded.insert_clocks import insert_clocks
from .threaded.make_barriers import make_barriers
from .threaded.map_shared import map_shared
from .threaded.rotate_steps import rotate_steps
from .threaded.skip_scaling import skip_scaling
from .threaded.wait_for_launch import wait_for_launch
from .threaded.wrap_counters import wrap_counters
from .threads.lowering import Lowerings
from .threads.to_threads import to_threads


def thread_row(lowerings: Lowerings | None = None) -> StageRow:
    """The row with a table of lowerings; None: the built-in ones."""
    return StageRow(
        "threaded",
        (
            # First: their memory takes part in the map, and what is done with them in the search for hazards.
            ("make_barriers", make_barriers),
            # While all threads are still together, and statements are those of a block.
            ("wait_for_launch", wait_for_launch),
            # Memory that operations work in is shared memory like any other: it takes part in the map.
            ("allocate_workspaces", partial(allocate_workspaces, lowerings=lowerings)),
            # The map before barriers: two buffers in the same bytes are a hazard.
            ("map_shared", map_shared),
            # Barriers on tile statements, where a whole copy or gemm is one access.
            ("insert_barriers", insert_barriers),
            # Behind them: waiting for others is told apart from what is done then.
            ("insert_clocks", insert_clocks),
            ("to_threads", partial(to_threads, lowerings=lowerings)),
            # As soon as registers are there.
            ("skip_scaling", skip_scaling),
            # Behind barriers, which it moves with their step; before counters, of which it needs one more.
            ("rotate_steps", rotate_steps),
            # Last: barriers are found by the versions as they are written, `ko % 3`.
            ("wrap_counters", wrap_counters),
        ),
        THREADED_FORMS,
    )


THREAD_ROW = thread_row()
