"""SASS: text, line map through inlined helpers, control words, cache, background."""

from __future__ import annotations

import hashlib
import re

import pytest

from tests.waiting import costs_less_than
from tilebench.errors import TargetError
from tilebench.targets.cuda.compiler import sass
from tilebench.targets.cuda.compiler.nvrtc import Compiled
from tilebench.targets.cuda.compiler.sass import Sass, decode_control, disassemble, disassemble_later, parse

from .conftest import KERNEL, compiled


def _find(held: Sass, word: str) -> list[tuple[int, ...]]:
    return [held.lines[k] for k, line in enumerate(held.text.splitlines()) if re.search(word, line)]


@pytest.mark.parametrize("arch", ["sm_75", "sm_90a", "sm_120a"])
def test_instructions_lead_to_the_kernels_lines(arch: str) -> None:
    held = disassemble(compiled(arch).cubin)
    text = held.text.splitlines()
    assert len(text) == len(held.lines) == len(held.controls)
    assert set(_find(held, r"\bBAR\.SYNC")) == {(9,)}
    assert set(_find(held, r"\bSTS\b")) == {(8,)}
    # The reciprocal of the division is two helpers deep: kernel line, outer helper, inner helper.
    assert (10, 3, 1) in _find(held, r"\bMUFU\.RCP\b")
    kernel_lines = {*range(5, 13), *range(13, 16)}
    for line, lines in zip(text, held.lines, strict=True):
        if "/*" in line:
            assert lines, line
            assert lines[0] in kernel_lines, (line, lines)
    assert _find(held, r"\bEXIT\b")


def test_clean_text_has_headings_and_no_noise(hopper: Compiled) -> None:
    held = disassemble(hopper.cubin)
    text = held.text.splitlines()
    assert {"chain:", "second:"} <= set(text)
    assert not any(".section" in line or "//##" in line or ".text." in line for line in text)
    assert not text[-1].endswith("NOP;")
    assert all(re.fullmatch(r"|[.\w$]+:|    /\*[0-9a-f]{4}\*/ .*;", line) for line in text)
    branch = next(line for line in text if "BRA" in line)
    label = re.search(r"\((\.L_x_\d+)\)", branch)
    assert label is not None
    assert f"{label[1]}:" in text


def test_control_words(hopper: Compiled) -> None:
    held = disassemble(hopper.cubin)
    for line, control in zip(held.text.splitlines(), held.controls, strict=True):
        assert bool(control) == ("/*" in line)
        if control:
            assert re.fullmatch(r"B[-0-5]{6}:R[-0-5]:W[-0-5]:[-Y]:S\d\d", control)
    # A load from global memory sets a barrier for its data, and a later instruction waits for it.
    load = next(k for k, line in enumerate(held.text.splitlines()) if "LDG" in line)
    written = held.controls[load].split(":")[2][1]
    assert written != "-"
    assert any(written in each.split(":")[0] for each in held.controls[load + 1 :] if each)


def test_control_word_of_a_known_encoding() -> None:
    # EXIT of sm_75 waits for nothing and stalls 5 cycles: upper word 0x000fea0003800000.
    word = (0x000FEA0003800000 << 64 | 0x000000000000794D).to_bytes(16, "little")
    assert decode_control(word) == "B------:R-:W-:-:S05"


def test_same_cubin_is_disassembled_once_and_in_the_background(hopper: Compiled) -> None:
    first = disassemble_later(hopper.cubin)
    assert disassemble_later(hopper.cubin) is first
    assert isinstance(first.result(timeout=120), Sass)
    with costs_less_than(0.05):
        assert disassemble(hopper.cubin) is first.result()


def test_a_failure_is_told_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sass, "find_nvdisasm", lambda: None)
    with pytest.raises(TargetError) as caught:
        disassemble(b"\x7fELF of no kernel")
    assert 'pip install "tilebench-kernels[cuda]"' in str(caught.value)
    assert hashlib.sha256(b"\x7fELF of no kernel").hexdigest() not in sass._known


def test_bytes_that_are_no_cubin() -> None:
    with pytest.raises(TargetError) as caught:
        disassemble(b"nonsense {0}")
    assert "nvdisasm failed" in str(caught.value)
    assert "/tmp" not in str(caught.value)


def test_deep_inline_stack_in_nvdisasm_form() -> None:
    raw = (
        "\t.section\t.text.k\n"
        "k:\n.text.k:\n"
        '\t//## File "/kernel.cu", line 1 inlined at "/kernel.cu", line 3\n'
        '\t//## File "/kernel.cu", line 3 inlined at "/kernel.cu", line 10\n'
        '\t//## File "/kernel.cu", line 10\n'
        "        /*0000*/                   MUFU.RCP R0, R0 ;\n"
        ".L_x_0:\n"
        '\t//## File "/kernel.cu", line 11\n'
        "        /*0010*/                   EXIT ;\n"
        "        /*0020*/                   NOP;\n"
        ".L_x_1:\n"
    )
    held = parse(raw)
    assert held.text == "k:\n    /*0000*/ MUFU.RCP R0, R0;\n.L_x_0:\n    /*0010*/ EXIT;"
    assert held.lines == ((), (10, 3, 1), (), (11,))


def test_kernel_text_is_what_the_line_numbers_above_mean() -> None:
    lines = KERNEL.splitlines()
    assert lines[0].startswith("static __device__ __forceinline__ float tb_inner")
    assert "__syncthreads" in lines[8]
    assert "tb_outer" in lines[9]
