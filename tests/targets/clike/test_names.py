"""Names that C, the language or the prelude uses are escaped, and no two become one."""

from __future__ import annotations

from tilebench.ir import parse_function
from tilebench.language.words import registry
from tilebench.targets.clike.names import names_in_c

TEXT = """\
@T.prim_func
def main(int: T.Tensor((4,), T.float32), warp: T.Tensor((4,), T.float32)):
    with T.Kernel(1, threads=32) as blöck:
        tb_x: T.int32 = T.thread_id()
        __y: T.int32 = tb_x
        int_: T.int32 = tb_x
        plain: T.int32 = tb_x
        pass
"""


def test_escaped_names() -> None:
    names = names_in_c(parse_function(TEXT, registry()), frozenset({"warp"}))
    assert names == {
        "main": "main_", "int": "int__", "int_": "int_", "warp": "warp_", "blöck": "bluf6ck_",
        "tb_x": "ktb_x_", "__y": "y_", "plain": "plain",
    }  # fmt: skip
    assert len(set(names.values())) == len(names)


def test_the_kernels_own_name_meets_functions_that_a_variable_hides() -> None:
    text = TEXT.replace("main", "fmaf").replace("warp", "NULL").replace("plain", "norm").replace("tb_x", "_")
    names = names_in_c(parse_function(text, registry()), frozenset(), ("NV_",))
    assert {name: names[name] for name in ("fmaf", "NULL", "norm", "_")} == {
        "fmaf": "fmaf_", "NULL": "NULL_", "norm": "norm", "_": "k_",
    }  # fmt: skip
    text = TEXT.replace("main", "NV_f").replace("warp", "a").replace("plain", "norm")
    assert names_in_c(parse_function(text, registry()), frozenset(), ("NV_",))["NV_f"] == "kNV_f_"
