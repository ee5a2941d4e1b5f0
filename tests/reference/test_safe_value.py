"""`T.annotate_safe_value` of one element that a block reads."""

from __future__ import annotations

from tests.everywhere import everywhere


def test_a_lone_element_outside_is_the_safe_value() -> None:
    found = everywhere(
        "T.annotate_safe_value({A: 0.5})\nO[0] = A[b0 + 3]\nO[1] = A[b0]",
        'A: T.Tensor((2,), "float32"), O: T.Tensor((2,), "float32")',
    )
    assert found["O"].tolist() == [0.5, float(found["A"][0])]
