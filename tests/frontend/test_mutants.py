"""Kernels with slips of the pen: each is traced, or refused at a line of the cell."""

from __future__ import annotations

import io
import random
import tokenize
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.frontend import kernels
from tests.frontend.cell import run_cell
from tilebench.errors import InternalError, IRError, TileError
from tilebench.frontend import trace
from tilebench.ir import Function, parse_function, print_function
from tilebench.language import registry

PARAMETERS: dict[str, dict[str, int]] = {
    "add_kernel": {"M": 64, "N": 64, "block_M": 16, "block_N": 32},
    "gemm_kernel": {"M": 64, "N": 64, "K": 64, "block_M": 32, "block_N": 32, "block_K": 16},
    "global_gemm_kernel": {"M": 64, "N": 64, "K": 64, "block_M": 32, "block_N": 32, "block_K": 16},
    "row_sum_kernel": {"M": 64, "N": 64, "block_M": 16, "block_N": 32},
    "softmax_kernel": {"M": 64, "N": 64, "block_M": 4},
    "variants_kernel": {"M": 256},
}
EXTRA = [
    "None",
    "-1",
    "0",
    "1.5",
    '"x"',
    "@",
    "not",
    "A",
    "T",
    "[0]",
    "(1, 2)",
    "range",
    "len",
    "T.max",
    "T.float16",
]


def mutants(count: int) -> Iterator[str]:
    """The text of the kernels with one or two of its words replaced or left out; only what still parses."""
    text = Path(kernels.__file__).read_text(encoding="utf-8")
    text = text.replace("from __future__ import annotations\n", "\n")
    kinds = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type in kinds]
    pool = [t.string for t in tokens] + EXTRA * 10
    inside = [t for t in tokens if t.start[0] > 10 and t.start[0] == t.end[0]]
    chance = random.Random(7)
    made = 0
    while made < count:
        lines = text.splitlines(keepends=True)
        for token in sorted(
            chance.sample(inside, chance.choice((1, 1, 2))), key=lambda t: t.start, reverse=True
        ):
            (row, start), (_, end) = token.start, token.end
            new = chance.choice(pool) if chance.random() < 0.8 else ""
            lines[row - 1] = lines[row - 1][:start] + new + lines[row - 1][end:]
        mutant = "".join(lines)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                compile(mutant, "cell", "exec")
            except SyntaxError:
                continue
        made += 1
        yield mutant


def check(kernel: Any, parameters: dict[str, int]) -> bool:
    """Whether the kernel traces; what it gives or says must be sound."""
    made: Function | TileError
    try:
        made = trace(kernel, parameters).function
    except TileError as error:
        made = error
    if isinstance(made, Function):
        assert parse_function(print_function(made).text, registry()) == made
        return True
    text = made.explain()
    assert not isinstance(made, (InternalError, IRError)), text
    assert made.place is not None, text
    assert made.place.file == "cell"
    assert "tilebench/" not in text
    return False


def test_every_slip_is_traced_or_refused_at_its_line() -> None:
    traced = refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in mutants(60):
            try:
                space = run_cell(text)
            except Exception:  # the cell itself fails as Python before any kernel is made
                continue
            for name, parameters in PARAMETERS.items():
                if callable(space.get(name)):
                    good = check(space[name], parameters)
                    traced, refused = traced + good, refused + (not good)
    assert traced > 100
    assert refused > 20


def test_the_kernels_themselves_are_traced() -> None:
    for name, parameters in PARAMETERS.items():
        assert trace(getattr(kernels, name), parameters).name == name
