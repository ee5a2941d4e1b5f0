"""The row `threaded`: from tile statements to the code of one thread."""

from __future__ import annotations

from .context import StageRow
from .forms import THREADED_FORMS
from .insert_barriers import insert_barriers
from .map_shared import map_shared
from .reduce_scratch import reduce_scratch
from .threads.to_threads import to_threads

THREAD_ROW = StageRow(
    "threaded",
    (
        # Scratch of reductions is shared memory like any other: it takes part in the map.
        ("reduce_scratch", reduce_scratch),
        # The map before barriers: two buffers in the same bytes are a hazard.
        ("map_shared", map_shared),
        # Barriers on tile statements, where a whole copy or gemm is one access.
        ("insert_barriers", insert_barriers),
        ("to_threads", to_threads),
    ),
    THREADED_FORMS,
)
