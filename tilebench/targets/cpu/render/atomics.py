"""A store that combines, as one step whoever else does so."""

from __future__ import annotations

from ....ir import Store
from ..llvm import Value
from ..llvm.lanes import combine
from ..llvm.module import Function
from ..numbers.convert import STORAGE, is_float, is_unsigned, narrow, widen

_SUM = {"add": "sum"}
# LLVM's names: a load and a store cannot order both ways.
_ORDERS = {"relaxed": "monotonic"}


def put_combined(f: Function, store: Store, pointer: Value, value: Value, bits: str) -> Value | None:
    """An atomic of the element at `pointer` with the bits `value`; the bits that were there before.

    Combined by an instruction of integers, else tried until nobody else came between. `bits` is the integer
    type of an element in memory.
    """
    how, dtype = store.atomic, store.buffer.dtype.name
    order = _ORDERS.get(store.order, store.order)
    place = f"ptr {pointer.name}"
    if how == "load":
        return _loaded(f, f"{place} {order}", bits)
    value = f.bits(value, bits)
    if how == "store":
        f.emit(f"store atomic {bits} {value.name}, {place} {order}, align {int(bits[1:]) // 8}")
        return None
    if not is_float(dtype):
        extreme = how in ("max", "min") and is_unsigned(dtype)
        operation = f"u{how}" if extreme else how
        return f.impure(f"atomicrmw {operation} {place}, {bits} {value.name} {order}", bits)
    return _swapped(f, how, place, value, dtype, bits, order)


def _loaded(f: Function, place: str, bits: str) -> Value:
    return f.impure(f"load atomic {bits}, {place}, align {int(bits[1:]) // 8}", bits)


def _swapped(f: Function, how: str, place: str, value: Value, dtype: str, bits: str, order: str) -> Value:
    """Compare and swap, until the element was what it was when the two were combined."""
    again, done = f.block(), f.block()
    f.branch(again)
    f.open_block(again)
    with f.scope():
        seen = _loaded(f, f"{place} monotonic", bits)
        stored = STORAGE[dtype]
        old, new = (widen(f, f.bits(raw, stored), dtype) for raw in (seen, value))
        now = f.bits(narrow(f, combine(f, _SUM.get(how, how), old, new), dtype), bits)
        # What it finds in vain is read anew, so it orders nothing.
        pair = f.impure(
            f"cmpxchg {place}, {bits} {seen.name}, {bits} {now.name} {order} monotonic", f"{{ {bits}, i1 }}"
        )
        swapped = f.impure(f"extractvalue {{ {bits}, i1 }} {pair.name}, 1", "i1")
    f.branch_if(swapped, done, again)
    f.open_block(done)
    return seen
