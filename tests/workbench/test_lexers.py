"""Golden tokens of our two lexers, and that no text is lost in them."""

from __future__ import annotations

import re

import pytest
from pygments.token import Error

from tilebench.workbench.lexers import NvSassLexer, TileIRLexer, lexer_for, token_table

from .samples import STAGES, text_of


def tokens(lexer, text):
    return [
        (str(kind).removeprefix("Token."), value) for kind, value in lexer.get_tokens(text) if value.strip()
    ]


def test_tile_ir_golden():
    line = "        A_s = T.alloc_shared((128, 32), T.float16, layout=T.Layout((128, 32), (32, 1)))  # ring"
    assert tokens(TileIRLexer(), line) == [
        ("Name.Variable", "A_s"), ("Operator", "="), ("Name.Builtin", "T.alloc_shared"), ("Punctuation", "("),
        ("Punctuation", "("), ("Literal.Number", "128"), ("Punctuation", ","), ("Literal.Number", "32"),
        ("Punctuation", ")"), ("Punctuation", ","), ("Keyword.Type", "T.float16"), ("Punctuation", ","),
        ("Name.Attribute", "layout"), ("Operator", "="), ("Name.Decorator", "T.Layout"), ("Punctuation", "("),
        ("Punctuation", "("), ("Literal.Number", "128"), ("Punctuation", ","), ("Literal.Number", "32"),
        ("Punctuation", ")"), ("Punctuation", ","), ("Punctuation", "("), ("Literal.Number", "32"),
        ("Punctuation", ","), ("Literal.Number", "1"), ("Punctuation", ")"), ("Punctuation", ")"),
        ("Punctuation", ")"), ("Comment.Single", "# ring"),
    ]  # fmt: skip


def test_tile_ir_names_buffers_wherever_they_stand():
    text = (
        "def f(A: T.Tensor((4,), T.int8)):\n    s = T.alloc_shared((4,), T.int8)\n    T.copy(A, s)\n    x = y"
    )
    kinds = {value: kind for kind, value in tokens(TileIRLexer(), text)}
    assert kinds["A"] == kinds["s"] == "Name.Variable"
    assert kinds["x"] == kinds["y"] == "Name"
    assert kinds["T.int8"] == "Keyword.Type"
    assert kinds["def"] == "Keyword"


def test_tile_ir_prefix_of_a_dtype_is_not_a_dtype():
    assert tokens(TileIRLexer(), "T.int8x4 T.int8") == [
        ("Name.Builtin", "T.int8x4"),
        ("Keyword.Type", "T.int8"),
    ]


def test_tile_ir_docstring_is_one_token():
    assert tokens(TileIRLexer(), '"""for T.gemm\nwith"""') == [
        ("Literal.String.Doc", '"""for T.gemm\nwith"""')
    ]


SASS = "        /*1460*/         @!P0 HMMA.16816.F32 R104, R140.reuse, c[0x0][0x160], -R104 ;  /* 0x0000 */"


def test_sass_golden():
    assert tokens(NvSassLexer(), SASS) == [
        ("Comment.Hashbang", "/*1460*/"), ("Name.Exception", "@!P0"), ("Name.Function.Magic", "HMMA"),
        ("Name.Attribute", ".16816"), ("Name.Attribute", ".F32"),
        ("Name.Variable", "R104"), ("Punctuation", ","),
        ("Name.Variable", "R140"), ("Name.Attribute", ".reuse"), ("Punctuation", ","),
        ("Literal", "c[0x0][0x160]"), ("Punctuation", ","), ("Name.Variable", "-R104"), ("Punctuation", ";"),
        ("Comment.Single", "/* 0x0000 */"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("HFMA2.MMA R0, -RZ, RZ, 0, 0 ;", "Name.Function", "HFMA2"),
        ("S2R R3, SR_CTAID.X ;", "Name.Constant", "SR_CTAID.X"),
        ("ULDC.64 UR4, c[0x0][0x118] ;", "Name.Variable", "UR4"),
        ("ISETP.GE.AND P0, PT, R0, 0x3e8, PT ;", "Name.Exception", "PT"),
        ("BRA `(.L_x_1) ;", "Name.Label", "`(.L_x_1)"),
        (".L_x_1:", "Name.Label", ".L_x_1:"),
        (".text.matmul:", "Name.Label", ".text.matmul:"),
        ('//## File "a.cu", line 9', "Comment.Special", '//## File "a.cu", line 9'),
        ("LDG.E.128 R4, desc[UR4][R2.64+0x10] ;", "Name.Class", "LDG"),
        ("[B--2---:R0:W-:-:S04] EXIT ;", "Comment.Preproc", "[B--2---:R0:W-:-:S04]"),
        ("FADD R1, R2, -1.5 ;", "Literal.Number", "-1.5"),
        ("@!UP0 UIADD3 UR5, UR4, 0x1, URZ ;", "Name.Exception", "@!UP0"),
    ],
)
def test_sass_forms(text, kind, value):
    assert (kind, value) in tokens(NvSassLexer(), text)


@pytest.mark.parametrize(("name", "language", "_"), STAGES)
def test_no_text_is_lost_and_none_is_an_error(name, language, _):
    text = text_of(name)
    made = list(lexer_for(language).get_tokens(text))
    assert "".join(value for _, value in made) == text
    if language in ("tile-ir", "python", "nvsass"):
        assert not [value for kind, value in made if kind is Error]


def test_rules_are_what_javascript_reads_too():
    for language in ("tile-ir", "nvsass"):
        for pattern, _ in token_table()[language]["rules"]:
            assert not re.search(r"\(\?P|\(\?<|\(\?[aiLmsux]|\\[AZ]|\*\+|\+\+|\[\]", pattern), pattern


def test_unknown_language_is_plain_text():
    assert tokens(lexer_for("no-such-language"), "a b") == [("Text", "a b")]
