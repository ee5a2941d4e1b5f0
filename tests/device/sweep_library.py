"""Parameters of an operator's schedule tried on a card, fastest first: what its schedule files are chosen by.

    python tests/device/sweep_library.py matmul M=4096 N=4096 K=4096 b_order=1 / block_M=128 block_N=128,256 \
        block_K=32,64 num_stages=3,4 threads=256 panels=8

Before the `/` stand sizes and options of the problem (dtype=float16 by default), behind it values of each
parameter. Without words each line of the input is a sweep; `--seconds=3` is the time of one. All
combinations are compiled at once, compared with float64, and timed in turn with cold caches.
"""

from __future__ import annotations

import itertools
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tilebench.errors import TileError
from tilebench.library import operator
from tilebench.library.bench.arrays import compared, made, result_of, space_on
from tilebench.library.bench.works import BenchWork
from tilebench.library.calls import view_of
from tilebench.profile.torch_card import torch_card

SECONDS = 12.0
SYMBOLIC: dict[str, tuple[str, ...]] = {}
ROUNDS = 5


def value_of(text: str) -> Any:
    words = {"True": True, "False": False}
    return words[text] if text in words else int(text) if text.lstrip("-").isdecimal() else text


def problem_of(words: list[str]) -> BenchWork:
    given = dict(word.split("=") for word in words[1:])
    found = operator(words[0])
    dtype = given.pop("dtype", "float16")
    absent = tuple(name for name in given.pop("absent", "bias,residual").split(",") if name)
    own = {argument.name for argument in found.arguments}
    absent = tuple(name for name in absent if name in own and words[0] == "matmul")
    # Sizes that come with the call, to see what that costs.
    symbolic = tuple(name for name in given.pop("symbolic", ",".join(found.symbolic)).split(",") if name)
    SYMBOLIC[words[0]] = symbolic
    values = {name: value_of(text) for name, text in given.items()}
    sizes = {dim: values.pop(dim) for dim in found.dims}
    return BenchWork(" ".join(words), words[0], sizes, dtype, values, absent)


class Candidate:
    """A kernel of one set of parameters, on the sweep's arrays."""

    def __init__(self, work: BenchWork, parameters: dict[str, Any]) -> None:
        self.work, self.parameters = work, parameters
        self.why, self.times = "", []

    def build(self) -> None:
        problem, found = self.work.problem, self.work.operator
        values = {dim: None if dim in SYMBOLIC[found.name] else size for dim, size in problem.sizes.items()}
        values |= {"dtype": problem.dtype, **problem.options, **found.fixed, **self.parameters}
        known = found.kernel.signature.parameters
        try:
            function = found.kernel.using(target="cuda")
            self.kernel = function.kernel((), {k: v for k, v in values.items() if k in known})
            self.resources = self.kernel.resources
        except TileError as error:
            self.why = error.message

    def place(self, space: Any, arrays: dict[str, Any], out: Any) -> None:
        problem, found = self.work.problem, self.work.operator
        shapes = found.seen(problem, self.kernel.parameters)
        seen = {a.name: view_of(a, problem, None, shapes)(arrays[a.name]) for a in self.work.given()}
        seen[found.result.name] = view_of(found.result, problem, None, shapes)(out)
        for record in self.kernel.arguments:
            if record.name not in seen and not record.is_scalar:
                seen[record.name] = space.empty(record.extents, record.dtype)
        self.given = [seen[record.name] for record in self.kernel.arguments]

    def __call__(self) -> None:
        self.kernel(*self.given)

    @property
    def seconds(self) -> float:
        return sorted(self.times)[len(self.times) // 2] if self.times else float("inf")

    def __str__(self) -> str:
        words = " ".join(f"{name}={value}" for name, value in self.parameters.items())
        if not self.times:
            return f"{words}: {self.why}"
        effort = self.work.operator.effort(self.work.problem)
        r = self.resources
        return (
            f"{self.seconds * 1e6:9.2f} us {effort.flops / self.seconds / 1e12:7.1f} TFLOP/s "
            f"{effort.bytes / self.seconds / 1e9:7.0f} GB/s  {words}  registers {r.registers}, spilled "
            f"{r.spill_store_bytes}, shared {r.shared_bytes}, blocks {r.blocks_per_sm} {self.why}"
        )


def sweep(words: list[str], seconds: float) -> None:
    cut = words.index("/")
    work = problem_of(words[:cut])
    axes = {
        name: [value_of(v) for v in text.split(",")]
        for name, text in (w.split("=") for w in words[cut + 1 :])
    }
    candidates = [
        Candidate(work, dict(zip(axes, values, strict=True))) for values in itertools.product(*axes.values())
    ]
    start = time.perf_counter()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(Candidate.build, candidates))
    built = time.perf_counter() - start
    space = space_on("cuda")
    arrays, out = made(space, work), result_of(space, work)
    card = torch_card()
    assert card is not None
    clock, flush = card
    good = [candidate for candidate in candidates if not candidate.why]
    right = None
    for candidate in good:
        candidate.place(space, arrays, out)
        out[...] = float("nan")
        candidate()
        if right is None:  # the first against float64, the others against it
            found = compared(space, work, arrays, out)
            candidate.why = "" if found.ok else f"WRONG {found}"
            right = out.clone() if found.ok else None
        else:
            off = float(((out.double() - right.double()).norm() / right.double().norm()).item())
            candidate.why = "" if off < 2e-3 else f"WRONG by {off:.2g}"
    length = seconds / ROUNDS / max(1, len(good))
    for _ in range(ROUNDS):
        for candidate in good:
            end = time.perf_counter() + length
            while True:
                flush()
                candidate.times.append(clock.time(candidate))
                if time.perf_counter() > end:
                    break
    print(f"# {work.name}: {len(good)} of {len(candidates)} built in {built:.1f} s")
    for candidate in sorted(candidates, key=lambda one: one.seconds):
        print(candidate, flush=True)


def main(given: list[str]) -> None:
    """One sweep of the words, or one for each line of the input."""
    options = [word for word in given if word.startswith("--")]
    words = [word for word in given if not word.startswith("--")]
    limit = float(options[0].partition("=")[2]) if options else SECONDS
    for line in [words] if words else [line.split() for line in sys.stdin if line.strip()]:
        try:
            sweep(line, limit)
        except Exception as error:  # one sweep of many
            print(f"# {' '.join(line)}: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
