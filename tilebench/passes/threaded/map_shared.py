"""The map of shared memory: a first byte for each buffer; buffers that never live together share bytes."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import ResourceError
from ...ir import Function, Node, map_bodies
from ...ir.stmt import statements
from ...language.lowered.copy_barriers import OpenBarriers, ReleaseTiles
from ...language.lowered.mbarriers import MbarrierInit
from ...language.memory import AllocShared
from ...layout import SharedLayout
from ..analysis.boxes import sides
from ..analysis.launches import launch_of
from ..analysis.lives import Lives, Span
from ..analysis.shared_bytes import shared_layout, shared_size
from ..context import Context
from ..pipelined.copy_barriers import in_boxes

# The widest access is 16 bytes; a swizzle permutes rows of 128 bytes, so such a buffer starts on one.
ALIGN, SWIZZLED_ALIGN = 16, 128
# Where copies in boxes may begin.
BOX_ALIGN = 128
FOREVER = 1 << 60


@dataclass
class Life(Span[AllocShared]):
    """A shared buffer, with when it holds something and its first byte."""

    offset: int = 0
    # Whether copies in boxes fill it.
    boxed: bool = False

    @property
    def layout(self) -> SharedLayout:
        return shared_layout(self.alloc)

    @property
    def stage_bytes(self) -> int:
        return -(-self.layout.cosize * self.alloc.buffer.dtype.bits // 8)

    @property
    def bytes(self) -> int:
        return shared_size(self.alloc)

    @property
    def align(self) -> int:
        return max(self.own_align, BOX_ALIGN) if self.boxed else self.own_align

    @property
    def own_align(self) -> int:
        swizzle = self.layout.swizzle
        if swizzle is None or not swizzle.bits:
            return ALIGN
        period = swizzle.period * self.alloc.buffer.dtype.bits // 8
        return max(SWIZZLED_ALIGN, min(1024, period))


def place(lives: list[Life]) -> int:
    """First fit, largest first; returns the bytes taken in all."""
    done: list[Life] = []
    total = 0
    order = sorted(range(len(lives)), key=lambda k: (-lives[k].bytes, k))
    for life in (lives[k] for k in order):
        taken = sorted((other.offset, other.offset + other.bytes) for other in done if other.meets(life))
        offset = 0
        for start, end in taken:
            if offset + life.bytes <= start:
                break
            offset = max(offset, -(-end // life.align) * life.align)
        life.offset = offset
        done.append(life)
        total = max(total, offset + life.bytes)
    return total


def _refuse(lives: list[Life], total: int, function: Function, context: Context) -> None:
    machine = context.machine
    most = machine.shared.per_block
    # What lives while most is taken: a buffer that has its bytes after another is no part of the sum.
    times = [[life for life in lives if life.first <= other.first <= life.last] for other in lives]
    lives = max(times, key=lambda alive: sum(life.bytes for life in alive))
    parts: list[str] = []
    ring = fixed = 0
    for life in lives:
        many = life.alloc.versions > 1
        parts.append(
            f"{life.alloc.buffer.name} {life.alloc.versions} stages x {life.stage_bytes} bytes = {life.bytes}"
            if many
            else f"{life.alloc.buffer.name} {life.bytes} bytes"
        )
        ring += life.stage_bytes if many else 0
        fixed += 0 if many else life.bytes
    rings = [life for life in lives if life.alloc.versions > 1]
    hint = "make the tiles smaller"
    if rings:
        fit = max(0, (most - fixed) // ring)
        hint = f"a stage takes {ring} bytes, so at most {fit} stage{'s' * (fit != 1)} fit" if fit else hint
    raise ResourceError(
        "the shared memory of {kernel} is larger than {machine} allows a block",
        at=rings[0].alloc.place if rings else launch_of(function).place,
        kernel=function.name, machine=machine.name, most=most, parts="; ".join(parts),
        total=total, advice=hint,
        expected="at most {most} bytes", found="{parts}; together {total}", hint="{advice}",
    )  # fmt: skip


def map_shared(function: Function, context: Context) -> Function:
    """`A_s = T.alloc_shared(...)` -> the same with `offset=`, and `T.Kernel(..., shared_bytes=n)`.

    Raises `ResourceError` with the sum when it is more than a block may have.
    """
    named = Lives(AllocShared, Life).of(function)
    handed = any(isinstance(node, ReleaseTiles) for node in statements(function.body))
    for node in statements(function.body):
        if in_boxes(node):
            life = named[sides(node)[1].buffer.name]
            life.boxed = True
            if handed and node.barrier is not None:
                # Others bring the next tiles whatever those who compute do meanwhile.
                life.first, life.last = 0, FOREVER
        if isinstance(node, (OpenBarriers, MbarrierInit)):
            # Nothing may take their bytes as long as they are barriers.
            life = named[(node.barriers if isinstance(node, OpenBarriers) else node.barrier).buffer.name]
            life.first, life.last = 0, FOREVER
    lives = list(named.values())
    total = place(lives)
    if total > context.machine.shared.per_block:
        _refuse(lives, total, function, context)
    plain = sum(life.bytes for life in lives)
    if total < plain:
        context.remark(
            "map_shared", "applied", f"{plain} bytes of shared buffers share {total} bytes", function,
            bytes=total, without=plain,
        )  # fmt: skip
    offsets = {name: life.offset for name, life in named.items()}
    launch = launch_of(function)

    def step(node: Node) -> Node:
        if isinstance(node, AllocShared):
            return node.but(offset=offsets[node.buffer.name])
        if node is launch:
            return map_bodies(launch.but(shared_bytes=total), step)
        return map_bodies(node, step)

    return step(function)  # type: ignore[return-value]
