"""Tab on the line of `%%tile`: kernels, options, and the values that each takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tilebench.workbench.cell_words import Parameter, cell_words
from tilebench.workbench.completing import offers

CELL = """\
@tilebench.jit
def gemm(M, N, dtype="float16", block_M: tilebench.Knob(64, 128) = 128, threads=128, fast=False):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype)):
        with T.Kernel(4) as bx:
            A_s = T.alloc_shared((64, 32), dtype)
            C_l = T.alloc_fragment((64, 64), "float32")
            for ko in T.Pipelined(8, num_stages=2):
                for i in T.serial(4):
                    T.gemm(A_s, A_s, C_l)
            T.gemm(A_s[0:4, f(1, 2)], A_s, C_l, label="late")
            half a line (
"""


def words(before: str, cell: str = CELL, **others: Any) -> list[str]:
    return [offer.text for offer in offers(before, cell, others).words]


def test_the_names_of_a_cell_that_is_being_typed() -> None:
    found = cell_words(CELL)
    assert found.kernels == {
        "gemm": (
            Parameter("M"), Parameter("N"), Parameter("dtype", "'float16'"),
            Parameter("block_M", "128", ("64", "128")), Parameter("threads", "128"),
            Parameter("fast", "False"),
        )
    }  # fmt: skip
    assert (found.pipelined, found.serial, found.buffers) == (("ko",), ("i",), ("A_s",))
    assert found.products == ("C_l", "late")
    assert cell_words("@jit\ndef open(M, N").kernels == {"open": ()}
    assert cell_words("@tilebench.jit(out_idx=-1)\ndef add(A: T.Tensor, n=4):\n").kernels == {
        "add": (Parameter("n", "4"),)
    }


def test_kernels_and_options_come_first() -> None:
    assert words("%%tile ")[:2] == ["gemm", "--target"]
    assert words("%%tile ge") == ["gemm"]
    assert words("%%tile --s") == ["--sweep", "--stages", "--schedule"]
    # What stands twice is refused, but values may be given in several places.
    assert words("%%tile --run --with M=1 --check --") == [
        "--target",
        "--with",
        "--sweep",
        "--stages",
        "--schedule",
        "--against",
    ]
    assert words("%tile ", "", other=[Parameter("n")])[0] == "other"
    assert words("x = 1; %%tile ") == []


def test_names_and_values_of_parameters() -> None:
    assert words("%%tile --with ")[:3] == ["M=", "N=", "dtype="]
    assert words("%%tile --with M=4 ")[:2] == ["N=", "dtype="]
    assert words("%%tile --with M=4 N=1 --run --with ")[0] == "dtype="
    assert words("%%tile --with b") == ["block_M="]
    assert words("%%tile --with block_M=") == ["64", "128"]
    assert "bfloat16" in words("%%tile --with dtype=bf")
    assert words("%%tile --with fast=") == ["true", "false"]
    assert words("%%tile --with=thr") == ["threads="]
    assert words("%%tile other --with ", CELL, other=[Parameter("n")])[0] == "n="


def test_sweeps_of_parameters_and_of_the_schedule() -> None:
    names = words("%%tile --sweep ")
    assert names[:2] == ["dtype=", "block_M="]
    assert {"order=", "ko.num_stages=", "i.unroll=", "A_s.swizzle=", "C_l.policy=", "late.policy="} <= set(
        names
    )
    # A parameter of that name is what the sweep would mean.
    assert names.count("threads=") == 1
    assert "cluster=" in names
    assert words("%%tile --sweep block_M=") == ["64,128", "64", "128"]
    assert words("%%tile --sweep block_M=64,") == ["128"]
    assert words("%%tile --sweep ko.num_stages=1,") == ["0", "2", "3", "4"]
    assert words("%%tile --sweep A_s.swizzle=t") == ["true"]
    assert words("%%tile --sweep C_l.policy=full") == ["full_row", "full_col"]


def test_targets_and_stages() -> None:
    assert words("%%tile --target c")[0].startswith("c")
    assert "cuda:sm_90a" in words("%%tile --target cuda:sm_9")
    assert "cuda:sm_90a" in words("%%tile --target=cuda:sm_9")
    assert "sass" in words("%%tile --stages tile,s")
    assert words("%%tile --stages tile,ti") == []
    assert words("%%tile --target cpu --stages sa") == []
    assert "sass" in words("%%tile --target cuda:sm_80 --stages sa")


def test_schedule_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fast.toml").write_text("")
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "slow.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert words("%%tile --schedule ") == ["fast.toml", "more/"]
    assert words("%%tile --schedule more/s") == ["more/slow.toml"]
    assert words("%%tile --schedule nowhere/") == []


# -- in a shell
@pytest.fixture
def shell() -> Iterator[Any]:
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    made: Any = InteractiveShell.instance(config=config)
    made.run_cell("import tilebench, tilebench.language as T\n%load_ext tilebench")
    yield made
    made.run_line_magic("unload_ext", "tilebench")
    assert tab(made, "%%tile --") != ["--target"]
    InteractiveShell.clear_instance()


def tab(shell: Any, text: str, jedi: bool = True) -> list[str]:
    """What Tab at `|` (or the end) of a text gives, each as the word it would leave there."""
    from IPython.core.completer import provisionalcompleter

    at = text.index("|") if "|" in text else len(text)
    text = text.replace("|", "")
    shell.Completer.use_jedi = jedi
    with provisionalcompleter():
        found = list(shell.Completer.completions(text, at))
    start = max([*(k for k, letter in enumerate(text[:at]) if letter.isspace()), -1]) + 1
    return [text[start : each.start] + each.text for each in found]


@pytest.mark.parametrize("jedi", [True, False])
def test_tab_in_a_shell(shell: Any, jedi: bool) -> None:
    assert tab(shell, f"%%tile --tar|\n{CELL}", jedi) == ["--target"]
    assert tab(shell, f"%%tile --with M=4 N|=\n{CELL}", jedi) == ["N="]
    assert tab(shell, f"%%tile --target cuda:sm_90a|\n{CELL}", jedi) == ["cuda:sm_90a"]
    assert tab(shell, f"%%tile --sweep block_M=64,1|\n{CELL}", jedi) == ["block_M=64,128"]
    assert tab(shell, f"%%tile --stages tile,cu|\n{CELL}", jedi) == ["tile,cuda"]
    # The body is Python, and another magic's line is not ours.
    assert "T.copy" in [word.lstrip("(") for word in tab(shell, "%%tile\nT.cop|", jedi)]
    assert "--target" not in tab(shell, "%%time --|", jedi)


def test_tab_knows_kernels_of_other_cells(shell: Any) -> None:
    shell.run_cell("@tilebench.jit\ndef doubled(N, block=64):\n    return None\n")
    assert tab(shell, "%tile dou") == ["doubled"]
    assert tab(shell, "%tile doubled --with ")[:2] == ["N=", "block="]
    assert tab(shell, "%tile doubled --with block=") == ["block=64"]
