"""What a kernel goes on to: other kernels of its edited texts, and files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from ..record import RunRecord
    from .kernel import Kernel


class Keeping:
    """The part of a `Kernel` that edits and saves it."""

    # The function that it was traced from; None where it came from elsewhere.
    made_from: Any = None

    @property
    def _self(self) -> Kernel:
        return cast("Kernel", self)

    if not TYPE_CHECKING:  # a checker goes on to know which attributes there are

        def __getattr__(self, name: str) -> Any:
            """`AttributeError`, that says where a word of a kernel function is to be found."""
            from .function import JitFunction

            said = f"a tilebench kernel has no {name}"
            if not name.startswith("_") and hasattr(JitFunction, name):
                said += f"; the function that made it has: function.{name}(...), in front of its parameters"
            raise AttributeError(said, name=name, obj=self)

    def edited(self, stage: str, text: str) -> Kernel:
        """The kernel whose `stage` is `text`: compiled on from there, with the stages above as they are.

        Its record and its measurements name the stage as edited. Raises `IRError` at the line of the text
        that is wrong, `OptionError` for a stage where compilation cannot start.
        """
        from .continued import continued

        return continued(self._self, stage, text)

    def save(
        self, path: str | Path, *, tuned: Sequence[str] = (), overwrite: bool = False
    ) -> tuple[Path, ...]:
        """Write the kernel as a Python file that runs by itself, with a schedule file; gives the paths.

        A name that ends in `.tbz` becomes its compilation instead, which `tilebench.open_record` reads; one
        that ends in anything else but `.py` is refused.

        `python FILE` checks and times it, and needs tilebench alone. Parameters named in `tuned` stand in the
        schedule file with the choices of the schedule, the others in the Python file; texts that were edited
        are files of their own. A kernel whose function cannot be written stands by its stage `scheduled`, and
        its file says why. Raises `OptionError` where a file is there already, unless `overwrite`.
        """
        from ..record import BenchRecord
        from ..record_files import save
        from .saving.files import saved_kernel

        if Path(path).suffix == ".tbz":
            save(BenchRecord(self._self.record()), path, overwrite=overwrite)
            return (Path(path),)
        return saved_kernel(self._self, Path(path), tuned, overwrite)

    def save_program(self, path: str | Path, *, seed: int = 0, overwrite: bool = False) -> Path:
        """Write the kernel in its target's own language with a `main` that launches and times it.

        On a card that is a `.cu` file for nvcc: random inputs from `seed`, the launch with its grid and
        dynamic shared memory, times by events, and with `--out FOLDER` the arrays as files. Sizes that come
        with a call are those of `at`. Raises `TargetError` where the target has no such form, `OptionError`
        where the file is there already, unless `overwrite`.
        """
        from .saving.programs import save_program

        return save_program(self._self, Path(path), seed, overwrite)

    def save_measurement(
        self, runs: RunRecord | Sequence[RunRecord], path: str | Path, *, overwrite: bool = False
    ) -> tuple[Path, ...]:
        """Write a script that repeats a measurement of this kernel; gives the paths.

        It has the same method and the same inputs, and prints what was recorded beside what is measured then.
        `runs` is what `bench` gave, one or several of one position. Raises `OptionError` for none, or where a
        file is there already, unless `overwrite`.
        """
        from .saving.measurements import save_measurement

        several = [runs] if not isinstance(runs, Sequence) else list(runs)
        return save_measurement(self._self, several, path, overwrite=overwrite)
