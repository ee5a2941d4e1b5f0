"""From the arguments of a call to the code that runs: bound, checked, in the variant that fits them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...compiler import Compilation
from ...errors import ArgumentError, Place, TargetError
from ...ir.sizes import Number
from ...record import ParamRecord
from ...runtime.arrays import ArgumentChecker
from ...runtime.cache import default_cache, key_of
from ...runtime.calls import BoundCall, CallBinder
from ...runtime.describe import ArrayInfo
from ...runtime.packed import give_back
from ...targets import Executable
from ...targets.devices import HOST
from .host_arrays import empty_for, empty_like, on_host
from .repeated import RepeatedCalls
from .variants import ALIGNED, Chooser, Variant, under

# Checkers kept by the sizes of a call; each is a few kilobytes.
_MOST_CHECKERS = 64


class Calls:
    """The calls of one kernel. `compilation` is its aligned variant, and `traced` what all are made from."""

    def __init__(
        self,
        compilation: Compilation,
        traced: Any,
        records: Sequence[ParamRecord],
        places: Mapping[str, Place],
    ) -> None:
        self.traced = traced
        self.places = dict(places)
        self.binder = CallBinder(traced.function, records, places)
        self.chooser = Chooser(traced.function, compilation.machine)
        self.compilations: dict[Variant, Compilation] = {ALIGNED: compilation}
        self.executables: dict[Variant, Executable] = {}
        # The one that nearly every call takes, without the hash of a variant.
        self._aligned: Executable | None = None
        self.plain = self.binder.plain
        self._device = compilation.manifest.device
        self._records = tuple(records)
        # The call of a kernel of fixed sizes: there is nothing to bind.
        self._unbound = BoundCall({}, (), self._records)
        self._packs = any(array.dtype.per_byte > 1 for array in traced.function.arrays)
        # Calls of torch tensors like those of an earlier call; not where numbers are passed too.
        self._repeated = RepeatedCalls() if not self.binder.scalars and not self._packs else None
        self._checkers: OrderedDict[Any, ArgumentChecker] = OrderedDict()
        self._lock = threading.RLock()

    @property
    def ran(self) -> tuple[str, ...]:
        """The names of the variants that calls have taken."""
        return tuple(variant.name for variant in self.executables)

    def run(self, arguments: Sequence[Any], load: Any) -> None:
        """Check the arguments and run the variant that they fit. `load(compilation, values)` makes code."""
        if self.again(arguments):
            return
        try:
            call, infos = self._checked(arguments)
        except ArgumentError as error:
            arguments = self._filled(arguments, error)
            call, infos = self._checked(arguments)
        # Where nothing is to be chosen nothing is asked: a small kernel's call takes 6 us in all.
        if self.chooser.single or (self.plain and self.chooser.are_aligned(infos)):
            variant = ALIGNED
        else:
            variant = self.chooser(call.values, infos)
        found = self._aligned if variant is ALIGNED else self.executables.get(variant)
        executable = found or self.executable(variant, call.values, load)
        executable(infos if self.plain else self.binder.ordered(call, infos))
        if self._packs:
            give_back(infos)
        if variant.aligned and self._repeated is not None and hasattr(executable, "prepared"):
            self._remember(self._repeated, executable, call, infos, arguments)

    def again(self, arguments: Sequence[Any]) -> bool:
        """Run, if a call like this one has been; whether it ran."""
        return self._repeated is not None and self._repeated(arguments)

    def _remember(
        self, repeated: RepeatedCalls, executable: Any, call: BoundCall, infos: Sequence[ArrayInfo],
        arguments: Sequence[Any],
    ) -> None:  # fmt: skip
        if not self.plain and list(map(id, call.arrays)) != list(map(id, arguments)):
            return  # the arrays stand in another order than the arguments
        # What is kept of a call keeps none of its arrays alive.
        shapes = [info._replace(owner=None) for info in infos]
        kept = shapes if self.plain else self.binder.ordered(call, shapes)
        repeated.remember(
            self.checker(call, arguments), infos, self.chooser.alignment,
            lambda ordinal, owner: executable.prepared(ordinal, kept, owner),
        )  # fmt: skip

    def _filled(self, arguments: Sequence[Any], error: ArgumentError) -> list[Any]:
        """The arguments with an array for each None that the kernel does not touch. Raises the error else."""
        missing = [k for k, argument in enumerate(arguments) if argument is None]
        if not missing or len(arguments) != len(self._records):
            raise error
        for k in missing:
            self._refuse_touched(self._records[k])
        # Of the type: a nested tensor has no shape that can be asked for.
        given = [argument for argument in arguments if _has_shape(argument)]
        passed = [argument for argument in arguments if argument is not None]
        # Its sizes are those of the other arrays.
        sized = {record.name: record for record in self.binder(passed, without=missing).records}
        filled = list(arguments)
        for k in missing:
            record = sized[self._records[k].name]
            shape, dtype = record.extents, record.dtype
            filled[k] = empty_like(given[0], shape, dtype) if given else empty_for(self._device, shape, dtype)
        return filled

    def _refuse_touched(self, record: ParamRecord) -> None:
        """Raise `ArgumentError` for None in place of what the kernel needs."""
        if record.is_scalar or record.read or record.written:
            raise ArgumentError(
                "{name} is None, and the kernel {does} it", name=record.name,
                at=self.places.get(record.name),
                does="reads" if record.read else "writes" if record.written else "takes",
                hint="pass an array; None is for one that the kernel for these parameters does not touch",
            ) from None  # fmt: skip
        if any(isinstance(size, str) for size in record.strides):
            raise ArgumentError(
                "{name} is None, and its strides are read from it", name=record.name,
                at=self.places.get(record.name), hint="pass an empty array of the right shape",
            ) from None  # fmt: skip

    def described(self, arguments: Sequence[Any]) -> tuple[BoundCall, list[ArrayInfo]]:
        """The call, and its arrays as a launch needs them. Raises `ArgumentError` for what does not fit."""
        call, infos = self._checked(arguments)
        return (call._replace(arrays=tuple(arguments)) if self.plain else call), infos

    def _checked(self, arguments: Sequence[Any]) -> tuple[BoundCall, list[ArrayInfo]]:
        """As `described`; of a kernel of fixed sizes the call is one for all, without its arrays."""
        try:
            if self.plain:
                return self._unbound, self.checker(self._unbound, arguments)(arguments)
            call = self.binder(arguments)
            return call, self.checker(call, call.arrays)(call.arrays)
        except ArgumentError as error:
            # What is wrong with the call as a whole has no parameter to stand at.
            error.place = error.place or self.traced.function.place
            raise

    def checker(self, call: BoundCall, arrays: Sequence[Any]) -> ArgumentChecker:
        """The checker for arrays of these sizes on the device they are on."""
        device = self._device
        if device != HOST and (not arrays or np.ndarray in map(type, arrays) or on_host(arrays[0])):
            device = HOST
        # The records of one set of sizes are one tuple, which lives as long as the checker that has it.
        key = device if self.plain else (device, id(call.records))
        found = self._checkers.get(key)
        if found is None:
            found = self._checkers[key] = ArgumentChecker(call.records, device, self.places)
            while len(self._checkers) > _MOST_CHECKERS:
                self._checkers.popitem(last=False)
        return found

    def executable(self, variant: Variant, values: Mapping[str, Number], load: Any) -> Executable:
        """The loaded code of a variant, compiled at its first call."""
        with self._lock:
            found = self.executables.get(variant)
            if found is None:
                found = self.executables[variant] = load(self.compiled(variant), values)
                if variant == ALIGNED:
                    self._aligned = found
            return found

    def compiled(self, variant: Variant) -> Compilation:
        """The compilation of a variant. `TargetError` where edited text fixes another one."""
        with self._lock:
            found = self.compilations.get(variant)
            if found is None:
                found = self.compilations[variant] = self._compile(variant)
            return found

    def _compile(self, variant: Variant) -> Compilation:
        first = self.compilations[ALIGNED]
        if first.start != "tile" or any(edit.stage != "tile" for edit in first.edits):
            raise TargetError(
                "these arrays need another variant ({variant}), and the text of a stage is one",
                variant=variant.name, at=self.traced.function.place,
                hint="call the kernel that the text was edited from, or pass arrays at aligned addresses",
            )  # fmt: skip
        function = under(self.traced.function, variant, first.machine)
        return Compilation(
            replace(self.traced, function=function), first.manifest, first.machine, first.schedule,
            store=default_cache(), key_of=key_of,
        )  # fmt: skip


def _has_shape(argument: object) -> bool:
    return hasattr(type(argument), "shape")
