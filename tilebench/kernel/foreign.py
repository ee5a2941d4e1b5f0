"""Options of TileLang's decorator that choose nothing here: taken, so that its files run, and told."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from ..errors import ArgumentError, nearest

if TYPE_CHECKING:
    from .kernel import Kernel

# Those that say how TileLang builds and shows, and nothing of what runs.
QUIET = {"execution_backend", "verbose", "target_host", "debug_root_path"}
TAKEN = {"pass_configs", "compile_flags", *QUIET}
# What holds here instead, for configurations whose users count on it.
_INSTEAD = {
    "tl.enable_fast_math": "functions keep the accuracy that the language states",
    "tl.disable_thread_storage_sync": "barriers are inserted where shared memory needs them",
    "tl.disable_safe_memory_legalize": "accesses outside an array stay guarded",
}


def check_options(options: Mapping[str, Any]) -> None:
    """Raise `ArgumentError` for an option that neither this decorator nor TileLang's has."""
    unknown = sorted(set(options) - TAKEN)
    if unknown:
        known = ["target", "schedule", "out_idx"]
        close = nearest(unknown[0], known)
        raise ArgumentError(
            "jit has no option {name}", name=", ".join(unknown), expected=", ".join(known),
            hint=f"did you mean {close[0]}?" if close else "",
        )  # fmt: skip
    configs: object = options.get("pass_configs")
    if configs is not None and not isinstance(configs, Mapping):
        raise ArgumentError("pass_configs are names with values", text=repr(configs), found="{text}")


def tell_options(kernel: Kernel, options: Mapping[str, Any]) -> None:
    """A remark for each option given that chooses nothing."""
    remark = kernel.compilation.context.remark
    configs = cast("Mapping[Any, Any]", options.get("pass_configs") or {})
    for key, value in configs.items():
        name = str(key.value) if isinstance(key, Enum) else str(key)
        if value is False or value is None:
            continue
        instead = _INSTEAD.get(name, "it steers passes of TileLang's")
        remark("options", "note", f"the pass configuration {name} chooses nothing here: {instead}")
    if options.get("compile_flags"):
        remark("options", "note", "compile_flags choose nothing here: they are TileLang's compiler's")
