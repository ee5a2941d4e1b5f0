"""The text of copies by the tensor memory accelerator, and the maps among a kernel's parameters."""

from __future__ import annotations

from ....errors import TargetError
from ....ir import Function, WordStmt
from ....language.copy import EVICTIONS
from ...clike.prelude import Wanted
from ...clike.renderer import Renderer
from ...intrinsics import Intrinsic
from ..instructions.tma import TmaCommit, TmaLoad, TmaStore, TmaWait
from ..tensor_maps import map_of, tensor_maps
from .simulated import simulated

TYPE = "tb_tensor_map"
STRUCT = f"struct __align__(64) {TYPE} {{ unsigned long long words[16]; }};"


def parameters(renderer: Renderer, function: Function) -> list[tuple[str, str]]:
    """A parameter of the kernel for each map, with what the map says; the renderer learns their names."""
    out: list[tuple[str, str]] = []
    taken = set(renderer.names.values())
    for map in tensor_maps(function):
        base = f"{renderer.names[map.array.name]}_map"
        numbers = (base if k == 0 else f"{base}_{k}" for k in range(len(taken) + 1))
        name = next(each for each in numbers if each not in taken)
        taken.add(name)
        renderer.further[map] = name
        out.append((f"const __grid_constant__ {TYPE} {name}", f"{name} is of {map.told}"))
    return out


def _check(renderer: Renderer, statement: WordStmt) -> None:
    if "tma" not in renderer.machine.features:
        raise TargetError(
            "T.{word} needs copies of the tensor memory accelerator (sm_90), which {target} has not",
            at=statement.place, word=statement.word, target=renderer.machine.name,
        )  # fmt: skip


def _store(renderer: Renderer, statement: TmaStore) -> None:
    _check(renderer, statement)
    name, rank = renderer.further[map_of(statement)], len(statement.dst.start)
    at = ", ".join(renderer.text(part) for part in reversed(statement.dst.start))
    suffix = _suffix(statement.eviction)
    renderer.line(
        f"tb_tma_store_{rank}d{suffix}({name}, {renderer.address(statement.src)}, {at});", statement
    )


def _commit(renderer: Renderer, statement: TmaCommit) -> None:
    _check(renderer, statement)
    renderer.line("tb_tma_commit();", statement)


def _wait(renderer: Renderer, statement: TmaWait) -> None:
    _check(renderer, statement)
    renderer.line(f"tb_tma_wait<{statement.pending}>();", statement)


def _load(renderer: Renderer, statement: TmaLoad) -> None:
    _check(renderer, statement)
    name, rank = renderer.further[map_of(statement)], len(statement.src.start)
    # Coordinates begin with the innermost dimension.
    at = ", ".join(renderer.text(part) for part in reversed(statement.src.start))
    to, barrier = renderer.address(statement.dst), renderer.address(statement.barrier)
    form = f"{rank}d{_suffix(statement.eviction)}"
    if statement.blocks:
        renderer.line(f"tb_tma_send_{form}({to}, {name}, {barrier}, {statement.blocks}, {at});", statement)
    else:
        renderer.line(f"tb_tma_load_{form}({to}, {name}, {barrier}, {at});", statement)


# To one block, and to several of the cluster, a bit each.
_LOAD = """\
TB void tb_tma_load_{rank}d{suffix}(void* to, const {type}& map, void* barrier, {parameters}) {{
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  unsigned done = (unsigned)__cvta_generic_to_shared(barrier);
  asm volatile("{before}cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
               "{hint} [%0], [%1, {{{places}}}], [%2]{policy};{after}"
               :: "r"(at), "l"(&map), "r"(done), {operands} : "memory");
}}"""
_SEND = """\
TB void tb_tma_send_{rank}d{suffix}(void* to, const {type}& map, void* barrier, unsigned short blocks,
                            {parameters}) {{
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  unsigned done = (unsigned)__cvta_generic_to_shared(barrier);
  asm volatile("{before}cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster{hint} [%0], [%1, {{{places}}}], [%2], %3{policy};{after}"
               :: "r"(at), "l"(&map), "r"(done), "h"(blocks), {operands} : "memory");
}}"""
_STORE = """\
TB void tb_tma_store_{rank}d{suffix}(const {type}& map, const void* from, {parameters}) {{
  unsigned at = (unsigned)__cvta_generic_to_shared(from);
  asm volatile("{before}cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group{hint}"
               " [%0, {{{places}}}], [%1]{policy};{after}"
               :: "l"(&map), "r"(at), {operands} : "memory");
}}"""
_GROUPS = """\
TB void tb_tma_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int pending> TB void tb_tma_wait() {
  asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(pending) : "memory");
}"""


def boxes(wanted: Wanted) -> str:
    """The prelude's part: only the ranks and hints that the kernel names."""
    out = [STRUCT]
    for word, text, first in (("load", _LOAD, 3), ("send", _SEND, 4), ("store", _STORE, 2)):
        for rank in range(1, 6):
            for eviction in EVICTIONS:
                suffix = _suffix(eviction)
                if wanted.has(f"tb_tma_{word}_{rank}d{suffix}"):
                    out.append(text.format(**_parts(rank, first, suffix)))
    return "\n".join([*out, *([_GROUPS] if wanted.has("tb_tma_commit") else [])])


def _suffix(eviction: str | None) -> str:
    return "" if eviction in (None, EVICTIONS[0]) else f"_{eviction}"


def _parts(rank: int, first: int, suffix: str) -> dict[str, object]:
    """What the functions of a rank differ in; the first coordinate is that operand of the instruction."""
    made = f"{{.reg .b64 policy; createpolicy.fractional.L2::{suffix[1:]}.b64 policy, 1.0; "
    return {
        "rank": rank, "type": TYPE, "suffix": suffix,
        "parameters": ", ".join(f"int x{k}" for k in range(rank)),
        "places": ", ".join(f"%{first + k}" for k in range(rank)),
        "operands": ", ".join(f'"r"(x{k})' for k in range(rank)),
        "before": made if suffix else "", "after": "}" if suffix else "",
        "hint": ".L2::cache_hint" if suffix else "", "policy": ", policy" if suffix else "",
    }  # fmt: skip


INTRINSICS = (
    Intrinsic(TmaLoad, simulated("tma_meaning", "tma_load"), _load),
    Intrinsic(TmaStore, simulated("tma_meaning", "tma_store"), _store),
    Intrinsic(TmaCommit, simulated("tma_meaning", "tma_commit"), _commit),
    Intrinsic(TmaWait, simulated("tma_meaning", "tma_wait"), _wait),
)
