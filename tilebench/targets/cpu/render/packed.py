"""Elements that share a byte of an array: those of 4 bits. In tiles and registers each has a byte of its own.

Neighbours from an even element on move as a vector of bytes; others one by one, where a store reads the byte
and puts its half in (no other thread stores the other half: the pass `check_packed` has seen to that).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ....ir import Buffer, Expr, Var
from ....ir.arith import divisor, linear
from ..llvm import Function, Value, const, i64, lanes_of, vector
from ..numbers.convert import nibble
from .state import Address, State


class Memory(Protocol):
    """What loads and stores need of who writes them: a lone load, and one a lane."""

    state: State
    f: Function

    def scalar(self, pointer: Value, type_: str) -> Value: ...
    def gather(self, pointers: Value, type_: str, mask: Value | None) -> Value: ...


def is_packed(buffer: Buffer) -> bool:
    """Whether elements of a buffer share bytes where it lies."""
    return buffer.scope == "global" and buffer.dtype.per_byte > 1


def load_packed(memory: Memory, buffer: Buffer, index: Sequence[Expr], address: Address) -> Value:
    """An element, or one for each lane, each in a byte; lanes that the mask leaves out read 0."""
    f, state, dtype = memory.f, memory.state, buffer.dtype.name
    if not address.varies:
        byte = memory.scalar(f.at(address.pointer, f.binary("lshr", address.offset, 1), "i8"), "i8")
        return nibble(f, f.binary("lshr", byte, _shift(memory, address.offset)), dtype)
    mask = None if state.mask is None else state.wide(state.mask)
    if _in_pairs(memory, buffer, index, address):
        type_ = vector("i8", state.count // 2)
        pointer = f.at(address.pointer, f.binary("lshr", address.offset, 1), "i8")
        whole = None if mask is None else _either(memory, mask)
        pairs = f.load(pointer, type_) if whole is None else f.masked_load(pointer, type_, whole)
        order = [k // 2 + k % 2 * (state.count // 2) for k in range(state.count)]
        return nibble(f, f.shuffle(pairs, f.binary("lshr", pairs, 4), order), dtype)
    offsets, pointers = _lanes(memory, address)
    gathered = memory.gather(pointers, vector("i8", state.count), mask)
    return nibble(f, f.binary("lshr", gathered, _shift(memory, offsets)), dtype)


def put_packed(memory: Memory, buffer: Buffer, index: Sequence[Expr], address: Address, bits: Value) -> None:
    """Store elements, each given in a byte, in the lanes of the mask."""
    f, state = memory.f, memory.state
    lone = state.lanes is None or state.count == 1
    if lone or (not address.varies and state.mask is None and lanes_of(bits.type) == 1):
        _put_one(memory, address.pointer, address.offset, bits)
        return
    bits = state.wide(bits)
    mask = None if state.mask is None else state.wide(state.mask)
    if address.varies and _in_pairs(memory, buffer, index, address):
        pointer = f.at(address.pointer, f.binary("lshr", address.offset, 1), "i8")
        _put_pairs(memory, pointer, bits, mask)
        return
    offsets, _ = _lanes(memory, address)
    for lane in range(state.count):
        one, offset = f.extract(bits, lane), f.extract(offsets, lane)
        if mask is None:
            _put_one(memory, address.pointer, offset, one)
        else:
            with f.when(f.extract(mask, lane)):
                _put_one(memory, address.pointer, offset, one)


def _put_one(memory: Memory, pointer: Value, offset: Value, bits: Value) -> None:
    """Read a byte, put one half in, store it."""
    f = memory.f
    place = f.at(pointer, f.binary("lshr", offset, 1), "i8")
    shift = _shift(memory, offset)
    rest = f.binary("and", f.load(place, "i8"), f.binary("lshr", const(0xF0 - 256, "i8"), shift))
    f.store(f.binary("or", rest, f.binary("shl", f.binary("and", bits, 15), shift)), place)


def _put_pairs(memory: Memory, pointer: Value, bits: Value, mask: Value | None) -> None:
    f, count = memory.f, memory.state.count
    low, high = (f.shuffle(bits, None, range(start, count, 2)) for start in (0, 1))
    pairs = f.binary("or", f.binary("and", low, 15), f.binary("shl", high, 4))
    if mask is None:
        f.store(pairs, pointer)
        return
    first, second = (f.shuffle(mask, None, range(start, count, 2)) for start in (0, 1))
    some = f.binary("or", first, second)
    old = f.masked_load(pointer, pairs.type, some)
    zero = const(0, pairs.type)
    taken = f.binary(
        "or", f.select(first, const(15, pairs.type), zero), f.select(second, const(-16, pairs.type), zero)
    )
    merged = f.binary("or", f.binary("and", pairs, taken), f.binary("and", old, f.binary("xor", taken, -1)))
    f.masked_store(merged, pointer, some)


def _either(memory: Memory, mask: Value) -> Value:
    """The bytes of which an element is wanted, from the lanes' mask."""
    f, count = memory.f, memory.state.count
    first, second = (f.shuffle(mask, None, range(start, count, 2)) for start in (0, 1))
    return f.binary("or", first, second)


def _shift(memory: Memory, offset: Value) -> Value:
    """How far the half of an element lies up in its byte: 0 or 4, in i8."""
    f = memory.f
    shift = f.binary("shl", f.binary("and", offset, 1), 2)
    return (
        const(shift.integer, "i8")
        if shift.integer is not None
        else f.cast("trunc", shift, vector("i8", lanes_of(shift.type)))
    )


def _lanes(memory: Memory, address: Address) -> tuple[Value, Value]:
    """The offset of each lane's element, and the address of its byte."""
    f, state = memory.f, memory.state
    steps = f.mul(state.iota("i64"), state.wide(i64(address.step)))
    offsets = f.add(state.wide(address.offset), steps)
    if address.further is not None:
        offsets = f.add(offsets, address.further)
    bytes_ = f.binary("lshr", offsets, 1)
    text = f"getelementptr i8, ptr {address.pointer.name}, {bytes_.type} {bytes_.name}"
    return offsets, f.pure(text, vector("ptr", state.count))


def _in_pairs(memory: Memory, buffer: Buffer, index: Sequence[Expr], address: Address) -> bool:
    """Whether the lanes are neighbours and the first of them is an even element."""
    lanes = memory.state.lanes
    if lanes is None or address.step != 1 or address.further is not None or lanes.count % 2:
        return False
    if lanes.count == 2:  # one byte is no vector
        return False
    if lanes.multiple % 2 or lanes.ahead % 2:
        return False
    strides = memory.state.strides(buffer)
    var = Var(lanes.name)
    rests = [linear(part).without(var).expr() for part in index]
    steps = [stride if isinstance(stride, int) else divisor(stride) for stride in strides]
    return all(divisor(rest) * step % 2 == 0 for rest, step in zip(rests, steps, strict=True))
