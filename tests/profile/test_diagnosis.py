"""Each cause is shown by a kernel that has it, and by none that has it not."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from inspect import getsource as source
from typing import Any

import pytest

import tilebench
import tilebench.language as T
from tilebench.kernel.measuring.diagnosing import case_of
from tilebench.profile.diagnosis import CAUSES, Case, Diagnosis, diagnose
from tilebench.profile.diagnosis.case import CLASSES
from tilebench.profile.diagnosis.static_causes import few_blocks
from tilebench.record import RunRecord

CARD = "cuda:sm_90a"


@tilebench.jit
def gemm(M, N, K, block_M=128, block_N=128, block_K=32, dtype="float16", num_stages=3, threads=128):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_l = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, ko * block_K], A_s)
                T.copy(B[ko * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main


@tilebench.jit
def dependent(M, N, K, block=64):
    """A loop whose second tile is computed from its first: nothing of it can run ahead."""

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_s = T.alloc_shared((block, block), "float16")
            B_s = T.alloc_shared((block, block), "float16")
            C_l = T.alloc_fragment((block, block), "float32")
            T.clear(C_l)
            for ko in T.Pipelined(T.ceildiv(K, block), num_stages=3):
                for i, j in T.Parallel(block, block):
                    A_s[i, j] = A[by * block + i, ko * block + j] * T.float16(2)
                for i, j in T.Parallel(block, block):
                    B_s[i, j] = B[ko * block + i, bx * block + j] + A_s[i, j]
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * block, bx * block])

    return main


@tilebench.jit
def add_one(M, N, block_M=8, block_N=512, dtype="float16", threads=256):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                B[by * block_M + i, bx * block_N + j] = A[by * block_M + i, bx * block_N + j] + T.cast(
                    1, dtype
                )

    return main


@tilebench.jit
def every_33rd(N, block=1024):
    @T.prim_func
    def main(A: T.Tensor((N, 33), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=256) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i, 0]

    return main


@tilebench.jit
def many_sums(N, rows=256):
    """A tile of one block that takes more registers than a thread has."""

    @T.prim_func
    def main(A: T.Tensor((rows, N), "float32"), B: T.Tensor((rows, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), threads=32) as bx:
            a = T.alloc_fragment((rows, 64), "float32")
            T.copy(A[0, bx * 64], a)
            for i, j in T.Parallel(rows, 64):
                a[i, j] = T.exp(a[i, j]) * a[i, j]
            T.copy(a, B[0, bx * 64])

    return main


@tilebench.jit
def everyone_holds(M, N, block=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), W: T.Tensor((N,), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            w = T.alloc_fragment((N,), "float32")
            T.annotate_layout({w: T.Fragment((N,), forward_fn=lambda i, r: (r, i), replicate=128)})
            T.copy(W, w)
            for i, j in T.Parallel(block, N):
                B[bx * block + i, j] = A[bx * block + i, j] * w[j]

    return main


@tilebench.jit
def conflicts(M, N, block=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((N, M), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=256) as (bx, by):
            s = T.alloc_shared((block, block), "float32")
            T.annotate_layout({s: T.Layout((block, block), lambda i, j: (i, j))})
            T.copy(A[by * block, bx * block], s)
            for j, i in T.Parallel(block, block):
                B[bx * block + j, by * block + i] = s[i, j]

    return main


@tilebench.jit
def by_elements(M, N, block=64):
    """A tile whose swizzle moves single elements: read along columns without conflicts, and copied element
    by element."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((N, M), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=256) as (bx, by):
            s = T.alloc_shared((block, block), "float32")
            T.annotate_layout({s: T.Layout((block, block), lambda i, j: (i, j ^ (i % 8)))})
            T.copy(A[by * block, bx * block], s)
            for j, i in T.Parallel(block, block):
                B[bx * block + j, by * block + i] = s[i, j]

    return main


