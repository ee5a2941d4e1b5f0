"""`tilelang.testing`: seeds, marks for cards, and running the tests of a file."""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..targets import manifest
from ..targets.devices import CARD
from .supply import torch_assert_close


def set_random_seed(seed: int = 42) -> None:
    """Seed Python, NumPy and torch."""
    random.seed(seed)
    np.random.seed(seed)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def main() -> None:
    """Run the tests of the file that is run."""
    pytest: Any = importlib.import_module("pytest")
    sys.exit(pytest.main([sys.modules["__main__"].__file__ or ""]))


def _skipped(where: bool, reason: str) -> Callable[[Any], Any]:
    """A mark that leaves a test out; without pytest nothing."""
    if importlib.util.find_spec("pytest") is None:
        return lambda test: test
    pytest: Any = importlib.import_module("pytest")
    return pytest.mark.skipif(where, reason=reason)


def _capability() -> tuple[int, int]:
    """The card's compute capability; (0, 0) without one."""
    cuda = manifest(CARD)
    if not cuda.available()[0]:
        return 0, 0
    number = int("".join(filter(str.isdigit, cuda.describe(None).name.rpartition("sm_")[2])))
    return divmod(number, 10)


def requires_cuda(test: Any) -> Any:
    """Leave a test out where no card can run code."""
    return _skipped(_capability() == (0, 0), "needs a card")(test)


def _version_mark(fits: Callable[[tuple[int, int], tuple[int, int]], bool]) -> Callable[..., Any]:
    def mark(major: int, minor: int = 0, mode: str = "ge") -> Any:
        return _skipped(not fits(_capability(), (major, minor)), f"is for cards of {major}.{minor}")

    return mark


requires_cuda_compute_version = _version_mark(lambda card, wanted: card >= wanted)
requires_cuda_compute_version_ge = requires_cuda_compute_version
requires_cuda_compute_version_gt = _version_mark(lambda card, wanted: card > wanted)
requires_cuda_compute_version_le = _version_mark(lambda card, wanted: (0, 0) < card <= wanted)
requires_cuda_compute_version_lt = _version_mark(lambda card, wanted: (0, 0) < card < wanted)
requires_cuda_compute_version_eq = _version_mark(lambda card, wanted: card == wanted)


def requires_rocm(test: Any) -> Any:
    """Leave a test for AMD's cards out."""
    return _skipped(True, "is for cards of AMD's")(test)


def requires_metal(test: Any) -> Any:
    """Leave a test for Apple's cards out."""
    return _skipped(True, "is for cards of Apple's")(test)


def requires_package(name: str, *_: object) -> Any:
    """Leave a test out where a package is not installed."""
    return _skipped(importlib.util.find_spec(name) is None, f"needs the package {name}")


__all__ = ["main", "requires_cuda", "requires_metal", "requires_package", "requires_rocm", "set_random_seed",
           "torch_assert_close"]  # fmt: skip
