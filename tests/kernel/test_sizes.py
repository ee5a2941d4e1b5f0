"""Sizes known at run time and scalars, from the call to the code, on the CPU and in the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tests.kernels as kernels
import tilebench
import tilebench.language as T
from tests.simulated import run_threaded
from tilebench.compiler import Compilation
from tilebench.errors import ArgumentError
from tilebench.ir import parse_function, print_function
from tilebench.ir.sizes import for_sizes
from tilebench.kernel.calls import calling
from tilebench.kernel.calls.variants import ALIGNED, Chooser, Variant, under
from tilebench.language import registry
from tilebench.passes.analysis.count_work import count_work
from tilebench.reference import check_function
from tilebench.runtime.calls import CallBinder
from tilebench.targets.devices import CARD


@tilebench.jit(target="cpu")
def scaled(block=32, dtype="float32", n_dtype="int32", alpha_dtype="float32"):
    m, n = T.dynamic("m, n")
    few, alpha_type = getattr(T, n_dtype), getattr(T, alpha_dtype)

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), few: few, alpha: alpha_type, C: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(n, block), m, threads=32) as (bx, by):
            for j in T.Parallel(block):
                C[by, bx * block + j] = T.if_then_else(
                    bx * block + j < few, A[by, bx * block + j] * T.cast(alpha, dtype), T.cast(0, dtype)
                )

    return main


@tilebench.jit(target="cpu")
def strided(block=32):
    m, n, row = T.dynamic("m n row")

    @T.prim_func
    def main(A: T.StridedTensor((m, n), (row, 1), "float32"), C: T.Tensor((m * n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), m, threads=32) as (bx, by):
            for j in T.Parallel(block):
                if bx * block + j < n:
                    C[by * n + bx * block + j] = A[by, bx * block + j]

    return main


def symbolic(target: str) -> dict[str, Any]:
    """The four kernels with symbolic M, N, K, for a target."""
    m, n, k = T.dynamic("M, N, K")
    blocks = {"block_M": 32, "block_N": 32}
    return {
        "add": kernels.add_kernel.using(target=target)(m, n, **blocks),
        "gemm": kernels.gemm_kernel.using(target=target)(m, n, k, **blocks, threads=64),
        "sum": kernels.reduce_kernel.using(target=target)(m, n),
        "softmax": kernels.softmax_kernel.using(target=target)(m, 64),
    }


def sizes_for(kernel: Any, m: int, n: int, k: int) -> dict[str, int]:
    return {name: {"M": m, "N": n, "K": k}[name] for name in kernel.calls.binder.names}


ON_CPU, ON_CARD = symbolic("cpu"), symbolic("cuda:sm_80")
extents = st.integers(1, 70)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.sampled_from(sorted(ON_CPU)), extents, extents, extents, st.integers(0, 99))
def test_any_sizes_on_the_cpu(name: str, m: int, n: int, k: int, seed: int) -> None:
    ON_CPU[name].check(seed=seed, sizes=sizes_for(ON_CPU[name], m, n, k)).raise_if_wrong()


def simulated(kernel: Any, compilation: Compilation, sizes: dict[str, int], seed: int) -> None:
    """Run a variant's threads on random arrays of these sizes, and compare with the reference."""
    compilation.reach("threaded")
    before = kernel.inputs(seed, sizes)
    after = {name: array.copy() for name, array in before.items()}
    run_threaded(for_sizes(compilation.functions["threaded"], sizes), after, warp=32)
    check_function(for_sizes(kernel.meaning, sizes), before, after).raise_if_wrong()


@settings(derandomize=True, deadline=None, max_examples=20)
@given(st.sampled_from(sorted(ON_CARD)), extents, extents, extents, st.integers(0, 99))
def test_any_sizes_in_the_general_variant(name: str, m: int, n: int, k: int, seed: int) -> None:
    kernel = ON_CARD[name]
    sizes = sizes_for(kernel, m, n, k)
    simulated(kernel, kernel.calls.compiled(Variant(aligned=False)), sizes, seed)


