"""The picture that a bench shows now: changed by any thread, published at most ten times a second."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..runtime.latest import RateLimit, Status, Ticket
from .counting import Counting
from .history import MoveHistory
from .picture import Picture
from .wish import Wish

Publish = Callable[[Picture], object]


class PictureBoard:
    """Holds a picture. `status` says where the newest wish stands; `publish` is called from any thread.

    Who decides by the picture and changes something by that holds `guard` meanwhile.
    """

    def __init__(
        self, picture: Picture, counting: Counting, status: Callable[[], Status], publish: Publish | None
    ) -> None:
        self.guard = threading.RLock()
        self.counting = counting
        self._picture = picture
        self._status = status
        self._first = threading.Event()
        self._rate: RateLimit[Picture] = RateLimit(publish or (lambda _: None))

    @property
    def picture(self) -> Picture:
        """What is shown now."""
        with self.guard:
            return self._picture

    def show(
        self,
        *,
        ticket: Ticket[Wish] | None = None,
        history: Callable[[MoveHistory], MoveHistory] | None = None,
        **fields: Any,
    ) -> None:
        """Change fields of the picture, and its history by a function of the one that is there.

        Nothing changes where nobody wants `ticket` any more. That is asked with the guard held: a stop drops
        its ticket first and changes the picture after, so nothing of a stopped answer is left as running.
        """
        with self.guard:
            if ticket is not None and ticket():
                return
            if history is not None:
                fields["history"] = history(self._picture.history)
            fields = self.counting.on(fields.get("wish", self._picture.wish), fields)
            # Two threads may come here in another order than they spoke in: what was said last holds.
            self._picture = replace(self._picture, status=self._status(), **fields)
            picture = self._picture
        # Not under the guard: who draws holds a lock of its own, and asks for this one.
        self._rate.offer(picture)
        if picture.record is not None or picture.problem is not None:
            self._first.set()

    def leave(self, state: str) -> None:
        """The newest move, where its answer is not complete, gets this state."""
        self.show(history=lambda moves: moves.left(state))

    def flush(self) -> None:
        """Publish what was kept back for the rate."""
        self._rate.flush()

    def settle(self, timeout: float) -> bool:
        """Wait for the first record or problem; False after `timeout` seconds."""
        return self._first.wait(timeout)

    def close(self) -> None:
        """Publish nothing more."""
        self._rate = RateLimit(lambda _: None)
