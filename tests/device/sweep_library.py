"""Parameters of an operator's schedule tried on a card, fastest first: what its schedule files are chosen by.

    python tests/device/sweep_library.py matmul M=4096 N=4096 K=4096 b_order=1 / block_M=128 block_N=128,256 \
        block_K=32,64 num_stages=3,4 threads=256 / block_M=256 block_N=192 block_K=64 num_stages=3 \
        threads=256 warp_specialize=True a_s.instruction=tma b_s.instruction=tma acc.instruction=wgmma \
        order=8,16

Before the first `/` stand sizes and options of the problem (dtype=float16 by default), behind each the values
of parameters and of a schedule's other choices; all combinations between two `/` are tried, and `SCHEDULED`
alone is what the library's own files choose. Without words each line of the input is a sweep. `--seconds=3`
is the time of one, `--against=torch` a peer that is timed in turn with them, `--check` compares without
timing, `--compile` makes the kernels alone, for a card of 9.0 and without one. All combinations are compiled
at once, compared with float64, and timed in turn with cold caches.
"""

from __future__ import annotations

import itertools
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tilebench.errors import TileError
from tilebench.library import operator
from tilebench.library.bench.arrays import compared, made, result_of, space_on
from tilebench.library.bench.peers import PEERS, Setup
from tilebench.library.bench.works import BenchWork
from tilebench.library.calls import kernel_for, view_of
from tilebench.profile.torch_card import torch_card
from tilebench.schedule.choices import choices_schedule, is_choice

SECONDS = 12.0
SYMBOLIC: dict[str, tuple[str, ...]] = {}
ROUNDS = 5
SCHEDULED = "SCHEDULED"


def value_of(text: str) -> Any:
    words = {"True": True, "False": False}
    if text.replace("x", "").isdecimal() and "x" in text:  # blocks of a cluster, as 2x1
        return tuple(int(part) for part in text.split("x"))
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


class Runner(Protocol):
    """What takes its turns: a candidate, or a peer."""

    times: list[float]

    def __call__(self) -> Any: ...


