"""The text of products of warp groups: calls of functions of the prelude.

A call is one instruction, or the steps of k that a loop writes out on the same sums: those are one statement
of assembly, so that the compiler in front of the assembler meets the sums once and not at each step (in tiles
of 128x256x64 NVRTC's time falls by a tenth, with the same instructions).

A descriptor's lower half is made of an address once, and what versions, groups and steps of k add to it is
added to that, in units of 16 bytes: the address is known when the kernel is linked, so in a loop an operand
costs an addition. The upper half is a constant.
"""

from __future__ import annotations

from typing import NamedTuple

from ....errors import TargetError
from ....ir import FALSE, TRUE, Const, Expr, Region, Var, all_of, const_of, substitute
from ....ir.arith import linear
from ....ir.expr_walks import mentions
from ....ir.facts import conjuncts
from ....language.lowered.settle import Settle
from ....language.structure import Unroll
from ...clike.renderer import Renderer
from ...clike.statements import loop
from ...intrinsics import Intrinsic
from ..instructions.wgmma import Wgmma, WgmmaCommit, WgmmaFence, WgmmaWait
from ..tensor_cores import PTX_TYPES
from ..warp_groups import MatrixForm, shape_of
from .simulated import simulated

# Bytes that an address in a descriptor counts in.
_UNIT = 16


class Steps(NamedTuple):
    """Steps of k on the same sums: how many, and how far A and B of one lie from those of the step before, in
    units of a descriptor, or in words of registers."""

    number: int
    a: int
    b: int


def unrolled(renderer: Renderer, statement: Unroll) -> None:
    """A loop of the language's, or the steps of a product in one call."""
    found = _steps_of(statement)
    if found is None:
        loop(renderer, statement)
    else:
        _product(renderer, *found)


def _steps_of(statement: Unroll) -> tuple[Wgmma, Steps] | None:
    """The first of the steps that a loop is, and the steps; None where the loop is something else.

    Only the first may start its sums at zero.
    """
    count, var = const_of(statement.stop), statement.vars[0]
    one = statement.body[0] if len(statement.body) == 1 else None
    if (
        type(one) is not Wgmma or count is None or count < 2
        or (const_of(statement.start), const_of(statement.step), statement.condition) != (0, 1, None)
        or any(mentions(part, var.name) for part in one.c.start)
        or any(_at(one, var, k).clear != FALSE for k in range(1, count))
    ):  # fmt: skip
        return None
    steps = [_distance(region, form, var) for region, form in ((one.a, one.a_form), (one.b, one.b_form))]
    if steps[0] is None or steps[1] is None:
        return None
    return _at(one, var, 0), Steps(count, steps[0], steps[1])


def _at(one: Wgmma, var: Var, number: int) -> Wgmma:
    """One of the steps."""
    step = substitute(one, {var.name: Const(number)})
    return step.but(clear=all_of(list(conjuncts(step.clear))))


def _distance(region: Region, form: MatrixForm | None, var: Var) -> int | None:
    """What a region's start grows by with the variable; None where that is not the same everywhere."""
    start = linear(region.start[-1])
    unit, bits = (4 if form is None else _UNIT), region.buffer.dtype.bits
    bytes_, odd = divmod(start.coefficient(var) * bits, 8)
    if odd or bytes_ % unit or any(mentions(term, var.name) for term, _ in start.without(var).terms):
        return None
    return bytes_ // unit


def _wgmma(renderer: Renderer, statement: Wgmma) -> None:
    """`tb_wgmma_m64n256k16_f32_f16_f16<...>(c, A_s descriptor, B_s descriptor, keep);`"""
    _product(renderer, statement, None)


