"""`T.cumsum` and `T.cummax`: the tile goes to shared memory, lines are summed there, each takes its own back.

Many lines are summed by a thread each; few by a warp each, a warp's width of elements at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ....ir import Arith, Buffer, Call, Cast, Const, Expr, If, Let, Load, Stmt, Store, Var
from ....ir.dtypes import ALL, DType
from ....language.accumulation import reduction_dtype
from ....language.lowered.threads import SyncWarp
from ....language.memory import AllocLocal
from ....language.reduce import Scan
from ....language.structure import Serial
from ....layout import Fragment
from ....machine import Machine
from ...analysis.sites import box_of
from ..barriers import barrier_of
from ..elements import ElementLoop, element_loops
from ..emitter import Emitter
from ..lowering import Lowering, Workspace
from .copy import coordinates, element_of, mapping_of
from .reduce import combine, neutral


def sum_dtype(scan: Scan) -> DType:
    """The dtype that sums are formed in; of 32 bits at least, as lanes exchange them."""
    dtype = reduction_dtype(scan.kind, scan.src.buffer.dtype, scan.dst.buffer.dtype)
    return ALL[f"{dtype.kind}32"] if dtype.bits < 32 else dtype


def workspace(scan: Scan, layouts: Mapping[str, Fragment], machine: Machine) -> Workspace:
    """The tile in the dtype of its sums, row-major."""
    return Workspace(f"{scan.dst.buffer.name}_sums", prod(box_of(scan.src)), sum_dtype(scan))


def scan_loops(emitter: Emitter, scan: Scan) -> list[Stmt]:
    """The code of one thread: its elements there, lines of the tile, its elements back."""
    assert scan.scratch is not None
    box, sums = box_of(scan.src), scan.scratch.buffer
    names = coordinates(emitter, box)
    mapping = mapping_of(emitter, scan, scan.map, box, (scan.src, scan.dst))
    spot = _row_major(names, box)
    source: Expr = Load(scan.src.buffer, element_of(scan.src, names), version=scan.src.version)
    there = Store(sums, (spot,), _cast(source, sums.dtype))
    back = Store(
        scan.dst.buffer,
        element_of(scan.dst, names),
        _cast(Load(sums, (spot,)), scan.dst.buffer.dtype),
        version=scan.dst.version,
    )
    filled = element_loops(emitter, ElementLoop(scan, mapping, box, names, (there,), ours=True))
    summed = _lines(emitter, scan, box, emitter.shared[sums.name].flat)
    taken = element_loops(emitter, ElementLoop(scan, mapping, box, names, (back,), ours=True))
    why = f"lines of {sums.name}"
    return [*filled, *barrier_of(emitter, why), *summed, *barrier_of(emitter, why), *taken]


def _row_major(names: tuple[Var, ...], box: tuple[int, ...]) -> Expr:
    total: Expr = Const(0)
    for name, extent in zip(names, box, strict=True):
        total = total * extent + name
    return total


def _cast(value: Expr, dtype: DType) -> Expr:
    return value if value.dtype == dtype else Cast(value, type=dtype)


def _lines(emitter: Emitter, scan: Scan, box: tuple[int, ...], sums: Buffer) -> list[Stmt]:
    """The sums along each line; nothing where a line is one element and that is its sum."""
    extents = scan.src.extent or scan.src.buffer.shape
    dim = scan.dim % len(extents)
    if extents[dim] == 1 and scan.kind == "sum":  # a maximum of a NaN alone is where maxima start
        return []
    axis = sum(extent != 1 for extent in extents[:dim])
    pitch, length = (prod(box[axis + 1 :]), box[axis]) if extents[dim] != 1 else (1, 1)
    count = prod(box) // length
    threads, warp = emitter.threads.count, emitter.machine.warp
    alone = count >= threads or threads % warp != 0
    workers = threads if alone else threads // warp
    with emitter.scope():
        turn = emitter.variable("p", -(-count // workers))
        line = turn * workers + (emitter.tid if alone else emitter.digit(warp, workers))
        # The first element of a line: lines run over the dimensions before and after the one summed.
        first = line // pitch * (pitch * length) + line % pitch if pitch > 1 else line * length
        body = (_by_thread if alone else _by_warp)(emitter, scan, sums, first, pitch, length)
        test = line.compare("<", count)
        if not emitter.facts.proves(test):
            body = [If(test, tuple(body), ())]
    return [Serial(Const(-(-count // workers)), (turn,), tuple(body))]


def _element(scan: Scan, first: Expr, pitch: int, length: int, number: Expr) -> Expr:
    """Where element `number` of a line lies, counted from the end it starts at."""
    place = Arith("-", (Const(length - 1), number)) if scan.reverse else number
    return first + place * pitch


def _by_thread(
    emitter: Emitter, scan: Scan, sums: Buffer, first: Expr, pitch: int, length: int
) -> list[Stmt]:
    """One thread adds along a line of its own."""
    total = Buffer(emitter.name("sum"), (1,), sums.dtype, "local")
    zero = neutral(scan.kind, sums.dtype)
    step = emitter.leaf_variable("k0", length)
    spot = _element(scan, first, pitch, length, step)
    before = Load(total, (Const(0),))
    body = (
        Store(total, (Const(0),), combine(scan.kind, before, Load(sums, (spot,)))),
        Store(sums, (spot,), before),
    )
    return [AllocLocal(total), Store(total, (Const(0),), zero), Serial(Const(length), (step,), body)]


def _by_warp(emitter: Emitter, scan: Scan, sums: Buffer, first: Expr, pitch: int, length: int) -> list[Stmt]:
    """A warp adds along a line, `warp` elements at a time; its last lane takes the first of them.

    Lanes fetch from those above, `shfl_down`, so element numbers run against lane numbers.
    """
    warp = emitter.machine.warp
    carry = Buffer(emitter.name("sum"), (1,), sums.dtype, "local")
    part = Buffer(emitter.name("part"), (1,), sums.dtype, "local")
    zero = neutral(scan.kind, sums.dtype)
    start = Const(0)
    chunk = emitter.variable("k0", -(-length // warp))
    lane = emitter.digit(1, warp)
    number = chunk * warp + Arith("-", (Const(warp - 1), lane))
    inside = number.compare("<", length)
    spot = _element(scan, first, pitch, length, number)
    value = Load(part, (start,))
    picked = Call("if_then_else", (inside, Load(sums, (spot,)), zero), type=sums.dtype)
    body: list[Stmt] = [Store(part, (start,), picked)]
    distance = 1
    while distance < warp:
        # All lanes take part in the exchange; those without one above add nothing.
        other = Var(emitter.name("other"), type=sums.dtype)
        body.append(Let(other, Call("shfl_down", (value, Const(distance)), type=sums.dtype)))
        above = (lane + distance).compare("<", warp)
        added = Call("if_then_else", (above, other, zero), type=sums.dtype)
        body.append(Store(part, (start,), combine(scan.kind, value, added)))
        distance *= 2
    last = Call("min", (chunk * warp + (warp - 1), Const(length - 1)), type=chunk.type)
    body += [
        If(inside, (Store(sums, (spot,), combine(scan.kind, Load(carry, (start,)), value)),), ()),
        SyncWarp(),
        Store(carry, (start,), Load(sums, (_element(scan, first, pitch, length, last),))),
    ]
    turns = Serial(Const(-(-length // warp)), (chunk,), tuple(body))
    return [AllocLocal(carry), AllocLocal(part), Store(carry, (start,), zero), turns]


LOWERINGS = (Lowering(Scan, "", scan_loops, workspace),)
