"""Python's collector of cycles rests while trees are made.

A compilation makes tens of thousands of nodes that stay and hold no cycles. Looking through them again and
again took a sixth of its time (a GEMM to CUDA text: 19.3 ms in the mean for 23.1 on a busy machine, with one
pass at the end), and more in a process with a large heap. The collector goes on right after, and looks at
what is new once.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collector_rests() -> Generator[None]:
    """No collection of cycles inside; where it rests already, or never runs, that is left as it is.

    It rests for all threads: what is done inside takes milliseconds.
    """
    runs = gc.isenabled()
    if runs:
        gc.disable()
    try:
        yield
    finally:
        if runs:
            gc.enable()
