"""A prelude is put together from the parts whose names a text uses."""

from __future__ import annotations

import pytest

from tilebench.errors import InternalError
from tilebench.targets.clike.prelude import Part, Prelude, Wanted


def _pairs(wanted: Wanted) -> str:
    lines = [f"int tb_{name}(int x);" for name in ("once", "twice") if wanted.has(f"tb_{name}")]
    return "\n".join([*lines, *(["// with types"] if "types" in wanted.parts else [])])


PRELUDE = Prelude(
    "#define TB",
    (Part("types", r"tb_pair\w*", "struct tb_pair;"), Part("pairs", r"tb_(?:once|twice)", _pairs)),
)


def test_only_what_a_text_names_stands_in_front_of_it() -> None:
    assert PRELUDE.before("int x;\n") == ("int x;\n", 0)
    assert PRELUDE.before("tb_twice(x);\n") == ("#define TB\nint tb_twice(int x);\ntb_twice(x);\n", 2)
    text, before = PRELUDE.before("tb_pair p; tb_once(p);\n")
    assert text.splitlines()[:before] == [
        "#define TB", "struct tb_pair;", "int tb_once(int x);", "// with types",
    ]  # fmt: skip
    # A name that only begins like one of a part's.
    assert PRELUDE.parts_of("tb_oncemore(x)") == frozenset()
    # One that has it inside, and one behind such a name.
    assert PRELUDE.names_in("A_tb_once + _tb_twice[tb_once(x)]; tb_tb_pair") == {"tb_once", "tb_tb_pair"}


def test_what_is_kept_for_some_names_is_not_given_to_others() -> None:
    once, twice = "tb_once(x);\n", "tb_twice(x);\n"
    written = [PRELUDE.before(text)[0] for text in (once, twice, once + twice, once)]
    assert written[0] == written[3] == f"#define TB\nint tb_once(int x);\n{once}"
    assert written[1] == f"#define TB\nint tb_twice(int x);\n{twice}"
    assert written[2] == f"#define TB\nint tb_once(int x);\nint tb_twice(int x);\n{once}{twice}"


def test_all_of_a_part_without_a_text_and_none_of_an_unknown_one() -> None:
    assert PRELUDE.text_for(["pairs"]) == "#define TB\nint tb_once(int x);\nint tb_twice(int x);\n"
    with pytest.raises(InternalError, match="no part triples"):
        PRELUDE.text_for(["triples"])
