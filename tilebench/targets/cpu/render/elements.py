"""Elements of memory as values: side by side, scattered, or one for all lanes; masked lanes touch nothing."""

from __future__ import annotations

from ....ir import Expr, Load
from ..llvm import Value, bytes_of, const, element_of, lanes_of, mangle, vector
from ..llvm.lanes import store_first
from ..numbers.convert import STORAGE, widen
from .packed import is_packed, load_packed
from .state import Address, State


class Elements:
    """Loads and stores at the open block of `state.f`. Expressions are added by the class below it."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.f = state.f

    def index(self, expr: Expr) -> Value:
        """An integer expression that is the same in all lanes, as an i64."""
        raise NotImplementedError

    def size(self, expr: Expr) -> Value:
        """An integer expression in 64 bits throughout: a stride, or what is proved to stay inside."""
        raise NotImplementedError

    def value(self, expr: Expr, *, round_last: bool = True) -> Value:
        """The value in its compute type. Without `round_last` the outermost operation is not yet rounded."""
        raise NotImplementedError

    def where(self, expr: Load) -> Address:
        return self.state.address(expr.buffer, expr.index, self)

    def load(self, expr: Load) -> Value:
        """An element, or one for each lane; lanes that the mask leaves out read 0 and touch nothing."""
        state, dtype = self.state, expr.dtype.name
        key = (expr.buffer.name, expr.index)
        if key in state.fixed and state.lanes is not None:
            return state.fixed[key]
        stored = state.stored.get(key)
        if stored is not None and stored[1] == state.mask:
            return stored[0]
        return widen(self.f, self.raw(expr), dtype)

    def raw(self, expr: Load) -> Value:
        """The bits of an element as memory holds them."""
        state, f, dtype = self.state, self.f, expr.dtype.name
        address = self.where(expr)
        if is_packed(expr.buffer):
            return load_packed(self, expr.buffer, expr.index, address)
        type_ = vector(STORAGE[dtype], state.count)
        mask = None if state.mask is None else state.wide(state.mask)
        if state.count > 1 and address.backwards:
            pointer = state.pointer(address.turned(f, state.count), dtype)
            found = f.load(pointer, type_) if mask is None else f.masked_load(pointer, type_, f.turned(mask))
            return f.turned(found)
        pointer = state.pointer(address, dtype)
        if not address.varies:
            return self.scalar(pointer, STORAGE[dtype])
        if lanes_of(pointer.type) > 1:
            return self.gather(pointer, type_, mask)
        return f.load(pointer, type_) if mask is None else f.masked_load(pointer, type_, mask)

    def scalar(self, pointer: Value, type_: str) -> Value:
        """A load of one element; from a spare place when the condition around it may not hold."""
        state, f = self.state, self.f
        if state.mask is not None and state.lazy:
            some = state.mask
            if lanes_of(some.type) > 1:
                some = f.any_lane(some)
            spare = f.alloca("i64", 1, 8)
            pointer = f.select(some, pointer, spare)
        return f.load(pointer, type_)

    def gather(self, pointers: Value, type_: str, mask: Value | None) -> Value:
        f, lanes = self.f, lanes_of(type_)
        mask = mask or const(1, vector("i1", lanes))
        symbol = f"llvm.masked.gather.{mangle(type_)}.{mangle(pointers.type)}"
        f.module.declare(symbol, type_, [pointers.type, mask.type, type_])
        align = bytes_of(element_of(type_))
        return f.impure(
            f"call {type_} @{symbol}({pointers.type} align {align} {pointers.name}, {mask.type} {mask.name}, "
            f"{type_} zeroinitializer)", type_,
        )  # fmt: skip

    # -- stores
    def put(self, bits: Value, address: Address, dtype: str) -> None:
        """Store bits where an address says, in the lanes of the mask."""
        state, f = self.state, self.f
        lone = state.lanes is None or state.count == 1
        if not lone and address.backwards:
            pointer, bits = state.pointer(address.turned(f, state.count), dtype), f.turned(state.wide(bits))
            if state.mask is None:
                f.store(bits, pointer)
            else:
                f.masked_store(bits, pointer, f.turned(state.wide(state.mask)))
            return
        pointer = state.pointer(address, dtype)
        if lone or (not address.varies and state.mask is None and lanes_of(bits.type) == 1):
            f.store(bits, pointer)
            return
        bits = state.wide(bits)
        mask = None if state.mask is None else state.wide(state.mask)
        if address.varies and lanes_of(pointer.type) == 1:
            if mask is None:
                f.store(bits, pointer)
            else:
                self.put_masked(bits, pointer, mask)
            return
        if lanes_of(pointer.type) == 1:
            pointer = f.splat(pointer, state.count)
        self.scatter(bits, pointer, mask or const(1, vector("i1", state.count)))

    def put_masked(self, bits: Value, pointer: Value, mask: Value) -> None:
        """Store the lanes of the mask side by side."""
        f, lanes = self.f, self.state.lanes
        alone = lanes is not None and self.state.mask == lanes.inside
        if lanes is not None and lanes.left is not None and alone and not f.isa.masked:
            store_first(f, bits, pointer, lanes.left)
        else:
            f.masked_store(bits, pointer, mask)

    def scatter(self, bits: Value, pointers: Value, mask: Value) -> None:
        """Lane by lane; where lanes meet, the last one wins."""
        symbol = f"llvm.masked.scatter.{mangle(bits.type)}.{mangle(pointers.type)}"
        self.f.module.declare(symbol, "void", [bits.type, pointers.type, mask.type])
        align = bytes_of(element_of(bits.type))
        self.f.emit(
            f"call void @{symbol}({bits.type} {bits.name}, {pointers.type} align {align} {pointers.name}, "
            f"{mask.type} {mask.name})"
        )
