"""What a function that runs in the measuring child may ask and say. In any other process: nothing happens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .cancel import Cancelled


@dataclass(frozen=True)
class Job:
    """One call for the measuring child.

    `function` is `"module:function"`, or a callable, which travels by value (cloudpickle) when no
    module holds it under its name. Arguments are plain data, NumPy arrays and callables. Arrays
    arrive as copies with the same strides and the same address modulo 256; two arrays that share
    memory share none there. `name` is what messages call the job.
    """

    function: str | Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict[str, Any])
    name: str = ""

    @property
    def title(self) -> str:
        if self.name:
            return self.name
        return (
            self.function if isinstance(self.function, str) else getattr(self.function, "__name__", "the job")
        )


# Set by the child's main loop; None elsewhere.
_say: Callable[[object], None] | None = None
_stop = threading.Event()


def connect(say: Callable[[object], None] | None) -> threading.Event:
    """Give this process its way to the parent; the event that asks the running job to stop."""
    global _say
    _say = say
    return _stop


def in_child() -> bool:
    """Is this the measuring child?"""
    return _say is not None


def report(value: object) -> None:
    """Send a progress value (samples so far, ...) to `on_progress` of the caller. Plain data, small."""
    if _say is not None:
        _say(value)


def cancelled() -> bool:
    """Has the caller lost interest? A job that looks now and then keeps its child warm by stopping itself."""
    return _stop.is_set()


def stop_if_cancelled() -> None:
    """Raise `Cancelled` when the caller has lost interest."""
    if _stop.is_set():
        raise Cancelled("the measurement was stopped")
