"""The stage `threaded` as CUDA C: one statement a line, the user's names, and where each line comes from.

The text is self-contained: a prelude with what it uses, no includes. `max` and `min` of floats
give the number when one side is NaN, as the hardware's instructions do. Pointers of parameters
must be aligned to 16 bytes, and no two parameters may overlap.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import TargetError
from ...ir import AllocStmt, Buffer, Function, If, Let, LoopStmt, Region, Stmt, Store, WithStmt, const_of
from ...ir.arith import bounds
from ...language.lowered.threads import SyncThreads, SyncWarp, VectorLoad, VectorStore
from ...language.memory import AllocLocal, AllocShared, AllocVar
from ...language.structure import Serial, Unroll
from ...machine import Machine
from ...passes.fast_exprs import statements
from ...passes.threads.env import launch_of
from .prelude import with_prelude
from .render_expr import ExprRenderer
from .render_names import c_names, c_type

INDENT = "  "
# What shared memory is aligned to: the largest alignment that a copy unit asks for.
SHARED_ALIGN = 1024


@dataclass(frozen=True)
class Rendered:
    """CUDA text, and for each of its lines the lines (from 1) of the `threaded` text behind it."""

    text: str
    lines: tuple[tuple[int, ...], ...]
    entry: str


def render(function: Function, machine: Machine) -> Rendered:
    """CUDA C of a function in stage `threaded`. Raises `TargetError` for what has no CUDA code."""
    made = _Renderer(function)
    made.function(function)
    numbers = line_numbers(function)
    body = "\n".join(made.text) + "\n"
    text, before = with_prelude(body)
    lines: list[tuple[int, ...]] = [()] * before
    for each in made.nodes:
        lines.append((numbers[id(each)],) if each is not None and id(each) in numbers else ())
    return Rendered(text, tuple(lines), made.names[function.name])


def line_numbers(function: Function) -> dict[int, int]:
    """The line, from 1, on which each statement (by identity) starts in the function's printed text.

    The printer's own account (`print_function(...).nodes`) without making the text.
    """
    out: dict[int, int] = {id(function): 2}
    number = 2

    def body(statements: tuple[Stmt, ...]) -> None:
        nonlocal number
        if not statements:
            number += 1  # `pass`
        for each in statements:
            number += 1
            out.setdefault(id(each), number)
            if isinstance(each, If):
                body(each.then)
                if each.orelse:
                    number += 1
                    body(each.orelse)
            elif isinstance(each, (LoopStmt, WithStmt)):
                body(each.body)

    body(function.body)
    return out


@dataclass
class _Renderer:
    source: Function
    text: list[str] = field(default_factory=list[str])
    nodes: list[Stmt | None] = field(default_factory=list["Stmt | None"])
    depth: int = 0

    def __post_init__(self) -> None:
        self.names = c_names(self.source)
        self.expr = ExprRenderer(self.names)

    def line(self, text: str, node: Stmt | None, depth: int | None = None) -> None:
        self.text.append(INDENT * (self.depth if depth is None else depth) + text)
        self.nodes.append(node)

    # -- the function and the launch
    def function(self, function: Function) -> None:
        launch = launch_of(function)
        written: set[str] = set()
        for each in statements(function.body):
            if isinstance(each, Store):
                written.add(each.buffer.name)
            elif isinstance(each, VectorStore):
                written.add(each.dst.buffer.name)
        params = ", ".join(self._param(each, each.name in written) for each in function.params)
        entry = self.names[function.name]
        if launch.shared_bytes:
            self.line(f"extern __shared__ __align__({SHARED_ALIGN}) unsigned char tb_shared[];", None)
        # One block an SM is enough: without the second number ptxas spills to get down to 128 registers.
        limits = f"__launch_bounds__({launch.threads}, 1)"
        self.line(f'extern "C" __global__ void {limits} {entry}({params}) {{', function)
        self.depth = 1
        for var, extent, axis in zip(launch.vars, launch.grid, "xyz", strict=False):
            self.expr.ranges[var.name] = (0, extent - 1)
            self.line(f"const int {self.names[var.name]} = (int)blockIdx.{axis};", launch)
        self.body(launch.body)
        self.depth = 0
        self.line("}", None)

    def _param(self, buffer: Buffer, written: bool) -> str:
        const = "" if written else "const "
        return f"{const}{c_type(buffer.dtype)}* __restrict__ {self.names[buffer.name]}"

    # -- statements
    def body(self, body: tuple[Stmt, ...]) -> None:
        for each in body:
            self.statement(each)

    def block(self, head: str, node: Stmt, body: tuple[Stmt, ...], tail: str = "}") -> None:
        self.line(head, node)
        self.depth += 1
        self.body(body)
        self.depth -= 1
        self.line(tail, None)

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Let():
                value = self.expr.text(stmt.value)
                if stmt.var.dtype.is_integer:
                    self.expr.ranges[stmt.var.name] = self._range(stmt)
                self.line(f"const {c_type(stmt.var.type)} {self.names[stmt.var.name]} = {value};", stmt)
            case Store():
                self.line(
                    f"{self.expr.element(stmt.buffer, stmt.index)} = {self.expr.text(stmt.value)};", stmt
                )
            case If():
                self.block(
                    f"if ({self.expr.text(stmt.condition)}) {{",
                    stmt,
                    stmt.then,
                    "} else {" if stmt.orelse else "}",
                )
                if stmt.orelse:
                    self.depth += 1
                    self.body(stmt.orelse)
                    self.depth -= 1
                    self.line("}", None)
            case Serial() | Unroll():
                self._loop(stmt)
            case VectorLoad() | VectorStore():
                self._vector(stmt)
            case SyncThreads():
                self.line("__syncthreads();" + (f"  // {stmt.why}" if stmt.why else ""), stmt)
            case SyncWarp():
                self.line("__syncwarp();", stmt)
            case AllocStmt():
                self._allocation(stmt)
            case _:
                word = getattr(stmt, "word", type(stmt).__name__)
                raise TargetError("T.{word} has no CUDA code", at=stmt.place, word=word)

    def _range(self, stmt: Let) -> tuple[int, int]:
        from ...ir import Call

        if isinstance(stmt.value, Call) and stmt.value.word == "thread_id":
            return 0, launch_of(self.source).threads - 1
        return bounds(stmt.value, self.expr.ranges)

    def _loop(self, stmt: Serial | Unroll) -> None:
        var, ranges = stmt.vars[0], self.expr.ranges
        low, high = bounds(stmt.start, ranges)[0], bounds(stmt.stop, ranges)[1]
        name, step = self.names[var.name], self.expr.text(stmt.step)
        up = (const_of(stmt.step) or 1) > 0
        ranges[var.name] = (
            (low, max(low, high - 1))
            if up
            else (bounds(stmt.stop, ranges)[0] + 1, bounds(stmt.start, ranges)[1])
        )
        advance = f"++{name}" if step == "1" else f"{name} += {step}"
        pragma = (
            "#pragma unroll" if isinstance(stmt, Unroll) else "#pragma unroll 1" if _is_outer(stmt) else ""
        )
        if pragma:
            self.line(pragma, stmt)
        compare = "<" if up else ">"
        start, stop = self.expr.text(stmt.start), self.expr.at_least(stmt.stop, 8)
        head = f"for (int {name} = {start}; {name} {compare} {stop}; {advance}) {{"
        self.block(head, stmt, stmt.body)

    def _vector(self, stmt: VectorLoad | VectorStore) -> None:
        memory, held = (stmt.src, stmt.dst) if isinstance(stmt, VectorLoad) else (stmt.dst, stmt.src)
        count = (memory.extent or (1,))[-1]
        width = count * memory.buffer.dtype.bytes
        word = f"tb_{'ld' if isinstance(stmt, VectorLoad) else 'st'}_{memory.buffer.scope}_{width}"
        if width not in (1, 2, 4, 8, 16):
            raise TargetError("there is no access of {width} bytes", at=stmt.place, width=width)
        to, source = self._at(stmt.dst), self._at(stmt.src)
        assert held.buffer.scope == "local"
        self.line(f"{word}({to}, {source});", stmt)

    def _at(self, region: Region) -> str:
        return self.expr.address(region.buffer, region.start)

    def _allocation(self, stmt: AllocStmt) -> None:
        buffer, name = stmt.buffer, self.names[stmt.buffer.name]
        kind = c_type(buffer.dtype)
        match stmt:
            case AllocShared():
                offset = stmt.offset or 0
                self.line(f"{kind}* const {name} = ({kind}*)(tb_shared + {offset});", stmt)
            case AllocLocal():
                self.line(f"__align__(16) {kind} {name}[{buffer.size}];", stmt)
            case AllocVar():
                first = "" if stmt.init is None else f" = {self.expr.text(stmt.init)}"
                self.line(f"{kind} {name}{first};", stmt)
            case _:
                raise TargetError("{name} has no memory in CUDA code", at=stmt.place, name=buffer.name)


def _is_outer(loop: Serial) -> bool:
    """Whether a rolled loop stays rolled: one with a barrier or loops in it, whose copies would only
    make the text longer (measured: rolling halves the compile time of a pipelined loop, same code).
    """
    return any(isinstance(each, (Serial, Unroll, SyncThreads)) for each in statements(loop.body))
