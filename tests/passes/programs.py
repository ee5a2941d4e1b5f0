"""Random small kernels in the `tile` stage, as text, for tests of everything below it."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

EXTENTS = (1, 2, 3, 7, 8, 16, 20)
DTYPES = ("float32", "float16", "int32", "int8", "float64")
THREADS = (32, 64, 96, 160)


@dataclass
class Tile:
    """A buffer on the chip."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: str


@dataclass
class Program:
    """A kernel being written. `draw` is hypothesis's."""

    draw: st.DrawFn
    dtype: str
    lines: list[str] = field(default_factory=list[str])
    tiles: list[Tile] = field(default_factory=list[Tile])
    count: int = 0

    def pick(self, *choices: object) -> object:
        return self.draw(st.sampled_from(choices))

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def say(self, depth: int, text: str) -> None:
        self.lines.append("    " * (depth + 2) + text)

    def tile(self, shape: tuple[int, ...], scope: str) -> Tile:
        made = Tile(self.name("t"), shape, self.dtype, scope)
        word = {"shared": "alloc_shared", "fragment": "alloc_fragment"}[scope]
        # In front of everything, so that whatever follows may use it.
        self.lines.insert(0, f"        {made.name} = T.{word}({shape}, T.{self.dtype})")
        self.lines.insert(1, f"        T.fill({made.name}, T.{self.dtype}({self.draw(st.integers(0, 3))}))")
        self.tiles.append(made)
        return made

    def some(self, shape: tuple[int, ...] | None = None, scope: str | None = None) -> Tile:
        """A tile of that shape and scope: one there is, or a new one."""
        fit = [t for t in self.tiles if shape in (None, t.shape) and scope in (None, t.scope)]
        if fit and self.draw(st.booleans()):
            return self.draw(st.sampled_from(fit))
        if shape is None:
            rank = self.draw(st.integers(1, 3))
            shape = tuple(self.draw(st.sampled_from(EXTENTS)) for _ in range(rank))
        chosen = scope or self.draw(st.sampled_from(["shared", "fragment"]))
        return self.tile(shape, chosen)

    # -- statements
    def element(self) -> None:
        """A parallel loop that reads tiles in some order of its indices."""
        out = self.some()
        names = [f"{letter}{self.count}" for letter in "ijk"[: len(out.shape)]]
        self.count += 1
        terms = [self.load(names, out.shape) for _ in range(self.draw(st.integers(1, 2)))]
        target = f"{out.name}[{', '.join(names)}]"
        if self.draw(st.booleans()):
            terms.insert(0, target)
        self.say(self.depth, f"for {', '.join(names)} in T.Parallel{_extents(out.shape)}:")
        inside = self.depth + 1
        if self.draw(st.booleans()):
            self.say(inside, f"if {names[-1]} < {self.draw(st.integers(0, out.shape[-1]))}:")
            inside += 1
        self.say(inside, f"{target} = {' + '.join(terms)}")

    def load(self, names: list[str], shape: tuple[int, ...]) -> str:
        """An element of some tile, indexed by a permutation or a part of the loop's variables."""
        order = self.draw(st.permutations(range(len(names))))
        kept = order[: self.draw(st.integers(1, len(names)))]
        if self.pick("tile", "tile", "global") == "global":
            index = ", ".join([*(names[k] for k in kept), *["0"] * (3 - len(kept))])
            return f"A[{index}]"
        tile = self.some(tuple(shape[k] for k in kept))
        return f"{tile.name}[{', '.join(names[k] for k in kept)}]"

    def copy(self) -> None:
        """Between two tiles of one shape, or a tile and global memory at an odd place."""
        tile = self.some()
        if self.pick("tile", "global") == "tile":
            other = self.some(tile.shape)
            self.say(self.depth, f"T.copy({tile.name}, {other.name})")
            return
        starts = [self.draw(st.integers(0, 3)) for _ in tile.shape]
        lead = 3 - len(tile.shape)
        at = ", ".join([*["1"] * lead, *map(str, starts)])
        if self.pick("in", "out") == "in":
            self.say(self.depth, f"T.copy(A[{at}], {tile.name})")
        else:
            self.say(self.depth, f"T.copy({tile.name}, C[{at}])")

    def part(self) -> None:
        """A part of a tile to or from global memory, or filled."""
        tile = self.some()
        box: list[str] = []
        outside: list[str] = ["1 : 2"] * (3 - len(tile.shape))
        for extent in tile.shape:
            size = self.draw(st.integers(1, extent))
            first = self.draw(st.integers(0, extent - size))
            box.append(f"{first} : {first + size}")
            outside.append(f"{self.count % 2} : {self.count % 2 + size}")
        region = f"{tile.name}[{', '.join(box)}]"
        other = ", ".join(outside)
        how = self.pick("in", "out", "fill")
        if how == "fill":
            self.say(self.depth, f"T.fill({region}, T.{self.dtype}(2))")
        else:
            self.say(
                self.depth,
                f"T.copy(A[{other}], {region})" if how == "in" else f"T.copy({region}, C[{other}])",
            )

    def reduce(self) -> None:
        src = self.some()
        dim = self.draw(st.integers(0, len(src.shape) - 1))
        kept = [e for k, e in enumerate(src.shape) if k != dim]
        if not kept or self.draw(st.booleans()):
            kept = [1 if k == dim else e for k, e in enumerate(src.shape)]
        dst = self.some(tuple(kept))
        word = self.pick("sum", "max", "min")
        clear = self.draw(st.booleans())
        if dst.name != src.name:
            self.say(
                self.depth,
                f"T.reduce_{word}({src.name}, {dst.name}, dim={dim}{'' if clear else ', clear=False'})",
            )

    def gemm(self) -> None:
        if self.dtype in ("float16", "int8"):
            return  # their accumulators are of another type; test_stages has those
        m, n, k = (self.draw(st.sampled_from(EXTENTS)) for _ in range(3))
        flip_a, flip_b = self.draw(st.booleans()), self.draw(st.booleans())
        a, b = self.some((k, m) if flip_a else (m, k)), self.some((n, k) if flip_b else (k, n))
        c = self.some((m, n), "fragment")
        flags = (", transpose_A=True" if flip_a else "") + (", transpose_B=True" if flip_b else "")
        if c.name not in (a.name, b.name):
            self.say(self.depth, f"T.gemm({a.name}, {b.name}, {c.name}{flags})")

    def loop(self) -> None:
        """Statements in a loop; in a pipelined one some tiles are filled from global memory first."""
        var = self.name("n")
        head = self.pick(
            "T.serial(2)",
            "T.unroll(2)",
            "T.Pipelined(3, num_stages=2)",
            "T.Pipelined(2, num_stages=3)",
            "T.Pipelined(3)",
        )
        if self.depth or len(self.lines) > 30:
            return
        self.say(self.depth, f"for {var} in {head}:")
        self.depth += 1
        for _ in range(self.draw(st.integers(0, 2))):
            tile = self.some(scope="shared")
            lead = ["0"] * (3 - len(tile.shape))
            at = ", ".join([*lead, *([f"{var} * 2"] + ["0"] * (len(tile.shape) - 1))])
            self.say(self.depth, f"T.copy(A[{at}], {tile.name})")
        for _ in range(self.draw(st.integers(1, 2))):
            self.statement()
        self.say(self.depth, f"T.copy({self.some((3, 7)).name}, C[0, {var}, {var}])")
        self.depth -= 1

    depth: int = 0

    def statement(self) -> None:
        getattr(self, str(self.pick("element", "element", "copy", "part", "reduce", "gemm", "loop")))()


def _extents(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of a kernel that reads A and writes C, both (9, 24, 24) or (9, 24, 23)."""
    program = Program(draw, draw(st.sampled_from(DTYPES)))
    for _ in range(draw(st.integers(1, 5))):
        program.statement()
    for each in program.tiles[:3]:
        at = ", ".join(["2"] * (3 - len(each.shape)) + ["1"] * len(each.shape))
        program.say(0, f"T.copy({each.name}, C[{at}])")
    body = "\n".join(program.lines) or "        pass"
    # 24 columns start on vectors, 23 do not.
    tensor = f"T.Tensor((9, 24, {draw(st.sampled_from([24, 23]))}), T.{program.dtype})"
    return (
        f"@T.prim_func\ndef main(A: {tensor}, C: {tensor}):\n"
        f"    with T.Kernel(1, threads={draw(st.sampled_from(THREADS))}) as bx:\n{body}\n"
    )
