"""The words of one thread that CUDA has code for, besides values, loops and allocations."""

from __future__ import annotations

from functools import cache

from ....errors import TargetError
from ....ir import Region
from ....language.lowered.threads import SyncThreads, SyncWarp, VectorLoad, VectorStore
from ...clike.renderer import Renderer
from ...manifest import Intrinsic

# Bytes of one access, and the memories whose accesses the prelude has functions for.
WIDTHS = (1, 2, 4, 8, 16)
SPACES = ("global", "shared")


def _load(renderer: Renderer, statement: VectorLoad) -> None:
    _move(renderer, statement, "ld", statement.src)


def _store(renderer: Renderer, statement: VectorStore) -> None:
    _move(renderer, statement, "st", statement.dst)


def _move(renderer: Renderer, statement: VectorLoad | VectorStore, verb: str, memory: Region) -> None:
    """One access between registers and `memory`, whose last extent is the vector."""
    width = memory.buffer.dtype.bytes_of((memory.extent or (1,))[-1])
    space = memory.buffer.scope
    if width not in WIDTHS or space not in SPACES:
        raise TargetError(
            "T.{word} of {width} bytes in {space} memory has no code for {target}",
            at=statement.place, word=statement.word, width=width, space=space, target=renderer.target,
            expected="one of {widths} bytes in {spaces} memory",
            widths=", ".join(map(str, WIDTHS)), spaces=" or ".join(SPACES),
        )  # fmt: skip
    to, source = renderer.address(statement.dst), renderer.address(statement.src)
    renderer.line(f"tb_{verb}_{space}_{width}({to}, {source});", statement)


def _sync_threads(renderer: Renderer, statement: SyncThreads) -> None:
    renderer.line("__syncthreads();" + (f"  // {statement.why}" if statement.why else ""), statement)


def _sync_warp(renderer: Renderer, statement: SyncWarp) -> None:
    renderer.line("__syncwarp();", statement)


@cache
def intrinsics() -> tuple[Intrinsic, ...]:
    """The rows that the manifest brings."""
    return (
        Intrinsic(VectorLoad, None, _load),
        Intrinsic(VectorStore, None, _store),
        Intrinsic(SyncThreads, None, _sync_threads),
        Intrinsic(SyncWarp, None, _sync_warp),
    )
