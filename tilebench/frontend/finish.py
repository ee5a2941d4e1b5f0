"""The last step of a trace: the statements and parameters become a function that is known to be legal."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import LanguageError
from ..ir import Buffer, Function, Var, verify
from ..language.checks import check_iterations
from ..language.closing.block_atomics import of_block
from ..language.closing.from_the_end import count_from_the_end
from ..language.closing.grid_barriers import split_at_barriers
from ..language.closing.lone_elements import kept_in_shared
from ..language.closing.number_draws import number_draws
from ..language.closing.open_reducers import open_reducers
from ..language.closing.open_views import open_views
from ..language.closing.printed_rows import with_rows
from ..language.threads.runs import in_runs
from .parameters import check_sizes
from .source import SourceFunction
from .statements import Statements


def finished(tracer: Statements, source: SourceFunction, params: Sequence[Buffer | Var]) -> Function:
    """The kernel of these statements. Raises a `TileError` at the line of what is wrong as a whole."""
    builder, place = tracer.builder, source.place(source.node)
    if builder.kernel is None:
        raise LanguageError(
            "the kernel {name} has no `with T.Kernel(...)`",
            at=place,
            name=source.node.name,
            hint="with T.Kernel(blocks_x, blocks_y, threads=128) as (bx, by):",
        )
    traced = Function(source.node.name, tuple(params), tuple(builder.frames[0].statements), place=place)
    if builder.draws:
        traced = number_draws(traced, builder.draws)
    if builder.speaks:
        traced, builder.printed = with_rows(traced, builder)
    kernel = kept_in_shared(traced, builder.lone) if builder.lone else traced
    opened = open_views(count_from_the_end(kernel), builder.views)
    kernel = split_at_barriers(open_reducers(opened, builder.reducers))
    runs = in_runs(kernel, builder)
    if runs is not kernel:
        # Now it is known what the numbers of threads count to.
        kernel = count_from_the_end(runs)
    kernel = of_block(kernel, builder.unique)
    if builder.sources:
        kernel = kernel.but(info=(*kernel.info, ("sources", tuple(builder.sources))))
    check_sizes(kernel)
    verify(kernel)
    check_iterations(kernel)
    return kernel
