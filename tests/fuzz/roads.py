"""One program on every road: the reference, the CPU, the simulator of the CUDA path, now and then NVRTC,
and where there is one a card.

The reference with its bounds is the oracle. Whatever is not agreement is said in one word:

- `refused`: a `TileError` at a line of the program. Counted by message, for a person to look at.
- `undefined`: the reference says that the program has no meaning. The generator's fault, or the reference's.
- `finding`: a difference, an error that is not at the program's line, an internal error, a printed stage that
  does not parse back, a fault that the simulator sees.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.fuzz.program import FILE, Program
from tilebench.compiler import Compilation
from tilebench.errors import InternalError, TileError
from tilebench.frontend import Traced
from tilebench.ir import Function, parse_function, print_function
from tilebench.ir.sizes import for_sizes
from tilebench.kernel import Kernel
from tilebench.kernel.calls.variants import Chooser, under
from tilebench.reference import run_bounded, run_reference
from tilebench.reference.check import compare_output
from tilebench.schedule import Schedule
from tilebench.simulator import run_threaded
from tilebench.simulator.refusal import SimulationError
from tilebench.targets import resolve

FINDING, REFUSED, UNDEFINED = "finding", "refused", "undefined"


@dataclass(frozen=True)
class Said:
    """What one road said of a program, where it did not agree. Findings of one `kind` are one fault."""

    road: str
    word: str
    kind: str
    detail: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.road, self.kind


@dataclass(frozen=True)
class Outcome:
    """What all roads said; nothing where all agree."""

    said: tuple[Said, ...] = ()

    @property
    def findings(self) -> tuple[Said, ...]:
        return tuple(each for each in self.said if each.word == FINDING)

    @property
    def keys(self) -> frozenset[tuple[str, str]]:
        return frozenset(each.key for each in self.findings)

    def __str__(self) -> str:
        lines = [f"{each.road} {each.word}: {each.kind}\n{each.detail}" for each in self.said]
        return "\n".join(lines) or "all agree"


class Stop(Exception):
    """A road has said why it goes no further."""

    def __init__(self, said: Said) -> None:
        super().__init__(said.kind)
        self.said = said


def run(
    program: Program, nvrtc: bool = False, printed: bool = True, only: Collection[str] = ("cpu", "cuda")
) -> Outcome:
    """What each road says of a program: the reference, and of `cpu`, `cuda` and `card` those in `only`."""
    said: list[Said] = []
    try:
        traced = _guarded("front end", program.traced)
        function = program.function(traced)
        arrays = program.arrays(function)
        for each in traced.printed.arrays if traced.printed is not None else ():
            arrays[each.name][...] = 0  # nothing is said yet
        expected = _expected(function, arrays, said)
    except Stop as stop:
        return Outcome((stop.said,))
    call = Call(program, traced, function, arrays, expected, nvrtc, printed)
    for name, road in (("cpu", _cpu), ("cuda", _cuda), ("card", _card)):
        try:
            said += road(call) if name in only else ()
        except Stop as stop:
            said.append(stop.said)
    return Outcome(tuple(said))


def _expected(function: Function, arrays: Any, said: list[Said]) -> Any:
    """The oracle's values and bounds; the plain reference must be within them, and read nothing unwritten."""
    plain = _guarded("reference", lambda: run_reference(function, arrays), UNDEFINED)
    _guarded("reference", lambda: run_reference(function, arrays, uninitialised="raise"), UNDEFINED)
    bounded = _guarded("reference", lambda: run_bounded(function, arrays), UNDEFINED)
    said += _compared("reference", function, bounded, plain)
    return bounded


def _compared(road: str, function: Function, bounded: Any, after: Any) -> Iterator[Said]:
    dtypes = {each.name: each.dtype for each in function.arrays}
    reports = [compare_output(after[name], each, dtypes[name], name) for name, each in bounded.items()]
    if not all(report.ok for report in reports):
        wrong = [report for report in reports if not report.ok]
        lines = [f"{r.name}{list(w.index)}: {w.got!r}, right {w.expected!r} +- {w.bound:.3g}"
                 for r in wrong for w in r.worst[:2]]  # fmt: skip
        yield Said(road, FINDING, "other values", "; ".join(lines))


@dataclass(frozen=True)
class Call:
    """A program as the roads get it: traced, for its sizes, with its arrays and what is right."""

    program: Program
    traced: Traced
    function: Function
    arrays: dict[str, Any]
    expected: Any
    nvrtc: bool
    printed: bool

    @property
    def schedule(self) -> Schedule | None:
        return Schedule.of(**self.program.schedule) if self.program.schedule else None


