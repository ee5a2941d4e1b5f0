"""Another implementation in the measuring child: arrays as it takes them, its result compared, its time."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, cast

import numpy as np

from ..errors import ArgumentError, TargetError
from ..ir import dtype_of
from ..kernel import Package
from ..kernel.measuring.measure import tile_of
from ..kernel.measuring.package import in_order
from ..kernel.measuring.shared_out import run_shared_out
from ..profile.environment import environment
from ..profile.timing import Contender, measure
from ..profile.torch_card import torch_card
from ..record import RunRecord
from ..runtime.job import cancelled
from ..targets import resolve_machine
from ..targets.devices import HOST
from .child import SweepProblem, problem_of, thinned
from .known import FORMULAS, Formula

# Others may round on their way: what they give is right up to this, by the norm.
WRONG = 1e-2
Arrays = list[Any]


@dataclass(frozen=True)
class _Place:
    """Where the arrays of others lie: NumPy's or torch's on the host (no `device`), torch's on a card."""

    torch: Any
    device: str

    def arrays(self, package: Package, inputs: list[np.ndarray[Any, Any]]) -> Arrays:
        """Copies of the kernel's inputs, in its arrays' order."""
        if self.torch is None:
            return [a.copy() for a in inputs]
        return [self._tensor(a, p.dtype) for p, a in zip(package.arguments, inputs, strict=True)]

    def _tensor(self, array: Any, dtype: str) -> Any:
        packed = np.ascontiguousarray(array)
        try:
            made = self.torch.from_numpy(packed)
        except TypeError:  # torch has the dtype, and NumPy only by another package
            bits = packed.view({1: np.int8, 2: np.int16}[packed.dtype.itemsize])
            made = self.torch.from_numpy(bits).view(getattr(self.torch, dtype))
        return made.to(self.device) if self.device else made

    def wide(self, array: Any) -> Any:
        """The same numbers as NumPy's float64."""
        if self.torch is not None and hasattr(array, "detach"):
            array = array.detach().double().cpu().numpy()
        return np.asarray(array).astype(np.float64)


def time_other(package: Package, name: str, what: Any, seed: int, rounds: int, seconds: float) -> RunRecord:
    """One run of what `what` says, on the arrays that the kernel of `package` is timed on."""
    manifest = resolve_machine(package.target)[0]
    on_host = manifest.device == HOST
    wants_torch = not on_host or (isinstance(what, str) and what.startswith("torch"))
    if what == "triton":
        _check_triton(on_host)
    place = _Place(_torch() if wants_torch else None, "" if on_host else manifest.device)
    problem = problem_of(package, seed)
    expected = _expected(package, problem)
    arrays = place.arrays(package, problem.inputs)
    run = _runner(place, package, what, arrays, problem, expected)
    failure = _compared(place, package, arrays, run(), expected)
    clock, flush = (None if on_host else torch_card()) or (None, None)
    found = measure(
        [Contender(name, run)], clock=clock, flush=flush, seconds=seconds, rounds=rounds, cancelled=cancelled,
        watch=None if on_host else manifest.environment,
    )  # fmt: skip
    record = found.run_record(
        name, kernel=name, target=package.target, config={}, environment=environment(manifest.environment()),
        flops=package.flops, bytes=package.bytes,
    )  # fmt: skip
    if failure:
        return replace(record, failure=failure, samples=())
    return thinned(record)


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise TargetError(
            "torch is not installed here: {why}", why=error, hint="pip install torch, or compare with numpy"
        ) from error


def _expected(package: Package, problem: SweepProblem) -> dict[str, Any]:
    """What is right for the outputs, by the reference."""
    if problem.expected is None:
        before = {p.name: a.copy() for p, a in zip(package.arguments, problem.inputs, strict=True)}
        problem.expected = run_shared_out(package, tile_of(package), before)
        problem.by, problem.text = "the reference", package.tile_text
    return {name: bounded.value.astype(np.float64) for name, bounded in problem.expected.items()}


