"""`T.copy` and `T.fill` as element loops: the box becomes coordinates, tests and casts become the body."""

from __future__ import annotations

from ....errors import LayoutError, ShapeError
from ....ir import Call, Cast, Const, Expr, If, Load, Region, Stmt, Store, Var, WordStmt, all_of, zero_of
from ....language.copy import Copy, Fill, Within
from ....layout import Fragment
from ...analysis.sites import box_of
from ...laid_out.layout_seeds import whole_by_each
from ..addresses import lower_expr
from ..elements import ElementLoop, element_loops, loop_over_registers
from ..emitter import Emitter
from ..lowering import Lowering
from ..registers import check_version
from ..tiles import NOWHERE, FragmentTile
from ..widths import check_bytes

# Coordinates of a copy have no names in the source: these as far as they are free.
LETTERS = ("i", "j", "k", "l")


def element_of(region: Region, names: tuple[Var, ...]) -> tuple[Expr, ...]:
    """The index of an element of a region at the coordinates `names` of its box."""
    left = list(names if any(extent != 1 for extent in region.extent or ()) else ())
    index: list[Expr] = []
    for start, extent in zip(region.start, region.extent or (), strict=True):
        index.append(start + left.pop(0) if extent != 1 else start)
    return tuple(index)


def inside(
    emitter: Emitter, region: Region, index: tuple[Expr, ...], within: Within, box: dict[str, int]
) -> list[Expr]:
    """The tests of the dimensions that are not proved to be inside the buffer."""
    if within is None:
        return []
    facts = emitter.facts.with_ranges({name: (0, extent - 1) for name, extent in box.items()})
    tests: list[Expr] = []
    for part, start, bound in zip(index, region.start, within, strict=True):
        if bound is None:
            continue
        tests.append(part.compare("<", bound))
        if not facts.proves(start.compare(">=", 0)):
            tests.append(part.compare(">=", 0))
    return tests


def coordinates(emitter: Emitter, box: tuple[int, ...]) -> tuple[Var, ...]:
    """A variable a dimension of a box, of a name that stands for nothing else around the statement.

    In a kernel's own loop over j the second one is j__2, so that `T.copy(A[0, j * 8], A_s)` keeps its j.
    """
    letters = (LETTERS[k] if k < len(LETTERS) else f"i{k}" for k in range(len(box)))
    return tuple(Var(emitter.unbound(letter)) for letter in letters)


def copy_loops(emitter: Emitter, statement: Copy) -> list[Stmt]:
    """The loops of one thread that move its part of the box."""
    src, dst, box = statement.src, statement.dst, box_of(statement.dst)
    if box_of(src) != box:
        raise ShapeError(
            "the two sides of a copy have boxes of {a} and {b}", at=statement.place, a=box_of(src), b=box
        )
    names = coordinates(emitter, box)
    extents = {name.name: extent for name, extent in zip(names, box, strict=True)}
    source, target = element_of(src, names), element_of(dst, names)
    value: Expr = Load(src.buffer, source, version=src.version, place=src.place)
    tests = inside(emitter, src, source, statement.src_within, extents)
    if tests:
        value = Call("if_then_else", (all_of(tests), value, zero_of(value.dtype)), type=value.dtype)
    if value.dtype != dst.buffer.dtype:
        value = Cast(value, type=dst.buffer.dtype)
    body: Stmt = Store(dst.buffer, target, value, version=dst.version)
    tests = inside(emitter, dst, target, statement.dst_within, extents)
    if tests:
        body = If(all_of(tests), (body,), ())
    mapping = mapping_of(emitter, statement, statement.map, box, (src, dst))
    by = statement.by

    def judge(reached: int) -> None:
        if by is not None and by.bytes:
            check_bytes(emitter, statement, mapping, by, reached)

    loop = ElementLoop(statement, mapping, box, names, (body,), cap_of(statement), ours=True, judge=judge)
    return element_loops(emitter, loop)


def cap_of(statement: Copy) -> int:
    """The cap of a vector in elements: the instruction's bytes of the side in memory; 0 for none."""
    cap = 0
    if statement.by is not None and statement.by.bytes:
        sides = [r.buffer for r in (statement.src, statement.dst) if r.buffer.scope in ("global", "shared")]
        sides.sort(key=lambda buffer: buffer.scope != "global")
        cap = max(1, sides[0].dtype.elements_in(statement.by.bytes)) if sides else 0
    if statement.coalesced_width:
        cap = min(cap or statement.coalesced_width, statement.coalesced_width)
    return cap


def mapping_of(
    emitter: Emitter,
    statement: WordStmt,
    given: Fragment | None,
    box: tuple[int, ...],
    sides: tuple[Region, ...],
) -> Fragment:
    """The mapping; where a side is a thread's own array, every thread does the whole box by itself."""
    if given is not None:
        return given
    if any(region.buffer.scope in ("local", "var") for region in sides):
        return whole_by_each(box, emitter.threads.count)
    raise missing_mapping(statement)


def missing_mapping(statement: WordStmt) -> LayoutError:
    """What to say of a statement of many elements that no thread is told to do."""
    return LayoutError(
        "T.{word} has no thread mapping", at=statement.place, word=statement.spelling(),
        hint="the stage laid_out gives it one: map=T.Fragment(...)",
    )  # fmt: skip


def fill_loops(emitter: Emitter, statement: Fill) -> list[Stmt]:
    """The loops of one thread that set its part of the box."""
    dst = statement.dst
    tile = emitter.fragments.get(dst.buffer.name)
    if tile is not None and dst.is_whole:
        return _fill_registers(emitter, statement, tile)
    box = box_of(dst)
    names = coordinates(emitter, box)
    target = element_of(dst, names)
    body: Stmt = Store(dst.buffer, target, statement.value, version=dst.version)
    extents = {name.name: extent for name, extent in zip(names, box, strict=True)}
    tests = inside(emitter, dst, target, statement.dst_within, extents)
    if tests:
        body = If(all_of(tests), (body,), ())
    mapping = mapping_of(emitter, statement, statement.map, box, (dst,))
    return element_loops(emitter, ElementLoop(statement, mapping, box, names, (body,), ours=True))


def _fill_registers(emitter: Emitter, statement: Fill, tile: FragmentTile) -> list[Stmt]:
    """Every thread sets all that it has of a fragment, or of one version of it."""
    before: list[Stmt] = []
    value = lower_expr(emitter, statement.value, NOWHERE, before)
    size, lead, version = tile.local.size, Const(0), statement.dst.version
    if version is not None:
        number = lower_expr(emitter, version, NOWHERE, before)
        check_version(emitter, statement.dst.buffer.name, number, size // tile.layout.values)
        size, lead = tile.layout.values, number * tile.layout.values
    register = emitter.leaf_variable("r0", size)
    store = Store(tile.local, (lead + register,), value)
    return [*before, loop_over_registers(size)(Const(size), (register,), (store,))]


LOWERINGS = (Lowering(Copy, "ld.st", copy_loops), Lowering(Fill, "", fill_loops))
