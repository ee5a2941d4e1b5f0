"""What `kernel.get_profiler()` gives: milliseconds and comparisons with another program, in this process.

The words are TileLang's. `Kernel.bench` and `Kernel.check` say more: they time in a child, with intervals,
and compare each element with a bound of its own.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...errors import ArgumentError, OptionError
from ...profile.flush import CpuFlush
from ...profile.timing import CpuClock
from ...profile.torch_card import FLUSH_BYTES, torch_card
from ..calls.host_arrays import as_torch, host_copy

if TYPE_CHECKING:
    from ..kernel import Kernel

_MEANS: Mapping[str, Any] = {
    "mean": np.mean, "min": np.min, "max": np.max, "median": np.median,
}  # fmt: skip


class TensorSupplyType(Enum):
    """What random arrays hold."""

    Auto = "auto"
    Integer = "integer"
    Uniform = "uniform"
    Normal = "normal"
    Randn = "randn"
    Zero = "zero"
    One = "one"

    def array(self, shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray[Any, Any]:
        """An array of this kind: floats in [-1, 1), or normal ones; small integers.

        `Normal` has the mean -1, as in TileLang, and `Randn` 0: the references of its examples in float16
        lose more than they may where sums of many terms come out near zero.
        """
        from ...ir.dtypes import dtype_of
        from ...language.meanings.rounding import narrowed
        from ...reference.inputs import random_array

        if self is TensorSupplyType.Integer:
            whole = random_array(shape, dtype_of("int8"), seed)
            return np.clip(whole, -2, 2).astype(dtype_of(dtype).numpy)
        if self is TensorSupplyType.Normal and dtype_of(dtype).is_float:
            around = random_array(shape, dtype_of("float32"), seed, "normal") - np.float32(1)
            return narrowed(around, dtype_of(dtype))
        kinds: dict[str, Any] = {"normal": "normal", "randn": "normal", "zero": "zeros", "one": "ones"}
        return random_array(shape, dtype_of(dtype), seed, kinds.get(self.value, "uniform"))


def do_bench(
    fn: Callable[[], object],
    warmup: float = 25,
    rep: float = 100,
    _n_warmup: int = 0,
    _n_repeat: int = 0,
    quantiles: Sequence[float] | None = None,
    backend: str = "event",
    return_mode: Literal["mean", "min", "max", "median"] = "mean",
    **_: Any,
) -> Any:
    """Milliseconds that a call of `fn` takes, each alone and with cold caches; with `quantiles` a list.

    `warmup` and `rep` are milliseconds to spend, `_n_warmup` and `_n_repeat` numbers of calls instead.
    `backend` chooses nothing: events on a card, the wall clock elsewhere.
    """
    if return_mode not in _MEANS:
        raise OptionError("return_mode cannot be {mode!r}", mode=return_mode, expected=", ".join(_MEANS))
    clock, flush = torch_card() or (CpuClock(), CpuFlush(FLUSH_BYTES))
    with closing(flush):
        _spend(lambda: clock.time(fn), warmup, _n_warmup)

        def cold() -> float:
            flush()
            return clock.time(fn)

        samples = [1e3 * seconds for seconds in _spend(cold, rep, _n_repeat)]
    if quantiles is not None:
        return [float(value) for value in np.quantile(samples, quantiles)]
    return float(_MEANS[return_mode](samples))


def _spend(time_one: Callable[[], float], milliseconds: float, count: int) -> list[float]:
    """Seconds of each call: `count` of them, or as many as fit the time with what is around them."""
    end = time.perf_counter() + 1e-3 * milliseconds
    samples = [time_one()]
    while len(samples) < count if count else time.perf_counter() < end:
        samples.append(time_one())
    return samples


class Profiler:
    """Times a kernel and compares it with another program, on random inputs of one kind."""

    def __init__(self, kernel: Kernel, supply: TensorSupplyType | str | None = None) -> None:
        self.kernel = kernel
        self.supply = TensorSupplyType(getattr(supply, "value", supply) or "auto")

    @property
    def func(self) -> Kernel:
        """The kernel, to be called."""
        return self.kernel

    def inputs(self, sizes: Mapping[str, int] | None = None, seed: int = 0) -> list[Any]:
        """Arguments for a call: torch's tensors in a program that has imported torch, else NumPy's arrays."""
        call = self.kernel.call_of((), sizes)
        out: list[Any] = []
        for position, record in enumerate(self.kernel.arguments):
            if position in self.kernel.outputs:
                continue
            if record.is_scalar:
                out.append(call.values[record.name])
                continue
            whole = next(each for each in call.records if each.name == record.name)
            array = self.supply.array(whole.extents, whole.dtype, seed + position)
            out.append(as_torch(array, self.kernel.compilation.manifest.device))
        return out

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """One call on random inputs; what it returns."""
        return (func or self.kernel)(*self.inputs())

    def do_bench(
        self,
        func: Callable[..., Any] | None = None,
        warmup: float = 25,
        rep: float = 100,
        n_warmup: int = 0,
        n_repeat: int = 0,
        input_tensors: Sequence[Any] | None = None,
        dynamic_symbolic_constraints: Mapping[str, int] | None = None,
        **options: Any,
    ) -> Any:
        """Milliseconds of the kernel, or of `func` on the kernel's inputs; options as for `do_bench`."""
        given = self.inputs(dynamic_symbolic_constraints) if input_tensors is None else input_tensors
        run = func or self.kernel
        return do_bench(lambda: run(*given), warmup, rep, n_warmup, n_repeat, **options)

    def assert_allclose(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """Compare the kernel with a program on one set of inputs. Raises `AssertionError` for other results.

        As in TileLang a hundredth of the elements may lie outside, of which this one warns.
        """
        given = self.inputs() if input_tensors is None else list(input_tensors)
        wanted, found = _results(reference_program(*given)), _results(self.kernel(*given))
        if len(wanted) != len(found):
            raise ArgumentError(
                "{name} returns {ours} arrays, and what it is compared with {theirs}", name=self.kernel.name,
                ours=len(found), theirs=len(wanted), at=self.kernel.compilation.traced.function.place,
                hint="out_idx= says which parameters a call makes and returns",
            )  # fmt: skip
        for number, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
            compare(f"result {number} of {self.kernel.name}", ours, theirs, atol, rtol, max_mismatched_ratio)

    def assert_consistent(self, repeat: int = 10) -> None:
        """Raises `AssertionError` where calls on the same inputs give other results."""
        given = self.inputs()
        first = [host_copy(array) for array in _results(self.kernel(*given))]
        for _ in range(repeat):
            for before, now in zip(first, _results(self.kernel(*given)), strict=True):
                if before.tobytes() != host_copy(now).tobytes():
                    raise AssertionError(f"{self.kernel.name} gives another result for the same inputs")


def compare(
    what: str, ours: Any, theirs: Any, atol: float = 1e-2, rtol: float = 1e-2, ratio: float = 0.0
) -> None:
    """Raise `AssertionError` where more than `ratio` of the elements differ, warn where some do."""
    a, b = (host_copy(each).astype(np.float64) for each in (ours, theirs))
    if a.shape != b.shape:
        raise AssertionError(f"{what} has the shape {a.shape}, and {b.shape} is expected")
    outside = int(np.sum(~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)))
    if not outside:
        return
    with np.errstate(invalid="ignore"):
        largest = np.nanmax(np.abs(a - b), initial=0.0)
    text = f"{what}: {outside} of {a.size} elements differ by more than {atol} + {rtol} * |expected|"
    text += f"; the largest difference is {largest:.4g}"
    if outside > ratio * a.size:
        raise AssertionError(text)
    warnings.warn(f"{text} (a share of {ratio} may)", stacklevel=3)


def _results(returned: Any) -> list[Any]:
    if returned is None:
        return []
    return list(returned) if isinstance(returned, (tuple, list)) else [returned]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


__all__ = ["Profiler", "TensorSupplyType", "compare", "do_bench"]
