"""The most that a card's matrix units reach, measured on it: chains of their own instruction, by dtype.

On 9.0a that is `wgmma` of 64x128 from shared memory, elsewhere `mma` from registers: what a library can use
there, so that no true figure lies above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....ir.dtypes import ALL
from ....machine import Machine
from ..tensor_cores import MMA, PTX_TYPES
from ..text.mma import one_product

# Steps of the loop, products of a step that are apart, and threads of a block.
STEPS, CHAINS, THREADS, BLOCKS_PER_SM = 512, 8, 256, 2
_WARP, _WARP_GROUP = 32, 128
# Of operands by wgmma: the types in the instruction, k, and other dtypes that take as long.
_WARP_GROUP_KINDS = {
    "float16": ("f32.f16.f16", 16, ("bfloat16",)),
    "int8": ("s32.s8.s8", 32, ("uint8", "float8_e4m3fn")),
    "tfloat32": ("f32.tf32.tf32", 8, ()),
}
_BY_GROUPS = {name for kind, (_, _, others) in _WARP_GROUP_KINDS.items() for name in (kind, *others)}
_HEAD = "#define TB static __device__ __forceinline__\n"
_PRODUCT = """\
extern "C" __global__ void __launch_bounds__(256) product_{name}({sum}* out, const {operand}* in) {{
  {sum} c[{chains}][{values}];
  {operand} a[4], b[4];
  for (int i = 0; i < 4; ++i) {{ a[i] = in[i]; b[i] = in[i + 4]; }}
  #pragma unroll
  for (int i = 0; i < {chains}; ++i)
    for (int j = 0; j < {values}; ++j) c[i][j] = ({sum})(threadIdx.x + i);
  #pragma unroll 4
  for (int k = 0; k < {steps}; ++k) {{
    #pragma unroll
    for (int i = 0; i < {chains}; ++i) {function}(c[i], a, b);
  }}
  {sum} s = 0;
  #pragma unroll
  for (int i = 0; i < {chains}; ++i)
    for (int j = 0; j < {values}; ++j) s += c[i][j];
  if (s == ({sum})1) out[0] = s;
}}
"""
_GROUP_PRODUCT = """\
extern "C" __global__ void __launch_bounds__(256) product_{name}({sum}* out, const unsigned* in) {{
  __shared__ __align__(1024) unsigned tile[4096];
  for (int i = threadIdx.x; i < 4096; i += 256) tile[i] = in[i];
  __syncthreads();
  const unsigned long long first = ((unsigned)__cvta_generic_to_shared(tile) & 0x3ffff) >> 4;
  const unsigned long long a = first | 1ull << 16 | 8ull << 32, b = first + 512 | 1ull << 16 | 8ull << 32;
  {sum} c[64];
  #pragma unroll
  for (int i = 0; i < 64; ++i) c[i] = ({sum})threadIdx.x;
  for (int k = 0; k < {steps}; ++k) {{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    #pragma unroll
    for (int i = 0; i < {chains}; ++i)
      asm volatile("wgmma.mma_async.sync.aligned.m64n128k{k}.{types} {{{outs}}}, %64, %65, {flags};"
                   : {results} : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }}
  {sum} s = 0;
  #pragma unroll
  for (int i = 0; i < 64; ++i) s += c[i];
  if (s == ({sum})1) out[0] = s;
}}
"""


@dataclass(frozen=True)
class ProductKernel:
    """A kernel that multiplies: its name, the dtypes that take as long, and operations of one block."""

    name: str
    dtypes: tuple[str, ...]
    operations: float
    text: str


def product_kernels(machine: Machine) -> Iterator[ProductKernel]:
    """A kernel for each dtype that the machine's matrix units take."""
    if "wgmma" in machine.features:
        yield from (_of_groups(dtype, *kind) for dtype, kind in _WARP_GROUP_KINDS.items())
    for row in machine.instructions_for("gemm"):
        a, b, c = row.dtypes
        name = "tfloat32" if row.asked == "allow_tf32" else a
        known = "wgmma" in machine.features and name in _BY_GROUPS
        if row.name == MMA and a == b and ALL[c].bits >= 32 and a != "float8_e5m2" and not known:
            yield _of_warps(name, row.shape, (a, b, c))


def _of_warps(name: str, shape: tuple[int, ...], dtypes: tuple[str, str, str]) -> ProductKernel:
    a, b, c = (PTX_TYPES[dtype] for dtype in dtypes)
    a, b = ("tf32", "tf32") if name == "tfloat32" else (a, b)
    spelled = "m{}n{}k{}".format(*shape)
    kinds = {"f32": "float", "f64": "double", "s32": "int"}
    text = one_product(spelled, c, a, b) + "\n" + _PRODUCT.format(
        name=name, sum=kinds[c], operand="double" if a == "f64" else "unsigned", chains=CHAINS, steps=STEPS,
        values=shape[0] * shape[1] // _WARP, function=f"tb_mma_{spelled}_{c}_{a}_{b}",
    )  # fmt: skip
    m, n, k = shape
    return ProductKernel(f"product_{name}", (name,), 2.0 * m * n * k * CHAINS * STEPS * THREADS / _WARP, text)


def _of_groups(name: str, types: str, k: int, others: tuple[str, ...]) -> ProductKernel:
    whole = types.startswith("s32")
    flags = "1" if whole else "1, 1, 1" + (", 0, 0" if k == 16 else "")
    text = _GROUP_PRODUCT.format(
        name=name, sum="int" if whole else "float", k=k, types=types, flags=flags, chains=CHAINS, steps=STEPS,
        outs=", ".join(f"%{i}" for i in range(64)),
        results=", ".join(f'"+{"r" if whole else "f"}"(c[{i}])' for i in range(64)),
    )  # fmt: skip
    operations = 2.0 * 64 * 128 * k * CHAINS * STEPS * THREADS / _WARP_GROUP
    return ProductKernel(f"product_{name}", (name, *others), operations, text)


def text_of(kernels: list[ProductKernel]) -> str:
    """One text with all of them."""
    return _HEAD + "\n".join(kernel.text for kernel in kernels)
