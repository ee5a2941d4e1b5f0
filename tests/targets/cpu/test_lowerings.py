"""The table of lowerings: rows gathered from a folder, rows of a package, and no silent default."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.targets.cpu import kernels
from tests.waiting import answers_within
from tilebench.errors import InternalError, TargetError
from tilebench.ir import (
    Const,
    Expr,
    Load,
    OpStmt,
    Region,
    Stmt,
    Store,
    While,
    Word,
    WordStmt,
    attribute,
    node,
    operand,
    parse_function,
    print_function,
    reads,
    rewrite,
    verify,
    walk,
    writes,
)
from tilebench.ir.gather import gathered
from tilebench.kernel import Kernel
from tilebench.language.copy import Copy
from tilebench.language.gemm import Gemm
from tilebench.language.lowered.decisions import Instr
from tilebench.language.memory import AllocGlobal
from tilebench.language.stages import TILES
from tilebench.language.words import registry
from tilebench.passes.context import Context
from tilebench.targets.cpu import lowerings, manifest, manifest_with
from tilebench.targets.cpu.llvm import const
from tilebench.targets.cpu.loops.forms import LOOPS_FORMS
from tilebench.targets.cpu.loops.lowering import Lowering, LoweringTable
from tilebench.targets.cpu.loops.to_loops import to_loops, to_loops_with
from tilebench.targets.cpu.loops.vectors import nest, vector_loop
from tilebench.targets.cpu.loops.words import WORDS as WORDS_OF_LOOPS
from tilebench.targets.cpu.loops.words import MicroGemm
from tilebench.targets.cpu.lowerings import rows as own_rows
from tilebench.targets.cpu.machine import cpu_machine, host_isa, named_isa
from tilebench.targets.cpu.render import words
from tilebench.targets.cpu.render.kernel import ENTRY, render_llvm
from tilebench.targets.cpu.render.renderer import Rendering
from tilebench.targets.cpu.run.jit import compile_text


@node
class Doubled(OpStmt):
    """`T.doubled(src, dst)`: each element of a tile times `factor`."""

    word = "doubled"
    stages = TILES
    src: Region = reads()
    dst: Region = writes()
    factor: Expr = operand()
    note: str = attribute(default="")


def doubled(work: Any, old: Doubled) -> list[Stmt]:
    """Rows of vectors."""
    src, dst = work.swapped(old.src), work.swapped(old.dst)
    i, j = work.fresh("i"), work.fresh("j")
    rows, columns = dst.buffer.shape
    value = Load(src.buffer, (i, j)) * old.factor
    loop = vector_loop(work, j, Const(columns), (Store(dst.buffer, (i, j), value, place=old.place),))
    return list(nest([i], [Const(rows)], (loop,)))


ROWS = (Lowering(Doubled, doubled),)
WORDS = ((Doubled.word, Word(Doubled)),)
TEXT = """
@T.prim_func
def main(A: T.Tensor((30, 40), T.float32), C: T.Tensor((30, 40), T.float32)):
    with T.Kernel(1, threads=128) as (bx,):
        S = T.alloc_shared((32, 48), T.float32)
        D = T.alloc_shared((32, 48), T.float32)
        T.copy(A[0:32, 0:48], S, src_within=(30, 40))
        T.doubled(S, D, T.float32(2))
        T.copy(D, C[0:32, 0:48], dst_within=(30, 40))
