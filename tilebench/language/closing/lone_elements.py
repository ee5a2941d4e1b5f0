"""Fragments of which a kernel uses an element by itself, outside `T.Parallel`: `if mask[k]:`.

A fragment is spread over the threads, and every thread needs such an element. The whole tile is kept in
shared memory instead, where all see it; a remark says so. Only the result of a product has to be a fragment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...errors import LanguageError, Place
from ...ir import Buffer, Function, Node, rename_buffers
from ...ir.rewrite import rewrite
from ...ir.stmt import statements
from ..gemm import Gemm
from ..memory import AllocFragment, AllocShared


def kept_in_shared(function: Function, lone: Mapping[str, Place | None]) -> Function:
    """The kernel with these fragments as shared tiles; `lone` says where an element of each is used.

    Raises `LanguageError` for one that a product is formed in.
    """
    buffers: dict[str, Buffer] = {}
    for statement in statements(function.body):
        if isinstance(statement, Gemm) and statement.c.buffer.name in lone:
            raise LanguageError(
                "an element of the fragment {name}, in which a product is formed, is used outside T.Parallel",
                name=statement.c.buffer.name, at=lone[statement.c.buffer.name],
                also=[("the product is here", statement.place)],
                hint="copy {name} into a shared tile behind the product, and use its elements there",
            )  # fmt: skip
        if isinstance(statement, AllocFragment) and statement.buffer.name in lone:
            buffers[statement.buffer.name] = replace(statement.buffer, scope="shared")

    def change(node: Node) -> Node:
        if isinstance(node, AllocFragment) and node.buffer.name in buffers:
            return AllocShared(buffers[node.buffer.name], of_fragment=True, place=node.place)
        return node

    return rename_buffers(rewrite(function, change), buffers)
