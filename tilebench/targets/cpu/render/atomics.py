"""A store that combines, as one step whoever else does so."""

from __future__ import annotations

from ..llvm import Value
from ..llvm.lanes import combine
from ..llvm.module import Function
from ..numbers.convert import is_float, is_unsigned, narrow, widen

_SUM = {"add": "sum"}


def put_combined(f: Function, how: str, pointer: Value, value: Value, dtype: str, bits: str) -> None:
    """The element at `pointer` and the bits `value` combined: an instruction of integers, else tried until
    nobody else came between. `bits` is the integer type of an element in memory."""
    if not is_float(dtype):
        extreme = how in ("max", "min") and is_unsigned(dtype)
        operation = f"u{how}" if extreme else how
        f.impure(f"atomicrmw {operation} ptr {pointer.name}, {bits} {value.name} monotonic", bits)
        return
    again, done = f.block(), f.block()
    f.branch(again)
    f.open_block(again)
    with f.scope():
        seen = f.impure(f"load atomic {bits}, ptr {pointer.name} monotonic, align {int(bits[1:]) // 8}", bits)
        old, new = (widen(f, f.bits(raw, value.type), dtype) for raw in (seen, value))
        now = f.bits(narrow(f, combine(f, _SUM.get(how, how), old, new), dtype), bits)
        pair = f.impure(
            f"cmpxchg ptr {pointer.name}, {bits} {seen.name}, {bits} {now.name} monotonic monotonic",
            f"{{ {bits}, i1 }}",
        )
        swapped = f.impure(f"extractvalue {{ {bits}, i1 }} {pair.name}, 1", "i1")
    f.branch_if(swapped, done, again)
    f.open_block(done)