"""


def bounded_text() -> Any:
    return parse_function(TEXT, manifest().registry.extended(WORDS))


def context() -> Context:
    return Context(cpu_machine(named_isa("x86-64-v4")))


def test_an_operation_without_a_row_is_refused_at_its_line() -> None:
    with pytest.raises(TargetError) as caught:
        to_loops(bounded_text(), context())
    error = caught.value
    assert error.message == "cpu has no lowering of T.doubled"
    assert error.hint == (
        f"it lowers {', '.join(LoweringTable(own_rows()).operations())}; "
        "loops over elements (T.Parallel, T.serial) can say other things"
    )
    assert error.place is not None
    assert error.place.line == 8


def test_an_instruction_that_the_target_has_not_is_refused_at_its_line() -> None:
    def lowered(instruction: str, cls: type[Stmt]) -> Any:
        kernel: Any = kernels.gemm.using(target="cpu:x86-64-v4")(64, 64, 64, 32, 32, 32)
        kernel.stage("bounded")
        function = kernel.compilation.functions["bounded"]
        old = next(each for each in walk(function) if isinstance(each, cls))
        changed = rewrite(function, lambda at: at.but(by=Instr(instruction)) if at == old else at)
        return to_loops(changed, context())

    assert any(isinstance(each, MicroGemm) for each in walk(lowered("microkernel", Gemm)))
    with pytest.raises(TargetError) as caught:
        lowered("wgmma", Gemm)
    assert caught.value.message == "cpu has no instruction 'wgmma' for T.gemm"
    assert caught.value.hint == "it has microkernel; or leave by= out"
    assert caught.value.place is not None
    with pytest.raises(TargetError) as caught:
        lowered("cp.async", Copy)
    assert caught.value.message == "cpu has no instruction 'cp.async' for T.copy"
    assert caught.value.hint == "leave by= out: it has one way to do it, without a name"


def test_rows_of_a_package_lower_its_operation() -> None:
    text = print_function(to_loops_with(ROWS)(bounded_text(), context())).text
    assert [line.strip() for line in text.splitlines()[14:17]] == [
        "for i__2 in T.serial(32):",
        "for j__4 in T.vectors(48, lanes=16, overrun=True):",
        "D[i__2, j__4] = S[i__2, j__4] * T.float32(2)",
    ]


def test_a_package_brings_word_and_row_and_its_kernel_runs() -> None:
    own = manifest_with(words=WORDS, lowerings=ROWS)
    function = parse_function(TEXT, own.registry)
    kernel: Any = kernels.add.using(target="cpu")(30, 40, 16, 16)
    traced = kernel.compilation.traced
    made = Kernel(replace(traced, function=function), own, own.describe(None), start="bounded")
    a, c = np.arange(1200, dtype=np.float32).reshape(30, 40), np.zeros((30, 40), np.float32)
    made.executable()([a, c])
    assert np.array_equal(c, 2 * a)


UNROLLS = """
@T.prim_func
def main(n: T.Tensor((1,), T.int32), C: T.Tensor((32,), T.float32)):
    with T.Kernel(1, threads=128) as (bx,):
        for i in T.unroll(8):
            C[i] = T.float32(1)
        for j in T.unroll(20, start=2, step=2):
            C[j] = T.float32(2)
        for k in T.unroll(n[0]):
            C[0] = T.float32(3)
"""


def test_a_loop_that_is_not_written_out_is_printed_as_one_and_says_so() -> None:
    told = context()
    function = to_loops(parse_function(UNROLLS, manifest().registry), told)
    loops = [line.strip() for line in print_function(function).text.splitlines() if " in T." in line]
    assert loops == [
        "for i in T.unroll(8):", "for j in T.serial(20, start=2, step=2):", "for k in T.serial(n[0]):",
    ]  # fmt: skip
    assert [r.message for r in told.remarks if r.kind == "missed"] == [
        "T.unroll of j has 9 turns and stays a loop: up to 8 are written out",
        "T.unroll of k has turns that nobody has counted and stays a loop: up to 8 are written out",
    ]
    text = render_llvm(function, named_isa("x86-64-v4")).text
    assert text.count("float 0x3FF0000000000000") == 8
    assert text.count("float 0x4000000000000000") == 1


GROUPS = """
@T.prim_func
def main(A: T.Tensor((32, 48), T.float32), C: T.Tensor((32, 48), T.float32)):
    with T.Kernel(1, threads=128) as (bx,):
        S = T.alloc_shared((32, 48), T.float32)
        with T.threads(0, 32):
            T.copy(A[0:32, 0:48], S)
        with T.threads(32, 64):
            T.copy(S, C[0:32, 0:48])
"""


def test_what_some_threads_of_a_block_do_its_one_thread_does() -> None:
    text = print_function(to_loops(parse_function(GROUPS, manifest().registry), context())).text
    assert "T.threads" not in text
    lines = [line.strip() for line in text.splitlines()]
    assert lines.index("S[i, j] = A[i, j]") < lines.index("C[i__2, j__2] = S[i__2, j__2]")


@node
class Spin(OpStmt):
    """`T.spin(C[0], 3)` in `loops`: the element takes a number that LLVM text alone says."""

    word = "spin"
    stages = frozenset({"loops"})
    dst: Region = writes()
    number: int = attribute()


def spin(renderer: Any, statement: Spin) -> None:
    where = renderer.state.address(statement.dst.buffer, statement.dst.start, renderer.expr)
    renderer.f.store(const(statement.number, "float"), renderer.f.at(where.pointer, where.offset, "float"))


SPIN = """
@T.prim_func
def main(C: T.Tensor((30, 40), T.float32)):
    with T.Kernel(1, threads=1) as (bx,):
        T.spin(C[2, 3], 7)