@settings(derandomize=True, deadline=None, max_examples=15)
@given(st.sampled_from(sorted(ON_CARD)), extents, st.integers(1, 8), st.integers(1, 8), st.integers(0, 99))
def test_rows_of_whole_vectors_in_the_aligned_variant(name: str, m: int, n: int, k: int, seed: int) -> None:
    kernel = ON_CARD[name]
    sizes = sizes_for(kernel, m, 8 * n, 8 * k)
    assert kernel.calls.chooser(sizes, ()) == ALIGNED
    simulated(kernel, kernel.compilation, sizes, seed)


def test_one_compilation_serves_all_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []
    run_row: Callable[..., None] = Compilation._run_row  # pyright: ignore[reportPrivateUsage]

    def counted(self: Compilation, row: Any) -> None:
        runs.append(row.name)
        run_row(self, row)

    monkeypatch.setattr(Compilation, "_run_row", counted)
    kernel = scaled(64)
    for m, n in ((3, 5), (1, 1), (17, 200), (3, 5), (0, 4), (4, 0)):
        a, c = np.ones((m, n), np.float32), np.full((m, n), 9, np.float32)
        kernel(a, 3, 0.5, c)
        assert (c[:, :3] == 0.5).all()
        assert (c[:, 3:] == 0).all()
    assert sorted(runs) == ["bounded", "loops", "scheduled"]
    assert kernel.record().ran == ("aligned",)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_an_integer_reaches_the_kernel(dtype: str) -> None:
    kernel = scaled(n_dtype=dtype)
    a, c = np.ones((2, 9), np.float32), np.empty((2, 9), np.float32)
    kernel(a, np.dtype(dtype).type(7), 2.0, c)
    assert c.sum() == 2 * 7 * 2
    if dtype.startswith("int"):
        kernel(a, -1, 2.0, c)
        assert c.sum() == 0


@pytest.mark.parametrize(
    ("dtype", "value"), [("float16", 0.1), ("bfloat16", 0.1), ("float32", 0.1), ("float64", 0.1)]
)
def test_a_float_is_rounded_to_its_dtype(dtype: str, value: float) -> None:
    kernel = scaled(alpha_dtype=dtype)
    a, c = np.ones((1, 4), np.float32), np.empty((1, 4), np.float32)
    kernel(a, 4, 0.1, c)
    assert c[0, 0] == np.float32(getattr(T, dtype).numpy.type(0.1))


def test_a_scalar_that_changes_needs_no_new_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Any, ...]] = []

    class Counted(calling.ArgumentChecker):
        def __init__(self, *arguments: Any) -> None:
            made.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(calling, "ArgumentChecker", Counted)
    kernel = scaled()
    a, c = np.ones((5, 13), np.float32), np.empty((5, 13), np.float32)
    for alpha in (1.0, 2.0, 3.0):
        kernel(a, 13, alpha, c)
        assert c.sum() == 65 * alpha
    assert len(made) == 1
    kernel(np.ones((6, 13), np.float32), 13, 1.0, np.empty((6, 13), np.float32))
    assert len(made) == 2


