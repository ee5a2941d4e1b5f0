"""What pictures say of a kernel, beside a card: `python tests/device/check_pictures.py`.

Blocks that a multiprocessor holds, by our rules and by the driver's own count of the same code; exits
non-zero where they differ. Then, by `ncu`, kernels of one block without asynchronous copies, which are in
none of these counters: sectors of global memory and passes over the banks, ours of every turn of every loop
and the card's. A difference there is shown, no failure: what nvcc joins or leaves out is no access of ours.
Needs CuPy and `ncu`.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.kernels import add_kernel, gemm_kernel, reduce_kernel, softmax_kernel
from tilebench.errors import TileError
from tilebench.pictures.collect import accesses, occupancy

TILES = {"M": 64, "N": 64, "K": 128, "block_M": 64, "block_N": 64, "num_stages": 1, "threads": 128}
ONE_BLOCK: dict[str, tuple[Any, dict[str, Any]]] = {
    "gemm float16": (gemm_kernel, TILES),
    "gemm float32": (gemm_kernel, {**TILES, "dtype": "float32"}),
    "softmax": (softmax_kernel, {"M": 4, "N": 1000}),
    "add": (add_kernel, {"M": 64, "N": 128}),
    "reduce": (reduce_kernel, {"M": 16, "N": 1024}),
}
SHAPES: dict[str, tuple[Any, dict[str, Any]]] = {
    **ONE_BLOCK,
    "gemm in a ring": (gemm_kernel, {**TILES, "M": 512, "N": 512, "K": 512, "num_stages": 4}),
    "gemm of large tiles": (gemm_kernel, {"M": 512, "N": 512, "K": 512, "num_stages": 3}),
}
COUNTERS = {
    ("global", False): "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    ("global", True): "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    ("shared", False): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    ("shared", True): "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
}


def kernel_of(name: str, **values: Any) -> Any:
    function, own = SHAPES[name]
    return function.using(target="cuda").kernel((), {**own, **values})


def launch() -> None:
    """Each kernel of one block once, in order: what runs under `ncu`."""
    for name in ONE_BLOCK:
        kernel = kernel_of(name)
        kernel(*kernel.random_arguments())


def residencies() -> int:
    """How many residencies are not the driver's."""
    wrong = 0
    print("blocks a multiprocessor holds: ours, the driver's")
    for name in SHAPES:
        for threads in (64, 128, 256):
            try:
                kernel = kernel_of(name, threads=threads)
                code: Any = kernel.executable()
            except TileError as error:
                print(f"  {name} of {threads} threads: refused, {error.message}")
                continue
            entry, block, shared = code.build.data["launches"][0]
            function = code.modules.function(0, entry)
            if shared:
                function.allow_shared(shared)
            found = occupancy(kernel.compilation, kernel.resources)
            ours = found.blocks if found is not None else 0
            theirs = function.blocks_per_sm(block, shared)
            wrong += ours != theirs
            print(f"  {name} of {threads} threads: {ours} {theirs}{' DIFFERS' if ours != theirs else ''}")
    return wrong


def counted() -> list[dict[str, str]]:
    """The card's counters of each launch, in order."""
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base"]
    command += ["--metrics", ",".join(COUNTERS.values()), sys.executable, __file__, "--launch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if not lines:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    head, _, *rows = csv.reader(lines)
    return [dict(zip(head, row, strict=True)) for row in rows]


def compared() -> None:
    """Our counts of each kernel of one block, and the card's."""
    print("sectors and passes of one block: ours, the card's")
    for name, card in zip(ONE_BLOCK, counted(), strict=True):
        found = [one.access for one in accesses(kernel_of(name).compilation, whole=True)]
        for (scope, written), counter in COUNTERS.items():
            ours = sum(one.passes for one in found if (one.scope, one.written) == (scope, written))
            theirs = round(float(card[counter].replace(",", "")))
            way = "stored" if written else "loaded"
            print(f"  {name}, {scope} {way}: {ours} {theirs}{' differs' if ours != theirs else ''}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launch", action="store_true")
    if parser.parse_args().launch:
        launch()
        return 0
    wrong = residencies()
    compared()
    print(f"{wrong} residencies differ")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
