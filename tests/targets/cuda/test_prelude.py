"""The prelude: parts by use, code of full width, short compile time, line map through it."""

from __future__ import annotations

import re

import pytest

from tilebench.errors import InternalError
from tilebench.targets.cuda.compiler.nvrtc import compile_cuda
from tilebench.targets.cuda.compiler.sass import disassemble
from tilebench.targets.cuda.machines import machine_of
from tilebench.targets.cuda.text.prelude import PRELUDE

PARTS = [part.name for part in PRELUDE.parts]

BODY = """\
extern __shared__ __align__(1024) unsigned char tb_shared[];
extern "C" __global__ void k(const tb_half* __restrict__ a, tb_half* c, tb_bf16* d, int n) {
  __align__(16) tb_half r[8], s[8];
  tb_ld_global_16(r, a + threadIdx.x * 8);
  __align__(16) tb_half t[16];
  tb_ld_pieces<16, 2>(t, a + threadIdx.x * 8 + 1);
  tb_from_pieces<16, 2>(s, t, a + threadIdx.x * 8 + 1);
  tb_st_shared_16(tb_shared + threadIdx.x * 16, r);
  __syncthreads();
  tb_ld_shared_16(s, tb_shared + (threadIdx.x ^ 5) * 16);
  #pragma unroll
  for (int i = 0; i < 8; ++i) r[i] = r[i] + s[i] * tb_half(n);
  tb_st_global_16(c + threadIdx.x * 8, r);
  float m = tb_max((float)r[0], -tb_inf_f32());
  m = tb_max(m, tb_shfl_xor(m, 16));
  tb_bf16 q = tb_bf16(tb_exp(m));
  q = tb_max(tb_shfl_xor(q, 3), tb_inf_bf16());
  q += tb_bf16(tb_floordiv(n, -3));
  d[threadIdx.x] = q;
}
"""

EVERYTHING = """\
extern "C" __global__ void all(tb_half* h, tb_bf16* b, float* f, double* e, int* i, long long* l, char* u,
                               tb_e4m3* p, tb_e5m2* q, signed char* s, unsigned char* m) {
  h[0] = tb_half(e[0]) / h[1] - tb_exp2(h[2]);
  h[3] = tb_half(i[0]);
  h[4] = tb_half(b[0]);
  b[1] = tb_bf16(h[0]) * b[2];
  b[3] = tb_sqrt(b[4]);
  f[0] = (float)h[0] + (float)b[0];
  e[1] = (double)h[0] + tb_log(e[2]) + tb_pow(e[3], 2.0);
  i[1] = (int)h[0] + (int)b[1] + tb_floormod(i[2], i[3]);
  l[0] = tb_max((long long)h[1], tb_floordiv(l[1], l[2]));
  u[0] = (signed char)h[2];
  u[1] = (bool)b[2];
  u[2] = tb_shfl(u[3], 0);
  h[5] = h[6] < h[7] || h[6] != h[8] ? -h[6] : tb_abs(h[7]);
  h[9] += h[10];
  f[1] = tb_max_nan(f[2], f[3]) + tb_min(f[4], f[5]) + tb_nan_f32() + tb_tanh(f[6]);
  b[5] = tb_min_nan(b[6], b[7]);
  h[11] = tb_shfl(tb_min(h[12], tb_inf_f16()), 2);
  e[4] = tb_min(e[5], tb_inf_f64());
  tb_st_global_8(f + 8, f + 10);
  tb_ld_global_4(i + 8, i + 10);
  tb_st_global_2(h + 13, h + 14);
  tb_move_bits<unsigned, 1>(i, h);
  tb_ld_pieces<16, 1>(f + 64, u + 17);
  tb_from_pieces<16, 1>(h + 16, f + 64, u + 17);
  tb_ld_pieces<8, 2>(f + 64, h + 31);
  tb_from_pieces<8, 2>(h + 24, f + 64, h + 31);
  tb_ld_pieces<4, 2>(f + 64, h + 31);
  tb_from_pieces<4, 2>(h + 28, f + 64, h + 31);
  tb_ld_pieces<16, 4>(f + 64, f + 17);
  tb_from_pieces<16, 4>(f + 12, f + 64, f + 17);
  tb_ld_pieces<16, 8>(f + 64, e + 17);
  tb_from_pieces<16, 8>(e + 6, f + 64, e + 17);
  tb_ld_global_1(u + 4, u + 5);
  p[0] = tb_e4m3(f[0]) + tb_e4m3(e[0]) * tb_e4m3((float)q[0]);
  p[1] = tb_max(tb_shfl_xor(p[2], 4), tb_abs(p[3])) < tb_nan_e4m3() ? -p[4] : tb_e4m3(i[0]);
  q[1] = tb_min(tb_shfl(q[2], 4), tb_inf_e5m2()) / tb_e5m2((float)h[0]);
  q[2] += tb_exp(tb_abs(q[3]));
  h[15] = tb_half((float)p[5]) + tb_half((float)q[4]);
  tb_put_half(m, l[0], tb_to_int4(i[4]) + tb_get_uint4(m, 3) + tb_get_int4(m, l[1]));
  tb_ld_packed<32>(s, m, 64);
  tb_st_packed<2>(m, i[5], s);
  m[9] = tb_to_uint4(l[2]);
  i[9] = (int)tb_philox(1u, 2u, 3u, 4u, 5u, 6u, 7u);
  i[6] = tb_popcount((unsigned)i[7]) + tb_bit_length((unsigned)i[8]);
}
"""


