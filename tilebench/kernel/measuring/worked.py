"""What a call does, counted while the reference runs it: also where only data say how much that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import OptionError
from ...ir.sizes import for_sizes
from .measure import traveller

if TYPE_CHECKING:
    from ...passes.analysis.count_work import Work
    from ...reference.counting import CountedWork
    from ..kernel import Kernel


def count_call(kernel: Kernel, *arrays: Any, seed: int = 0) -> CountedWork:
    """Operations and bytes of a call on these arguments (random ones from `seed` if none), one by one.

    What no stored element needs is not counted: tiles that stick out, rows that are masked. Takes some
    hundred bytes of memory an operation, so it is for small sizes. Raises `OptionError` where nothing says
    what the kernel means, and what `check` raises of arrays that do not fit.
    """
    from ...reference.counting import count_running

    meaning = kernel.meaning
    if meaning is None:
        raise OptionError(
            "nothing says what {name} means: it starts at {stage}", name=kernel.name,
            stage=kernel.compilation.start, hint="count the kernel that it was edited from",
        )  # fmt: skip
    given = arrays or tuple(kernel.random_arguments(seed))
    call = kernel.call_of(given, None)
    names = [argument.name for argument in kernel.arguments if not argument.is_scalar]
    copies = {name: traveller(array).copy() for name, array in zip(names, call.arrays, strict=True)}
    return count_running(for_sizes(meaning, call.values), copies)


def work_text(kernel: Kernel, *arrays: Any, seed: int = 0) -> str:
    """`count_call` in words, beside what a compilation reads off the text."""
    given = arrays or tuple(kernel.random_arguments(seed))
    told: Work = kernel.compilation.work(kernel.call_of(given, None).values)
    ran = count_call(kernel, *given)
    read, written = sum(ran.read.values()), sum(ran.written.values())
    counted = f"{ran.flops:,.0f} operations, {ran.bytes:,} bytes ({read:,} read, {written:,} written)"
    by_text = f"{told.flops:,.0f} operations, {told.bytes:,.0f} bytes"
    if not told.known:
        by_text = "data decide how much it is, so no rate is shown of this kernel"
    return f"Work of this run, counted by the reference: {counted}\nWork by the text: {by_text}"
