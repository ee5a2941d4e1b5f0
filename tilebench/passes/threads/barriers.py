"""Where the threads that carry out a statement meet."""

from __future__ import annotations

from ...ir import Stmt
from ..analysis.thread_groups import barrier
from .emitter import Emitter


def barrier_of(emitter: Emitter, why: str) -> list[Stmt]:
    """The barrier of the threads that work here; nothing for one thread."""
    return barrier(emitter.threads, emitter.barriers, emitter.machine, why)
