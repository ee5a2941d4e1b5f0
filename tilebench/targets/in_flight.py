"""Long work of native code that Ctrl-C does not have to wait for.

A compiler of another maker runs for seconds inside one call, and Python answers an interrupt only between its
own instructions. So the main thread lets another one do the work and waits. Interrupted, it is free at once;
the work goes on, and who asks for it again waits for what is left of it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

# Where waiting cannot be interrupted (Windows) it looks up this often.
LOOK_S = 0.05
_guard = threading.Lock()
_running: dict[object, _Work] = {}


class _Work:
    """One call in a thread of its own, and what came of it."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None

    def work(self, key: object) -> None:
        try:
            self.result = self.run()
        except BaseException as error:
            self.error = error
        finally:
            with _guard:
                _running.pop(key, None)
            self.done.set()

    def wait(self) -> Any:
        while not self.done.wait(LOOK_S):
            pass
        if self.error is not None:
            raise self.error
        return self.result


def _forget() -> None:
    """In a forked copy of the process: its threads are gone, and with them what they worked on."""
    global _guard
    _guard = threading.Lock()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def in_flight(key: object, run: Callable[[], Any]) -> Any:
    """What `run()` gives or raises. The same key asked for while it runs, from any thread, runs it once.

    Only the main thread hands the work to another one, as it alone is interrupted.
    """
    if threading.current_thread() is not threading.main_thread():
        with _guard:
            work = _running.get(key)
        return run() if work is None else work.wait()
    with _guard:
        work = _running.get(key)
        if work is None:
            work = _running[key] = _Work(run)
            # A daemon: at the end of the program nobody waits for a compiler.
            threading.Thread(target=work.work, args=(key,), name="tilebench-step", daemon=True).start()
    return work.wait()
