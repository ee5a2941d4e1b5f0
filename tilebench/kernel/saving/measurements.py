"""A script that repeats a measurement by the same method on the same inputs, beside what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import OptionError
from ...record import BenchRecord
from .files import kernel_files
from .plan import plan_of

if TYPE_CHECKING:
    from ...record import RunRecord
    from ..kernel import Kernel


def save_measurement(
    kernel: Kernel,
    runs: Sequence[RunRecord],
    path: str | Path,
    *,
    tuned: Sequence[str] = (),
    overwrite: bool = False,
) -> tuple[Path, ...]:
    """See `Kernel.save_measurement`; `runs` are of one position."""
    from ...record_files import packed_record, write_files

    path = Path(path).with_suffix(".py")
    if not runs or not runs[-1].rounds:
        raise OptionError(
            "there is no measurement of {name} to repeat", name=kernel.name,
            hint="measure it first: kernel.bench(), or Measure on the bench",
        )  # fmt: skip
    last, record = runs[-1], path.with_suffix(".tbz")
    seed = "" if last.seed is None else f", seed={last.seed}"
    main = (
        "# As it was recorded: rounds, seconds for all rounds of a run"
        + ", seed of the inputs." * bool(seed),
        f"METHOD = dict(rounds={last.rounds}, seconds={last.budget!r}{seed})",
        "",
        'if __name__ == "__main__":',
        "    from tilebench.profile.reproduced import reproduced",
        "",
        f'    recorded = tilebench.open_record(HERE / "{record.name}").runs',
        "    made = kernel(sys.argv[1] if len(sys.argv) > 1 else TARGET)",
        "    # As many runs as were recorded: one says less of itself than it seems to.",
        "    print(reproduced(recorded, [made.bench(**METHOD) for _ in recorded]))",
    )
    files = kernel_files(plan_of(kernel, tuned), path, main)
    compiled = kernel.record(("source",))
    files[record] = packed_record(BenchRecord(compiled, tuple(runs)))
    return write_files(files, overwrite)