def _cpu(call: Call) -> Iterator[Said]:
    kernel = yield from _called(call, "cpu", call.program.cpu)
    if call.printed:
        yield from _parsed(kernel.compilation, "cpu")


def _card(call: Call) -> Iterator[Said]:
    """The card of this machine, on copies of host arrays."""
    yield from _called(call, "card", "cuda")


def _called(call: Call, road: str, target: str) -> Generator[Said, None, Kernel]:
    """The kernel for a target that can run here, called."""
    program = call.program
    manifest, machine = resolve(target)
    kernel = Kernel(call.traced, manifest, machine, call.schedule)
    after = _copied(call.arrays)
    arguments = [program.sizes[p.name] if p.is_scalar else after[p.name] for p in kernel.arguments]
    if kernel.printed is None:
        _guarded(road, lambda: kernel(*arguments))
    else:  # with the arrays for what it says, so that they are compared too, and without a word
        _guarded(road, lambda: kernel.calls.run(tuple(arguments), kernel._load))
    yield from _compared(road, call.function, call.expected, after)
    return kernel


def _cuda(call: Call) -> Iterator[Said]:
    program, traced = call.program, call.traced
    manifest, machine = resolve(program.target)
    variant = Chooser(traced.function, machine)(program.sizes, ())
    variant = replace(variant, aligned=variant.aligned and program.aligned, wide=program.wide)
    tile = under(traced.function, variant, machine)
    made = Compilation(replace(traced, function=tile), manifest, machine, call.schedule)
    _guarded("cuda", lambda: made.reach("threaded"))
    if call.printed:
        yield from _parsed(made, "cuda")
    after = _copied(call.arrays)
    threaded = for_sizes(made.functions["threaded"], program.sizes)
    words = {"meanings": manifest.meanings, "functions": manifest.simulated_functions}
    _guarded("cuda", lambda: run_threaded(threaded, after, warp=machine.warp, **words))
    yield from _compared("cuda", call.function, call.expected, after)
    texts = [step.name for step in manifest.steps if step.tier == "text"]
    _guarded("cuda text", lambda: made.reach(texts[-1]))
    if call.nvrtc:
        _guarded("nvrtc", made.reach_code)


def _copied(arrays: Any) -> dict[str, Any]:
    """Copies with the same strides: what lies between the elements of a strided array is there too."""
    out: dict[str, Any] = {}
    for name, array in arrays.items():
        out[name] = array.copy()
        if not array.flags.c_contiguous:
            out[name] = np.ndarray(array.shape, array.dtype, array.base.copy(), strides=array.strides)
    return out


def _parsed(made: Compilation, road: str) -> Iterator[Said]:
    """Every stage prints as a text that parses back to the same tree."""
    for stage, function in made.functions.items():
        registry = made.manifest.registry
        text = print_function(function).text
        back = _guarded(f"{road} printed", lambda text=text: parse_function(text, registry))
        if back != function:
            yield Said(f"{road} printed", FINDING, f"stage {stage} parses back as another", "")


def _guarded(road: str, work: Callable[[], Any], refusal: str = REFUSED) -> Any:
    """What `work` gives. An error becomes what the road says, and ends it."""
    try:
        return work()
    except TileError as error:
        raise Stop(_told(road, error, refusal)) from error
    except Exception as error:
        kind = f"{type(error).__name__} in {_where(error)}: {_general(str(error))}"
        raise Stop(Said(road, FINDING, kind, _short(error))) from error


def _told(road: str, error: TileError, refusal: str) -> Said:
    if isinstance(error, InternalError):
        cause = error.__cause__ or error
        kind = f"internal error: {type(cause).__name__} in {_where(cause)}: {_general(str(cause))}"
        return Said(road, FINDING, kind, _short(cause))
    if isinstance(error, SimulationError):
        return Said(road, FINDING, f"simulator: {error.what}", str(error))
    where = error.place.user.file if error.place is not None else None
    if where != FILE:
        return Said(road, FINDING, f"no line of the user's: {error.what}", str(error))
    if road.endswith("printed") or road == "nvrtc":
        return Said(road, FINDING, error.what, str(error))
    return Said(road, refusal, error.what, str(error))


def _where(error: BaseException) -> str:
    """The innermost function of tilebench that an error went through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/tilebench/" in f.filename]
    if not frames:
        return "?"
    return f"{frames[-1].filename.rpartition('/tilebench/')[2]}:{frames[-1].name}"


def _general(text: str) -> str:
    """A message without what differs from program to program: numbers and quoted names."""
    return re.sub(r"'[^']*'|\b[A-Za-z]+\d+\w*|\d+", "_", text.splitlines()[0] if text else "")[:120]


def _short(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)[-3:])[-800:]
