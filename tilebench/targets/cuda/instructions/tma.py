"""The tensor memory accelerator (sm_90 on): boxes of arrays to shared memory, moved by nobody's threads.

One thread names a box of a global array, which the launch has described to the card in a tensor map
(`tensor_maps.py`), and a place in shared memory. The copy goes on by itself and completes on a barrier, which
counts its bytes. What of the box lies outside of the array arrives as zeros.
"""

from __future__ import annotations

from ....ir import OpStmt, Region, attribute, node, reads, writes
from ....language.stages import THREAD

NAME = "tma"


@node
class TmaLoad(OpStmt):
    """`T.tma_load(A_s[i : i + 8192], A[m : m + 128, k : k + 64], full[v : v + 1], swizzle=128)`: a box of A.

    It lies in rows, the last dimension fastest; with a swizzle its rows are of so many bytes, and their units
    of 16 bytes change places as in a layout's atoms of that width. All its bytes are counted on the barrier.
    """

    word = "tma_load"
    stages = THREAD
    dst: Region = writes()
    src: Region = reads()
    barrier: Region = reads()
    swizzle: int = attribute(default=0)


CLASSES = (TmaLoad,)
