"""What a sweep does in the measuring child: kernels stay loaded between their runs, and arrays are made once.

The runs of one configuration are apart in time, with all others between them, so that what drifts (clocks,
heat, other work) falls on all alike and is seen as the spread of each. What is loaded stays for that.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import LaunchError
from ..kernel import Package
from ..kernel.measuring.measure import TimedKernel, random_inputs, tile_of, timed_records
from ..kernel.measuring.shared_out import run_shared_out
from ..record import RunRecord
from ..reference import Bounded, CheckReport, OutputReport
from ..reference.check import compare_output
from ..reference.within import report_within
from .known import Formula

# Arrays of kernels that stay loaded. A kernel that has left is loaded again for its next run.
MOST_BYTES = 2 << 30
MOST_KERNELS = 128
# Inputs and references that stay: of a large product the reference takes longer than all its runs.
MOST_PROBLEM_BYTES = 2 << 30
MOST_PROBLEMS = 64
# Samples kept of one run: enough for the interval of its median, and a sweep of hundreds is a small file.
MOST_SAMPLES = 100

Arrays = list[np.ndarray[Any, Any]]
Expected = Mapping[str, Bounded]


@dataclass
class SweepProblem:
    """What the configurations of one sweep with the same arguments share: the arrays, and what is right.

    `outputs` are arrays that kernels only write: each turn begins with poison in them, whoever wrote last.
    What is `expected` is right by the configuration `by`, whose tile stage is `text`.
    `formula` is the one whose result that is, once it was looked for, `compiled` that by another's compiler.
    """

    inputs: Arrays
    seed: int
    outputs: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict[str, Any])
    expected: Expected | None = None
    by: str = ""
    text: str = ""
    formula: Formula | None = None
    compiled: Callable[..., Any] | None = None

    @property
    def bytes(self) -> int:
        """Of the arrays and of what is right."""
        known = (self.expected or {}).values()
        right = (a for one in known for a in (one.value, one.error))
        return sum(a.nbytes for a in (*self.inputs, *self.outputs.values(), *right))

    def arrays(self, package: Package) -> Arrays:
        """The arrays that a kernel is run on: its own are those that it reads and writes."""
        found: Arrays = []
        for param, array in zip(package.arguments, self.inputs, strict=True):
            if not param.written:
                found.append(array)
            elif param.read:
                found.append(array.copy())
            else:
                if param.name not in self.outputs:
                    self.outputs[param.name] = array.copy()
                found.append(self.outputs[param.name])
        return found


@dataclass
class _Loaded:
    """Kernels by their code and all else that a run of one says; problems by their arguments and who asks.

    The oldest leave.
    """

    kernels: OrderedDict[tuple[object, ...], TimedKernel] = field(
        default_factory=OrderedDict[tuple[object, ...], TimedKernel]
    )
    problems: OrderedDict[tuple[str, str], SweepProblem] = field(
        default_factory=OrderedDict[tuple[str, str], SweepProblem]
    )


_loaded = _Loaded()


def time_package(
    package: Package, code: str, seed: int, rounds: int, seconds: float, check: bool, label: str, sweep: str
) -> RunRecord:
    """One run of a kernel. The first is checked where that is wanted; `label` is its configuration."""
    problem = problem_of(package, seed, sweep)
    session = _session(package, code, problem)
    checked = _check(session, problem, label) if check and package.tile_text else None
    if checked is not None and not checked.ok:
        session.poison()  # what stored wildly may have hit inputs, which others read after it
    record = timed_records(session, rounds, seconds, {}, checked)[0]
    return thinned(replace(record, seed=seed))


def thinned(record: RunRecord) -> RunRecord:
    """The record with every so many-th sample, in the order in which they were taken."""
    step = -(-len(record.samples) // MOST_SAMPLES)
    return replace(record, samples=record.samples[::step]) if step > 1 else record


def problem_of(package: Package, seed: int, sweep: str = "") -> SweepProblem:
    """The problem of a kernel in a sweep; without one it is that of this kernel alone.

    The same arguments are not the same question: another kernel may take them, or this one after an edit.
    """
    arguments = repr((package.arguments, sorted(package.values.items()), seed))
    key = (arguments, sweep or package.tile_text or package.stage_text)
    problems = _loaded.problems
    if key not in problems:
        alike = [one for (others, _), one in problems.items() if others == arguments]
        inputs = alike[0].inputs if alike else random_inputs(package, seed)
        problems[key] = SweepProblem(inputs, seed)
        # What is right by the same text is so whoever asks.
        for one in alike:
            if one.expected is not None and one.text == package.tile_text:
                problems[key] = replace(problems[key], expected=one.expected, by=one.by, text=one.text)
        while len(problems) > 2 and _is_too_much(list(problems.values())):
            problems.popitem(last=False)
    problems.move_to_end(key)
    return problems[key]


def _is_too_much(problems: Sequence[SweepProblem]) -> bool:
    return len(problems) > MOST_PROBLEMS or sum(one.bytes for one in problems) > MOST_PROBLEM_BYTES


def _session(package: Package, code: str, problem: SweepProblem) -> TimedKernel:
    """The kernel as it was loaded before, or now. What it does not both read and write is shared by all."""
    kernels = _loaded.kernels
    # The same code may be timed on other numbers, and mean or count something else by its record.
    key = (code, problem.seed, package.tile_text, package.outputs, package.edited, package.flops)
    if key not in kernels:
        kernels[key] = TimedKernel(package, problem.arrays(package))
    kernels.move_to_end(key)
    while len(kernels) > 1 and (len(kernels) > MOST_KERNELS or _held_bytes() > MOST_BYTES):
        kernels.popitem(last=False)
    return kernels[key]


def _held_bytes() -> int:
    """Bytes of the arrays of all loaded kernels, of which several may share one."""
    return sum({id(a): a.nbytes for s in _loaded.kernels.values() for a in s.arrays}.values())


def _check(session: TimedKernel, problem: SweepProblem, label: str) -> CheckReport:
    """Every element against what is right for the first configuration, else against its own reference.

    All configurations get the same inputs. What lies within the bounds of one reference needs no other; what
    does not is compared with its own, and is wrong too where the two references contradict each other.
    """
    for param, array, given in zip(session.package.arguments, session.arrays, problem.inputs, strict=True):
        if param.read and param.written:  # what earlier runs left there is another question
            array[...] = given
    after = session.first_run()
    function = tile_of(session.package)
    dtypes = {array.name: array.dtype for array in function.arrays}
    fresh = session.package.outputs

    def compared(expected: Expected) -> CheckReport:
        found: list[OutputReport] = []
        for name, each in expected.items():
            quick = report_within(after[name], each, dtypes[name], name)
            found.append(quick or compare_output(after[name], each, dtypes[name], name, fresh=name in fresh))
        return CheckReport(tuple(found))

    if problem.expected is not None:
        report = compared(problem.expected)
        if report.ok:
            return report
    before = {p.name: a for p, a in zip(session.package.arguments, problem.inputs, strict=True)}
    own = run_shared_out(session.package, function, before)
    report = compared(own)
    if problem.expected is None:
        if report.ok:
            problem.expected, problem.by, problem.text = own, label, session.package.tile_text
        return report
    if report.ok and _contradict(own, problem.expected):
        raise AnotherResult(
            "right by its own text, but another result than {by} has on the same arrays",
            by=problem.by or "another configuration",
            hint="does the kernel read or leave out elements where blocks do not divide the sizes?",
        )  # fmt: skip
    return report


class AnotherResult(LaunchError):
    """Two configurations of one kernel mean different results."""


def _contradict(first: Expected, second: Expected) -> bool:
    """Whether two references differ by more than both of their bounds allow, or in what they store at all."""
    for name, one in first.items():
        other = second.get(name)
        if other is None or one.value.shape != other.value.shape or one.either is not None:
            continue
        if one.stored is not None and other.stored is not None and bool(np.any(one.stored != other.stored)):
            return True
        with np.errstate(all="ignore"):
            apart: Any = np.abs(one.value.astype(np.float64) - other.value.astype(np.float64))
            if bool(np.any(apart > one.error + other.error)):
                return True
    return False
