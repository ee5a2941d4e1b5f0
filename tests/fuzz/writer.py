"""A kernel while it is being drawn: its lines, its arrays and tiles, and the whole numbers in scope.

Whatever is drawn has a meaning, so that a difference is somebody's fault:

- a tile is filled where it is allocated, and lives until its block ends;
- an output is cut into a slab for each block of the grid, and a block writes within its own slab;
- a buffer that a parallel loop stores in is read there only at the place that is stored, and each element is
  stored by one index of the loop;
- starts of regions on the chip come from numbers whose range is known; of global arrays they may be anything:
  outside reads are zero and writes are skipped;
- divisors are positive numbers, shifts stay below the width, and branches of the block ask whole numbers.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.fuzz.program import HEAD, Program

Some = TypeVar("Some")
FLOATS = ("float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
PACKED = ("int4", "uint4", "float4_e2m1fn")
INTS = ("int32", "int8", "uint8", "int64", "int16", "uint16", "uint32", "uint64", "int4", "uint4")
# Two elements of the second make one of the first, of which every pattern is a number.
NARROWER = {"int32": "int16", "uint16": "int8", "int64": "float32", "int16": "uint8", "uint32": "float16"}
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 20, 32, 33, 64, 100)
THREADS = (32, 64, 128, 256, 96, 160, 224, 416, 512, 1024)
MOST_ELEMENTS = 1024


def kind_of(dtype: str) -> str:
    """`float`, `int` or `bool`."""
    return "float" if "float" in dtype else "bool" if dtype == "bool" else "int"


@dataclass(frozen=True)
class Number:
    """A whole number in scope of which the range is known; `lasting` in the whole kernel."""

    text: str
    low: int
    high: int
    lasting: bool = False


@dataclass(frozen=True)
class Slab:
    """The part of an output that a block writes: `rows` of dimension `axis` from `start` on."""

    axis: int
    start: str
    rows: int


@dataclass(frozen=True)
class Buffer:
    """A tile or an array. `slab` of an output."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: str
    slab: Slab | None = None

    @property
    def kind(self) -> str:
        return kind_of(self.dtype)

    @property
    def packed(self) -> bool:
        return self.dtype in PACKED


