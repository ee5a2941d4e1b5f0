"""What the body of an element loop touches, and whether an element reads what it has written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...ir import AllocStmt, Expr, Load, Node, Stmt, Store, children, effects_of
from ...ir.expr_walks import seen
from ...language.extern import ExternCall
from .accesses import MEMORY


@dataclass
class BodyAccesses:
    """The accesses of a body, by what they do and where.

    `memory` are those of memory, `stores` the scopes that are written, `outside` the names of a thread's own
    buffers that are written and were made in front of the body. `registers`: fragments are touched;
    `packed`: elements of memory that share bytes are.
    """

    memory: list[Load | Store] = field(default_factory=list["Load | Store"])
    stores: set[str] = field(default_factory=set[str])
    outside: set[str] = field(default_factory=set[str])
    registers: bool = False
    packed: bool = False

    @staticmethod
    def of(body: Iterable[Stmt]) -> BodyAccesses:
        """All of them, in one walk."""
        touched = BodyAccesses()
        own: set[str] = set()
        stack: list[Node] = list(body)
        while stack:
            node = stack.pop()
            if isinstance(node, Expr) and not seen(node).loads:
                continue  # nine of ten expressions touch nothing
            if isinstance(node, (Load, Store)):
                touched._note(node)
            elif isinstance(node, ExternCall):
                touched._point(node)
            elif isinstance(node, AllocStmt):
                own.add(node.buffer.name)
            stack += children(node)
        touched.outside -= own
        return touched

    def _note(self, access: Load | Store) -> None:
        buffer = access.buffer
        self.registers = self.registers or buffer.scope == "fragment"
        if buffer.scope in MEMORY:
            self.memory.append(access)
            self.packed = self.packed or buffer.dtype.per_byte > 1
        if isinstance(access, Store):
            self.stores.add(buffer.scope)
            if buffer.scope in ("local", "var"):
                self.outside.add(buffer.name)
            if access.found is not None:
                self.outside.add(access.found.name)

    def _point(self, call: ExternCall) -> None:
        """What a function reads and writes through its pointers counts as if it were done one by one."""
        for effect in effects_of(call):
            buffer, region = effect.buffer, effect.region
            assert region is not None  # a pointer is to a region
            if buffer.scope in MEMORY:
                self.memory.append(Load(buffer, region.start))
            if effect.writes:
                self.stores.add(buffer.scope)
                if buffer.scope in ("local", "var"):
                    self.outside.add(buffer.name)

    @property
    def reads_its_stores(self) -> bool:
        """Whether a buffer in memory is both read and written.

        Threads that share an element then race: one stores it, and the others read it without a barrier.
        """
        read = {access.buffer.name for access in self.memory if isinstance(access, Load)}
        return any(isinstance(access, Store) and access.buffer.name in read for access in self.memory)

    @property
    def is_of_one(self) -> bool:
        """Whether one thread has to do an element: threads that share it would do something else each.

        What an atomic finds is another thing for whoever comes later.
        """
        found = any(isinstance(access, Store) and access.found is not None for access in self.memory)
        return found or self.reads_its_stores

    @property
    def stays_in_memory(self) -> bool:
        """Whether nothing that outlives the body is written but memory: one thread can do it for all."""
        return "fragment" not in self.stores and not self.outside
