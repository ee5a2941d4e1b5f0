"""`T.annotate_layout`: where the elements of tiles and arrays lie, as a kernel says it.

The layout of a tile stands on its allocation, as the compiler's own choice would; that of an array in
global memory is a statement of the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import LanguageError, LayoutError, ShapeError
from ..ir import Var, substitute
from ..layout import Fragment, SharedLayout
from ..layout.fitted import fitted_shared
from .layouts import Asked, Forward, ForwardFragment, ForwardLayout
from .memory import AllocFragment, AllocShared
from .notes import note
from .placement import AnnotatedLayout, LiesAt, clash, same_place
from .tracing.builder import Builder, inside_kernel, shown
from .tracing.values import BufferView


def annotate_layout(layouts: Mapping[BufferView, Any]) -> None:
    """Say where elements lie: `T.annotate_layout({S: make_swizzled_layout(S), A: T.Layout(A.shape, fn)})`.

    Of a shared tile or a fragment it is a hint: no result changes, and a remark says where it could not be
    followed. Of an array in global memory element (i, j) lies at `fn(i, j)`, on every target, for the whole
    kernel. A layout is a `T.Layout`, a `T.Fragment` for fragments, one of `make_*_layout`, or a function of
    the indices. Raises `LayoutError` for a layout of another shape, one of global memory that is no
    permutation, and two of one buffer that differ; `LanguageError` for anything else.
    """
    builder = inside_kernel("T.annotate_layout")
    if not isinstance(layouts, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person's own
        raise LanguageError("T.annotate_layout takes {{buffer: layout}}", text=shown(layouts), found="{text}")
    for buffer, layout in layouts.items():
        if not isinstance(buffer, BufferView):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LanguageError("T.annotate_layout names a buffer", text=shown(buffer), found="{text}")
        buffer.check_scope()
        if buffer.name in builder.views:
            _of_view(builder, buffer)
            continue
        if callable(layout):
            layout = _of_function(buffer, layout)
        _refuse_shape(buffer, layout)
        _ANNOTATE.get(buffer.scope, _refuse)(builder, buffer, layout)


def _of_view(builder: Builder, view: BufferView) -> None:
    """A view lies where its buffer does: of a tile that is told, of an array results depend on it."""
    root = builder.views[view.name].name
    if view.scope == "global":
        raise LayoutError(
            "{name} is a view of {root} and has no layout of its own", name=view.name, root=root,
            hint="give {root} the layout", also=[("the view is made here", view.place)],
        )  # fmt: skip
    note(f"{view.name} is a view of {root} and lies where that does: the layout chooses nothing here")


def _of_function(buffer: BufferView, function: Forward) -> ForwardLayout | ForwardFragment:
    if buffer.scope == "fragment":
        return ForwardFragment(buffer.shape, function)
    return ForwardLayout(buffer.shape, function)


def _refuse_shape(buffer: BufferView, layout: Any) -> None:
    shape = getattr(layout, "shape", None) if isinstance(layout, (ForwardLayout, ForwardFragment)) else None
    if shape is not None and shape != buffer.buffer.shape:
        raise ShapeError(
            "a layout of shape {shape} does not fit {name}", shape=tuple(shape), name=buffer.name,
            own=buffer.shape, expected="shape {own}", also=[("{name} is declared here", buffer.place)],
        )  # fmt: skip


def _refuse(builder: Builder, buffer: BufferView, layout: Any) -> None:
    expected = {
        "global": "T.Layout(shape, function)", "fragment": "T.Fragment(shape, function)",
        "shared": "T.Layout(shape, function) or one of make_*_layout",
    }  # fmt: skip
    raise LanguageError(
        "this is no layout for {name}, which is in {scope} memory", name=buffer.name, scope=buffer.scope,
        text=shown(layout), found="{text}", expected=expected.get(buffer.scope, "no layout"),
    )  # fmt: skip


def _place_global(builder: Builder, buffer: BufferView, layout: Any) -> None:
    if not isinstance(layout, ForwardLayout):
        _refuse(builder, buffer, layout)
    variables = tuple(Var(builder.unique(name)) for name in layout.names)
    names = dict(zip(layout.names, variables, strict=True))
    place = builder.place
    there = LiesAt(tuple(substitute(part, names) for part in layout.forward), place=place)
    annotation = AnnotatedLayout(buffer.buffer, variables, (there,), place=place)
    _ = annotation.permutation  # what is none is refused here
    body = builder.frames[1].statements
    for other in body:
        if isinstance(other, AnnotatedLayout) and other.of.name == buffer.name:
            if not same_place(other, annotation):
                raise clash(buffer.name, place, other.place)
            return
    body.insert(0, annotation)


def _hint(builder: Builder, buffer: BufferView, asked: object, **fields: Any) -> None:
    """Write a layout on the allocation of a tile, unless another one is asked for already."""
    place = builder.place
    before, there = builder.layouts.setdefault(buffer.name, (asked, place))
    if before != asked:
        raise clash(buffer.name, place, there)
    for frame in builder.frames:
        for statement in frame.statements:
            if isinstance(statement, (AllocShared, AllocFragment)) and statement.buffer is buffer.buffer:
                builder.replace(statement, statement.but(**fields))
                return


def _hint_shared(builder: Builder, buffer: BufferView, layout: Any) -> None:
    if isinstance(layout, Asked):
        _hint(builder, buffer, layout.swizzled, swizzle=layout.swizzled)
        return
    if isinstance(layout, ForwardLayout):
        table = layout.offsets()
        if np.unique(table).size != table.size:
            raise LayoutError(
                "two elements of {name} lie in one place in this layout", name=buffer.name,
                expected="a place of its own for each element",
            )  # fmt: skip
        layout = fitted_shared(table) if buffer.buffer.dtype.per_byte == 1 else None
        if layout is None:
            note(f"the layout of {buffer.name} has no shape and strides: the compiler chooses one")
            return
    if not isinstance(layout, SharedLayout):
        _refuse(builder, buffer, layout)
    _hint(builder, buffer, layout, layout=layout)


def _hint_fragment(builder: Builder, buffer: BufferView, layout: Any) -> None:
    spread = layout.spread() if isinstance(layout, ForwardFragment) else layout
    if spread is None:
        note(f"the layout of {buffer.name} is no digits of threads and values: the compiler chooses one")
        return
    if not isinstance(spread, Fragment) or spread.extents != buffer.buffer.extents:
        _refuse(builder, buffer, layout)
    _hint(builder, buffer, spread, layout=spread)


_ANNOTATE = {"global": _place_global, "shared": _hint_shared, "fragment": _hint_fragment}
