"""The prelude's copies from global to shared memory that go on by themselves (PTX ISA, `cp.async`)."""

from __future__ import annotations

from ...clike.prelude import Wanted

# 16 bytes pass by L1, which would keep what no other thread reads; narrower ones have no such form.
_COPY = """\
TB void tb_cp_async_{width}(void* to, const void* from) {{
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  size_t source = __cvta_generic_to_global(from);
  asm volatile("cp.async.{level}.shared.global [%0], [%1], {width};" :: "r"(at), "l"(source) : "memory");
}}
TB void tb_cp_async_{width}(void* to, const void* from, int bytes) {{
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  size_t source = __cvta_generic_to_global(from);
  asm volatile("cp.async.{level}.shared.global [%0], [%1], {width}, %2;"
               :: "r"(at), "l"(source), "r"(bytes) : "memory");
}}"""
# The same from an address that is a number of bytes after one that neighbours share.
_APART = """\
TB void tb_cp_async_{width}_apart(void* to, const void* from, int after) {{
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  size_t source = __cvta_generic_to_global(from);
  asm volatile("{{.reg .b64 own; add.s64 own, %1, %2;"
               " cp.async.{level}.shared.global [%0], [own], {width};}}"
               :: "r"(at), "l"(source), "l"((long long)after) : "memory");
}}
TB void tb_cp_async_{width}_apart(void* to, const void* from, int after, int bytes) {{
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  size_t source = __cvta_generic_to_global(from);
  asm volatile("{{.reg .b64 own; add.s64 own, %1, %2;"
               " cp.async.{level}.shared.global [%0], [own], {width}, %3;}}"
               :: "r"(at), "l"(source), "l"((long long)after), "r"(bytes) : "memory");
}}"""
_GROUPS = """\
TB void tb_cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending> TB void tb_cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory");
}"""


def cp_async(wanted: Wanted) -> str:
    """Only the widths that the kernel names."""
    widths = [width for width in (16, 8, 4) if wanted.has(f"tb_cp_async_{width}")]
    forms = {width: {"width": width, "level": "cg" if width == 16 else "ca"} for width in (16, 8, 4)}
    copies = [_COPY.format(**forms[width]) for width in widths]
    copies += [_APART.format(**forms[width]) for width in forms if wanted.has(f"tb_cp_async_{width}_apart")]
    return "\n".join([*copies, _GROUPS])
