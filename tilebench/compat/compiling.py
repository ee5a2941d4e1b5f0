"""`tilelang.jit`, `compile` and `par_compile`, with the targets that TileLang names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from ..frontend import Traced, trace
from ..ir import Function
from ..kernel import Kernel
from ..kernel import jit as own_jit
from ..kernel.foreign import check_options, tell_options
from ..profile.environment import allowed_cores
from ..targets import resolve
from ..targets.devices import CARD, HOST
from . import host_cuda

# Its kinds of target, and what they are here; others are ours, or refused by name.
_KINDS: Mapping[str, str] = dict.fromkeys("c llvm".split(), HOST)  # noqa: SIM905 -- words of TileLang's, no names of ours


def target_of(target: object) -> str | None:
    """Our name of a target of TileLang's: a text, `{"kind": "cuda", "arch": "sm_90"}`, or None."""
    if target is None or target == "auto":
        return None
    arch = ""
    if isinstance(target, Mapping):
        given = cast("Mapping[str, Any]", target)
        target, arch = given.get("kind", "auto"), given.get("arch", "")
    name, *rest = str(target).split()
    # TVM's text of a target, `cuda -arch=sm_90`: the other options are its compiler's.
    arch = next((word.removeprefix("-arch=") for word in rest if word.startswith("-arch=")), arch)
    if name == CARD and host_cuda.is_host():
        return None
    name = _KINDS.get(name, name)
    return f"{name}:{arch}" if arch else name


def jit(func: Callable[..., Any] | None = None, /, *, target: object = None, **options: Any) -> Any:
    """`tilebench.jit`, with TileLang's targets."""
    wrap = own_jit(target=target_of(target), **options)
    return wrap if func is None else wrap(func)


def compile(
    func: Any = None, out_idx: int | Sequence[int] | None = None, execution_backend: object = None,
    target: object = None, **options: Any,
) -> Kernel:  # fmt: skip
    """The kernel of one `@T.prim_func`, or of what `get_tir` gives."""
    check_options(options)
    outputs = (out_idx,) if isinstance(out_idx, int) else tuple(out_idx or ())
    traced = Traced(func, "", 1, "", {}, {}, func.name) if isinstance(func, Function) else trace(func)
    kernel = Kernel(traced, *resolve(target_of(target)), out_idx=outputs)
    tell_options(kernel, options)
    return kernel


def par_compile(funcs: Iterable[Any], num_workers: int | None = None, **options: Any) -> list[Kernel]:
    """The kernels of several functions, their code made at the same time."""

    def one(func: Any) -> Kernel:
        kernel = compile(func, **options)
        kernel.reach_code()
        return kernel

    with ThreadPoolExecutor(num_workers or allowed_cores()) as pool:
        return list(pool.map(one, funcs))


def simplify_prim_func(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: what it makes is simplified on every road anyway."""
    return func


__all__ = ["compile", "jit", "par_compile", "simplify_prim_func", "target_of"]