@tilebench.jit
def large_tile(M, N, rows=128, columns=384):
    """A tile of 192 KiB in shared memory for 32 threads: one block a multiprocessor, one warp of 64."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, columns), T.ceildiv(M, rows), threads=32) as (bx, by):
            s = T.alloc_shared((rows, columns), "float32")
            T.copy(A[by * rows, bx * columns], s)
            for i, j in T.Parallel(rows, columns):
                B[by * rows + i, bx * columns + j] = s[rows - 1 - i, j]

    return main


@tilebench.jit
def many_registers(M, N, rows=120):
    """All of a tile in registers: 240 values a thread, of which blocks of 128 threads leave few warps."""

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 256), T.ceildiv(M, rows), threads=128) as (bx, by):
            a = T.alloc_fragment((rows, 256), "float32")
            T.copy(A[by * rows, bx * 256], a)
            for i, j in T.Parallel(rows, 256):
                a[i, j] = T.exp(a[i, j]) * a[i, j]
            T.copy(a, B[by * rows, bx * 256])

    return main


def said(kernel: Any, run: RunRecord | None = None, others: tuple[RunRecord, ...] = ()) -> dict[str, Any]:
    """The findings of a kernel by cause."""
    return causes(kernel.diagnose(run, others))


def causes(diagnosis: Diagnosis) -> dict[str, Any]:
    return {found.cause: found for found in diagnosis.findings}


def test_a_tuned_product_has_no_fault() -> None:
    diagnosis = gemm.using(target=CARD)(4096, 4096, 4096).diagnose()
    assert diagnosis.findings == ()
    assert diagnosis.bound == "compute"
    assert "Nothing stands out" in str(diagnosis)


def test_a_tuned_stream_has_no_fault() -> None:
    diagnosis = add_one.using(target=CARD)(8192, 8192).diagnose()
    assert diagnosis.findings == ()
    assert diagnosis.bound == "memory"


def on_card(function: Any, *values: Any, **named: Any) -> Any:
    return function.using(target=CARD)(*values, **named)


FAULTY: dict[str, tuple[Any, str]] = {
    "missing_instruction": (lambda: on_card(gemm, 2048, 2048, 512, dtype="float32"), "multiply-adds"),
    "tile_too_large": (lambda: on_card(gemm, 16, 65536, 512), "lies inside the result"),
    "tile_too_small": (lambda: on_card(gemm, 4096, 4096, 512, 16, 16, threads=32), "16 x 16 x 32"),
    "stages_do_not_overlap": (lambda: on_card(dependent, 4096, 4096, 512), "does not overlap"),
    "too_few_stages": (lambda: on_card(gemm, 4096, 4096, 4096, num_stages=2), "one copy is in flight"),
    "uncoalesced": (lambda: on_card(every_33rd, 1 << 20), "8 times the bytes"),
    "scalar_copies": (lambda: on_card(add_one, 8192, 8192, 1, 32, threads=32), "bytes at a time"),
    "little_parallelism": (lambda: on_card(add_one, 8192, 8192, 1, 32, threads=32), "in flight"),
    "spills": (lambda: on_card(many_sums, 65536), "do not fit the registers"),
    "too_few_blocks": (lambda: on_card(add_one, 64, 512), "8 blocks on 132"),
    "tail_wave": (
        lambda: on_card(gemm, 1536, 1536, 4096, block_K=64, num_stages=4, threads=256), "of 2 rounds"
    ),
    "replicated_fragment": (lambda: on_card(everyone_holds, 8192, 256), "held by 128 threads"),
    "swizzle_breaks_vectors": (lambda: on_card(by_elements, 4096, 4096), "turns accesses of 16 bytes into"),
    "bank_conflicts": (lambda: on_card(conflicts, 4096, 4096), "passes over the banks"),
}  # fmt: skip


@pytest.mark.parametrize("cause", FAULTY)
def test_a_cause_is_shown_by_a_kernel_that_has_it(cause: str) -> None:
    make, words = FAULTY[cause]
    found = said(make())
    assert cause in found, list(found)
    text = str(found[cause])
    assert words in text
    assert "Try: " in text
    assert found[cause].evidence or cause == "stages_do_not_overlap"


def test_a_record_has_its_diagnosis(tmp_path: Any) -> None:
    """Saved and read again it still says what bounds the kernel, each cause with its figures and its line."""
    from tilebench.record_files import load, save

    kernel = on_card(gemm, 2048, 2048, 512, dtype="float32")
    save(kernel.record(), tmp_path / "kernel.tbz")
    read = load(tmp_path / "kernel.tbz")
    told = [remark for remark in read.remarks if remark.pass_name == "diagnosis"]
    diagnosis = kernel.diagnose()
    assert (told[0].message, told[0].values["bound"]) == (diagnosis.why, diagnosis.bound)
    assert [remark.message for remark in told[1:]] == [found.what for found in diagnosis.findings]
    assert told[1].values["cause"] == "missing_instruction"
    assert told[1].place is not None
    assert told[1].place.line == diagnosis.findings[0].line


def test_both_sides_of_a_swizzle_are_counted() -> None:
    """Instructions and passes of all accesses to the tile, with its swizzle and in a kernel without it."""
    kernel = on_card(by_elements, 4096, 4096)
    found = said(kernel)["swizzle_breaks_vectors"]
    figures = {each.name: int(each.value) for each in found.evidence}
    own = [a.access for a in kernel.accesses() if a.access.buffer == "s"]
    assert figures["passes with it"] == sum(access.passes for access in own)
    assert figures["instructions with it"] == sum(access.instructions for access in own)
    # Without: 32 copies of 16 bytes into the tile for 128 of 4, as many reads of its columns as before.
    assert figures["instructions without"] == 32 + 128
    # A column is read by 32 lanes from one bank then, 16 rows of 256 bytes apart.
    assert figures["passes without"] > figures["passes with it"]
    assert "it still takes fewer passes" in found.what


def test_a_swizzle_of_whole_vectors_breaks_none() -> None:
    kernel = on_card(gemm, 2048, 2048, 512)
    assert any("swizzle" in line for line in kernel.stage("laid_out").splitlines())
    assert "swizzle_breaks_vectors" not in said(kernel)


def test_occupancy_that_shared_memory_limits() -> None:
    found = said(on_card(large_tile, 4096, 3840))["low_occupancy"]
    assert "shared memory allow no more" in found.what
    assert "smaller tiles" in found.to_try


def test_occupancy_that_registers_limit() -> None:
    kernel = on_card(many_registers, 7680, 4096)
    assert kernel.resources.limited_by == "registers"
    found = said(kernel)["low_occupancy"]
    assert "registers allow no more" in found.what


def test_scalar_copies_because_rows_do_not_divide() -> None:
    """Rows of 2047 half floats begin anywhere: what a product's threads hold goes out two bytes at a time."""
    found = said(on_card(gemm, 2048, 2047, 32))["scalar_copies"]
    assert "C is accessed 2 bytes at a time: its rows are no multiples of 16 bytes" in found.what
    assert "scalar_copies" not in said(on_card(gemm, 2048, 2048, 32))