def test_sizes_are_read_once_for_arrays_of_the_same_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the shapes of a call decide is kept by them, for inputs alone too; strides are asked each time."""
    read: list[str] = []
    known = CallBinder._read
    monkeypatch.setattr(
        CallBinder, "_read", lambda self, arrays: read.append(self.function.name) or known(self, arrays)
    )
    kernel = scaled.using(out_idx=3)()
    for shape in ((3, 40), (3, 40), (2, 40), (3, 40)):
        a = np.random.default_rng(0).random(shape, np.float32)
        out = kernel(a, 30, 2.0)
        assert out.shape == shape
        assert np.array_equal(out[:, :30], a[:, :30] * 2)
        assert not out[:, 30:].any()
    assert len(read) == 4  # two shapes, of the inputs and of all arrays
    rows = np.arange(80, dtype=np.float32).reshape(2, 40)
    for view in (rows[:, :32], rows[:, :32].copy()):  # of one shape, with other strides
        out = np.zeros(64, np.float32)
        strided()(view, out)
        assert np.array_equal(out, view.reshape(-1))
    with pytest.raises(ArgumentError, match="n is 40 by extent 1 of A and 41 by extent 1 of C"):
        scaled()(a, 30, 2.0, np.zeros((3, 41), np.float32))


def test_a_tensor_in_place_of_its_address_says_where_that_is() -> None:
    class Tensor:
        shape = (4,)

        def data_ptr(self) -> int:
            return 4096

    a = np.ones((3, 40), np.float32)
    with pytest.raises(ArgumentError) as caught:
        scaled(n_dtype="int64")(a, Tensor(), 1.0, a.copy())
    assert "few is a scalar of dtype int64" in str(caught.value)
    assert "help: an address is few.data_ptr()" in str(caught.value)


@tilebench.jit(target="cpu")
def biased(has_bias: bool = False):
    m, n, k = T.dynamic("m, n, k")

    @T.prim_func
    def main(
        A: T.Tensor((m, n), "float32"), b: T.Tensor((n,), "float32"), W: T.Tensor((k,), "float32"),
        C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(m, threads=32) as bx:
            for j in T.Parallel(64):
                if j < n:
                    C[bx, j] = A[bx, j] + (b[j] if has_bias else 1.0)

    return main


def test_an_array_that_is_not_touched_may_be_none_and_has_the_sizes_of_the_others() -> None:
    a, w = np.ones((3, 40), np.float32), np.ones(5, np.float32)
    for arguments in ((a, None, w), (a, np.zeros(40, np.float32), w)):
        c = np.zeros_like(a)
        biased()(*arguments, c)
        assert (c == 2).all()
    with pytest.raises(ArgumentError, match="b is None, and the kernel reads it"):
        biased(True)(a, None, w, c)
    with pytest.raises(ArgumentError, match="no array that was given says what k is"):
        biased()(a, None, None, c)


def test_strides_are_read_from_the_array() -> None:
    kernel = strided()
    whole = np.arange(6 * 50, dtype=np.float32).reshape(6, 50)
    for part in (whole[:, :33], whole[::2, 5:25], whole[:1, :7]):
        c = np.full(part.size, -1, np.float32)
        kernel(part, c)
        assert (c.reshape(part.shape) == part).all()


def test_outputs_have_the_sizes_of_the_inputs() -> None:
    kernel = scaled.using(out_idx=-1)()
    for shape in ((2, 3), (5, 40)):
        assert kernel(np.ones(shape, np.float32), 99, 3.0).shape == shape


def test_the_stages_print_sizes_and_parse_back() -> None:
    kernel = ON_CARD["gemm"]
    text = kernel.stage("threaded")
    assert text.startswith(
        "@T.prim_func(assume=(K % 8 == 0, N % 8 == 0))\ndef main(M: T.int32, K: T.int32, N: T.int32, "
    )
    function = kernel.compilation.functions["threaded"]
    assert parse_function(text, kernel.compilation.manifest.registry) == function
    general = under(kernel.meaning, Variant(aligned=False, wide=True), kernel.compilation.machine)
    printed = print_function(general).text
    assert printed.startswith("@T.prim_func(offsets=64)\n")
    assert "A: T.Tensor((M, K), T.float16, align=2)" in printed
    assert parse_function(printed, registry()) == general


def test_whole_rows_move_in_vectors_and_others_by_element() -> None:
    kernel = ON_CARD["gemm"]
    general = kernel.calls.compiled(Variant(aligned=False))
    general.reach("cuda")
    assert "tb_ld_global_16" in kernel.stage("cuda")
    assert "tb_ld_global" not in general.build.texts["cuda"].split("__global__")[1]


class _Info:
    device = CARD

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer


def test_the_variant_is_chosen_by_addresses_rows_and_extents() -> None:
    kernel = ON_CARD["gemm"]
    choose = Chooser(kernel.calls.traced.function, kernel.compilation.machine)
    even = {"M": 5, "K": 64, "N": 8}
    assert choose(even, [_Info(4096), _Info(32), _Info(16)]) == Variant(True, False)
    assert choose(even, [_Info(4096), _Info(34), _Info(16)]) == Variant(False, False)
    assert choose({**even, "K": 63}, [_Info(16)] * 3) == Variant(False, False)
    # M * K is 2^31 elements: offsets no longer fit.
    assert choose({**even, "M": 2**25, "K": 64}, [_Info(16)] * 3) == Variant(True, True)
    assert choose({**even, "M": 2**25 - 1, "K": 64}, [_Info(16)] * 3) == Variant(True, False)


def test_a_kernel_of_fixed_sizes_has_a_general_variant_too() -> None:
    kernel = kernels.add_kernel.using(target="cuda:sm_80")(64, 256)
    assert kernel.calls.chooser({}, [_Info(2), _Info(16), _Info(16)]) == Variant(False, False)
    general = kernel.calls.compiled(Variant(aligned=False))
    general.reach("threaded")
    assert "T.vector_load(" in kernel.stage("threaded")
    assert "T.vector_load(" not in general.print("threaded").text


def test_offsets_of_more_elements_than_fit_32_bits_are_64_bit() -> None:
    kernel = ON_CARD["gemm"]
    wide = kernel.calls.compiled(Variant(wide=True))
    wide.reach("cuda")
    assert "C + (long long)(by * 32 + i) * N + bx * 32" in wide.build.texts["cuda"]
    assert "(long long)" not in kernel.stage("cuda").split("__global__")[1]


def test_work_is_counted_for_the_sizes_of_a_call() -> None:
    kernel = ON_CARD["gemm"]
    assert count_work(for_sizes(kernel.meaning, {"M": 10, "N": 20, "K": 30})).flops == 2 * 10 * 20 * 30
    record = kernel.record(("tile",))
    assert (record.flops, record.grid) == (0.0, ("(N + 31) // 32", "(M + 31) // 32"))
    assert record.arguments[0].shape == ("M", "K")
    run = scaled().bench(sizes={"m": 8, "n": 1024, "few": 4, "alpha": 2.0}, seconds=0.02, rounds=5)
    assert not run.failure
    assert run.bytes == 2 * 8 * 1024 * 4
    assert run.config["n"] == 1024


def test_a_kernel_keeps_sizes_for_checks_without_arrays() -> None:
    kernel = scaled().at({"m": 3, "n": 5}).at({"few": 2, "alpha": 0.5})
    assert kernel.check().ok
    assert kernel.inputs()["A"].shape == (3, 5)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", ["add", "gemm", "softmax", "sum"])
def test_every_variant_compiles_to_machine_code(name: str, arch: str) -> None:
    kernel = symbolic(f"cuda:{arch}")[name]
    for variant in (ALIGNED, Variant(aligned=False), Variant(aligned=False, wide=True)):
        compilation = kernel.calls.compiled(variant)
        compilation.reach("ptx")
        assert compilation.build.code


def test_only_sizes_are_remembered_of_a_call() -> None:
    kernel = scaled(block=64)
    a, c = np.ones((5, 13), np.float32), np.empty((5, 13), np.float32)
    for alpha in (1.0, 2.0, 3.0):
        kernel(a, 13, alpha, c)
    grid = kernel.executable().grid
    assert (5, 13) in grid._known
    assert {len(key) for key in grid._known} == {2}
    assert [var.name for _, var in grid.scalars] == ["m", "n"]
    chooser = Chooser(kernel.calls.traced.function, ON_CARD["gemm"].compilation.machine)
    assert {chooser({"m": 5, "n": 13, "few": few, "alpha": 1.0}, ()) for few in range(3)} == {Variant(False)}
    assert len(chooser._known) == 1
