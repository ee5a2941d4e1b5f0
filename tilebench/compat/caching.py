"""The compile cache, turned on and off by TileLang's words."""

from __future__ import annotations

from .. import settings


def enable_cache() -> None:
    """Keep compiled kernels on disk from now on."""
    settings.cache.set(True)


def disable_cache() -> None:
    """Keep nothing on disk from now on."""
    settings.cache.set(False)


def is_cache_enabled() -> bool:
    """Whether compiled kernels are kept on disk."""
    return settings.cache()
