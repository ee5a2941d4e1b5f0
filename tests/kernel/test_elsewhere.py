"""A kernel made anew from another's function or text relies on nothing that only the other's calls have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tilebench.language as T
from tests import kernels
from tilebench.compat.compiling import compile as compile_function
from tilebench.kernel import Kernel, compile_from
from tilebench.kernel.elsewhere import kernel_for
from tilebench.kernel.measuring.package import package_of
from tilebench.targets import resolve


def adding(target: str) -> Kernel:
    """Blocks of 8 elements: no test is left where rows are known to be whole multiples of 16 bytes."""
    return kernels.add_kernel.using(target=target)(64, T.dynamic("n"), block_N=8)


ROADS: tuple[Callable[[Kernel, str], Kernel], ...] = (
    lambda kernel, target: kernel_for(kernel, *resolve(target), None),
    lambda kernel, target: compile_function(kernel.prim_func, target=target),
    lambda kernel, target: compile_from("tile", kernel.stage("tile"), target=target),
)


@pytest.mark.parametrize("road", ROADS, ids=["for a target", "from its function", "from its text"])
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
def test_rows_of_any_length_are_tested(road: Callable[[Kernel, str], Kernel], target: str) -> None:
    kernel = adding("cuda:sm_80")
    assert "assume" in kernel.stage("tile").splitlines()[0]
    made, direct = road(kernel, target), adding(target)
    for n in (64, 75):
        found, wanted = (package_of(one, {"n": n}).stage_text for one in (made, direct))
        assert found == wanted
    assert " < n" in found


def test_an_edit_of_the_first_stage_is_made_for_every_call() -> None:
    kernel = adding("cuda:sm_80")
    made = kernel.edited("tile", kernel.stage("tile"))
    for n in (64, 75):
        assert package_of(made, {"n": n}).stage_text == package_of(kernel, {"n": n}).stage_text
