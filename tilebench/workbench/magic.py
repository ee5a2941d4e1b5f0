"""`%%tile`: a cell with kernels runs as Python, and one of them opens on the bench.

The line is told in `options.py`. The cell's lines keep the numbers that the notebook shows: the line
of the magic counts, so the body is compiled below a comment that stands for it.
"""

from __future__ import annotations

import ast
import importlib
import sys
import weakref
from collections.abc import Mapping
from typing import Any

from ..errors import LanguageError, OptionError, TileError, nearest, remember_source
from .options import TileOptions, parse_line, usage

MAGIC = "tile"


class TileMagic:
    """The magic of one shell: runs a cell, finds its kernel, opens the workbench."""

    def __init__(self, shell: Any) -> None:
        self._shell = weakref.ref(shell)

    def __call__(self, line: str, cell: str | None = None) -> None:
        shell: Any = self._shell()
        try:
            options = parse_line(line)
            kernels = run_cell(shell, line, cell) if cell is not None else _kernels_in(shell.user_ns)
            kernel = choose_kernel(options.kernel, kernels, shell.user_ns)
            open_for(kernel, options, shell.user_ns)
        except TileError as error:
            if cell is not None:
                _mark_error(shell, error, _raw(line, cell))
            raise


def _mark_error(shell: Any, error: Exception, raw: str, code: str = "") -> None:
    """Leave marks of an error for the editor that the cell is edited in, if there is one.

    `raw` is the text of the cell, and `code` the file name of its code, where that was running.
    """
    from .front.marks import error_marks, exception_marks, show_marks, word_place
    from .live import is_interactive

    if not is_interactive():
        return
    file = _label(shell, code)
    remember_source(file, raw)
    if isinstance(error, TileError):
        show_marks(error_marks(error, word_place(file, raw.partition("\n")[0], error)))
    else:
        show_marks(exception_marks(error, code, file))


def open_for(kernel: Any, options: TileOptions, space: Mapping[str, Any]) -> None:
    """Open the workbench that a line asks for, and show it in this cell. `space` is the notebook's."""
    from ..sweeps.known import WORDS
    from .live import open_live

    own = {name: space[name] for name in options.against if callable(space.get(name)) and name not in WORDS}

    bench = open_live(
        kernel, with_=options.values, sweep=options.sweep, target=options.target, stages=options.stages,
        schedule=options.schedule or None, run=options.run, check=options.check, at=options.position,
        against=([name for name in options.against if name not in own], own),
    )  # fmt: skip
    bench.show()


def _raw(line: str, cell: str) -> str:
    """The cell as the notebook has it."""
    return f"%%{MAGIC} {line}".rstrip() + "\n" + cell


def cell_text(line: str, cell: str) -> str:
    """The body below a comment for the magic's line, so that its lines have the notebook's numbers."""
    return f"# %%{MAGIC} {line}".rstrip() + "\n" + cell


def run_cell(shell: Any, line: str, cell: str) -> dict[str, Any]:
    """Run the body in the user's namespace; gives the kernel functions it defined, in their order.

    What it raises keeps its traceback, without our own frames. A body that is not Python raises
    `LanguageError` at its line.
    """
    raw = _raw(line, cell)
    try:
        body = shell.transform_cell(cell) if cell.strip() else cell
    except SyntaxError:
        body = cell  # the shell reads indents too; what is wrong is told at its line below
    text = cell_text(line, body)
    if len(text.splitlines()) < len(raw.splitlines()):  # the shell drops blank lines in front
        lost = len(raw.splitlines()) - len(text.splitlines())
        head, _, rest = text.partition("\n")
        text = head + "\n" * (lost + 1) + rest
    name = shell.compile.cache(text, _number(shell), raw_code=raw)
    _check(shell, raw, text, name)
    tree = ast.parse(text, name)
    before = _kernels_in(shell.user_ns)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    try:
        exec(compile(tree, name, "exec"), shell.user_ns)  # noqa: S102
        if last is not None:
            # `single` gives the value to the shell, as the last line of any cell.
            exec(compile(ast.Interactive([last]), name, "single"), shell.user_ns)  # noqa: S102
    except Exception as error:
        if not isinstance(error, TileError):
            _mark_error(shell, error, raw, name)
        raise plain_traceback(shell, error, name) from error.__cause__
    after = _kernels_in(shell.user_ns)
    return {key: value for key, value in after.items() if before.get(key) is not value}


def _number(shell: Any) -> int:
    """The number of the running cell, by the code that called the magic: the shell counts on early."""
    known: Any = getattr(shell.compile, "_filename_map", {})
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        found = known.get(frame.f_code.co_filename)
        if found is not None:
            return int(found)
        frame = frame.f_back
    return int(shell.execution_count)


def _label(shell: Any, file: str = "") -> str:
    """What the running cell is called in messages: `Cell In[7]`."""
    known: Any = shell.compile.format_code_name(file) if file else ("Cell", f"In[{_number(shell)}]")
    return " ".join(str(part) for part in known or (f"cell [{_number(shell)}]",))


def _check(shell: Any, raw: str, text: str, file: str) -> None:
    """Raise `LanguageError` under the cell's own name when the text is not Python."""
    from ..frontend import check_syntax

    label = _label(shell, file)
    try:
        check_syntax(text, label)
    finally:
        # Quoted lines are what the reader sees: the first is the magic's.
        remember_source(label, raw)


