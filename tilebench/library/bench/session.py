"""One work in the measuring child: a crash, a hang or a wild store costs a row and not the run."""

from __future__ import annotations

from ...errors import TileError
from ...runtime.job import Job
from ...runtime.worker import Worker, default_worker
from .run import OURS, BenchMethod, BenchRow, failed
from .works import BenchWork

# Compiling all contenders, their times, and the comparison.
LIMIT_S = 600.0


def measured(
    work: BenchWork,
    target: str | None = None,
    against: tuple[str, ...] = (),
    method: BenchMethod | None = None,
    worker: Worker | None = None,
) -> list[BenchRow]:
    """The rows of a work: ours first, then one for each peer. What ends the child is ours to explain."""
    job = Job(
        f"{__package__}.run:measure_work", (work, target, against, method or BenchMethod()),
        name=f"timing {work.name}",
    )  # fmt: skip
    try:
        return (worker or default_worker()).call(job, timeout=LIMIT_S)
    except TileError as error:
        return [BenchRow(failed(work, OURS, target or "", error.message, {}))]


__all__ = ["measured"]
