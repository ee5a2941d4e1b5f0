"""The kernel a person holds: call it, check it, look at its stages, time it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler import Compilation
from ..errors import ArgumentError, OptionError, Place, ResourceError, TargetError
from ..frontend import Traced
from ..ir import Function
from ..ir.dtypes import dtype_of
from ..machine import Machine
from ..record import CompileRecord, Resources, RunRecord
from ..recorder import arguments_of, make_record
from ..runtime.arrays import ArgumentChecker
from ..runtime.cache import default_cache, key_of
from ..schedule import Schedule
from ..targets import Executable, Manifest
from ..targets.devices import HOST
from .host_arrays import empty_like, host_copy, on_host
from .rehearse import rehearse


class Kernel:
    """One kernel for one set of parameters, target and schedule. Compiled as far as it is asked for.

    Calling it runs it on NumPy arrays (any target) or on torch and CuPy tensors of the target's
    device, in the order of its parameters.
    """

    def __init__(
        self,
        traced: Traced,
        manifest: Manifest,
        machine: Machine,
        schedule: Schedule | None = None,
        *,
        out_idx: Sequence[int] = (),
        start: str = "tile",
        meaning: Function | None = None,
    ) -> None:
        self.compilation = Compilation(
            traced,
            manifest,
            machine,
            schedule,
            store=default_cache(),
            key_of=key_of,
            start=start,
            meaning=meaning,
        )
        self.name = traced.name
        self.parameters: Mapping[str, Any] = traced.parameters
        self.target = machine.name
        self.schedule = schedule
        self.arguments = arguments_of(self.compilation)
        count = len(self.arguments)
        bad = [k for k in out_idx if not -count <= k < count]
        if bad:
            raise ArgumentError(
                "out_idx {bad} is no parameter of {name}", bad=bad[0], name=self.name,
                expected=f"from {-count} to {count - 1}",
            )  # fmt: skip
        self.outputs = tuple(sorted(k % count for k in out_idx))
        self._executable: Executable | None = None
        self._checkers: dict[str, ArgumentChecker] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        values = ", ".join(f"{k}={v!r}" for k, v in self.parameters.items())
        return f"<tilebench kernel {self.name}({values}) for {self.target}>"

    # -- running
    def __call__(self, *arrays: Any) -> Any:
        """Run on arrays, in parameter order. Returns what `out_idx` names, else None.

        On a CUDA device it returns when the kernel has been launched on the caller's current
        stream. Raises `ArgumentError` when an array does not fit, `TargetError` when the target
        cannot run here.
        """
        results: list[Any] = []
        if self.outputs:
            arrays, results = self._with_outputs(arrays)
        executable = self._executable or self.executable()
        try:
            described = self._checker(arrays)(arrays)
        except ArgumentError as error:
            # What is wrong with the call as a whole has no parameter to stand at.
            error.place = error.place or self.compilation.traced.function.place
            raise
        executable(described)
        if not results:
            return None
        return results[0] if len(results) == 1 else tuple(results)

    def executable(self) -> Executable:
        """The loaded code, made at the first call. Raises `TargetError` where it cannot run."""
        with self._lock:
            if self._executable is None:
                manifest = self.compilation.manifest
                can, why = manifest.available()
                if not can:
                    raise TargetError(
                        "{name} is compiled for {target}, which cannot run here: {why}",
                        name=self.name,
                        target=self.target,
                        why=why,
                        hint='compile it for target="cpu" to run it on this machine',
                    )
                self.reach_code()
                build = self.compilation.build
                assert build is not None  # reach_code made it
                if manifest.rehearse:
                    rehearse(self)
                self._executable = manifest.load(build)
            return self._executable

    def reach_code(self) -> None:
        """Compile up to loadable code; what is made in the background is left out."""
        for step in self.compilation.manifest.steps:
            if step.tier != "later":
                self.compilation.reach(step.name)

    def _checker(self, arrays: Sequence[Any]) -> ArgumentChecker:
        device = self.compilation.manifest.device
        if not arrays or any(type(array) is np.ndarray for array in arrays) or on_host(arrays[0]):
            device = HOST
        found = self._checkers.get(device)
        if found is None:
            found = ArgumentChecker(self.arguments, device, self.places())
            self._checkers[device] = found
        return found

    def check_arrays(self, arrays: Sequence[Any]) -> None:
        """Raise `ArgumentError` when the arrays do not fit the parameters."""
        self._checker(arrays)(arrays)

    def places(self) -> dict[str, Place]:
        """Where each parameter stands in the source."""
        return dict(self.compilation.traced.places)

    def _with_outputs(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]]:
        inputs = list(arrays)
        if len(inputs) != len(self.arguments) - len(self.outputs):
            raise ArgumentError(
                "{name} takes {want} arrays and returns {made}",
                at=self.compilation.traced.function.place,
                name=self.name,
                want=len(self.arguments) - len(self.outputs),
                made=len(self.outputs),
                found=f"{len(inputs)} arrays",
            )
        strided = [self.arguments[k].name for k in self.outputs if self.arguments[k].strides]
        if strided:
            raise ArgumentError(
                "out_idx cannot make {name}, which has strides of its own", name=strided[0],
                at=self.places().get(strided[0]), hint="pass an array for it",
            )  # fmt: skip
        like = inputs[0] if inputs else None
        results = [empty_like(like, self.arguments[k].shape, self.arguments[k].dtype) for k in self.outputs]
        for k, output in zip(self.outputs, results, strict=True):
            inputs.insert(k, output)
        return tuple(inputs), results

    # -- looking
    def stage(self, name: str) -> str:
        """The text of a stage, made now if needed. `OptionError` names those there are."""
        self.compilation.reach(name)
        return make_record(self.compilation, (name,)).stages[0].text

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of all stages, the source first."""
        return self.compilation.stage_names

    def record(self, stages: Sequence[str] | None = None) -> CompileRecord:
        """The record with the named stages; by default all but those made in the background."""
        if stages is None:
            self.reach_code()
        return make_record(self.compilation, stages)

    @property
    def resources(self) -> Resources:
        """Registers, shared memory, occupancy of the compiled code."""
        self.reach_code()
        found = make_record(self.compilation, ()).resources
        assert found is not None  # make_record always fills it
        return found

    def get_kernel_source(self) -> str:
        """The text the target's own compiler gets: CUDA C, or LLVM IR."""
        texts = [step.name for step in self.compilation.manifest.steps if step.tier == "text"]
        return self.stage(texts[-1])

    # -- checking and timing
    @property
    def meaning(self) -> Function | None:
        """The kernel in a stage that the reference runs; None where it starts below and like nothing."""
        return self.compilation.reference

    def inputs(self, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
        """Random arrays for the parameters, from a seed; outputs hold poison."""
        from ..reference import make_inputs

        return make_inputs(self.meaning or self.compilation.traced.function, seed)

    def check(self, *arrays: Any, seed: int = 0) -> Any:
        """Run on copies of the arrays (random ones from `seed` if none) and compare every element.

        The bound of each element is computed from the operations and the inputs; no share of wrong
        elements is forgiven. Returns a `CheckReport`: `.ok`, `.raise_if_wrong()`, and its text.
        """
        from ..reference import check_function, poison
        from ..reference.inputs import strided_empty

        meaning = self.meaning
        if meaning is None:
            raise OptionError(
                "{name} starts at {stage}, which says what threads do and not what the kernel means",
                name=self.name, stage=self.compilation.start,
                hint="give the kernel it was edited from: compile_from(stage, text, like=kernel)",
            )  # fmt: skip
        if arrays and len(arrays) != len(self.arguments):
            raise ArgumentError(
                "{name} is checked on {want} arrays",
                name=self.name,
                want=len(self.arguments),
                found=f"{len(arrays)} arrays",
                hint="give one for each parameter, outputs too, or none for random ones",
            )
        if arrays:
            self.check_arrays(arrays)
            before = {p.name: host_copy(a) for p, a in zip(self.arguments, arrays, strict=True)}
        else:
            before = self.inputs(seed)
        for argument in self.arguments:
            if argument.written and not argument.read:
                poison(before[argument.name])
        after: dict[str, np.ndarray[Any, Any]] = {}
        for argument in self.arguments:
            after[argument.name] = strided_empty(
                argument.shape, dtype_of(argument.dtype), argument.strides or None
            )
            after[argument.name][...] = before[argument.name]
        executable = self._executable or self.executable()
        ordered = tuple(after[p.name] for p in self.arguments)
        executable(ArgumentChecker(self.arguments, HOST, self.places())(ordered))
        try:
            return check_function(meaning, before, after)
        except MemoryError as error:
            raise ResourceError(
                "checking {name} takes more memory than there is: {why}", name=self.name, why=error,
                at=meaning.place, hint="check it with smaller tiles or arrays",
            ) from error  # fmt: skip

    def bench(self, *arrays: Any, rounds: int = 5, seconds: float = 0.5, seed: int = 0) -> RunRecord:
        """Time it in the measuring child, on copies of the arrays or on random ones from `seed`.

        Cold cache, warm-up, at least `rounds` rounds; the method stands in the record.
        """
        from .measure import measure_kernel

        return measure_kernel(self, arrays, rounds=rounds, seconds=seconds, seed=seed)