def _kernels_in(space: dict[str, Any]) -> dict[str, Any]:
    from ..kernel import JitFunction

    return {
        key: value
        for key, value in space.items()
        if isinstance(value, JitFunction) and not key.startswith("_")
    }


def choose_kernel(name: str, defined: dict[str, Any], space: dict[str, Any]) -> Any:
    """The kernel function to open: the one named, else the last that the cell defined."""
    from ..kernel import JitFunction, Kernel

    if name:
        named = space.get(name)
        if isinstance(named, (JitFunction, Kernel)):
            return named
        known = list(dict.fromkeys([*defined, *_kernels_in(space)]))
        close = nearest(name, known, limit=1)
        raise OptionError(
            "there is no kernel called {name}", name=name, known=", ".join(known) or "none",
            hint=(f"did you mean {close[0]}? " if close else "") + "kernels here: {known}",
        )  # fmt: skip
    if not defined:
        raise LanguageError(
            "the cell defines no kernel",
            hint="put @tilebench.jit before a function that returns a @T.prim_func, "
            "or name a kernel of another cell: %%tile NAME",
        )  # fmt: skip
    # The order of the source, not of first definition in the namespace.
    return max(defined.values(), key=lambda each: each.function.__code__.co_firstlineno)


def plain_traceback(shell: Any, error: Exception, file: str) -> Exception:
    """The error, drawn from its first frame in the cell on: our own frames above tell nobody anything."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != file:
        trace = trace.tb_next
    if isinstance(error, TileError) or trace is None:
        return error

    def render() -> list[str]:
        # The traceback has grown by the frames above while the error rose; its lower part is the cell's.
        return shell.InteractiveTB.structured_traceback(type(error), error, trace, tb_offset=0)

    error._render_traceback_ = render  # type: ignore[attr-defined]  # IPython's own door for this
    return error


def _explain(self: TileError) -> list[str]:
    """What IPython shows of a `TileError`: the drawn message, no frames of the compiler."""
    return self.explain(color=True).splitlines()


def load(shell: Any) -> None:
    """Register `%%tile` and the rich forms of our values in a shell."""
    magic = TileMagic(shell)

    def tile(line: str, cell: str | None = None) -> None:
        magic(line, cell)

    tile.__doc__ = documentation()
    shell.register_magic_function(tile, "line_cell", MAGIC)
    TileError._render_traceback_ = _explain  # type: ignore[attr-defined]
    for part in (".formatters", ".tab"):
        importlib.import_module(part, __package__).register(shell)


def unload(shell: Any) -> None:
    """Take the magic and the forms away; close workbenches and the measuring child."""
    from ..runtime.worker import default_worker
    from .interrupts import unwatch
    from .registry import close_all

    close_all()
    unwatch(shell)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(MAGIC, None)
    if "_render_traceback_" in vars(TileError):
        del TileError._render_traceback_  # type: ignore[attr-defined]
    for part in (".formatters", ".tab"):
        importlib.import_module(part, __package__).unregister(shell)
    if default_worker.cache_info().currsize:
        default_worker().close()


def documentation() -> str:
    """What `%%tile?` shows."""
    return f"""Run a cell with tile kernels and open one of them on the bench.

{usage()}

The body is Python and runs in this notebook. KERNEL names the kernel function; without it the last
one of the cell is opened. Parameters that have no default need a value: --with M=1024 N=1024. What a kernel
leaves to its calls (sizes and strides of T.dynamic, scalars) is given and swept in the same way, or
typed into its field.

--sweep gives a parameter a slider (64,128,256 or 1..4 or 32..128..32); so does a knob in the
kernel's signature (block_M=tilebench.Knob(64, 128)), and a default of a parameter called
{", ".join(usual_names())}. A choice of the schedule can be swept by its address:
threads, order, LOOP.num_stages, BUFFER.swizzle, GEMM.policy, as in --sweep ko.num_stages=1..4.

{_roads_told()}

%tile with one sign takes the same words and opens a kernel of an earlier cell: %tile gemm --run ...

--run measures each position in a child process (on this machine's processor where the target cannot
run here); --check compares every element with the reference, within computed bounds.

Examples
  %%tile --with M=1000 N=1100 --target cuda:sm_90a
  %%tile gemm --with M=1024 N=1024 K=1024 --sweep block_M=64,128 num_stages=1..4 --stages tile,cuda,sass --run

The same as a function: tilebench.workbench(kernel, with_={{"M": 1000}}, sweep={{"block_M": [64, 128]}})
"""


def usual_names() -> tuple[str, ...]:
    """Parameters that get a slider by their name."""
    from .subject import USUAL

    return tuple(USUAL)


def _roads_told() -> str:
    """The targets there are, and the stages of each one's road, as the manifests tell them."""
    from ..passes.pipeline import COMMON
    from ..targets import manifest, names

    offered = [manifest(name) for name in names() if manifest(name).presentation.machines]
    common = ", ".join(("source", "tile", *(row.name for row in COMMON)))
    lines = [f"Targets are {', '.join(each.presentation.told for each in offered)}.", f"Stages are {common};"]
    for target in offered:
        road = ", ".join(row.name for row in (*target.road, *target.steps))
        lines.append(f"  then for {target.name}: {road}")
    return "\n".join(lines)