def test_only_the_parts_that_are_used() -> None:
    assert PRELUDE.parts_of("float x = a[i] * 2.0f;") == frozenset()
    assert PRELUDE.text_for(()) == ""
    assert PRELUDE.parts_of("tb_half x; x = tb_max(x, y);") == {"float16", "minmax"}
    assert PRELUDE.parts_of("tb_inf_f16()") == {"float16", "infinity"}
    assert PRELUDE.parts_of("tb_shared + tb_ld_shared_4(a, b)") == {"memory"}
    assert PRELUDE.parts_of(BODY) == set(PARTS) - {
        "atomic",
        "fence",
        "match",
        "same bits",
        "float8_e4m3fn",
        "float8_e5m2",
        "packed",
        "conversion",
        "bits",
        "philox",
        "cp.async",
        "barriers in phases",
        "tensor maps",
        "float4_e2m1fn",
        "ldmatrix",
        "mma",
        "wgmma",
        "wgmma_keep",
        "settle",
        "vector adds",
        "clocks",
        "move bits",
    }
    products = PRELUDE.text_for(
        ("mma", "ldmatrix"), "tb_mma_m16n8k16_f32_f16_f16(c, a, b); tb_ldmatrix_x2(b, s);"
    )
    assert products.count("mma.sync") == 1
    assert products.count("ldmatrix.sync") == 1
    assert PRELUDE.parts_of("tb_e4m3 x; x = -tb_inf_e5m2();") == {"float8_e4m3fn", "float8_e5m2", "infinity"}
    assert PRELUDE.parts_of("tb_ld_packed<8>(a, b, 4)") == {"packed"}
    copies = PRELUDE.text_for(("cp.async",), "tb_cp_async_16(a, b); tb_cp_async_wait<1>();")
    assert copies.count("cp.async.cg") == 2
    assert "cp.async.ca" not in copies
    assert "tb_bf16" not in PRELUDE.text_for(("float16", "math"))
    text = PRELUDE.text_for(("math",), "y = tb_exp2(x);")
    assert "tb_exp2" in text
    assert "tb_tanh" not in text


def test_an_unknown_part() -> None:
    with pytest.raises(InternalError, match="float4"):
        PRELUDE.text_for(("float4",))


