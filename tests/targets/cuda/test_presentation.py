"""How CUDA's texts are shown: which part of a long listing, and what is left out of it."""

from __future__ import annotations

from tilebench.targets.cuda.presentation import hot_loop


def test_hot_loop_prefers_the_dense_one() -> None:
    lines = [
        ".L_a:",
        "MOV R1, R2 ;",
        "BRA `(.L_a) ;",
        ".L_b:",
        "HMMA.16816.F32 R0 ;",
        "LDSM.16 R1 ;",
        "@P0 BRA `(.L_b) ;",
    ]
    assert hot_loop(lines) == 3
    assert hot_loop(["MOV R1, R2 ;"]) == 0
