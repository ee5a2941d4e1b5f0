"""A toy accelerator, installed beside tilebench: how to bring up a real one, step by step.

A target is a package of its own. It names its manifest under the entry point `tilebench.targets` (see
`pyproject.toml`), and nothing of tilebench is changed for it. Read, and copy, in this order:

1. `machine.py`: the accelerator in numbers (threads of a warp, sizes of memory, widths of an access) and
   its table of instructions, from which the compiler chooses.
2. `dialect.py` and `prelude.py`: its language, as far as it differs from C, and the small functions in
   front of a kernel. A function or dtype without a row is refused at the user's line.
3. `words.py`: words of one thread and functions of elements that only this accelerator has.
4. `meanings.py` and `intrinsics.py`: for each word of a thread what it does in the simulator, which then
   runs and checks every kernel of the target without the accelerator, and its text.
5. `emit.py`: from the last stage to text.
6. `instructions.py`: the accelerator's own instructions, a matrix product of a warp and a copy that goes
   on by itself: a row in `machine.py`, a lowering here, words and meanings as in steps 3 and 4.
7. `operation.py`: an operation on tiles that a kernel may call on every target.
8. `run.py`: compiling, loading and launching. `available` may say no: everything up to the text works
   on any machine.

After steps 1, 2, 4 (for the words that the language has) and 5, `kernel.using(target="toy")` shows all
stages of every kernel whose operations are lowered for threads. What a target can do is a table that
can be printed: `tilebench.targets.abilities`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from tilebench.ir import Stmt
from tilebench.passes.gpu_road import gpu_road
from tilebench.passes.threads.lowering import with_rows
from tilebench.targets import Build, EmitStep, Intrinsic, Manifest

from .instructions import LOWERINGS
from .machine import describe
from .words import FUNCTIONS, WORDS


def _intrinsics() -> tuple[Intrinsic, ...]:
    from .intrinsics import intrinsics  # imported when a kernel first gets there

    return intrinsics()


def _function_meanings() -> dict[str, Any]:
    from . import meanings

    return meanings.FUNCTIONS


def _emit(build: Build) -> None:
    from . import emit

    emit.emit_text(build)


def _lowered() -> Iterable[tuple[type[Stmt], str]]:
    return with_rows(LOWERINGS).rows


def _scalars() -> dict[str, frozenset[str]]:
    from .dialect import TOY_C

    return TOY_C.scalars()


@cache
def manifest() -> Manifest:
    """The manifest that the entry point names."""
    from .run import available, load

    return Manifest(
        name="toy",
        describe=describe,
        # Its blocks have warps and shared memory, so it shares the road of all such targets, with
        # lowerings of its own instructions.
        road=gpu_road(LOWERINGS),
        steps=(EmitStep("toy_c", "c", _emit),),
        load=load,
        available=available,
        examples=("toy",),
        words=WORDS,
        functions=FUNCTIONS,
        intrinsics=_intrinsics,
        function_meanings=_function_meanings,
        lowered=_lowered,
        scalars=_scalars,
    )
