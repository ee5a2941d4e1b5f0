"""The builder, vector loops, reductions, code generation and the machine value."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from kit import LEVELS, map_module, named_isa, runnable

from tilebench.errors import InternalError, OptionError
from tilebench.targets.cpu.llvm import Function, Module, Value, const, i64, vector
from tilebench.targets.cpu.llvm.lanes import combine, keep, neutral, reduce_lanes, store_first, vector_loop
from tilebench.targets.cpu.machine import cores, cpu_machine, host_isa
from tilebench.targets.cpu.numbers import functions as functions
from tilebench.targets.cpu.numbers.convert import STORAGE, load_value
from tilebench.targets.cpu.run.jit import assembly, compile_text, load_object, object_code, undefined_symbols


def function(result: str = "void", *arguments: tuple[str, str]) -> Function:
    return Module(host_isa()).function("run", arguments, result)


def test_integers_fold_and_equal_instructions_are_found_again() -> None:
    f = function("i64", ("n", "i64"))
    (n,) = f.arguments
    assert f.mul(f.add(3, 4), 2) == i64(14)
    assert f.add(n, 0) is n
    assert f.mul(1, n) is n
    assert f.add(n, 5) == f.add(n, 5)
    with f.when(f.compare("sgt", n, 0)):
        inside = f.mul(n, 7)
    assert f.mul(n, 7) != inside  # the one inside does not dominate this use


@pytest.mark.parametrize("bounds", [(0, 0, 1), (0, 10, 3), (5, 4, 1), (-4, 5, 2)])
def test_loops_count_like_range(bounds: tuple[int, int, int]) -> None:
    f = function("i64", ("begin", "i64"), ("end", "i64"))
    begin, end = f.arguments
    with f.loop(begin, end, bounds[2], [i64(0), i64(1)]) as loop:
        loop.next = [f.add(loop.carried[0], loop.index), f.mul(loop.carried[1], 3)]
    f.ret(f.add(f.mul(loop.results[0], 1 << 32), loop.results[1]))
    made = compile_text(f.module.text(), ("run",))
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(made.address("run"))
    turns = range(*bounds)
    assert call(bounds[0], bounds[1]) == (sum(turns) << 32) + 3 ** len(turns)


@pytest.mark.parametrize("level", ["host", "x86-64", "x86-64-v3"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float16"])
def test_the_first_lanes_of_a_vector_are_stored_alone(dtype: str, level: str) -> None:
    isa = named_isa(level)
    if not runnable(isa):
        pytest.skip("not this machine's instruction set")
    f = Module(isa).function("run", [("out", "ptr"), ("source", "ptr"), ("count", "i64")])
    lanes = isa.lanes(np.dtype(dtype).itemsize)
    out, source, count = f.arguments
    store_first(f, f.load(source, vector(STORAGE[dtype], lanes)), out, count)
    f.ret()
    made = compile_text(f.module.text(), ("run",), isa)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(made.address("run"))
    a = np.arange(1, lanes + 1).astype(dtype)
    for n in range(lanes + 3):
        c = np.full(lanes + 3, 99, dtype)
        call(c.ctypes.data, a.ctypes.data, n)
        assert np.array_equal(c[: min(n, lanes)], a[:n])
        assert (c[min(n, lanes) :] == 99).all()


REDUCTIONS = [("sum", np.sum), ("max", np.max), ("min", np.min)]


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda each: each[0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_reductions_over_any_length_and_alignment(dtype: str, reduction: Any, aligned: bool) -> None:
    op, exact = reduction
    unsigned, lanes = dtype[0] == "u", 16
    f = function("void", ("data", "ptr"), ("n", "i64"), ("out", "ptr"))
    data, n, out = f.arguments
    element = STORAGE[dtype]
    start = neutral(op, f"<{lanes} x {element}>", unsigned=unsigned)

    def body(index: Value, mask: Value | None, carried: Sequence[Value]) -> list[Value]:
        value = load_value(f, f.at(data, index, element), dtype, lanes, mask)
        return [keep(f, mask, combine(f, op, carried[0], value, unsigned=unsigned), carried[0])]

    (total,) = vector_loop(
        f, 0, n, lanes, body, [start], unroll=2, aligned=(data, element) if aligned else None
    )
    f.store(reduce_lanes(f, total, op, unsigned=unsigned), out)
    f.ret()
    made = compile_text(f.module.text(), ("run",))
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(made.address("run"))
    rng = np.random.default_rng(0)
    for length in (1, 2, 15, 16, 17, 33, 100):
        for skip in (0, 1, 3):
            x = rng.integers(0, 100, length + skip).astype(dtype)[skip:]
            found = np.zeros(1, dtype)
            call(x.ctypes.data, length, found.ctypes.data)
            assert found[0] == exact(x, **({"dtype": dtype} if op == "sum" else {})), (length, skip)


def test_nan_loses_a_maximum_on_either_side() -> None:
    f = function("void", ("a", "ptr"), ("out", "ptr"))
    a, out = f.arguments
    x = f.load(a, "<4 x float>")
    f.store(combine(f, "max", x, const(1.0, x.type)), out)
    f.store(combine(f, "max", const(1.0, x.type), x), f.at(out, 4, "float"))
    f.ret()
    made = compile_text(f.module.text(), ("run",))
    given, found = np.array([0, 2, np.nan, -np.inf], np.float32), np.zeros(8, np.float32)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(made.address("run"))(
        given.ctypes.data, found.ctypes.data
    )
    assert np.array_equal(found, [1, 2, 1, 1] * 2)


def test_a_missing_symbol_is_an_error_and_not_a_crash() -> None:
    f = function("float", ("x", "float"))
    f.module.declare("no_such_function_", "float", ["float"])
    f.ret(f.call("no_such_function_", f.arguments, "float"))
    with pytest.raises(InternalError, match="no_such_function_"):
        compile_text(f.module.text(), ("run",))


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
def test_a_choice_of_constants_that_code_generation_knows_is_compiled(level: str) -> None:
    """It was a load of a table that LLVM took for one element of a vector, and stopped the process."""
    f = Module(named_isa(level)).function("run", [("a", "ptr"), ("o", "ptr"), ("n", "i64")])
    source, out, n = f.arguments
    number = f.binary("urem", n, 2)
    with f.loop(0, n, 8) as loop:
        chosen = f.select(f.compare("slt", number, 0), const(0.3, "float"), const(1.0, "float"))
        row = f.load(f.at(source, loop.index, "float"), "<8 x float>", align=4)
        same = f.cast("zext", f.compare("oeq", row, f.splat(chosen, 8)), "<8 x i8>")
        f.store(same, f.at(out, loop.index, "i8"), align=1)
    f.ret()
    text = f.module.text()
    assert "select i1" in text
    assert ", float 0x" not in text.split("select i1")[1].split("\n")[0]
    assert object_code(text, named_isa(level))


def test_text_that_llvm_refuses_says_why() -> None:
    with pytest.raises(InternalError, match="expected"):
        compile_text("define void @run() { nonsense }", ("run",))


def test_an_object_file_loads_without_compiling_again() -> None:
    f = function("i64", ("n", "i64"))
    f.ret(f.mul(f.arguments[0], 3))
    data = compile_text(f.module.text(), ("run",)).object_bytes
    again = load_object(data, ("run",))
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(again.address("run"))(14) == 42


@pytest.mark.parametrize("level", LEVELS)
def test_no_function_needs_a_runtime_symbol_anywhere(level: str) -> None:
    isa = named_isa(level)
    for name, emit in functions.UNARY.items():
        assert (
            undefined_symbols(object_code(map_module(isa, emit, ["float32"], "float32").text(), isa)) == []
        ), name
    text = map_module(isa, functions.power, ["float32", "float32"], "float32").text()
    assert undefined_symbols(object_code(text, isa)) == []


def test_assembly_uses_the_widest_registers() -> None:
    text = map_module(named_isa("x86-64-v4"), functions.exp, ["float32"], "float32").text()
    assert "zmm" in assembly(text, named_isa("x86-64-v4"))
    assert "call" not in assembly(text, named_isa("x86-64-v4"))


def test_the_machine_value() -> None:
    machine = cpu_machine()
    assert machine.warp == 1
    assert machine.vector_bytes[0] == host_isa().vector_bytes
    assert machine.memory["l2"].per_unit >= machine.memory["l1"].per_unit > 0
    assert ("int8", "int8", "int32") in {each.dtypes for each in machine.instructions_for("gemm")}
    assert cores() >= 1
    with pytest.raises(OptionError, match="pentium"):
        named_isa("pentium")
