"""The pictures of a session's kernels: made once each, beside the compiler, never before the first text."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import TileError
from ..pictures.collect import KernelPictures, SliderFit, cards, fit_of, pictures_of
from ..schedule.choices import AS_WRITTEN
from . import tiers
from .slider import Slider
from .subject import Subject
from .wish import Wish, moved

if TYPE_CHECKING:
    from ..compiler import Compilation
    from ..kernel import Kernel
    from ..record import CompileRecord, Resources

# The tab that says what other values would take, which is worked out only where somebody looks at it.
MEMORY = "memory"
# A slider of more values is no choice that a person reads a table for.
MOST_VALUES = 12


@dataclass(frozen=True)
class _Pictured:
    """The newest pictures, and of what: warps' accesses depend on the sizes that a call brings."""

    compilation: Compilation
    sizes: dict[str, Any]
    resources: Resources | None
    pictures: KernelPictures

    def is_of(self, kernel: Kernel) -> bool:
        return self.compilation is kernel.compilation and self.sizes == dict(kernel.sizes)


class PictureMaker:
    """What is drawn of the kernels of one subject. One thread at a time asks; `looking` may be set by any."""

    def __init__(self, subject: Subject, *, beside: bool) -> None:
        self.subject = subject
        self.beside = beside
        self.looking = ""
        self._last: _Pictured | None = None
        self._fits: dict[Any, SliderFit] = {}
        self._thread: threading.Thread | None = None

    def begin(self, kernel: Kernel, resources: Resources | None) -> None:
        """Start on the pictures beside the compiler, which leaves a processor free; `of` waits for them.

        Not where a session has no threads.
        """
        self._wait()
        if self.beside and (self._last is None or not self._last.is_of(kernel)):
            self._thread = threading.Thread(
                target=self._of, args=(kernel, resources), name="tilebench-pictures", daemon=True
            )
            self._thread.start()

    def _wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def compiled(self, kernel: Kernel, shown: Sequence[str]) -> tuple[CompileRecord, KernelPictures]:
        """The compiled tier, with the pictures that were made meanwhile; nothing goes on behind it."""
        try:
            record = tiers.compiled(kernel, shown)
        finally:
            self._wait()
        return record, self._of(kernel, record.resources)

    def of(self, kernel: Kernel, resources: Resources | None) -> KernelPictures:
        """The pictures of a kernel as far as it is compiled; of the same one only what has changed is new."""
        self._wait()
        return self._of(kernel, resources)

    def _of(self, kernel: Kernel, resources: Resources | None) -> KernelPictures:
        last, compilation = self._last, kernel.compilation
        if last is not None and last.is_of(kernel):
            found = last.pictures
            if last.resources == resources or resources is None:
                return found
            found = found if found.fault else replace(found, cards=cards(compilation, resources))
        else:
            found = _made(kernel, resources)
        self._last = _Pictured(compilation, dict(kernel.sizes), resources, found)
        return found

    def look(
        self,
        wish: Wish,
        kernel: Kernel,
        unwanted: Callable[[], bool],
        show: Callable[[KernelPictures], object],
    ) -> None:
        """Work out what other values of the sliders would take, where the tab that says it is open."""
        last = self._last
        if self.looking != MEMORY or last is None or not last.is_of(kernel) or last.pictures.fits:
            return
        rows: list[SliderFit] = []
        for fit in self._values(wish, kernel):
            if unwanted():
                return
            rows.append(fit)
        telling = [fit for fit in rows if _tells([one for one in rows if one.slider == fit.slider])]
        if telling and not unwanted():
            found = replace(last.pictures, fits=tuple(telling))
            self._last = replace(last, pictures=found)
            show(found)

    def _values(self, wish: Wish, kernel: Kernel) -> Iterator[SliderFit]:
        """One row after the other, so that a move need not wait for the rest."""
        if wish.edit is not None or not self.subject.is_function:
            return
        for slider in self.subject.knobs:
            if not _is_offered(slider):
                continue
            now = wish.value_of(slider)
            for value in slider.values:
                if value == AS_WRITTEN:
                    continue
                if value == now:
                    yield fit_of(kernel.compilation, slider.name, str(value), here=True)
                else:
                    yield self._other(wish, slider, value)

    def _other(self, wish: Wish, slider: Slider, value: Any) -> SliderFit:
        other = moved(wish, self.subject.knobs, {slider.name: value})
        key = (slider.name, str(value), repr(sorted(other.config.items(), key=str)))
        known = self._fits.get(key)
        if known is None:
            try:
                known = fit_of(self.subject.make(other).compilation, slider.name, str(value))
            except TileError as error:
                known = SliderFit(slider.name, str(value), None, fits=False, why=error.message)
            self._fits[key] = known
            # The newest: a walk through positions seldom comes back to many.
            while len(self._fits) > 512:
                del self._fits[next(iter(self._fits))]
        return known


def _made(kernel: Kernel, resources: Resources | None) -> KernelPictures:
    """The pictures of a kernel; a fault of ours in one is said in its place, and stops nothing."""
    try:
        return pictures_of(kernel.compilation, resources, kernel.sizes)
    except TileError as error:
        return KernelPictures(kernel.compilation.machine, fault=error.message)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        return KernelPictures(
            kernel.compilation.machine, fault=f"{said}; this is a fault of tilebench, please report it"
        )


def _is_offered(slider: Slider) -> bool:
    values = [value for value in slider.values if value != AS_WRITTEN]
    numbers = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    return not slider.launch and numbers and 1 < len(values) <= MOST_VALUES


def _tells(rows: list[SliderFit]) -> bool:
    """Whether a slider changes anything: a table of the same numbers is no help."""
    return len({(row.total, row.fits, row.stages) for row in rows}) > 1
