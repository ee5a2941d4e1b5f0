"""The kernel a person holds: call it, check it, look at its stages, time it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..compiler import Compilation
from ..errors import ArgumentError, OptionError, Place, ResourceError, TargetError, whole_option
from ..frontend import Traced
from ..ir import Function
from ..ir.dtypes import dtype_of
from ..ir.sizes import Number, for_sizes
from ..machine import Machine
from ..passes.analysis.writers import writers
from ..record import CompileRecord, Resources, RunRecord
from ..recorder import arguments_of, make_record, resources_of, text_of
from ..runtime.cache import default_cache, key_of
from ..runtime.calls import BoundCall
from ..schedule import Schedule
from ..targets import Executable, Manifest
from .available import require_available
from .calls.calling import Calls
from .calls.host_arrays import empty_for, empty_like, handed_back, host_copy
from .calls.variants import ALIGNED, under
from .clocked import Clocked
from .foreign_names import ForeignNames
from .keeping import Keeping
from .measuring.rehearse import rehearse
from .pickled import reduce_kernel
from .pictured import Pictured
from .spoken import empty_rows, refuse_failed, tell, with_rows

if TYPE_CHECKING:
    from ..profile.diagnosis import Diagnosis
    from .measuring.profiler import Profiler


class Kernel(Clocked, ForeignNames, Keeping, Pictured):
    """One kernel for one set of parameters, target and schedule. Compiled as far as it is asked for.

    Calling it runs it on NumPy arrays (any target) or on torch and CuPy tensors of the target's
    device, in the order of its parameters.
    """

    # Of one that a tuner chose: what it was made with, and its milliseconds beside those of another program.
    config: Mapping[str, Any] | None = None
    latency: float | None = None
    ref_latency: float | None = None
    # What became of the other configurations; its text is a table.
    tuning: Any = None

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
        aligned = under(traced.function, ALIGNED, machine) if start == "tile" else traced.function
        self.compilation = Compilation(
            replace(traced, function=aligned),
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
        self.printed = traced.printed
        count = len(self.arguments) - (0 if self.printed is None else len(self.printed.arrays))
        bad = [k for k in out_idx if not -count <= k < count]
        if bad:
            raise ArgumentError(
                "out_idx {bad} is no parameter of {name}", bad=bad[0], name=self.name,
                expected=f"from {-count} to {count - 1}",
            )  # fmt: skip
        self.outputs = tuple(sorted(k % count for k in out_idx))
        # The arrays for what the kernel says, which no caller sees.
        self.hidden = tuple(range(count, len(self.arguments)))
        self._direct = not self.outputs and not self.hidden and self.printed is None
        arrays = [k for k, record in enumerate(self.arguments) if not record.is_scalar]
        # Where the outputs stand among the records of the arrays.
        self._output_rows = [arrays.index(k) for k in self.outputs if k in arrays]
        self.calls = Calls(self.compilation, traced, self.arguments, self.places())
        self.sizes: Mapping[str, Any] = {}
        # What made this one of edited text, with its arguments.
        self.recipe: tuple[Callable[..., Kernel], tuple[Any, ...]] | None = None

    def __repr__(self) -> str:
        values = ", ".join(f"{k}={v!r}" for k, v in self.parameters.items())
        return f"<tilebench kernel {self.name}({values}) for {self.target}>"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return reduce_kernel(self)

    def __copy__(self) -> Kernel:
        kernel = object.__new__(type(self))
        kernel.__dict__.update(self.__dict__)
        return kernel

    def __deepcopy__(self, _: object) -> Kernel:
        """Another handle of the same code: nothing of it changes."""
        return copy.copy(self)

    def at(self, sizes: Mapping[str, Any]) -> Kernel:
        """The same kernel, checked and timed at these sizes and scalars when no arrays are given.

        Raises `OptionError` for a name that its calls do not have.
        """
        if not sizes:
            return self
        self.calls.binder.refuse_unknown(sizes)
        kernel = copy.copy(self)
        kernel.sizes = {**self.sizes, **sizes}
        return kernel

    # -- running
    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Run on arrays and scalars, in parameter order or by name. Returns what `out_idx` names, else None.

        Sizes of `T.dynamic` are read from the arrays.

        On a CUDA device it returns when the kernel has been launched on the caller's current
        stream. Raises `ArgumentError` when an array does not fit, `TargetError` when the target
        cannot run here.
        """
        if self._direct and not named and self.calls.again(arrays):
            return None
        if named:
            arrays = self._with_named(arrays, named)
        results: list[Any] = []
        if self.outputs or self.hidden:
            arrays, results = self.with_outputs(arrays)
        self.calls.run(arrays, self._load)
        if self.printed is not None:
            tell(self, arrays)
        if not results:
            return None
        results = handed_back(arrays[0], results)
        return results[0] if len(results) == 1 else tuple(results)

    def executable(self) -> Executable:
        """The loaded code for aligned arrays. Raises `TargetError` where it cannot run."""
        return self.calls.executable(ALIGNED, {}, self._load)

    def _load(self, compilation: Compilation, values: Mapping[str, Number]) -> Executable:
        """The code of a variant of this kernel, made and, in a notebook, rehearsed with these sizes."""
        manifest = compilation.manifest
        require_available(manifest, self.name, self.target)
        compilation.reach_code()
        assert compilation.build is not None  # reach_code made it
        if manifest.rehearse and (values or self.calls.plain):
            rehearse(compilation, values)
        return manifest.load(compilation.build)

    def reach_code(self) -> None:
        """Compile up to loadable code; what is made in the background is left out."""
        self.compilation.reach_code()

    def places(self) -> dict[str, Place]:
        """Where each parameter stands in the source."""
        return dict(self.compilation.traced.places)

    def _with_named(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """All arguments of a call in order, where some are given by the names of parameters."""
        made = (*self.outputs, *self.hidden)
        names = [record.name for k, record in enumerate(self.arguments) if k not in made]
        rest = names[len(arrays) :]
        wrong = [name for name in named if name not in rest] or [name for name in rest if name not in named]
        if wrong:
            taken = "is given already" if wrong[0] in names else "is no parameter that a call passes"
            raise ArgumentError(
                "{name} {why}", name=wrong[0], why="is missing" if wrong[0] not in named else taken,
                at=self.compilation.traced.function.place, expected=", ".join(names),
            )  # fmt: skip
        return (*arrays, *[named[name] for name in rest])

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the arrays that a call makes itself and returns."""
        return tuple(self.arguments[k].name for k in self.outputs)

    def with_outputs(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]]:
        inputs, made = list(arrays), (*self.outputs, *self.hidden)
        if len(inputs) != len(self.arguments) - len(made):
            raise ArgumentError(
                "{name} takes {want} {what} and returns {made}",
                at=self.compilation.traced.function.place,
                name=self.name,
                want=len(self.arguments) - len(made),
                made=len(self.outputs),
                what=self.calls.binder.takes,
                found=f"{len(inputs)} {self.calls.binder.takes}",
            )
        for k in self.outputs:
            if self.arguments[k].strides:
                name = self.arguments[k].name
                raise ArgumentError(
                    "out_idx cannot make {name}, which has strides of its own", name=name,
                    at=self.places().get(name), hint="pass an array for it",
                )  # fmt: skip
        call = self.calls.binder(inputs, without=made)
        outputs = [call.records[row] for row in self._output_rows]
        if call.arrays:
            results = [empty_like(call.arrays[0], record.extents, record.dtype) for record in outputs]
        else:
            device = self.compilation.manifest.device
            results = [empty_for(device, record.extents, record.dtype) for record in outputs]
        for k, output in zip(self.outputs, results, strict=True):
            inputs.insert(k, output)
        return (*inputs, *empty_rows(self, call.arrays)), results

    # -- looking
    def stage(self, name: str) -> str:
        """The text of a stage, made now if needed. `OptionError` names those there are."""
        return text_of(self.compilation, name)

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of all stages, the source first."""
        return self.compilation.stage_names

    def record(self, stages: Sequence[str] | None = None) -> CompileRecord:
        """The record with the named stages; by default all but those made in the background.

        The default one has what bounds the kernel among its remarks, by the name `diagnosis`.
        """
        if stages is None:
            self.reach_code()
        made = replace(make_record(self.compilation, stages), variant=ALIGNED.name, ran=self.calls.ran)
        if stages is not None:
            return made
        from .measuring.diagnosing import with_diagnosis

        return with_diagnosis(self, made)

    @property
    def resources(self) -> Resources:
        """Registers, shared memory, occupancy of the compiled code.

        Raises `TargetError` where the target's road ends before a block has any.
        """
        self.reach_code()
        found = resources_of(self.compilation)
        if found is None:
            raise TargetError(
                "{target} does not say what a block of {name} takes", target=self.compilation.machine.name,
                name=self.name,
            )  # fmt: skip
        return found

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """The text the target's own compiler gets: CUDA C, or LLVM IR. `kernel_only` is TileLang's."""
        texts = [step.name for step in self.compilation.manifest.steps if step.tier == "text"]
        return self.stage(texts[-1])

    # -- checking and timing
    def get_profiler(self, tensor_supply_type: Any = None) -> Profiler:
        """Times in milliseconds and comparisons in this process, in TileLang's words."""
        from .measuring.profiler import Profiler

        return Profiler(self, tensor_supply_type)

    @property
    def meaning(self) -> Function | None:
        """The kernel in a stage that the reference runs; None where it starts below and like nothing."""
        return self.compilation.reference

    def inputs(
        self, seed: int = 0, sizes: Mapping[str, Any] | None = None
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Random arrays for the parameters, from a seed; outputs hold poison. `sizes` as for `check`."""
        from ..reference import make_inputs

        whole_option("seed", seed, 0)
        call = self.call_of((), sizes)
        made = make_inputs(for_sizes(self.meaning or self.compilation.traced.function, call.values), seed)
        for k in self.hidden:
            made[self.arguments[k].name][...] = 0
        return made

    def call_of(self, arrays: Sequence[Any], sizes: Mapping[str, Any] | None) -> BoundCall:
        """The call on these arrays or, without, for these sizes and scalars by name.

        Raises `OptionError` where both are given, or `sizes` are no names with values.
        """
        if not arrays:
            if sizes is not None and not isinstance(cast(object, sizes), Mapping):
                raise OptionError(
                    "sizes cannot be {value}", value=repr(sizes), expected="names with values, as {example}",
                    example="{'n': 1000}",
                )  # fmt: skip
            return self.calls.binder.of(sizes or self.sizes)
        if sizes:
            raise OptionError("sizes are read from the arrays that were given", hint="leave sizes= out")
        return self.calls.described(arrays)[0]

    def random_arguments(self, seed: int = 0) -> list[Any]:
        """Random arrays from a seed and the scalars of `at`, in parameter order: what a call takes."""
        return self._in_order(self.calls.binder.of(self.sizes), self.inputs(seed))

    def check(self, *arrays: Any, seed: int = 0, sizes: Mapping[str, Any] | None = None) -> Any:
        """Run on copies of the arguments (random arrays from `seed` if none) and compare every element.

        Without arguments `sizes` gives the sizes and scalars of the kernel by name, where it has some.

        The bound of each element is computed from the operations and the inputs; no share of wrong
        elements is forgiven, nor one that is never written in an array that the call makes. Returns a
        `CheckReport`: `.ok`, `.raise_if_wrong()`, and its text. Raises `ArgumentError` for another number
        of arguments, `OptionError` where nothing says what the kernel means, and `ResourceError` where
        checking takes more memory than there is.
        """
        from ..reference import check_function, poison, strided_empty

        meaning = self.meaning
        if meaning is None:
            raise OptionError(
                "{name} starts at {stage}, which says what threads do and not what the kernel means",
                name=self.name, stage=self.compilation.start,
                hint="give the kernel it was edited from: compile_from(stage, text, like=kernel)",
            )  # fmt: skip
        seen = len(self.arguments) - len(self.hidden)
        if arrays and len(arrays) != seen:
            raise ArgumentError(
                "{name} is checked on {want} {what}", name=self.name, want=seen, what=self.calls.binder.takes,
                found=f"{len(arrays)} {self.calls.binder.takes}",
                hint="give one for each parameter, outputs too, or none for random ones",
            )  # fmt: skip
        arrays = with_rows(self, arrays)
        call = self.call_of(arrays, sizes)
        meaning = for_sizes(meaning, call.values)
        if arrays:
            before = {p.name: host_copy(a) for p, a in zip(call.records, call.arrays, strict=True)}
        else:
            before = self.inputs(seed, sizes)
        after: dict[str, np.ndarray[Any, Any]] = {}
        for param in call.records:
            if param.written and not param.read:
                poison(before[param.name])
            after[param.name] = strided_empty(param.extents, dtype_of(param.dtype), param.steps or None)
            after[param.name][...] = before[param.name]
        self.calls.run(self._in_order(call, after), self._load)
        refuse_failed(self, after, call.values)
        try:
            by = writers(self.compilation.functions)
            return check_function(meaning, before, after, fresh=self.output_names, threads=by)
        except MemoryError as error:
            raise ResourceError(
                "checking {name} takes more memory than there is: {why}", name=self.name, why=error,
                at=meaning.place, hint="check it with smaller tiles or arrays",
            ) from error  # fmt: skip

    def _in_order(self, call: BoundCall, arrays: Mapping[str, Any]) -> list[Any]:
        """Arrays by name and the scalars of a call, in parameter order."""
        return [call.values[p.name] if p.is_scalar else arrays[p.name] for p in self.arguments]

    def diagnose(self, run: RunRecord | None = None, others: Sequence[RunRecord] = ()) -> Diagnosis:
        """What bounds this kernel and what keeps it from being faster, in words with evidence.

        `run` is a measurement of it (what `bench` gives), `others` those of other positions. Without them
        only what the compilation shows is said. Nothing is run.
        """
        from .measuring.diagnosing import diagnose_kernel

        return diagnose_kernel(self, run, others)

    def bench(
        self,
        *arrays: Any,
        rounds: int = 5,
        seconds: float = 0.5,
        seed: int = 0,
        sizes: Mapping[str, Any] | None = None,
    ) -> RunRecord:
        """Time it in the measuring child, on copies of the arguments or on random arrays from `seed`.

        Without arguments `sizes` gives the sizes and scalars of the kernel by name, where it has some.
        Cold cache, warm-up, at least `rounds` rounds; the method stands in the record.
        """
        from .measuring.measure import measure_kernel

        return measure_kernel(
            self, with_rows(self, arrays), rounds=rounds, seconds=seconds, seed=seed, sizes=sizes
        )
