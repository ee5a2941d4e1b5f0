"""Runs of a card for machines without one: `python tests/device/record_runs.py FOLDER` writes four files.

Sweeps of a product and of a softmax, each configuration with four runs and checked, and what their warps do
when, by clocks in the kernels. Those of an H200 are in `notebooks/h200`, where a notebook shows them and
tests replay them. `--compile` compiles all of it and measures nothing: the sweeps then find their code.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import tilebench  # noqa: E402
from tests import kernels  # noqa: E402
from tilebench.record import ClockEvent, RunRecord  # noqa: E402
from tilebench.record_files import save  # noqa: E402

# Events of a file: whole blocks, and of the first as many as there is room for.
MOST_EVENTS = 900
SWEEPS: dict[str, tuple[Any, dict[str, tuple[int, ...]], dict[str, int]]] = {
    "softmax_sweep": (
        kernels.softmax_kernel, {"block_M": (1, 2), "threads": (64, 128, 256, 512)}, {"M": 8192, "N": 2048}
    ),
    "gemm_sweep": (
        kernels.gemm_kernel, {"block_M": (64, 128), "block_N": (64, 128), "num_stages": (2, 3)},
        {"M": 2048, "N": 2048, "K": 2048, "block_K": 64, "threads": 128},
    ),
}  # fmt: skip
TIMELINES: dict[str, tuple[Any, dict[str, int]]] = {
    "gemm_timeline": (
        kernels.gemm_kernel,
        {"M": 1024, "N": 1024, "K": 512, "block_M": 128, "block_N": 128, "num_stages": 3, "threads": 128},
    ),
    "softmax_timeline": (kernels.softmax_kernel, {"M": 4096, "N": 2048}),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    if options.compile:
        compile_all(options.target)
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, (kernel, domains, values) in SWEEPS.items():
        start = time.perf_counter()
        made = tilebench.sweep(kernel, domains, with_=values, target=options.target, progress=False)
        a_minute = 60 * len(made.rows) / (time.perf_counter() - start)
        keep(made.record, options.folder / f"{name}.tbz")
        print(made.table(), f"\n{a_minute:.0f} configurations a minute, all in all", flush=True)
    for name, (kernel, values) in TIMELINES.items():
        run = kernel.using(target=options.target)(**values).timeline()
        keep(replace(run, events=whole_blocks(run.events)), options.folder / f"{name}.tbz")
    return 0


def compile_all(target: str) -> None:
    """Into the cache."""
    for kernel, values in TIMELINES.values():
        kernel.using(target=target)(**values).reach_code()
    for kernel, domains, values in SWEEPS.values():
        for chosen in itertools.product(*domains.values()):
            kernel.using(target=target)(**values, **dict(zip(domains, chosen, strict=True))).reach_code()


def whole_blocks(events: tuple[ClockEvent, ...]) -> tuple[ClockEvent, ...]:
    """The events of the first blocks, as many as there is room for."""
    kept: list[ClockEvent] = []
    for _, group in itertools.groupby(sorted(events, key=lambda e: e.block), key=lambda e: e.block):
        block = list(group)
        if kept and len(kept) + len(block) > MOST_EVENTS:
            break
        kept += block
    return tuple(kept[:MOST_EVENTS])


def keep(record: Any, path: Path) -> None:
    """A file that names the kernels' text as it lies in a checkout, wherever that was."""
    save(record, path, overwrite=True)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, body in parts.items():
            archive.writestr(name, body.replace(f"{ROOT}/".encode(), b""))
    kind = "a timeline" if isinstance(record, RunRecord) else "a sweep"
    print(f"{path.name}: {kind} in {path.stat().st_size} bytes", flush=True)


if __name__ == "__main__":
    sys.exit(main())
