"""The tabs of pictures: what they say of the quickstart's kernels, when they come, and what they weigh."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.waiting import LONG
from tests.workbench.bench_kernels import functions
from tilebench.plain import to_plain
from tilebench.workbench import live
from tilebench.workbench.front.answers import answer
from tilebench.workbench.front.block_data import Block
from tilebench.workbench.front.build import bench_state
from tilebench.workbench.front.picture_tabs import picture_blocks
from tilebench.workbench.packed import pack
from tilebench.workbench.parts import static_bundle

SIZES = {"M": 512, "N": 512, "K": 512}
# Threads fill and read every tile there.
TARGET = "cuda:sm_90"


def opened(name: str = "gemm", target: str = TARGET, **more: Any) -> Any:
    kernel: Any = functions()[name]
    return live.open_live(kernel, with_=more.pop("with_", SIZES), target=target, **more)


def blocks_of(bench: Any) -> dict[str, tuple[Block, ...]]:
    return picture_blocks(bench.session.picture.pictures)


def table_in(blocks: tuple[Block, ...], head: str) -> list[list[str]]:
    """The texts of the one table with that first head."""
    (found,) = [b.table for b in blocks if b.table is not None and b.table.heads[0] == head]
    return [[cell.text for cell in row] for row in found.rows]


def options(blocks: tuple[Block, ...]) -> list[str]:
    (choice,) = [block.choice for block in blocks if block.choice is not None]
    return [option.name for option in choice.options]


def test_the_tabs_stand_behind_the_resources() -> None:
    bench = opened()
    names = [tab.name for tab in bench_state(bench.session.picture, "tb1", "gemm", live=True).tabs]
    at = names.index("resources")
    assert names[at : at + 4] == ["resources", "layouts", "accesses", "memory"]


def test_a_live_bench_gets_long_blocks_apart_and_a_picture_has_them() -> None:
    picture = opened().session.picture
    sent = {tab.name: tab for tab in bench_state(picture, "tb1", "gemm", live=True).tabs}
    kept = {tab.name: tab for tab in bench_state(picture, "", "gemm").tabs}
    apart = picture_blocks(picture.pictures)
    assert [sent[name].blocks for name in ("layouts", "accesses", "memory")] == [(), (), ()]
    assert kept["memory"].blocks == apart["memory"]
    assert kept["resources"].blocks == (*sent["resources"].blocks, *apart["resources"])


def test_tiles_to_choose_from() -> None:
    names = options(blocks_of(opened())["layouts"])
    assert names[0].startswith("A_s \N{EN DASH} shared memory 64x32 float16, line ")
    assert any(name.startswith("mma m16n8k16: A \N{EN DASH} operand 16x16 float16") for name in names)
    assert len(set(names)) == len(names)


def test_a_swizzle_is_told_with_what_it_saves() -> None:
    layouts = blocks_of(opened())["layouts"]
    (choice,) = [block.choice for block in layouts if block.choice is not None]
    inner = choice.options[0].blocks
    assert inner[0].text.endswith("by XOR with the number of the 128 B that they lie in.")
    assert inner[1].drawing is not None
    rows = table_in(inner, "line")
    assert [row[2:] for row in rows] == [["512", "512", "512"], ["1024", "4096 (x4.0)", "1024"]]


def test_conversions_and_the_ways_to_global_memory_have_their_prices() -> None:
    layouts = blocks_of(opened())["layouts"]
    tables = {b.table.caption: b.table for b in layouts if b.table is not None}
    (change,) = tables["Where a fragment changes its layout"].rows
    assert [cell.text for cell in change][1:5] == [
        "C_local_narrow to C_local_as", "shuffles in a warp", "16 shuffles, 48 selections", "112",
    ]  # fmt: skip
    (way,) = tables["How global memory is reached"].rows
    assert way[1].text == "this copy reaches global memory in vectors that lanes have exchanged"
    assert way[2].text.startswith("as fragments lie ")
    assert "lanes exchange vectors" in way[2].text


def test_accesses_in_a_table_and_what_matters_first() -> None:
    accesses = blocks_of(opened())["accesses"]
    rows = table_in(accesses, "line")
    assert [row[3] for row in rows] == [
        "512 / 512", "2048 / 2048", "512 / 512", "2048 / 2048", "1024 / 1024", "1024 / 1024", "256 / 256"
    ]  # fmt: skip
    # What its swizzle saves most stands first: eight passes for each that is needed.
    assert "B_s read by ldmatrix" in options(accesses)[0]


def test_memory_says_how_many_stages_fit() -> None:
    memory = blocks_of(opened())["memory"]
    assert memory[0].text == "16 KiB of the 227 KiB that a block may have."
    assert (memory[1].text, memory[1].tone) == ("28 stages of 8 KiB fit, 2 are used.", "good")
    assert table_in(memory, "buffer")[0][:2] == ["A_s", "8192"]


def test_cards_are_told_with_waves_and_what_is_assumed() -> None:
    cards = blocks_of(opened())["resources"]
    assert options(cards)[0] == TARGET
    assert f"with the registers and shared memory of the code for {TARGET}" in cards[1].text
    own = table_in(cards, "card")[0]
    assert own[:2] == [TARGET, "132"]
    (choice,) = [block.choice for block in cards if block.choice is not None]
    assert choice.options[0].blocks[0].text.startswith("132 multiprocessors with ")


def test_values_of_sliders_are_tried_where_the_tab_is_open() -> None:
    bench = opened(sweep={"block_M": [64, 128], "num_stages": [2, 3, 40]})
    assert bench.session.picture.pictures.fits == ()
    answer(bench, {"kind": "look", "tab": "memory"})
    rows = table_in(blocks_of(bench)["memory"], "slider")
    assert rows[:2] == [["block_M", "64 (now)", "16 KiB", "yes", "28"], ["", "128", "24 KiB", "yes", "18"]]
    stages = [row[1:] for row in rows if row[0] == "num_stages" or row[1] in ("3", "40")]
    assert ["2 (now)", "16 KiB", "yes", "28"] in stages
    # More stages than the loop has turns are as many as it has.
    assert ["40", "128 KiB", "yes", "28"] in stages


def test_what_does_not_fit_is_said_with_its_bytes() -> None:
    bench = opened(with_={**SIZES, "K": 4096}, sweep={"block_M": [64, 128], "num_stages": [2, 40]})
    answer(bench, {"kind": "look", "tab": "memory"})
    assert ["", "40", "320 KiB", "no", "28"] in table_in(blocks_of(bench)["memory"], "slider")
    # And no value of it was compiled for it.
    assert bench.session.picture.problem is None


def test_another_tab_tries_nothing() -> None:
    bench = opened(sweep={"block_M": [64, 128]})
    answer(bench, {"kind": "look", "tab": "layouts"})
    assert bench.session.picture.pictures.fits == ()


def test_pictures_follow_a_move_and_stay_for_what_is_shown_again() -> None:
    bench = opened()
    before = bench.session.picture.pictures
    bench.set(stages=("tile", "threaded"))
    assert bench.session.picture.pictures is before
    bench.set(block_M=128)
    found = bench.session.picture.pictures
    assert [layout.extents for layout in found.layouts[:1]] == [(128, 32)]


def test_a_refused_position_leaves_the_pictures() -> None:
    bench = opened(with_={**SIZES, "K": 4096})
    before = bench.session.picture.pictures
    bench.set(num_stages=40)
    assert "shared memory" in bench.error.message
    assert bench.session.picture.pictures is before


def test_the_processor_has_none() -> None:
    bench = opened(target="cpu")
    assert blocks_of(bench) == {}
    names = [tab.name for tab in bench_state(bench.session.picture, "tb1", "gemm", live=True).tabs]
    assert "layouts" not in names


def test_a_fault_of_ours_is_said_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilebench.workbench import picturing

    def broken(*_: object) -> Any:
        raise KeyError("T.new_word")

    monkeypatch.setattr(picturing, "pictures_of", broken)
    bench = opened()
    assert bench.record is not None
    assert bench.record.resources is not None
    (said,) = blocks_of(bench)["layouts"]
    assert said.text.startswith("There are no pictures: KeyError: 'T.new_word'; this is a fault of tilebench")


def test_a_saved_picture_has_the_tables_without_scripts() -> None:
    html = static_bundle(opened().session.picture)["text/html"]
    for said in (
        "Accesses to memory",
        "28 stages of 8 KiB fit",
        "Where a fragment changes its layout",
        "cuda:sm_120a",
    ):
        assert said in html


def test_what_pictures_weigh() -> None:
    """What a move sends: the state does not grow by them, and they are small; so is the saved output."""
    picture = opened().session.picture
    with_, without = (
        len(json.dumps(to_plain(bench_state(one, "tb1", "gemm", live=True))))
        for one in (picture, replace(picture, pictures=None))
    )
    assert 0 < with_ - without < 400
    assert len(pack(to_plain(picture_blocks(picture.pictures)), 1)) < 12_000
    bundle = static_bundle(picture)
    assert sum(len(part if isinstance(part, str) else json.dumps(part)) for part in bundle.values()) < 120_000


def test_pictures_are_made_beside_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bench with controls has them once its work is done, and no thread is left over."""
    monkeypatch.setattr(live, "is_interactive", lambda: True)
    bench = opened()
    try:
        assert bench.wait(LONG)
        assert bench.session.picture.pictures.layouts
        assert [t.name for t in threading.enumerate() if t.name == "tilebench-pictures"] == []
    finally:
        bench.close()