def test_a_tile_of_one_row_is_what_keeps_a_product_from_its_instruction() -> None:
    """The card has one for these dtypes: the tile is too thin for it."""
    found = said(on_card(gemm, 1, 4096, 512, 1, 64, 64))["missing_instruction"]
    assert found.what.startswith("this product of 1 x 64 x 64 is done by multiply-adds")
    assert "has no matrix instruction" not in found.what
    plain = said(on_card(gemm, 2048, 2048, 512, dtype="float32"))["missing_instruction"]
    assert "has no matrix instruction for float32 x float32 into float32" in plain.what


def test_narrow_accesses_of_a_short_block_are_not_the_rows_fault() -> None:
    """Rows of 8192 begin at multiples of 16 bytes: a thread has one element of a block of 32."""
    found = said(on_card(add_one, 8192, 8192, 1, 32, threads=32))["scalar_copies"]
    assert "blocks that give a thread 16 bytes in a row" in found.to_try
    odd = said(on_card(gemm, 2048, 2047, 32))["scalar_copies"]
    assert "pad the array" in odd.to_try


def test_wrong_on_one_target_by_a_kernel_that_is() -> None:
    """Its edited stage forgets a warp on the card alone; the processor's is right."""
    from tilebench.kernel.edited import compile_from
    from tilebench.kernel.measuring.package import package_of
    from tilebench.kernel.measuring.simulated import check_simulated

    kernel = add_one.using(target="cuda:sm_80")(64, 512, threads=64)
    text = kernel.stage("threaded")
    one = next(line for line in text.splitlines() if "+ T.float16(1)" in line)
    wrong = one.replace("T.float16(1)", "T.cast(T.if_then_else(tid < 32, 1, 2), T.float16)")
    edited = compile_from("threaded", text.replace(one, wrong), like=kernel)
    checks = {
        "cpu": add_one.using(target="cpu")(64, 512).check().ok,
        "cuda:sm_80": check_simulated(package_of(edited, {}), 0).ok,
    }
    found = causes(diagnose(base(kernel, checks=checks)))["wrong_on_one_target"]
    assert found.what == "results are right on cpu and wrong on cuda:sm_80"


