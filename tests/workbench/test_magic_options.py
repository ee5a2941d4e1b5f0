"""The line of `%%tile`: what it means, and what is told about a wrong one."""

from __future__ import annotations

import pytest

from tilebench.errors import OptionError
from tilebench.workbench.options import WORDS, TileOptions, parse_line, parse_sweep, parse_value, usage


def test_a_whole_line() -> None:
    found = parse_line(
        "gemm --target cuda:sm_90a --with M=1024 dtype=float16 fast=true --sweep block_M=64,128,256 "
        "num_stages=1..4 ko.num_stages=0..4..2 --stages tile,laid_out,cuda --run "
        "--check --schedule 'my file.toml'"
    )
    assert found == TileOptions(
        "gemm", "cuda:sm_90a", {"M": 1024, "dtype": "float16", "fast": True},
        {"block_M": (64, 128, 256), "num_stages": (1, 2, 3, 4), "ko.num_stages": (0, 2, 4)},
        ("tile", "laid_out", "cuda"), "my file.toml", True, True,
    )  # fmt: skip


def test_nothing_given_and_joined_values() -> None:
    assert parse_line("") == TileOptions()
    assert parse_line("--target=cpu --with M=1 --with N=2").values == {"M": 1, "N": 2}
    assert parse_line("--with M=1 gemm").kernel == "gemm"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("True", True),
        ("none", None),
        ("'a b'", "a b"),
        ("(1, 2)", (1, 2)),
        ("bf16", "bf16"),
    ],
)
def test_values(text: str, value: object) -> None:
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


def test_ranges_run_down_too() -> None:
    assert parse_sweep(["a=4..1..-1", "b=1..3,8"]) == {"a": (4, 3, 2, 1), "b": (1, 2, 3, 8)}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--wiht M=1", ["--wiht", "did you mean --with?", "--sweep", "--schedule"]),
        ("--targt cpu", ["did you mean --target?"]),
        ("--target", ["--target needs a word"]),
        ("--with", ["--with needs NAME=VALUE words"]),
        ("--with M", ["--with needs", "found: M"]),
        ("--run=3", ["--run takes no value"]),
        ("--target cpu --target cuda", ["--target stands twice"]),
        ("M=3 M=4", ["M is given twice"]),
        ("target=cpu --target cuda", ["the target is given twice", "cuda and cpu"]),
        ("one two", ["one and two"]),
        ("--sweep a=4..1", ["4..1 is no range of a"]),
        ("--sweep a=1..x", ["1..x is no range of a"]),
        ("--sweep a=1..9999", ["9999 values"]),
        ("--sweep a=", ["a= is no sweep", "NAME=VALUE"]),
        ("--with M=1 M=2", ["M is given twice"]),
        ("--schedule 'x", ["no closing quotation", "close every quote"]),
    ],
)
def test_what_is_told(line: str, words: list[str]) -> None:
    with pytest.raises(OptionError) as caught:
        parse_line(line)
    text = caught.value.explain()
    for word in words:
        assert word in text


def test_usage_names_every_option() -> None:
    assert all(name in usage() for name in WORDS)


@pytest.mark.parametrize("text", ["1+", "-", "(1,", "'a", "3x"])
def test_half_a_value_is_told(text: str) -> None:
    with pytest.raises(OptionError, match="neither a value nor a word"):
        parse_value(text)
