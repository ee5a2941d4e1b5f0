"""What a call brings to a kernel, as controls: sizes, strides and scalars that a kernel leaves to its calls.

They choose no code: a kernel is compiled once and run, checked and measured at what their controls say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, TileError
from .slider import Slider

if TYPE_CHECKING:
    from ..kernel import Kernel


def launch_names(make: Callable[[], Kernel]) -> tuple[str, ...]:
    """The names that calls of a kernel give values to.

    None where there is no kernel: what is wrong with it is told when it is made for a wish.
    """
    try:
        return make().calls.binder.names
    except TileError:
        return ()


def launch_sliders(
    names: Sequence[str], given: Mapping[str, Any], sweep: Mapping[str, Sequence[Any]]
) -> list[Slider]:
    """A control a name: a slider over its sweep, else a field with the value given (None: none yet)."""
    out: list[Slider] = []
    for name in names:
        values = tuple(sweep.get(name, ()))
        value = given.get(name, values[0] if values else None)
        if values and value not in values:
            values = (value, *values)
        out.append(Slider(name, values, value, launch=True))
    return out


def need_launch_values(kernel: Kernel) -> None:
    """Raise, with what to give and how, where a call's values are not all there (or what refuses them)."""
    binder = kernel.calls.binder
    missing = [name for name in binder.names if name not in kernel.sizes]
    if not missing:
        binder.of(kernel.sizes)
        return
    example = " ".join(f"{name}={_example(kernel, name)}" for name in missing)
    raise ArgumentError(
        "{kernel} can be checked and measured only at values of a call: {missing}", kernel=kernel.name,
        missing=", ".join(missing), at=binder.function.place,
        hint="give them, for example --with {example}, as a slider (--sweep {first}={value},...), "
        "or in their fields",
        example=example, first=missing[0], value=_example(kernel, missing[0]),
    )  # fmt: skip


def _example(kernel: Kernel, name: str) -> str:
    scalar = kernel.calls.binder.scalars.get(name)
    if scalar is None:
        return "1000"
    return "1.0" if scalar.type.is_float else "1"
