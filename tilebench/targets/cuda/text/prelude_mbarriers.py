"""The prelude's barriers in phases and fences of the asynchronous proxy (PTX ISA, `mbarrier`)."""

from __future__ import annotations

from ...clike.prelude import Wanted

_ADDRESS = "  unsigned at = (unsigned)__cvta_generic_to_shared(barrier);\n"
# Before sm_90 an arrival has no count, no sink in place of its state, and a wait does not suspend its thread.
FUNCTIONS = {
    "tb_mbarrier_init": f"""\
TB void tb_mbarrier_init(void* barrier, unsigned count) {{
{_ADDRESS}  asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at), "r"(count) : "memory");
}}""",
    "tb_mbarrier_inval": f"""\
TB void tb_mbarrier_inval(void* barrier) {{
{_ADDRESS}  asm volatile("mbarrier.inval.shared.b64 [%0];" :: "r"(at) : "memory");
}}""",
    "tb_mbarrier_arrive": f"""\
TB void tb_mbarrier_arrive(void* barrier) {{
{_ADDRESS}  asm volatile("{{.reg .b64 state; mbarrier.arrive.shared.b64 state, [%0];}}"
               :: "r"(at) : "memory");
}}""",
    "tb_mbarrier_arrive_many": f"""\
TB void tb_mbarrier_arrive_many(void* barrier, unsigned count) {{
{_ADDRESS}  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" :: "r"(at), "r"(count) : "memory");
}}""",
    **{
        # With .release all memory of the card is fenced first: a fifth of the time of a product of matrices.
        f"tb_mbarrier_arrive_at{name}": f"""\
TB void tb_mbarrier_arrive_at{name}(void* barrier, unsigned block) {{
{_ADDRESS}  asm volatile("{{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
               " mbarrier.arrive.{order}.cluster.shared::cluster.b64 _, [there];}}"
               :: "r"(at), "r"(block) : "memory");
}}"""
        for name, order in (("", "release"), ("_relaxed", "relaxed"))
    },
    **{
        f"tb_sync_cluster{name}": f"""\
TB void tb_sync_cluster{name}() {{
  asm volatile("barrier.cluster.arrive.{order}; barrier.cluster.wait.acquire;" ::: "memory");
}}"""
        for name, order in (("", "release"), ("_relaxed", "relaxed"))
    },
    "tb_mbarrier_arrive_expect": f"""\
TB void tb_mbarrier_arrive_expect(void* barrier, unsigned bytes) {{
{_ADDRESS}  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :: "r"(at), "r"(bytes) : "memory");
}}""",
    "tb_mbarrier_expect": f"""\
TB void tb_mbarrier_expect(void* barrier, unsigned bytes) {{
{_ADDRESS}  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;"
               :: "r"(at), "r"(bytes) : "memory");
}}""",
    "tb_mbarrier_wait": f"""\
TB void tb_mbarrier_wait(void* barrier, unsigned parity) {{
{_ADDRESS}  unsigned over;
  do {{
    asm volatile("{{.reg .pred p;"
#if __CUDA_ARCH__ >= 900
                 " mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
#else
                 " mbarrier.test_wait.parity.shared.b64 p, [%1], %2;"
#endif
                 " selp.u32 %0, 1, 0, p;}}" : "=r"(over) : "r"(at), "r"(parity) : "memory");
  }} while (!over);
}}""",
    "tb_fence_mbarrier_init": """\
TB void tb_fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }""",
    "tb_fence_async_shared": """\
TB void tb_fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }""",
}  # fmt: skip


def mbarriers(wanted: Wanted) -> str:
    """Only the functions that the kernel names."""
    return "\n".join(text for name, text in FUNCTIONS.items() if wanted.has(name))