def middle(times: list[float]) -> float:
    return sorted(times)[len(times) // 2] if times else float("inf")


class Candidate:
    """A kernel of one set of parameters and choices, on the sweep's arrays."""

    def __init__(self, work: BenchWork, values: dict[str, Any], target: str) -> None:
        known = work.operator.kernel.signature.parameters
        self.work, self.values, self.target = work, values, target
        self.parameters = {name: value for name, value in values.items() if name in known}
        self.choices = {name: v for name, v in values.items() if name not in known and is_choice(name)}
        unknown = values.keys() - self.parameters.keys() - self.choices.keys() - {SCHEDULED}
        self.why = f"there is nothing called {min(unknown)}" if unknown else ""
        self.times: list[float] = []

    def build(self) -> None:
        try:
            if not self.why:
                self.kernel = self.made()
                self.resources = self.kernel.resources
        except TileError as error:
            self.why = error.message

    def made(self) -> Any:
        problem, found = self.work.problem, self.work.operator
        if SCHEDULED in self.values:
            return kernel_for(found, problem, self.target)
        values = {dim: None if dim in SYMBOLIC[found.name] else size for dim, size in problem.sizes.items()}
        values |= {"dtype": problem.dtype, **problem.options, **found.fixed, **self.parameters}
        known = found.kernel.signature.parameters
        function = found.kernel.using(target=self.target, schedule=choices_schedule(self.choices))
        return function.kernel((), {k: v for k, v in values.items() if k in known})

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
        return middle(self.times)

    @property
    def words(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.values.items())

    def row(self, peer: float) -> str:
        if not self.times:
            return f"{self.words}: {self.why or self.effort}"
        effort = self.work.operator.effort(self.work.problem)
        beside = f"{peer / self.seconds:6.3f} " if peer else ""
        return (
            f"{beside}{self.seconds * 1e6:9.2f} us {effort.flops / self.seconds / 1e12:7.1f} TFLOP/s "
            f"{effort.bytes / self.seconds / 1e9:7.0f} GB/s  {self.words}  {self.effort} {self.why}"
        )

    @property
    def effort(self) -> str:
        r = self.resources
        return (
            f"registers {r.registers}, spilled {r.spill_store_bytes}, shared {r.shared_bytes}, "
            f"blocks {r.blocks_per_sm}"
        )


class Beside:
    """A peer on the sweep's arrays."""

    def __init__(self, name: str, work: BenchWork, space: Any, arrays: dict[str, Any]) -> None:
        self.name, self.times = name, list[float]()
        self.run = PEERS[name].runner(Setup(work, space, arrays))

    def __call__(self) -> Any:
        assert self.run is not None  # who has no such operation takes no turns
        return self.run()


def candidates_of(work: BenchWork, words: list[str], target: str) -> list[Candidate]:
    """All combinations of the values between each two `/`."""
    out: list[Candidate] = []
    for together in " ".join(words).split(" / "):
        axes = {
            name: [value_of(v) for v in text.split(",")]
            for name, _, text in (word.partition("=") for word in together.split())
        }
        out += [
            Candidate(work, dict(zip(axes, values, strict=True)), target)
            for values in itertools.product(*axes.values())
        ]
    return out


def check(work: BenchWork, space: Any, arrays: dict[str, Any], good: list[Candidate]) -> None:
    """The first that is right against float64, the others against it."""
    out, right = result_of(space, work), None
    for candidate in good:
        candidate.place(space, arrays, out)
        out[...] = float("nan")
        candidate()
        if right is None:
            found = compared(space, work, arrays, out)
            candidate.why = "" if found.ok else f"WRONG {found}"
            right = out.clone() if found.ok else None
        elif not bool((out == right).all()):
            off = float(((out.double() - right.double()).norm() / right.double().norm()).item())
            candidate.why = f"other bits, by {off:.2g}" if off < 2e-3 else f"WRONG by {off:.2g}"


def timed(runners: list[Runner], clock: Any, flush: Any, seconds: float) -> None:
    """Rounds in which each has its turn."""
    length = seconds / ROUNDS / max(1, len(runners))
    for _ in range(ROUNDS):
        for runner in runners:
            end = time.perf_counter() + length
            while True:
                flush()
                runner.times.append(clock.time(runner))
                if time.perf_counter() > end:
                    break


def sweep(words: list[str], options: dict[str, str]) -> None:
    cut = words.index("/")
    work = problem_of(words[:cut])
    target = "cuda:sm_90a" if "--compile" in options else "cuda"
    candidates = candidates_of(work, words[cut + 1 :], target)
    start = time.perf_counter()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(Candidate.build, candidates))
    good = [candidate for candidate in candidates if not candidate.why]
    print(f"# {work.name}: {len(good)} of {len(candidates)} built in {time.perf_counter() - start:.1f} s")
    beside: list[Beside] = []
    if "--compile" not in options:
        space = space_on("cuda")
        arrays = made(space, work)
        check(work, space, arrays, good)
        if "--check" not in options:
            card = torch_card()
            assert card is not None
            against = options.get("--against", "")
            beside = [Beside(name, work, space, arrays) for name in against.split(",") if name]
            beside = [peer for peer in beside if peer.run is not None]
            timed([*beside, *good], *card, float(options.get("--seconds", SECONDS)))
    for peer in beside:
        print(f"       {middle(peer.times) * 1e6:9.2f} us  {peer.name}")
    least = min((middle(peer.times) for peer in beside), default=0.0)
    for candidate in sorted(candidates, key=lambda one: one.seconds):
        print(candidate.row(least), flush=True)


def main(given: list[str]) -> None:
    """One sweep of the words, or one for each line of the input."""
    options = {name: value for name, _, value in (w.partition("=") for w in given if w.startswith("--"))}
    words = [word for word in given if not word.startswith("--")]
    for line in [words] if words else [line.split() for line in sys.stdin if line.strip()]:
        try:
            sweep(line, options)
        except Exception as error:  # one sweep of many
            print(f"# {' '.join(line)}: {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