def test_a_line_is_the_users_own() -> None:
    found = said(gemm.using(target=CARD)(2048, 2048, 512, dtype="float32"))["missing_instruction"]
    with open(__file__, encoding="utf-8") as file:
        assert "T.gemm(A_s, B_s, C_l)" in file.read().splitlines()[found.line - 1]


# -- what only runs and checks show


def base(kernel: Any, **fields: Any) -> Case:
    return replace(case_of(kernel, kernel.record()), **fields)


def run_of(kernel: Any, seconds: float, **fields: Any) -> RunRecord:
    record = kernel.record()
    values = {
        "config": {"block_M": 8},
        "flops": record.flops,
        "bytes": record.bytes,
        "method": "cold caches; x",
    }
    return RunRecord(kernel.name, kernel.target, samples=(seconds,) * 9, **{**values, **fields})


@pytest.fixture(scope="module")
def stream() -> Any:
    return add_one.using(target=CARD)(8192, 8192)


def test_a_run_under_its_ceiling_is_bound_by_memory(stream: Any) -> None:
    run = run_of(stream, stream.record().bytes / 4.0e12)
    diagnosis = diagnose(base(stream, runs=(run,), ceilings=(5e13, 4.2e12)))
    assert diagnosis.bound == "memory"
    assert diagnosis.why.startswith("Bound by memory: 95 % of that ceiling is reached. ")
    assert str(diagnosis).endswith("%). Nothing stands out that keeps it from being faster.")
    assert diagnosis.findings == ()


def test_a_run_above_its_ceiling_says_that_it_cannot_be(stream: Any) -> None:
    run = run_of(stream, stream.record().bytes / 20e12)
    diagnosis = diagnose(base(stream, runs=(run,), ceilings=(5e13, 4.2e12)))
    assert diagnosis.why.startswith("Bound by memory: 476 % of that ceiling is reached. ")
    assert (
        "%). 20000.0 GB/s is above this machine's 4200.0 GB/s: caches were not cold, bytes" in diagnosis.why
    )
    assert diagnosis.why.endswith("or the ceiling is out of date.")


def test_bandwidth_that_is_a_caches(stream: Any) -> None:
    run = run_of(stream, stream.record().bytes / 9.0e12)
    found = causes(diagnose(base(stream, runs=(run,), ceilings=(5e13, 4.2e12))))["cached"]
    assert "2.1 times the bandwidth of memory" in found.what
    assert {e.name: e.value for e in found.evidence}["method"] == "cold caches"


def test_clocks_that_fell(stream: Any) -> None:
    slow = {"gpu0_sm_clock": "1980 MHz to 1410 MHz", "gpu0_power": "698 W"}
    steady = {"gpu0_sm_clock": "1980 MHz to 1965 MHz"}
    for environment, there in ((slow, True), (steady, False)):
        run = run_of(stream, 1e-4, environment=environment)
        found = causes(diagnose(base(stream, runs=(run,))))
        assert ("throttled" in found) == there
    run = run_of(stream, 1e-4, environment=slow)
    assert "698 W" in str(causes(diagnose(base(stream, runs=(run,))))["throttled"])


def test_a_launch_that_is_all_there_is(stream: Any) -> None:
    diagnosis = diagnose(base(stream, runs=(run_of(stream, 2e-6),)))
    assert causes(diagnosis)["launch_bound"].kind == "launch"
    assert diagnosis.bound == "launch"


def test_another_position_that_was_faster(stream: Any) -> None:
    here = run_of(stream, 1e-4)
    there = run_of(stream, 8e-5, config={"block_M": 4})
    noise = run_of(stream, 9.8e-5, config={"block_M": 4})
    found = causes(diagnose(base(stream, runs=(here,), others=(there,))))["better_position"]
    assert found.what == "block_M=4 was 20 % faster"
    assert "better_position" not in causes(diagnose(base(stream, runs=(here,), others=(noise,))))


