"""NVRTC: real cubins, the resource report, errors with lines, threads, missing packages."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tilebench.errors import TargetError
from tilebench.targets.cuda.compiler import library
from tilebench.targets.cuda.compiler.log import parse_advisories, parse_issues, parse_resources, ptx_lines
from tilebench.targets.cuda.compiler.nvrtc import Compiled, CudaCompileError, compile_cuda
from tilebench.targets.cuda.machines import KNOWN_ARCHS, machine_of

from .conftest import KERNEL
from .probes import PROBES, probe


def test_cubin_ptx_and_resources(each_arch: Compiled) -> None:
    assert each_arch.cubin[:4] == b"\x7fELF"
    assert f".target {each_arch.arch}" in each_arch.ptx
    assert set(each_arch.resources) == {"chain", "second"}
    chain = each_arch.resources["chain"]
    assert 8 <= chain.registers <= 32
    assert (chain.shared_bytes, chain.barriers) == (1024, 1)
    assert (chain.stack_bytes, chain.spill_store_bytes, chain.spill_load_bytes) == (0, 0, 0)
    assert chain.seconds > 0
    assert each_arch.seconds > 0
    assert (each_arch.advisories, each_arch.warnings) == ((), ())


def test_every_feature_has_a_probe() -> None:
    assert set(PROBES) == frozenset().union(*(machine_of(each).features for each in KNOWN_ARCHS))


@pytest.mark.parametrize("arch", KNOWN_ARCHS)
def test_every_feature_compiles_where_a_machine_claims_it(arch: str) -> None:
    machine = machine_of(arch)
    assert compile_cuda(probe(*(each for each in PROBES if each in machine.features)), machine).cubin


@pytest.mark.parametrize(
    ("feature", "arch"),
    [
        ("cp.async", "sm_75"),
        ("fp8-mma", "sm_80"),
        ("tma", "sm_89"),
        ("wgmma", "sm_90"),
        ("global-256bit", "sm_90a"),
        ("wgmma", "sm_100a"),
        ("tcgen05", "sm_120a"),
    ],
)
def test_a_feature_fails_where_a_machine_does_not_claim_it(feature: str, arch: str) -> None:
    assert feature not in machine_of(arch).features
    with pytest.raises(CudaCompileError) as caught:
        compile_cuda(probe(feature), machine_of(arch))
    assert {each.line for each in caught.value.issues if each.severity == "error"} == {2}


def test_front_end_errors_carry_lines_and_no_file_name() -> None:
    text = 'extern "C" __global__ void k(float* a) {\n  a[0] = missing;\n  a[1] = {0};\n  other();\n}\n'
    with pytest.raises(CudaCompileError) as caught:
        compile_cuda(text, machine_of("sm_80"))
    error = caught.value
    assert [(each.line, each.severity) for each in error.issues[:1]] == [(2, "error")]
    assert error.issues[0].message == 'identifier "missing" is undefined'
    assert {each.line for each in error.issues} >= {2, 4}
    assert "kernel.cu" not in str(error)
    assert 'line 2 of the cuda stage: identifier "missing" is undefined' in str(error)


def test_text_with_braces_in_an_error_does_not_break_the_message() -> None:
    with pytest.raises(CudaCompileError) as caught:
        compile_cuda('extern "C" __global__ void k(float* a) {\n  a[0] = {1, 2};\n}\n', machine_of("sm_80"))
    assert caught.value.issues[0].line == 2
    assert str(caught.value)


def test_ptxas_errors_are_placed_at_the_kernels_line_not_the_helpers() -> None:
    text = (
        'static __device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;"); }\n'
        'extern "C" __global__ void k(float* a) {\n'
        "  a[0] = 1.0f;\n"
        "  fence();\n"
        "}\n"
    )
    with pytest.raises(CudaCompileError) as caught:
        compile_cuda(text, machine_of("sm_90"))
    (issue,) = (each for each in caught.value.issues if each.severity == "error")
    assert issue.line == 4
    assert "wgmma.fence" in issue.message


def test_spills_are_reported() -> None:
    loads = "".join(f"  float v{k} = a[threadIdx.x + {k * 64}];\n" for k in range(64))
    uses = "".join(f"  a[threadIdx.x * {k + 2}] = v{k} * v{63 - k};\n" for k in range(64))
    text = f'extern "C" __global__ void k(float* a) {{\n{loads}  __syncthreads();\n{uses}}}\n'
    held = compile_cuda(text, machine_of("sm_80"), options=("--maxrregcount=24",)).resources["k"]
    assert held.registers <= 24
    assert held.spill_store_bytes > 0
    assert held.spill_load_bytes > 0
    assert held.stack_bytes >= held.spill_store_bytes / 2


def test_equal_text_gives_equal_bytes_in_any_folder(tmp_path: Path) -> None:
    here = Path.cwd()
    first = compile_cuda(KERNEL, machine_of("sm_80")).cubin
    os.chdir(tmp_path)
    try:
        assert compile_cuda(KERNEL, machine_of("sm_80")).cubin == first
    finally:
        os.chdir(here)


def test_several_threads_at_once_and_the_gil_is_free() -> None:
    ticks = 0
    with ThreadPoolExecutor(2) as pool:
        work = [
            pool.submit(compile_cuda, KERNEL.replace("2.0f", f"{k}.5f"), machine_of("sm_90a"))
            for k in range(4)
        ]
        while not all(each.done() for each in work):
            time.sleep(0.001)
            ticks += 1
        texts = {each.result().cubin for each in work}
    assert len(texts) == 4
    # Each compile takes some 50 ms; a held GIL would leave a handful of wake-ups.
    assert ticks > 20


def test_version_and_architectures() -> None:
    assert library.nvrtc_version() >= (13, 0)
    assert {"sm_75", "sm_90", "sm_120"} <= set(library.supported_archs())


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_loaded", None)
    monkeypatch.setattr(library, "find_library", lambda: None)
    monkeypatch.setattr(library, "_system_library", lambda: None)
    with pytest.raises(TargetError) as caught:
        compile_cuda(KERNEL, machine_of("sm_80"))
    assert 'pip install "tilebench-kernels[cuda]"' in str(caught.value)


def test_a_library_that_does_not_load_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "libnvrtc.so.13"
    broken.write_bytes(b"not a library")
    monkeypatch.setattr(library, "_loaded", None)
    monkeypatch.setattr(library, "find_library", lambda: str(broken))
    with pytest.raises(TargetError, match="cannot be loaded"):
        library.library()


def test_an_architecture_the_compiler_has_not() -> None:
    from dataclasses import replace

    with pytest.raises(TargetError) as caught:
        compile_cuda(KERNEL, replace(machine_of("sm_80"), name="cuda:sm_70"))
    assert not isinstance(caught.value, CudaCompileError)
    assert "sm_75" in str(caught.value)


def test_a_serialised_wgmma_is_reported_at_its_line() -> None:
    wgmma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %4, q, 1, 1, 0, 0;"
    text = (
        'extern "C" __global__ void __launch_bounds__(128) k(float* p, unsigned long long d) {\n'
        "  float a = p[0], b = p[1], c = p[2], e = p[3];\n"
        "  a = a * 2.0f;\n"
        f'  asm volatile("{{.reg .pred q; setp.ne.b32 q, 1, 0; {wgmma}}}"'
        ' : "+f"(a), "+f"(b), "+f"(c), "+f"(e) : "l"(d));\n'
        "  b = b + a;\n"
        '  asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");\n'
        "  p[0] = a + b + c + e;\n"
        "}\n"
    )
    advisories = compile_cuda(text, machine_of("sm_90a")).advisories
    assert advisories
    assert {each.function for each in advisories} == {"k"}
    assert all(each.code.startswith("C75") for each in advisories)
    assert {each.line for each in advisories} <= {4, 5}
    assert not any(" line " in each.message for each in advisories)


def test_log_reading_of_forms_that_this_compiler_did_not_print_here() -> None:
    log = (
        "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due "
        "to ill formed pipeline stage in the function 'gemm'\n"
        "ptxas info    : Compiling entry function 'gemm' for 'sm_90a'\n"
        "ptxas info    : Function properties for helper\n"
        "    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Function properties for gemm\n"
        "    40 bytes stack frame, 36 bytes spill stores, 44 bytes spill loads\n"
        "ptxas info    : Used 168 registers, used 9 barriers, 40 bytes cumulative stack size, "
        "2048 bytes smem\n"
    )
    (advisory,) = parse_advisories(log)
    assert (advisory.code, advisory.function) == ("C7510", "gemm")
    held = parse_resources(log)["gemm"]
    assert (held.registers, held.barriers, held.shared_bytes) == (168, 9, 2048)
    assert (held.stack_bytes, held.spill_store_bytes, held.spill_load_bytes) == (40, 36, 44)
    (issue,) = parse_issues("ptxas error   : Entry function 'k' uses too much shared data (0x20000 bytes)\n")
    assert issue.message == "Entry function 'k' uses too much shared data (0x20000 bytes)"
    assert (issue.line, issue.severity) == (0, "error")


def test_ptx_lines_name_the_kernels_line_first(hopper: Compiled) -> None:
    lines = ptx_lines(hopper.ptx)
    text = hopper.ptx.splitlines()
    assert len(lines) == len(text)
    division = next(k for k, each in enumerate(text) if "div.approx" in each or "div.full" in each)
    assert lines[division] == (10, 3, 1)
    barrier = next(k for k, each in enumerate(text) if "bar.sync" in each)
    assert lines[barrier] == (9,)
    store = next(k for k, each in enumerate(text) if "st.shared" in each)
    assert lines[store] == (8,)
    assert all(
        lines[k] == () for k, each in enumerate(text) if each.startswith((".version", ".visible", "}"))
    )
