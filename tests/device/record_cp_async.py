"""What `cp.async` leaves in shared memory on a card: `python tests/device/record_cp_async.py FILE.npz`.

Each thread copies as many bytes of its row as its number says, into memory that was filled before.
`tests/targets/cuda/test_cp_async_recorded.py` holds the simulator to it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cupy
import numpy as np

from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.run.device import describe
from tilebench.targets.cuda.text.prelude import PRELUDE

THREADS = 64
KERNEL = """extern "C" __global__ void copy(const signed char* rows, signed char* found) {{
  __shared__ __align__(16) signed char tile[{threads} * {width}];
  const int tid = threadIdx.x;
  for (int k = 0; k < {width}; ++k) tile[tid * {width} + k] = 90;
  __syncthreads();
  tb_cp_async_{width}(tile + tid * {width}, rows + tid * {width}, tid % ({width} + 1));
  tb_cp_async_commit();
  tb_cp_async_wait<0>();
  __syncthreads();
  for (int k = 0; k < {width}; ++k) found[tid * {width} + k] = tile[tid * {width} + k];
}}
"""


def main(path: str) -> None:
    rng = np.random.default_rng(0)
    saved: dict[str, np.ndarray] = {}
    for width in (4, 8, 16):
        text, _ = PRELUDE.before(KERNEL.format(threads=THREADS, width=width))
        module = cupy.cuda.function.Module()
        module.load(compile_cuda(text, describe(None)).cubin)
        rows = rng.integers(-128, 128, (THREADS, width)).astype(np.int8)
        found = cupy.full((THREADS, width), 7, np.int8)
        module.get_function("copy")((1,), (THREADS,), (cupy.asarray(rows), found))
        saved[f"rows_{width}"], saved[f"found_{width}"] = rows, cupy.asnumpy(found)
    np.savez_compressed(path, **saved)


if __name__ == "__main__":
    main(sys.argv[1])
