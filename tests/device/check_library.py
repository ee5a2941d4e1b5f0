"""The operator library on a card against float64: `python tests/device/check_library.py`.

Every case of `tests/library/cases.py`, small and odd, and the works of `tilebench bench`, with poisoned
results, all elements compared, called as a program does it on torch's tensors; then on a stream of its own
and captured in a graph. A row a case: the largest error as a part of what is allowed. Exits non-zero when one
is wrong. `--small` leaves the works out, `--only WORD` takes what has the word in its name, `--past 1` has
the cases' arrays start one element past an aligned address, as a slice of a longer tensor does. `--sanitize
memcheck` (or racecheck, synccheck, initcheck) runs the small cases once more under compute-sanitizer.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from tests.device.check_kernels import on_card
from tests.library.cases import CASES, LibraryCase
from tilebench.library import call
from tilebench.library.bench.arrays import Space, compared, made, result_of
from tilebench.library.bench.works import CARD_WORKS, BenchWork


def tensor(array: Any, past: int = 0) -> Any:
    """A host array with its strides on the card, `past` elements behind an aligned address."""
    order = sorted(range(array.ndim), key=lambda k: -array.strides[k])
    moved = on_card(_torch(), np.ascontiguousarray(array.transpose(order)))
    if past:
        room = _torch().empty(moved.numel() + past, dtype=moved.dtype, device="cuda")
        moved = room[past:].view(moved.shape).copy_(moved)
    return moved.permute(*[order.index(k) for k in range(array.ndim)])


def _torch() -> Any:
    import torch

    return torch


def checked(work: BenchWork, arrays: dict[str, Any], out: Any) -> str:
    """Ours on these arrays, three ways, beside float64; the verdict with the largest error."""
    torch = _torch()
    given = [arrays.get(argument.name) for argument in work.operator.arguments]
    before = {name: array.clone() for name, array in arrays.items()}
    poison = 77 if not out.dtype.is_floating_point else float("nan")
    out.fill_(poison)
    call(work.operator, *given, out=out, **work.passed)
    found = compared(Space(torch, "cuda"), work, arrays, out)
    wrong = "" if found.ok else "WRONG"
    if not all(torch.equal(bits(before[name]), bits(array)) for name, array in arrays.items()):
        wrong += " an input was changed"
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        again = call(work.operator, *given, **work.passed)
    stream.synchronize()
    wrong += "" if torch.equal(bits(again), bits(out)) else " another result on a stream"
    graph, kept = torch.cuda.CUDAGraph(), torch.empty_like(out)
    with torch.cuda.graph(graph):
        call(work.operator, *given, out=kept, **work.passed)
    kept.fill_(poison)
    graph.replay()
    torch.cuda.synchronize()
    wrong += "" if torch.equal(bits(kept), bits(out)) else " another result in a graph"
    return f"{wrong or 'ok':10s} {found.ratio:8.3f} of the bound, error {found.error:9.3g}"


def bits(array: Any) -> Any:
    return array.contiguous().view(_torch().uint8)


def as_work(case: LibraryCase) -> BenchWork:
    return BenchWork(str(case), case.name, case.sizes, case.dtype, case.options, case.absent)


def run(works: list[tuple[BenchWork, LibraryCase | None]], past: int) -> int:
    right = 0
    for work, case in works:
        try:
            if case is None:
                space = Space(_torch(), "cuda")
                verdict = checked(work, made(space, work), result_of(space, work))
            else:
                arrays = {name: tensor(array, past) for name, array in case.arrays().items()}
                verdict = checked(work, arrays, tensor(case.result()))
        except Exception as error:
            verdict = f"FAILED {type(error).__name__}: {str(error)[:300]}"
        print(f"{work.name[:70]:70s} {verdict}", flush=True)
        right += verdict.startswith("ok")
    print(f"{right} of {len(works)} right")
    return 0 if right == len(works) else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--sanitize", choices=["memcheck", "racecheck", "synccheck", "initcheck"])
    parser.add_argument("--past", type=int, default=0, help="elements past an aligned address")
    options = parser.parse_args()
    if options.sanitize:
        tool = ["compute-sanitizer", "--tool", options.sanitize, "--error-exitcode", "9"]
        words = [sys.executable, __file__, "--small", "--only", options.only]
        return subprocess.run([*tool, *words], check=False).returncode
    works: list[tuple[BenchWork, LibraryCase | None]] = [(as_work(case), case) for case in CASES]
    works += [] if options.small or options.past else [(work, None) for work in CARD_WORKS]
    return run([(work, case) for work, case in works if options.only in work.name], options.past)


if __name__ == "__main__":
    sys.exit(main())