"""


def test_a_word_of_loops_without_a_rendering_is_refused_at_its_line() -> None:
    function = parse_function(SPIN, manifest().registry.extended(((Spin.word, Word(Spin)),)))
    with pytest.raises(TargetError) as caught:
        render_llvm(function, named_isa("x86-64-v4"))
    assert caught.value.message == "cpu has no LLVM text for T.spin"
    assert caught.value.hint == (
        "it writes T.accumulate, T.alloc_scratch, T.alloc_var, T.fold, T.micro_gemm, T.pack_pairs, "
        "T.pack_transposed, T.prefetch, T.running, T.serial, T.unroll, T.vectors; "
        "a package's word needs a Rendering of its own"
    )
    assert caught.value.place is not None
    assert caught.value.place.line == 5


def test_a_package_brings_a_word_of_loops_and_its_text() -> None:
    rows = (Rendering(Spin, spin),)
    own = manifest_with(words=((Spin.word, Word(Spin)),), renderings=rows)
    function = parse_function(SPIN, own.registry)
    verify(function, own.road[0].forms)
    made = compile_text(render_llvm(function, host_isa(), more=rows).text, (ENTRY,))
    c, cancel = np.zeros((30, 40), np.float32), ctypes.c_int32(0)
    addresses = (ctypes.c_int64 * 1)(c.ctypes.data)
    kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    run = ctypes.CFUNCTYPE(None, *kinds)(made.address(ENTRY))
    run(ctypes.addressof(addresses), ctypes.addressof(cancel), 0, 1, None)
    assert c[2, 3] == 7
    assert c.sum() == 7


def test_every_word_of_loops_has_a_rendering() -> None:
    rendered = {row.statement for row in words.rows()}
    of_loops = {word.cls for _, word in WORDS_OF_LOOPS}
    assert of_loops <= rendered
    # The launch is the function itself, memory of the call its argument, and `while` a form of Python's.
    kept = {cls.word for cls in rendered - of_loops - {While} if issubclass(cls, WordStmt)}
    assert LOOPS_FORMS.words == kept | {"Kernel", "alloc_global"} | {
        spelling for spelling, _ in WORDS_OF_LOOPS
    }


def test_every_operation_on_tiles_has_a_lowering() -> None:
    """What a kernel can say before `loops` is lowered, all of it."""
    table = LoweringTable(lowerings.rows())
    statements = {word.cls for word in registry().statements.values() if "bounded" in word.cls.stages}
    assert statements
    # Memory of the call is no statement of a launch; a CPU's kernel has no layouts of threads and no stages.
    others = {cls.word for cls in statements if cls not in table.rows}
    # Waits and barriers that a kernel writes itself are of cards, and are refused at their line.
    by_hand = {
        "alloc_barrier", "mbarrier_arrive", "mbarrier_expect", "mbarrier_wait", "fence_async_shared",
        "fence_mbarrier_init", "commit", "wait", "launch_dependents", "wait_for_launches", "sync_cluster",
    }  # fmt: skip
    assert others == {AllocGlobal.word, "convert_layout", "stage"} | by_hand


def test_a_row_for_what_has_one_is_refused() -> None:
    with pytest.raises(InternalError, match="Copy has two lowerings for ''"):
        to_loops_with([Lowering(Copy, lambda work, old: [])])
    with pytest.raises(InternalError, match="Doubled has two lowerings for ''"):
        LoweringTable((*ROWS, *ROWS))


def test_a_module_without_rows_fails_loudly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "rows_of_somebody"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "copy.py").write_text("LOWERINGS = ()\n")
    monkeypatch.syspath_prepend(tmp_path)
    told = "the module rows_of_somebody.copy holds no LOWERINGS, a tuple of Lowering"
    with pytest.raises(InternalError, match=told):
        gathered("rows_of_somebody", [str(package)], "LOWERINGS", Lowering)
    (package / "copy.py").write_text("LOWERINGS = (1,)\n")
    with pytest.raises(InternalError, match=r"rows_of_somebody\.copy"):
        gathered("rows_of_somebody", [str(package)], "LOWERINGS", Lowering)


def test_gathering_takes_no_time_to_speak_of() -> None:
    lowerings.rows()
    lowerings.rows.cache_clear()

    def gather() -> None:
        lowerings.rows.cache_clear()
        LoweringTable(lowerings.rows())

    answers_within(2e-3, gather, tries=20)