@dataclass
class Writer:
    """The state of one drawing. `buffers` and `numbers` are those in scope.

    `scopes` are the names that end with each open block; `group` and `elements` say that one of them is a
    group of threads, or a loop over elements.
    """

    random: random.Random
    head: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    # What stands in front of the kernel's own launch, and what has ended at a barrier of the grid.
    before: list[str] = field(default_factory=list[str])
    done: list[str] = field(default_factory=list[str])
    depth: int = 0
    params: list[str] = field(default_factory=list[str])
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    numbers: list[Number] = field(default_factory=list[Number])
    variables: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    sizes: dict[str, Any] = field(default_factory=dict[str, Any])
    dynamic: dict[int, str] = field(default_factory=dict[int, str])
    schedule: dict[str, Any] = field(default_factory=dict[str, Any])
    grid: tuple[int, ...] = (1,)
    threads: int | None = None
    palette: tuple[str, ...] = ("float32",)
    scopes: list[list[str]] = field(default_factory=list[list[str]])
    group: bool = False
    elements: bool = False
    count: int = 0

    # -- drawing
    def pick(self, *choices: Some) -> Some:
        return self.random.choice(choices)

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    def upto(self, most: int) -> int:
        """A number from 0 to `most`, small ones more often."""
        return min(self.random.randint(0, most), self.random.randint(0, most)) if most > 0 else 0

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    # -- lines
    def say(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str, *numbers: Number) -> Iterator[None]:
        """Lines inside `head`, which brings in some numbers; what comes in there ends with it."""
        self.say(head)
        before = len(self.lines)
        self.depth += 1
        self.numbers += numbers
        self.scopes.append([])
        yield
        if len(self.lines) == before:
            self.say("pass")
        self.depth -= 1
        ended = self.scopes.pop()
        self.numbers = [each for each in self.numbers if each not in numbers]
        self.buffers = [each for each in self.buffers if each.name not in ended]
        self.variables = [each for each in self.variables if each[0] not in ended]

    # -- buffers
    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        """Extents of a small tile."""
        while True:
            shape = tuple(self.pick(*EXTENTS) for _ in range(rank or self.pick(1, 2, 2, 2, 3)))
            if any(dtype in PACKED for dtype in self.palette) and self.chance(0.8):
                shape = (*shape[:-1], shape[-1] + shape[-1] % 2)
            size = 1
            for extent in shape:
                size *= extent
            if size <= MOST_ELEMENTS:
                return shape

    def dtype(self, *kinds: str) -> str:
        """A dtype of one of these kinds: one of the kernel's own, now and then any."""
        fit = [d for d in self.palette if not kinds or kind_of(d) in kinds]
        if fit and not self.chance(0.15):
            return self.pick(*fit)
        every = [d for d in (*FLOATS[:-1], *INTS[:-2], "bool") if not kinds or kind_of(d) in kinds]
        return self.pick(*every)

    def dtype_computed(self, kind: str) -> str:
        """A dtype that operators take: not one of 4 bits."""
        found = self.dtype(kind)
        return {"int4": "int8", "uint4": "int8", "float4_e2m1fn": "float32"}.get(found, found)

    def tile(self, shape: tuple[int, ...], dtype: str, scope: str | None = None) -> Buffer:
        """A new tile, filled: with a number, or with a part of an array."""
        scope = scope or self.pick("shared", "shared", "fragment")
        tile = Buffer(self.name("s" if scope == "shared" else "f"), shape, dtype, scope)
        here = self.scopes and (self.group or self.chance(0.3)) and not self.elements
        loops = [] if here else [each for each in self.numbers if not each.lasting]
        self.numbers = [each for each in self.numbers if each not in loops]
        made = [f"{tile.name} = T.alloc_{scope}({shape}, {dtype!r})", self.first_fill(tile)]
        if not tile.packed and self.chance(0.06):
            made = self.viewed(tile)
        elif scope == "shared" and self.chance(0.04):
            made.insert(1, f"T.swizzle({tile.name}{self.pick('', ', False')})")
        self.numbers += loops
        if here:
            self.lines += ["    " * self.depth + line for line in made]
            self.scopes[-1].append(tile.name)
        else:
            self.head += made
        self.buffers.append(tile)
        return tile

    def viewed(self, tile: Buffer) -> list[str]:
        """The tile as the second name of another one, of other extents and now and then of a narrower dtype.

        The first name is not used again: two loops would meet in one element by two names.
        """
        count, dtype = math.prod(tile.shape), tile.dtype
        first = self.pick(1, count, *[each for each in (2, 3, 4) if count % each == 0])
        shape: tuple[int, ...] = (first, count // first)
        if dtype in NARROWER and self.chance(0.4):
            dtype = NARROWER[dtype]
            shape = (first, count // first * 2)
        behind = Buffer(self.name("b"), shape, dtype, tile.scope)
        return [
            f"{behind.name} = T.alloc_{tile.scope}({shape}, {dtype!r})",
            self.first_fill(behind),
            f"{tile.name} = T.view({behind.name}, {tile.shape}, {tile.dtype!r})",
        ]

    def first_fill(self, tile: Buffer) -> str:
        if not tile.packed and self.chance(0.5):
            return self.pick(f"T.clear({tile.name})", f"T.fill({tile.name}, {self.constant(tile.kind)})")
        source = self.input(tile.shape, tile.dtype)
        lead = ["0"] * (len(source.shape) - len(tile.shape))
        starts = [self.anywhere(extent) for extent in source.shape[len(lead) :]]
        return f"T.copy({source.name}[{', '.join([*lead, *starts])}], {tile.name})"

    def some(
        self, shape: tuple[int, ...] | None = None, dtype: str | None = None, scope: str | None = None,
        but: tuple[str, ...] = (),
    ) -> Buffer:  # fmt: skip
        """A tile of that shape, dtype and scope: one there is, or a new one."""
        fit = [b for b in self.tiles(scope) if shape in (None, b.shape) and dtype in (None, b.dtype)]
        fit = [b for b in fit if b.name not in but]
        if fit and self.chance(0.7):
            return self.pick(*fit)
        return self.tile(shape or self.shape(), dtype or self.dtype(), scope)

    def tiles(self, scope: str | None = None) -> list[Buffer]:
        return [b for b in self.buffers if b.scope != "global" and scope in (None, b.scope)]

    def input(self, shape: tuple[int, ...], dtype: str) -> Buffer:
        """An array to read, of that rank or one more, about as large as a few tiles."""
        fit = [
            b for b in self.buffers
            if b.scope == "global" and b.slab is None and b.dtype == dtype and len(b.shape) == len(shape)
        ]  # fmt: skip
        if fit and self.chance(0.6):
            return self.pick(*fit)
        lead = (self.pick(1, 2, 3),) if len(shape) < 3 and self.chance(0.1) else ()
        extents = tuple(max(1, each + self.pick(0, 0, 0, 1, 3, each, -1)) for each in shape)
        if dtype not in PACKED and self.chance(0.06):
            return self.workspace((*lead, *extents), dtype)
        return self.array("A", (*lead, *extents), dtype)

    def workspace(self, shape: tuple[int, ...], dtype: str) -> Buffer:
        """Memory of the call with what an array holds, which a launch before the kernel's copies there."""
        source = self.array("A", shape, dtype)
        made = Buffer(self.name("W"), shape, dtype, "global")
        places = [self.name("q") for _ in shape]
        blocks = shape[0] if len(shape) > 1 else 1
        loop = places[1:] if len(shape) > 1 else places
        counts = shape[1:] if len(shape) > 1 else shape
        # Sizes that the array has, and no others.
        said = re.search(r"T\.Tensor\(\((.*?)\), '", self.params[-1])
        texts = said[1] if said else f"{', '.join(map(str, shape))},"
        index = ", ".join(places)
        named = places[0] if len(shape) > 1 else self.name("q")
        self.before += [
            f"{made.name} = T.alloc_global(({texts}), {dtype!r})",
            f"with T.Kernel({blocks}, threads={self.pick(32, 64)}) as {named}:",
            f"    for {', '.join(loop)} in T.Parallel({', '.join(map(str, counts))}):",
            f"        {made.name}[{index}] = {source.name}[{index}]",
        ]
        self.buffers.insert(0, made)
        return made

    def array(self, letter: str, shape: tuple[int, ...], dtype: str, slab: Slab | None = None) -> Buffer:
        made = Buffer(self.name(letter), shape, dtype, "global", slab)
        texts = ", ".join(self.extent(each) for each in shape) + ("," if len(shape) == 1 else "")
        spelled = f"T.Tensor(({texts}), {dtype!r})"
        if self.chance(0.06) and not made.packed:
            steps = [1]
            for extent in reversed(shape[1:]):
                steps.insert(0, steps[0] * extent + self.pick(0, 1, 4, 8))
            spelled = f"T.StridedTensor({shape}, {tuple(steps)}, {dtype!r})"
        self.params.append(f"{made.name}: {spelled}")
        self.buffers.insert(0, made)
        return made

    def extent(self, size: int) -> str:
        """An extent of an array: now and then a name that is known at the launch."""
        if size in self.dynamic and self.chance(0.7):
            return self.dynamic[size]
        if self.dynamic and self.chance(0.3):
            name = self.name("m")
            self.dynamic[size] = name
            self.sizes[name] = size
            self.numbers.append(Number(name, size, size, True))
            return name
        return str(size)

    def output(self, shape: tuple[int, ...], dtype: str) -> Buffer:
        """An array of that rank with a slab for each block that holds a tile of that shape."""
        fit = [b for b in self.buffers if b.slab and b.dtype == dtype and len(b.shape) == len(shape)]
        fit = [b for b in fit if b.slab and b.slab.rows >= shape[b.slab.axis]]
        if fit and self.chance(0.5):
            return self.pick(*fit)
        axis = self.pick(0, 0, len(shape) - 1)
        blocks = 1
        for count in self.grid:
            blocks *= count
        rows = shape[axis] + self.pick(0, 0, 0, 1, 2)
        extents = [max(1, each + self.pick(0, 0, 1, 3, -1)) for each in shape]
        extents[axis] = max(1, blocks * rows - self.pick(0, 0, 0, 1, 2))
        return self.array("O", tuple(extents), dtype, Slab(axis, self.slab_start(rows), rows))

    def slab_start(self, rows: int) -> str:
        match len(self.grid):
            case 1:
                return f"bx * {rows}"
            case 2:
                return f"(by * {self.grid[0]} + bx) * {rows}"
            case _:
                return f"((bz * {self.grid[1]} + by) * {self.grid[0]} + bx) * {rows}"

    # -- numbers
    def constant(self, kind: str) -> str:
        match kind:
            case "float":
                limits = ("T.infinity('float32')", "T.max_value('float16')", "T.min_value('bfloat16')")
                if self.chance(0.03):
                    return self.pick(*limits)
                return self.pick("0.0", "1.0", "0.5", "-2.0", "0.1", "3", "-0.75", "T.float32(0.3)", "1e-3")
            case "bool":
                return self.pick("True", "False")
            case _:
                return self.pick("0", "1", "2", "3", "5", "7", "-1" if self.chance(0.3) else "1")

    def start(self, limit: int) -> str:
        """Where a region on the chip starts: from 0 to `limit`."""
        fit = [n for n in self.numbers if n.low >= 0 and n.high <= limit]
        if limit > 0 and fit and self.chance(0.4):
            return self.pick(*fit).text
        if limit > 0 and self.numbers and self.chance(0.15):
            return f"{self.pick(*self.numbers).text} % {limit + 1}"
        if limit >= 3 and self.chance(0.1) and not self.group:
            return self.parameter_start()
        return str(self.upto(limit) if self.chance(0.5) else 0)

    def anywhere(self, extent: int) -> str:
        """Where a region of an array starts in a dimension; only numbers known now stay inside."""
        if self.numbers and self.chance(0.5):
            number = self.pick(*self.numbers).text
            return self.pick(
                number, f"{number} * {self.pick(2, 3, 4, 8, 16)}", f"{number} + 1", f"{number} - 1"
            )
        return str(min(self.pick(0, 0, 0, 1, 2, 3, 8), extent - 1))

    def parameter_start(self) -> str:
        """A number from 0 to 3 that the kernel is given: in an array, or as a scalar."""
        if self.chance(0.5):
            found = [b for b in self.buffers if b.name.startswith("P")]
            array = found[0] if found else self.array("P", (4,), "int32")
            return f"{array.name}[{self.upto(3)}]"
        name = self.name("n")
        value = self.upto(3)
        self.params.append(f"{name}: T.int32")
        self.sizes[name] = value
        self.numbers.append(Number(name, value, value, True))
        return name

    def scalar(self) -> str:
        """A float that the kernel is given."""
        name = self.name("c")
        self.params.append(f"{name}: T.{self.pick('float32', 'float16', 'float64')}")
        self.sizes[name] = self.pick(0.5, -1.25, 0.1, 3.0)
        return name

    def program(self, seed: int, **choices: Any) -> Program:
        """The finished kernel; `choices` are fields of its program."""
        coordinates = ("bx", "by", "bz")[: len(self.grid)]
        named = coordinates[0] if len(coordinates) == 1 else f"({', '.join(coordinates)})"
        said = f", threads={self.threads}" if self.threads is not None else ""
        scalars = {each.partition(":")[0] for each in self.params}
        names = [name for name in self.sizes if name not in scalars]
        sizes = [f'    {name} = T.dynamic("{name}")' for name in names]
        inside = [*self.done, *self.head, *self.lines] or ["pass"]
        text = HEAD + "\n".join(
            [
                "@tilebench.jit", "def kernel():", *sizes, "    @T.prim_func",
                f"    def main({', '.join(self.params)}):",
                *(" " * 8 + line for line in self.before),
                f"        with T.Kernel({', '.join(map(str, self.grid))}{said}) as {named}:",
                *(" " * 12 + line for line in inside), "    return main", "",
            ]
        )  # fmt: skip
        return Program(text, schedule=self.schedule, sizes=self.sizes, seed=seed, **choices)
