"""Instructions of NVIDIA's cards that the compiler chooses and plans like any other.

A row in `machines.py` says what passes ask of one. A module here has the code behind its name: the words
of one thread that it becomes, and the lowerings of operations to them. What the words do in the simulator
stands beside it, their text in `text/`.
"""

from __future__ import annotations

from ....ir import Word
from ....passes.threads.lowering import Lowering
from . import cp_async, mma, tma, wgmma

_CLASSES = (*cp_async.CLASSES, *mma.CLASSES, *tma.CLASSES, *wgmma.CLASSES)
WORDS: tuple[tuple[str, Word], ...] = tuple((cls.word, Word(cls)) for cls in _CLASSES)
VALUES: tuple[type, ...] = wgmma.VALUES
LOWERINGS: tuple[Lowering, ...] = (
    *cp_async.LOWERINGS, *mma.LOWERINGS, *tma.LOWERINGS, *wgmma.LOWERINGS,
)  # fmt: skip
