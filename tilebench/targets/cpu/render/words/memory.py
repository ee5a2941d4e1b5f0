"""Tiles, scalars, single stores, names for values, requests for lines."""

from __future__ import annotations

from .....ir import Let, Load, Store
from .....language.memory import AllocVar
from ...llvm import Value
from ...loops.words import LINE, AllocScratch, Prefetch
from ...numbers.convert import COMPUTE, STORAGE, narrow, stored_bytes
from ..atomics import put_combined
from ..packed import is_packed, put_packed
from ..renderer import Renderer, Rendering


def tile(renderer: Renderer, alloc: AllocScratch) -> None:
    """A tile is a place in the worker's scratch memory."""
    assert alloc.layout is not None  # the stage's legal forms ask for it
    f, pointers = renderer.f, renderer.state.pointers
    renderer.state.layouts[alloc.buffer.name] = alloc.layout
    pointer = f.at(renderer.scratch, alloc.offset, "i8")
    if alloc.beside is not None:
        address = f.cast("ptrtoint", pointers[alloc.beside], "i64")
        pointer = f.at(pointer, f.binary("and", address, LINE - 1), "i8")
    pointers[alloc.buffer.name] = pointer


def scalar(renderer: Renderer, alloc: AllocVar) -> None:
    """A scalar is a place on the stack."""
    renderer.state.pointers[alloc.buffer.name] = renderer.f.alloca(STORAGE[alloc.buffer.dtype.name], 1, 8)
    if alloc.init is not None:
        store(renderer, Store(alloc.buffer, (), alloc.init, place=alloc.place))


def store(renderer: Renderer, statement: Store) -> None:
    """One element, or one for each lane of the open loop over vectors."""
    state, dtype = renderer.state, statement.buffer.dtype.name
    address = state.address(statement.buffer, statement.index, renderer.expr)
    bits = _bits(renderer, statement)
    if statement.atomic:
        whole = f"i{stored_bytes(statement.buffer.dtype, 1) * 8}"
        before = put_combined(renderer.f, statement, state.pointer(address, dtype), bits, whole)
        if statement.found is not None and before is not None:
            there = state.address(statement.found, (), renderer.expr)
            renderer.expr.put(renderer.f.bits(before, STORAGE[dtype]), there, dtype)
            state.forget(statement.found.name)
    elif is_packed(statement.buffer):
        put_packed(renderer.expr, statement.buffer, statement.index, address, bits)
    elif statement is renderer.streamed:
        renderer.stream.append((state.wide(bits), state.pointer(address, dtype)))
    else:
        renderer.expr.put(bits, address, dtype)
    state.forget(statement.buffer.name)
    if STORAGE[dtype] == COMPUTE[dtype] and address.varies and statement.plain:
        state.stored[(statement.buffer.name, statement.index)] = (state.wide(bits), state.mask)


def _bits(renderer: Renderer, statement: Store) -> Value:
    """The bits to store: what is only moved is neither widened nor rounded."""
    value = statement.value
    if isinstance(value, Load) and (value.buffer.name, value.index) not in renderer.state.stored:
        return renderer.expr.raw(value)
    dtype = statement.buffer.dtype
    # A conversion to a dtype with infinities that saturates must not meet those that are there.
    rounded = dtype.saturates and dtype.has_infinity
    bits = renderer.expr.value(value, round_last=rounded)
    return narrow(renderer.f, bits, dtype.name, rounded=rounded)


def name(renderer: Renderer, let: Let) -> None:
    """A name for a value: the value itself."""
    state = renderer.state
    if state.varies(let.value):
        state.varying.add(let.var.name)
    state.values[let.var.name] = renderer.expr.value(let.value)
    state.facts = state.facts.with_range(let.var.name, *state.facts.bounds(let.value))


def prefetch(renderer: Renderer, hint: Prefetch) -> None:
    """To the second level, for one reading that is still some microseconds away; once a line in a turn."""
    f, buffer, lanes = renderer.f, hint.src.buffer, renderer.state.lanes
    where = renderer.state.address(buffer, hint.src.start, renderer.expr)
    if lanes is not None and where.step == 1 and stored_bytes(buffer.dtype, lanes.ahead) % LINE:
        return
    f.prefetch(f.at(where.pointer, where.offset, STORAGE[buffer.dtype.name]))


RENDERINGS = (
    Rendering(AllocScratch, tile),
    Rendering(AllocVar, scalar),
    Rendering(Store, store),
    Rendering(Let, name),
    Rendering(Prefetch, prefetch),
)