def test_wrong_on_one_target_only(stream: Any) -> None:
    found = causes(diagnose(base(stream, checks={"cpu": True, CARD: False})))["wrong_on_one_target"]
    assert found.what == f"results are right on cpu and wrong on {CARD}"
    for checks in ({"cpu": True, CARD: True}, {"cpu": False, CARD: False}, {CARD: False}):
        assert "wrong_on_one_target" not in causes(diagnose(base(stream, checks=checks)))


def open_rows(turns="N"):
    M, N, R = T.dynamic("M, N, R")

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), n: T.Tensor((R,), "int32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 8), threads=128) as bx:
            x = T.alloc_fragment((8, 32), "float32")
            s = T.alloc_fragment((8,), "float32")
            T.clear(s)
            for k in T.serial(n[0] if turns == "data" else T.ceildiv(N, 32)):
                T.copy(A[bx * 8, k * 32], x)
                T.reduce_sum(x, s, dim=1, clear=False)
            T.copy(s, B[bx * 8])

    return main


def test_sizes_of_a_call_are_asked_for_and_counted() -> None:
    """A kernel for all sizes has no work of its own; `at` says of which a diagnosis is wanted."""
    kernel = on_card(tilebench.jit(open_rows))
    assert "each call brings sizes: kernel.at({...}).diagnose()" in kernel.diagnose().why
    found = kernel.at({"M": 4096, "N": 1000, "R": 1}).diagnose()
    assert found.why.startswith("Not measured here: 0.25 operations for each byte")
    data = on_card(tilebench.jit(open_rows), "data").at({"M": 4096, "N": 1000, "R": 1}).diagnose()
    assert "Data decides how much it computes" in data.why


def test_low_occupancy_by_registers(stream: Any) -> None:
    record = stream.record()
    assert record.resources is not None
    used = replace(record.resources, registers=255, occupancy=0.125, blocks_per_sm=1, limited_by="registers")
    found = causes(diagnose(base(stream, record=replace(record, resources=used))))["low_occupancy"]
    assert "registers allow no more" in found.what


def test_the_cpu_has_a_diagnosis_too() -> None:
    kernel = add_one.using(target="cpu")(256, 256)
    assert kernel.diagnose().bound == "memory"


def test_every_cause_is_shown_here() -> None:
    """A row that no kernel above has would be one that nobody saw work."""
    with open(__file__, encoding="utf-8") as file:
        text = file.read()
    kinds = "|".join(CLASSES)
    names = {name for row in CAUSES for name in re.findall(rf'"(\w+)",\s+"(?:{kinds})"', source(row))}
    names |= set(re.findall(r'_blocks_finding\("(\w+)"', source(few_blocks)))
    assert len(names) >= len(CAUSES)
    assert {name for name in names if f'"{name}"' not in text} == set()


@pytest.mark.parametrize(
    ("cause", "words"),
    [("uncoalesced", "sectors in vain in line {line}, counted in a simulated block, 896 of 1152"),
     ("bank_conflicts", "passes for conflicts in line {line}, counted in a simulated block, 1920 of 2048")],
)  # fmt: skip
def test_what_was_counted_at_the_line_is_evidence(cause: str, words: str) -> None:
    """A column of a matrix of 33 floats a row; a column of a shared tile, whose elements lie in two banks."""
    from tilebench.kernel.measuring.counted import count_simulated
    from tilebench.kernel.measuring.package import package_of

    kernel = FAULTY[cause][0]()
    record = kernel.record()
    counters = count_simulated(package_of(kernel, {}), "threaded")
    plain = case_of(kernel, record)
    counted = replace(plain, record=replace(record, counters=counters))
    function, text = {
        "uncoalesced": (every_33rd, "B[bx * block + i] = A[bx * block + i, 0]"),
        "bank_conflicts": (conflicts, "B[bx * block + j, by * block + i] = s[i, j]"),
    }[cause]
    lines, first = inspect.getsourcelines(function.function)
    words = words.format(line=first + next(n for n, line in enumerate(lines) if line.strip() == text))
    assert words not in str(causes(diagnose(plain))[cause])
    assert words in str(causes(diagnose(counted))[cause])