def _runner(
    place: _Place, package: Package, what: Any, arrays: Arrays, problem: SweepProblem,
    expected: Mapping[str, Any],
) -> Callable[[], Any]:  # fmt: skip
    """A launch of a word's function, or of the caller's on all arrays and values in parameter order."""
    if not isinstance(what, str):
        given = in_order(package, package.order, arrays)
        return lambda: what(*given)
    inputs = [a for p, a in zip(package.arguments, arrays, strict=True) if p.read]
    formula = problem.formula = problem.formula or _formula(place, package, inputs, expected)
    if what == "cublas" and not (place.device and formula.product):
        raise TargetError(
            "cuBLAS computes products on a card, and this is {name} on {where}", name=formula.name,
            where="a card" if place.device else "the host",
        )  # fmt: skip
    if what == "triton":
        return _by_triton(formula, inputs)
    if place.torch is None:
        types = [p.dtype for p in package.arguments if p.read]
        wide = [_wide_enough(a, dtype) for a, dtype in zip(inputs, types, strict=True)]
        return lambda: formula.numpy(np, wide)

    def call(given: Arrays) -> Any:
        return formula.torch(place.torch, given)

    if what == "torch.compile":
        # Once a problem, and with code of its own: torch keeps what it compiled by code, makes it general for
        # the second shape, and after a few of one code it compiles no more and says nothing.
        own = FunctionType(call.__code__.replace(), globals(), "call", None, call.__closure__)
        problem.compiled = problem.compiled or place.torch.compile(own)
    ready: Any = problem.compiled if what == "torch.compile" else call
    return lambda: ready(inputs)


def _check_triton(on_host: bool) -> None:
    """Raise `TargetError` where Triton is not here, or has no card to run on."""
    if on_host:
        raise TargetError(
            "Triton's kernels run on a card, and this one is timed on the host",
            hint="numpy and torch run here",
        )
    if importlib.util.find_spec("triton") is None:
        raise TargetError("triton is not installed here", hint="pip install triton, or compare with torch")


def _by_triton(formula: Formula, inputs: Arrays) -> Callable[[], Any]:
    call = formula.triton
    if call is None:
        raise TargetError(
            "there is no Triton kernel for {name} here", name=formula.name,
            expected="one of " + ", ".join(each.name for each in FORMULAS if each.triton is not None),
            hint="give a function of the arrays that launches yours",
        )  # fmt: skip
    kernels = importlib.import_module(".triton_kernels", __package__)
    return lambda: call(kernels, inputs)


def _wide_enough(array: Any, dtype: str) -> Any:
    """NumPy has no fast arithmetic of narrow floats: they are float32 before anything is timed."""
    return array.astype(np.float32) if dtype_of(dtype).is_float and array.dtype.itemsize < 4 else array


def _formula(place: _Place, package: Package, inputs: Arrays, expected: Mapping[str, Any]) -> Formula:
    """The formula whose result on these inputs is the reference's."""
    (wanted, *more) = expected.values()
    wide = [place.wide(a) for a in inputs]
    for formula in FORMULAS if not more else ():
        if formula.inputs != len(wide):
            continue
        try:
            result = formula.numpy(np, wide)
        except ValueError:  # shapes that it does not take
            continue
        if result.shape == wanted.shape and _off(result, wanted) <= WRONG:
            return formula
    raise ArgumentError(
        "what {kernel} computes is none of the formulas known by name", kernel=package.kernel,
        known=", ".join(formula.name for formula in FORMULAS), expected="{known}",
        hint="give a function of the arrays: wb.against(mine=function)",
    )  # fmt: skip


def _off(got: Any, wanted: Any) -> float:
    """How far a result is off, by the norm; infinite where it is no number."""
    with np.errstate(all="ignore"):
        size = float(np.linalg.norm(wanted.ravel())) or 1.0
        off = float(np.linalg.norm((got - wanted).ravel())) / size
    return off if np.isfinite(off) else float("inf")


def _compared(
    place: _Place, package: Package, arrays: Arrays, returned: Any, expected: Mapping[str, Any]
) -> str:
    """What is wrong with a result that was returned or written; empty where nothing is."""
    if returned is None:
        by_name = {p.name: a for p, a in zip(package.arguments, arrays, strict=True)}
        results = {name: by_name[name] for name in expected}
    else:
        several = cast("tuple[Any, ...]", returned if isinstance(returned, (tuple, list)) else (returned,))
        results = dict(zip(expected, several, strict=False))
    for name, wanted in expected.items():
        got = place.wide(results.get(name, np.nan))
        if got.shape != wanted.shape:
            return f"wrong result: {name} has the shape {got.shape}, and {wanted.shape} is expected"
        off = _off(got, wanted)
        if off > WRONG:
            return f"wrong result: {name} is {off:.2g} off by the norm"
    return ""
