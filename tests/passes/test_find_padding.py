"""Zeros of a copy past the end of its array, taken for elements by a maximum: a remark at the reduction."""

from __future__ import annotations

import numpy as np
import pytest

from tests.roads import everywhere, jitted

A = np.full((2, 100), -5, np.float32)
M = np.zeros(2, np.float32)
HEAD = 's = T.alloc_fragment((2, 128), "float32")\nm = T.alloc_fragment((2,), "float32")\n'
COPY = HEAD + "T.copy(A[0:2, 0:128], s)\n"
LOOP = "for i, j in T.Parallel(2, 128):\n    "
TAIL = "T.reduce_max(s, m, dim=1)\nT.copy(m, M)"

TOLD = {
    COPY + TAIL: 0,
    COPY + LOOP + "s[i, j] = s[i, j] * 2.0\n" + TAIL: 0,
    HEAD + "T.fill(s, -9.0)\nT.copy(A[0:2, 0:128], s)\n" + TAIL: 0,
    HEAD + 't = T.alloc_shared((2, 128), "float32")\nT.copy(A[0, 0], t)\nT.copy(t, s)\n' + TAIL: 0,
}
SILENT = {
    COPY + LOOP + "s[i, j] = T.if_then_else(j < 100, s[i, j], -T.infinity('float32'))\n" + TAIL: -5,
    COPY + LOOP + "if j >= 100:\n        s[i, j] = -T.infinity('float32')\n" + TAIL: -5,
    COPY + "T.fill(s[:, 100:128], -3e38)\n" + TAIL: -5,
    COPY + LOOP + "s[i, j] = abs(s[i, j])\n" + TAIL: 5,
    COPY + TAIL.replace("max", "sum"): -500,
    HEAD
    + 'r = T.alloc_fragment((2, 100), "float32")\nT.copy(A, r)\nT.reduce_max(r, m, dim=1)\nT.copy(m, M)': -5,
}


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
@pytest.mark.parametrize("body", [*TOLD, *SILENT])
def test_a_remark_where_padding_may_win(target: str, body: str) -> None:
    kernel = jitted(body, A=A, M=M).using(target=target)()
    remarks = [each for each in kernel.record(["bounded"]).remarks if each.pass_name == "find_padding"]
    assert len(remarks) == (body in TOLD)
    if remarks:
        assert remarks[0].kind == "missed"
        assert remarks[0].place.line == 7 + body[: body.index("T.reduce")].count("\n")
        assert "choose -T.infinity('float32') for those elements first" in remarks[0].message


@pytest.mark.parametrize("body", [*TOLD, *SILENT])
def test_the_number_is_the_same_on_every_road(body: str) -> None:
    assert everywhere(body, A=A, M=M)["M"].tolist() == [(TOLD | SILENT)[body]] * 2


def test_rows_that_are_padded_among_rows_are_not_told() -> None:
    body = 'x = T.alloc_fragment((4, 100), "float32")\nn = T.alloc_fragment((4,), "float32")\n'
    body += "T.copy(A[0:4, 0:100], x)\nT.reduce_max(x, n, dim=1)\nT.copy(n, M[0:4])"
    kernel = jitted(body, A=A, M=M).using(target="cpu")()
    assert not [each for each in kernel.record(["bounded"]).remarks if each.pass_name == "find_padding"]
