"""A configuration compiled: the kernel, what goes to the measuring child, or why there is none."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from ..errors import TileError
from ..kernel import Kernel, Package
from ..kernel.measuring.package import package_of
from ..profile.environment import allowed_cores
from ..record import SweepRow
from ..targets.devices import HOST


@dataclass(frozen=True)
class SweepCandidate:
    """One configuration to try. `config` is plain, as in a record; `make` traces its kernel, or raises.

    Without `packed` its kernel does not travel to the measuring child by itself: who measures it sends it.
    """

    config: Mapping[str, Any]
    make: Callable[[], Kernel]
    packed: bool = True


@dataclass(frozen=True)
class Prepared:
    """A candidate as far as it can be prepared: `row` says `compiled`, `illegal` or `failed`."""

    row: SweepRow
    kernel: Kernel | None = None
    package: Package | None = None


def prepare(candidate: SweepCandidate) -> Prepared:
    """Compile one. What refuses it is its own doing: `illegal`; what nobody expected is a failure."""
    start = time.perf_counter()
    try:
        kernel = candidate.make()
        kernel.reach_code()
        package = None
        if candidate.packed:
            package = package_of(kernel, kernel.calls.binder.of(kernel.sizes).values)
    except TileError as error:
        return Prepared(SweepRow(candidate.config, "illegal", error.message))
    except Exception as error:
        why = f"the compiler failed: {type(error).__name__}: {error}"
        return Prepared(SweepRow(candidate.config, "failed", why))
    took = time.perf_counter() - start
    row = SweepRow(candidate.config, "compiled", code=code_of(package) if package else "", seconds=took)
    return Prepared(row, kernel, package)


def code_of(package: Package) -> str:
    """A hash of all that is measured: the code, and the sizes and scalars of its calls."""
    digest = hashlib.sha256(package.code)
    parts = (package.target, package.stage_text, sorted(package.texts.items()), package.arguments)
    digest.update(repr((*parts, sorted(package.values.items()))).encode())
    return digest.hexdigest()[:20]


class CompileAhead:
    """Candidates compiled in threads before they are wanted, a few more than there are cores at a time.

    On a host's own processor nothing is compiled ahead: that would be timed along with the kernel. With
    `all_first` every one is compiled before the first is handed out, on any device.
    """

    def __init__(self, candidates: list[SweepCandidate], device: str, *, all_first: bool = False) -> None:
        self.candidates = candidates
        self._all_first = all_first
        self._cores = 0 if device == HOST and not all_first else allowed_cores()
        self._pool = ThreadPoolExecutor(self._cores, "tilebench-sweep") if self._cores else None
        self._coming: OrderedDict[int, Future[Prepared]] = OrderedDict()

    def get(self, index: int, next_ones: list[int]) -> Prepared:
        """The candidate of that number, compiled; those that follow are begun."""
        if self._pool is None:
            return prepare(self.candidates[index])
        if self._all_first and not self._coming:
            self._coming.update((k, self._pool.submit(prepare, c)) for k, c in enumerate(self.candidates))
            wait(self._coming.values())
        for number in [index, *next_ones[: self._cores + 1]]:
            if number not in self._coming:
                self._coming[number] = self._pool.submit(prepare, self.candidates[number])
        return self._coming.pop(index).result()

    def close(self) -> None:
        """Begin nothing more; what is being compiled ends by itself."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
