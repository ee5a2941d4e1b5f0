"""Step 6: running. The text and a loop over blocks, compiled by the system's C compiler.

Each thread of a block is a thread of this machine; the blocks run one after the other.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilebench.errors import TargetError
from tilebench.targets import Build

from .machine import WARP

# A product and a sum stay two roundings, as the simulator and NumPy compute them.
FLAGS = ("-std=gnu11", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-pthread", "-Wall", "-Werror",
         "-Wno-unused-function", "-Wno-unknown-pragmas")  # fmt: skip
_HOST = """
struct tb_job {{ void** arrays; const int* grid; int thread; }};
static void* tb_run(void* given) {{
  const struct tb_job* job = given;
  tb_thread = job->thread;
  for (tb_block[2] = 0; tb_block[2] < job->grid[2]; ++tb_block[2])
    for (tb_block[1] = 0; tb_block[1] < job->grid[1]; ++tb_block[1])
      for (tb_block[0] = 0; tb_block[0] < job->grid[0]; ++tb_block[0]) {{
        {entry}({arrays});
        tb_sync_threads();
      }}
  return 0;
}}
int tb_launch(void** arrays, const int* grid) {{
  pthread_t threads[{threads}];
  struct tb_job jobs[{threads}];
  pthread_barrier_init(&tb_meeting, 0, {threads});
  for (int first = 0; first < {threads}; first += {warp}) {{
    const int left = {threads} - first;
    pthread_barrier_init(&tb_warp_meeting[first / {warp}], 0, left < {warp} ? left : {warp});
  }}
  for (int i = 0; i < {threads}; ++i) {{
    jobs[i] = (struct tb_job){{arrays, grid, i}};
    if (pthread_create(&threads[i], 0, tb_run, &jobs[i])) return 1;
  }}
  for (int i = 0; i < {threads}; ++i) pthread_join(threads[i], 0);
  return 0;
}}
"""


def compiler() -> str | None:
    """The system's C compiler."""
    return shutil.which("cc")


def available() -> tuple[bool, str]:
    """Whether kernels can run here, and why not."""
    return (True, "") if compiler() else (False, "there is no C compiler `cc` on this machine")


class ToyExecutable:
    """A compiled kernel, called with arrays in host memory in parameter order; returns when it has run."""

    def __init__(self, build: Build) -> None:
        self.grid = (ctypes.c_int * 3)(*(*build.data["grid"], 1, 1, 1)[:3])
        self.count = len(build.function.params)
        self.launch = _compiled(build).tb_launch

    def __call__(self, arrays: Sequence[Any]) -> None:
        pointers = (ctypes.c_void_p * self.count)(*[array.pointer for array in arrays])
        if self.launch(pointers, self.grid):
            raise TargetError("the machine gave no more threads")


def _compiled(build: Build) -> ctypes.CDLL:
    cc = compiler()
    if cc is None:
        raise TargetError("kernels for toy cannot run here", hint=available()[1])
    arrays = ", ".join(f"job->arrays[{k}]" for k in range(len(build.function.params)))
    host = _HOST.format(entry=build.data["entry"], arrays=arrays, threads=build.data["threads"], warp=WARP)
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "kernel.c", Path(folder) / "kernel.so"
        source.write_text(build.texts["toy_c"] + host, encoding="utf-8")
        command = [cc, *FLAGS, "-o", str(library), str(source), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TargetError("the C compiler refuses the text", found="{said}", said=done.stderr[:2000])
        return ctypes.CDLL(str(library))


def load(build: Build) -> ToyExecutable:
    """The executable of a build whose text has been made."""
    return ToyExecutable(build)
