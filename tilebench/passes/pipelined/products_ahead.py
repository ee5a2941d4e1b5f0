"""Products that go on into the next step of a ring, while its operands are fetched and its barrier is met.

A product by an asynchronous instruction is issued under a token of the loop, a group a step, and a step waits
for all of them but its own: what the step before multiplied is read then, and may be filled again. So units
that multiply are at work while threads wait for tiles and for each other. Behind the loop the last one is
waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir import Expr, If, Stmt, effects_in
from ...ir.expr import TRUE
from ...ir.names import Names
from ...language.accumulation import gemm_sum_dtype
from ...language.copy import Copy
from ...language.gemm import Gemm
from ...language.lowered.decisions import PRODUCER, Instr
from ...language.lowered.tokens import Commit, Wait
from ...language.structure import Pipelined
from ...machine import Machine
from ..context import Context
from ..laid_out.choose_instructions import row_of

# A ring of two whose products go on has one copy under way at a time. A product of 4096 on an H200 takes
# 230 us where they do not and 284 where they do in tiles of 128x128x64, 296 and 409 in 128x128x32.
LEAST_VERSIONS = 3


@dataclass(frozen=True)
class ProductsAhead:
    """The products of a loop that go on into its next step, and their token; none: each is waited for."""

    loop: Pipelined
    products: tuple[Gemm, ...] = ()
    token: str = ""

    @property
    def by(self) -> Instr | None:
        """Their instruction."""
        return self.products[0].by if self.products else None

    def issued(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """What a step computes, with these products under their token and without waits of their own."""
        if not self.products:
            return tuple(body)
        own = {id(product) for product in self.products}
        tokens = {product.token for product in self.products}
        kept = [s for s in body if not (isinstance(s, (Commit, Wait)) and s.token in tokens)]
        return tuple(s.but(token=self.token) if id(s) in own and isinstance(s, Gemm) else s for s in kept)

    def waited(self) -> tuple[Stmt, ...]:
        """What stands behind the products of a step."""
        if not self.products:
            return ()
        place = self.loop.place
        return (
            Commit(self.token, by=self.by, place=place),
            Wait(self.token, pending=1, by=self.by, place=place),
        )

    def drained(self, *then: Stmt) -> tuple[Stmt, ...]:
        """What stands behind the loop, and what is done then; in a loop without a step nothing was issued."""
        if not self.products:
            return ()
        last = Wait(self.token, by=self.by, place=self.loop.place)
        some: Expr = self.loop.start.compare("<", self.loop.stop)
        return (last, *then) if some == TRUE else (If(some, (last, *then), (), place=self.loop.place),)


def ahead_of(loop: Pipelined, ringed: set[str], names: Names, context: Context) -> ProductsAhead:
    """The products of a loop that go on into its next step, which fills the tiles `ringed`."""
    found, why = products_that_go_on(loop, ringed, context.machine)
    plan = loop.plan
    if found and plan is not None and plan.stages < LEAST_VERSIONS and plan.roles != PRODUCER:
        few = f"of {plan.stages} versions the next one would be filled behind the product, and not beside it"
        context.remark("make_ring", "note", f"products are waited for in their own step: {few}", loop)
        return ProductsAhead(loop)
    if why:
        context.remark("make_ring", "missed", f"products are waited for in their own step: {why}", loop)
    if not found:
        return ProductsAhead(loop)
    for product in found:
        context.remark(
            "make_ring", "applied", f"the product into {product.c.buffer.name} goes on into the next step: "
            "what it reads is filled again behind the wait for it", product,
        )  # fmt: skip
    return ProductsAhead(loop, found, names.fresh(loop.vars[0].name + "_products"))


def products_that_go_on(loop: Pipelined, ringed: set[str], machine: Machine) -> tuple[tuple[Gemm, ...], str]:
    """The products of a loop's body that need not be waited for in their own step, all or none; and why none.

    Their operands are tiles in shared memory that the ring fills, or that nothing in the loop writes; their
    sums are used by nothing else in it. Copies that shall be issued in front of what a step computes would
    fill what the step before still reads. Nothing is said of products that are no asynchronous instructions.
    """
    products = tuple(s for s in loop.body if isinstance(s, Gemm) and row_of(s, machine).asynchronous)
    if not products:
        return (), ""
    others = [s for s in loop.body if s not in products and not isinstance(s, (Commit, Wait))]
    used = {effect.buffer.name for s in others for effect in effects_in(s)}
    written = {effect.buffer.name for s in others for effect in effects_in(s) if effect.writes}
    for product in products:
        if why := _waited_for(product, used, written - ringed, machine):
            return (), why
    if any(isinstance(s, Copy) and s.at_stage is not None and s.at_stage.last is False for s in others):
        return (), "copies are to be issued in front of what a step computes"
    return products, ""


def _waited_for(gemm: Gemm, used: set[str], written: set[str], machine: Machine) -> str:
    """Why an asynchronous product is waited for in its step; empty where it need not be."""
    row = row_of(gemm, machine)
    if row.exact_k and not gemm.fast_accum:
        return f"what {row.exact_k} terms give is added to its sum in ordinary registers"
    if gemm_sum_dtype(gemm.c.buffer.dtype) != gemm.c.buffer.dtype:
        return f"its sum is rounded to {gemm.c.buffer.dtype.name} in each step"
    if gemm.c.buffer.name in used:
        return f"the loop uses {gemm.c.buffer.name}"
    for region in (gemm.a, gemm.b):
        if region.buffer.scope != "shared" or region.buffer.name in written:
            return f"{region.buffer.name} is written in each step, and has one version"
    return ""
