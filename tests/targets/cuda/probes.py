"""One use of the instruction behind each feature name of a machine."""

from __future__ import annotations


def _asm(text: str, *operands: str) -> str:
    """An asm statement; `operands` are its outputs, inputs, each a comma-separated list."""
    return f'asm volatile("{text}"' + "".join(f" : {each}" for each in operands) + ");"


_EIGHT = ", ".join(f'"=r"(v{k})' for k in range(8))
_MMA_F16 = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%2}, {%2}, {%0,%1};"
_MMA_FP8 = (
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
    "{%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"
)
_BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];"

# `p` is a global pointer to unsigned, `s` an unsigned that serves as a shared address.
PROBES = {
    "ldmatrix": "unsigned r; "
    + _asm("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];", '"=r"(r)', '"r"(s)')
    + " p[0] = r;",
    "mma": "unsigned d0 = 0, d1 = 0; " + _asm(_MMA_F16, '"+r"(d0), "+r"(d1)', '"r"(s)') + " p[1] = d0 + d1;",
    "fp8-mma": "float a = 0, b = 0, c = 0, d = 0; "
    + _asm(_MMA_FP8, '"+f"(a), "+f"(b), "+f"(c), "+f"(d)', '"r"(s)')
    + " p[2] = a + b + c + d;",
    "mbarrier": _asm("mbarrier.init.shared.b64 [%0], 1;", "", '"r"(s)'),
    "global-256bit": "unsigned v0, v1, v2, v3, v4, v5, v6, v7; "
    + _asm("ld.global.v8.b32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];", _EIGHT, '"l"(p)')
    + " p[3] = v0 + v1 + v2 + v3 + v4 + v5 + v6 + v7;",
    "cp.async": _asm("cp.async.ca.shared.global [%0], [%1], 16;", "", '"r"(s), "l"(p)'),
    "bf16-arith": _asm("{.reg .b16 a; mov.b16 a, 0; fma.rn.bf16 a, a, a, a;}"),
    "votes": "p[4] = __ballot_sync(0xffffffffu, s > 0);",
    "redux": "unsigned u; "
    + _asm("redux.sync.add.u32 %0, %1, 0xffffffff;", '"=r"(u)', '"r"(s)')
    + " p[4] = u;",
    "fp8-convert": "unsigned short h; "
    + _asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;", '"=h"(h)', '"f"(1.0f * s), "f"(2.0f)')
    + " p[5] = h;",
    "cluster": _asm("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"),
    "tma": _asm(_BULK, "", '"r"(s), "l"(p), "r"(s + 16)'),
    "stmatrix": _asm("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};", "", '"r"(s), "r"(s)'),
    "elect": _asm("{.reg .pred q; elect.sync _|q, 0xffffffff;}"),
    "wgmma": _asm("wgmma.fence.sync.aligned;"),
    "vector-add": _asm("red.global.add.v2.f32 [%0], {%1, %1};", "", '"l"(p), "f"(1.0f * s)'),
    "dependent-launch": _asm("griddepcontrol.wait; griddepcontrol.launch_dependents;"),
    "setmaxnreg": _asm("setmaxnreg.inc.sync.aligned.u32 232;"),
    "tcgen05": _asm("tcgen05.wait::ld.sync.aligned;"),
}


def probe(*features: str) -> str:
    """A kernel that uses these features, one a line from line 2 on."""
    body = "\n".join("  { " + PROBES[each] + " }" for each in features)
    head = 'extern "C" __global__ void __launch_bounds__(128) k(unsigned* p, unsigned s) {\n'
    return head + body + "\n}\n"
