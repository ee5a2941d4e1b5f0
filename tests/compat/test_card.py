"""What files ask of a card: its number, and what is refused."""

from __future__ import annotations

import pytest

from tilebench.compat.card import get_target_compute_version, register_cuda_postproc_callback
from tilebench.errors import OptionError


def test_a_target_says_its_number() -> None:
    assert get_target_compute_version("cuda:sm_90a") == "9.0"
    assert get_target_compute_version({"kind": "cuda", "arch": "sm_120"}) == "12.0"


def test_text_is_not_rewritten() -> None:
    with pytest.raises(OptionError, match="CUDA text is not rewritten behind a kernel here"):
        register_cuda_postproc_callback(lambda code, target: code)
