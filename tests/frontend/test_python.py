"""Python as kernels use it while they are traced, and regions whose ends have names."""

from __future__ import annotations

import pytest

from tests.frontend.cell import refused, stage

TILE = 'S = T.alloc_shared((4, 8), "float16")\n'


@pytest.mark.parametrize(
    ("region", "printed"),
    [
        ("lo = bx * 4\nhi = lo + 4\nT.copy(A[lo:hi, 0:8], S)", "T.copy(A[lo : lo + 4, 0 : 8], S)"),
        ("lo = bx * 4\nT.copy(A[lo : (bx + 1) * 4, 0:8], S)", "T.copy(A[lo : lo + 4, 0 : 8], S)"),
        ("k = I[1]\nhi = k + 4\nT.copy(A[k:hi, 0:8], S)", "T.copy(A[k : k + 4, 0 : 8], S)"),
        (
            "a = bx + by\nlo = a * 2 + 3\nb = lo - a\nhi = b + a + 4\nT.copy(A[lo:hi, 0:8], S)",
            "T.copy(A[lo : lo + 4, 0 : 8], S)",
        ),
        ("T.copy(A[-4:, :8], S)", "T.copy(A[252 : 256, 0 : 8], S)"),
        ("T.copy(A[:4, -9:-1], S)", "T.copy(A[0 : 4, 247 : 255], S)"),
    ],
)
def test_ends_of_regions_may_be_names(region: str, printed: str) -> None:
    assert stage(TILE + region).splitlines()[-1] == printed


def test_what_was_read_at_two_times_is_no_common_start() -> None:
    error = refused(TILE + "lo = I[0]\nI[0] = 3\nhi = I[0] + 4\nT.copy(A[lo:hi, 0:8], S)")
    assert error.message == (
        "the extent of dimension 0 of this region of A is not a number known at compile time"
    )
    assert "found: lo : hi" in str(error)


@pytest.mark.parametrize(
    ("body", "printed"),
    [
        ("f = lambda a, b=2: a + b\nI[0] = f(bx) + f(bx, 3)", "I[0] = bx + bx + 5\n"),
        ("first, *rest = [bx, by, 3]\nI[0] = rest[0] + len(rest)", "first: T.int32 = bx\nI[0] = by + 2\n"),
        ("*rest, last = (bx, by)\nI[0] = rest[0]", "last: T.int32 = by\nI[0] = bx\n"),
        ("for k, x in enumerate([bx, by]):\n    I[k] = x", "I[0] = bx\nI[1] = by\n"),
        ("for a, b in zip([bx, by], (1, 2)):\n    I[b] = a", "I[1] = bx\nI[2] = by\n"),
        ("d = {k: bx * k for k in range(1, 3)}\nI[0] = d[1] + sum(d.values())",
         "I[0] = bx + bx + bx * 2\n"),
        ("I[0] = len(A.shape) + A.shape[0]", "I[0] = 258\n"),
        ("print('compiling', M)\nI[0] = 1", "I[0] = 1\n"),
    ],
)  # fmt: skip
def test_python_at_trace_time(body: str, printed: str) -> None:
    assert stage(body) == printed


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("print(bx)", "print() runs while the kernel is compiled, and has no values of the running kernel"),
        ("print(A)", "print() runs while the kernel is compiled, and has no values of the running kernel"),
        ("a, *b, c = [bx]", "3 names for 1 values"),
    ],
)
def test_python_that_means_nothing_here(body: str, said: str) -> None:
    assert refused(body).message == said
