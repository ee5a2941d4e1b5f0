"""`mma` and `ldmatrix`: products of a warp by the tensor cores (sm_75 on), and loads of whole matrices."""

from __future__ import annotations

from ....ir import OpStmt, Region, Stmt, accumulates, attribute, node, reads, writes
from ....language.gemm import Gemm
from ....language.stages import THREAD
from ....passes.laid_out.choose_instructions import row_of
from ....passes.threads.atoms import gemm_by_atoms
from ....passes.threads.emitter import Emitter
from ....passes.threads.lowering import Lowering
from ..tensor_cores import MMA


@node
class Mma(OpStmt):
    """`T.mma(c[0 : 4], a[0 : 8], b[0 : 4], shape="m16n8k16")`: C += A B of a warp, from its registers."""

    word = "mma"
    stages = THREAD
    c: Region = accumulates()
    a: Region = reads()
    b: Region = reads()
    shape: str = attribute()


@node
class LoadMatrix(OpStmt):
    """`T.ldmatrix(a[0 : 8], A_s[i : i + 8])`: matrices of 8 rows of 16 bytes from shared memory.

    `src` is the row that this thread names: thread t that of row `t % 8` of matrix `t // 8`. It gets, of each
    matrix, 4 bytes of row `t // 4`; with `turned`, of 16-bit elements, those of the transposed matrix. There
    are 1, 2 or 4 matrices, as many as `dst` has registers of 32 bits.
    """

    word = "ldmatrix"
    stages = THREAD
    dst: Region = writes()
    src: Region = reads()
    turned: bool = attribute(default=False)


CLASSES = (Mma, LoadMatrix)


def gemm(emitter: Emitter, statement: Gemm) -> list[Stmt]:
    """A product in tiles of one instruction of a warp."""
    row = row_of(statement, emitter.machine)
    shape = "m{}n{}k{}".format(*row.shape)

    def step(c: Region, a: Region, b: Region) -> Stmt:
        return Mma(c, a, b, shape=shape)

    def load(dst: Region, src: Region, turned: bool) -> Stmt:
        return LoadMatrix(dst, src, turned=turned)

    return gemm_by_atoms(emitter, statement, row, step, load)


LOWERINGS = (Lowering(Gemm, MMA, gemm),)
