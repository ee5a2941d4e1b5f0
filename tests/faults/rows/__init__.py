"""The faults, a module a room; a row whose place is gone is mended or taken out, never left."""

from __future__ import annotations

from collections.abc import Mapping

from ..fault import Fault
from . import (
    atomics,
    control,
    copies,
    counts,
    cpu,
    cuda,
    editor,
    facts,
    kernels,
    launches,
    layouts,
    memory,
    numbers,
    outside,
    pictures,
    placement,
    pointers,
    products,
    random_numbers,
    reductions,
    roads,
    simulator,
    speech,
    storage,
    thread_code,
    threads,
    tiles,
    workbench,
)

FAULTS: tuple[Fault, ...] = (
    *facts.FAULTS,
    *tiles.FAULTS,
    *copies.FAULTS,
    *launches.FAULTS,
    *layouts.FAULTS,
    *products.FAULTS,
    *memory.FAULTS,
    *threads.FAULTS,
    *thread_code.FAULTS,
    *reductions.FAULTS,
    *roads.FAULTS,
    *storage.FAULTS,
    *simulator.FAULTS,
    *cpu.FAULTS,
    *cuda.FAULTS,
    *outside.FAULTS,
    *pictures.FAULTS,
    *placement.FAULTS,
    *random_numbers.FAULTS,
    *pointers.FAULTS,
    *kernels.FAULTS,
    *atomics.FAULTS,
    *control.FAULTS,
    *workbench.FAULTS,
    *numbers.FAULTS,
    *speech.FAULTS,
    *counts.FAULTS,
    *editor.FAULTS,
)
BY_NAME: Mapping[str, Fault] = {fault.name: fault for fault in FAULTS}