def test_line_count_in_front_of_the_body() -> None:
    text, before = PRELUDE.before(BODY)
    assert text.splitlines()[before] == BODY.splitlines()[0]
    assert PRELUDE.before("int x;\n") == ("int x;\n", 0)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_120a"])
def test_every_function_compiles_for_every_type(arch: str) -> None:
    held = compile_cuda(PRELUDE.text_for(PARTS) + EVERYTHING, machine_of(arch))
    assert held.warnings == ()
    assert held.resources["all"].registers > 0
    assert held.resources["all"].stack_bytes == 0
    conversion = re.search(r"cvt\.rn\.bf16\.f32", held.ptx)
    assert (conversion is None) == (arch == "sm_75")


def test_vectors_keep_their_width_and_lines_lead_to_the_kernel() -> None:
    text, before = PRELUDE.before(BODY)
    held = compile_cuda(text, machine_of("sm_90a"))
    assert held.resources["k"].stack_bytes == 0
    sass = disassemble(held.cubin)
    lines = sass.text.splitlines()
    for word in (r"LDG\.E\.128", r"STS\.128", r"LDS\.128", r"STG\.E\.128", r"SHFL\.BFLY"):
        assert sum(bool(re.search(word, line)) for line in lines) >= 1, word
    assert not any(re.search(r"\b(LDL|STL|LD\.E|ST\.E)\b", line) for line in lines)
    assert all(chain[0] > before for line, chain in zip(lines, sass.lines, strict=True) if "/*" in line)
    loads = {chain[0] - before for line, chain in zip(lines, sass.lines, strict=True) if "LDG.E.128" in line}
    assert loads == {4}


def test_half_arithmetic_rounds_once_to_half() -> None:
    text = 'extern "C" __global__ void k(tb_half* a) { a[0] = a[1] * a[2] + a[3]; }\n'
    ptx = compile_cuda(PRELUDE.before(text)[0], machine_of("sm_80")).ptx
    body = [line.split()[0] for line in ptx.splitlines() if re.match(r"\s*(mul|add|fma|cvt)\.", line)]
    # The product is rounded to half before it is added: no fused multiply-add across the rounding.
    assert sorted(each for each in body if each.endswith(".f16")) == ["add.rn.f16", "mul.rn.f16"]
    assert not any(each.startswith("fma.") for each in body)


@pytest.mark.parametrize("type_", ["tb_half", "tb_bf16"])
def test_a_byte_of_the_bits_of_a_float_comes_from_a_register_of_integers(type_: str) -> None:
    """Stored from the register of a conversion, ptxas 13.0 makes it the float, converted to an integer."""
    text = (
        'extern "C" __global__ void k(unsigned char* o, float x) '
        f"{{ o[0] = (unsigned char)tb_same_bits<unsigned short>({type_}(x)); }}\n"
    )
    ptx = compile_cuda(PRELUDE.before(text)[0], machine_of("sm_90a")).ptx
    (converted,) = re.findall(r"cvt\.rn\.b?f16\.f32 (%rs\d+)", ptx)
    (stored,) = re.findall(r"st\.global\.u8 .*, (%\w+)", ptx)
    assert stored != converted
    assert re.search(rf"mov\.b32 %r\d+, {{{converted}, 0}}", ptx)


def test_the_whole_prelude_costs_little() -> None:
    body = 'extern "C" __global__ void k(float* p) { p[threadIdx.x] = 1; }\n'
    machine = machine_of("sm_80")
    pairs = []
    for _ in range(4):
        pairs.append(
            compile_cuda(
                PRELUDE.text_for(("float16", "memory", "shuffle", "minmax", "infinity")) + body, machine
            ).seconds
            - compile_cuda(body, machine).seconds
        )
    # 2 to 4 ms when quiet; the bound allows for other work on the same cores.
    assert min(pairs) < 0.015
