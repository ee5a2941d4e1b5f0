"""A bench's timeline: recorded when it is asked for, beside what the bench does, at the position of then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import TileError
from ..record import RunRecord
from .wish import Wish

if TYPE_CHECKING:
    from ..runtime.latest import Ticket
    from .subject import Subject


@dataclass(frozen=True)
class ClocksShown:
    """`state` is `recording`, `done` or `failed` (`why` says so); `config` is the position it is of."""

    state: str
    target: str
    config: Mapping[str, Any]
    run: RunRecord | None = None
    why: str = ""


class BenchClocks:
    """Records timelines for one bench: on the card where it is here, in the simulator's steps where not."""

    def __init__(self, subject: Subject, *, shown: Callable[[ClocksShown], None]) -> None:
        self.subject = subject
        self._shown = shown
        self._guard = threading.Lock()
        self._cancel = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, wish: Wish, *, inline: bool) -> None:
        """Record at a position; nothing while another recording goes on."""
        with self._guard:
            if self._thread is not None and self._thread.is_alive():
                return
            self._cancel = threading.Event()
            self._thread = threading.Thread(
                target=self._record, args=(wish, self._cancel), name="tilebench-bench-clocks", daemon=True
            )
            self._thread.start()
        if inline:
            self._thread.join()

    def stop(self) -> None:
        """End a recording; what was shown before is gone, for it said that it was recording."""
        self._cancel.set()

    def _record(self, wish: Wish, cancel: threading.Event) -> None:
        from ..kernel.measuring.stepped import steps
        from ..runtime.cancel import Cancelled

        target = wish.target or ""
        self._shown(ClocksShown("recording", target, wish.config))
        try:
            kernel = self.subject.make(wish)
            target = kernel.target
            here = kernel.compilation.manifest.available()[0]
            run = kernel.timeline() if here else steps(kernel, cancel=cancel)
        except Cancelled:
            self._shown(ClocksShown("failed", target, wish.config, why="stopped"))
        except TileError as error:
            self._shown(ClocksShown("failed", target, wish.config, why=error.message))
        except Exception as error:
            fault = f"a fault of tilebench: {type(error).__name__}: {error}"
            self._shown(ClocksShown("failed", target, wish.config, why=fault))
        else:
            state = "failed" if run.failure else "done"
            self._shown(ClocksShown(state, target, wish.config, run, run.failure))


def rounds_told(ticket: Ticket[Wish], number: int, repeats: int) -> Callable[[Any], None]:
    """What the measuring child says of run `number` of `repeats`, as rounds of all runs."""

    def progress(said: Any) -> None:
        if isinstance(said, dict):
            done, rounds = (int(said.get(name, 0)) for name in ("round", "rounds"))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
            ticket.phase("measuring", number * rounds + done, repeats * rounds)

    return progress