def _product(renderer: Renderer, statement: Wgmma, steps: Steps | None) -> None:
    regions = (statement.c, statement.a, statement.b)
    types = [PTX_TYPES.get(region.buffer.dtype.name, "") for region in regions]
    types = [types[0], *("tf32" if name == "f32" else name for name in types[1:])]
    if not all(types) or shape_of(statement.shape, statement.a.buffer.dtype.bits) is None or (
        statement.b_form is None or (statement.a_form is None) != (statement.a.buffer.scope == "local")
    ):  # fmt: skip
        raise TargetError(
            "T.wgmma {shape} of {dtypes} has no code for {target}", at=statement.place, shape=statement.shape,
            target=renderer.machine.name, dtypes=", ".join(region.buffer.dtype.name for region in regions),
        )  # fmt: skip
    forms = [form for form in (statement.a_form, statement.b_form) if form is not None]
    name = f"tb_wgmma_{statement.shape}_{'_'.join(types)}" + ("" if statement.a_form else "_registers")
    # The first of several that start at zero does so by its predicate.
    begins = statement.clear == TRUE and steps is None
    name += "_first" if begins else "" if steps is None else f"_x{steps.number}"
    options = [f"{form.high:#x}u, {int(form.turned)}" for form in forms]
    options += [] if steps is None else [str(steps.a), str(steps.b)]
    sides = [
        renderer.address(statement.a)
        if statement.a_form is None
        else _matrix(renderer, statement.a, forms[0]),
        _matrix(renderer, statement.b, forms[-1]),
    ]
    arguments = [renderer.address(statement.c), *sides]
    if not begins:
        arguments.append("1" if statement.clear == FALSE else f"!({renderer.text(statement.clear)})")
    renderer.line(f"{name}<{', '.join(options)}>({', '.join(arguments)});", statement)


def _matrix(renderer: Renderer, region: Region, form: MatrixForm) -> str:
    """The lower half of a descriptor: of the buffer, and the distance of the region from its start."""
    own = f"tb_matrix<{form.lead}>({renderer.names[region.buffer.name]})"
    distance = _units(region.start[-1], region.buffer.dtype.bits // 8)
    if const_of(distance) == 0:
        return own
    return f"{own} + ({renderer.text(distance)})"


def _units(start: Expr, size: int) -> Expr:
    """A number of elements as one of units; each of its terms is a multiple of one, as rows and lines are."""
    form = linear(start)
    per = _UNIT // size
    if form.constant % per == 0 and all(factor % per == 0 for _, factor in form.terms):
        terms = tuple((term, factor // per) for term, factor in form.terms)
        return type(form)(terms, form.constant // per).expr()
    return start // per


def _fence(renderer: Renderer, statement: WgmmaFence) -> None:
    renderer.line("tb_wgmma_fence();", statement)


def _commit(renderer: Renderer, statement: WgmmaCommit) -> None:
    renderer.line("tb_wgmma_commit();", statement)


def _wait(renderer: Renderer, statement: WgmmaWait) -> None:
    if statement.c is None:
        renderer.line(f"tb_wgmma_wait<{statement.pending}>();", statement)
        return
    count = (statement.c.extent or (1,))[-1]
    to = renderer.address(statement.c)
    renderer.line(f"tb_wgmma_wait_{count}<{statement.pending}>({to});", statement)


def _settle(renderer: Renderer, statement: Settle) -> None:
    to = renderer.address(statement.what)
    for number in range((statement.what.extent or (1,))[-1]):
        renderer.line(f"tb_settle(({to})[{number}]);", statement)


INTRINSICS = (
    Intrinsic(Wgmma, simulated("wgmma_meaning", "wgmma"), _wgmma),
    Intrinsic(WgmmaFence, simulated("wgmma_meaning", "wgmma_fence"), _fence),
    Intrinsic(WgmmaCommit, simulated("wgmma_meaning", "wgmma_commit"), _commit),
    Intrinsic(WgmmaWait, simulated("wgmma_meaning", "wgmma_wait"), _wait),
    Intrinsic(Settle, simulated("wgmma_meaning", "settle"), _settle),
)
