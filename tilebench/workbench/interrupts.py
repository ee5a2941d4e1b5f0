"""Jupyter's stop button, for work that runs on a bench's own thread.

The button sends SIGINT. While a cell runs that is a `KeyboardInterrupt` in the cell, and the benches are
told when the cell has ended with it. Between cells ipykernel ignores the signal: it puts back the handler
that was there before each message, so that is where ours goes.
"""

from __future__ import annotations

import signal
import threading
from typing import Any

from .registry import open_benches


def stop_all() -> None:
    """Stop the work of every open bench; each says so, and can go on."""
    for bench in open_benches():
        bench.stop()


def _on_signal(*_: object) -> None:
    # A handler may come between any two steps of the main thread, which may hold a lock that a bench needs.
    threading.Thread(target=stop_all, name="tilebench-stop", daemon=True).start()


def _after_cell(result: Any) -> None:
    if isinstance(result.error_in_exec or result.error_before_exec, KeyboardInterrupt):
        stop_all()


def watch(shell: Any) -> None:
    """Listen to the stop button of a shell; once is enough, more do nothing."""
    callbacks: list[Any] = shell.events.callbacks.get("post_run_cell", [])
    if _after_cell not in callbacks:
        shell.events.register("post_run_cell", _after_cell)
    kernel: Any = getattr(shell, "kernel", None)
    # Only where nobody else listens: another handler has its reasons.
    if getattr(kernel, "saved_sigint_handler", None) is signal.SIG_IGN:
        kernel.saved_sigint_handler = _on_signal


def unwatch(shell: Any) -> None:
    """Stop listening."""
    if _after_cell in shell.events.callbacks.get("post_run_cell", []):
        shell.events.unregister("post_run_cell", _after_cell)
    kernel: Any = getattr(shell, "kernel", None)
    if getattr(kernel, "saved_sigint_handler", None) is _on_signal:
        kernel.saved_sigint_handler = signal.SIG_IGN
