"""Conflicts in banks of shared memory, counted here and on a card: `python tests/device/check_banks.py`.

A row a layout and access: the wavefronts that `layout.bank_conflicts` counts, the fewest possible, and the
card's own by `ncu` (the passes of its load-store pipe over shared memory, and what it calls conflicts). Exits
non-zero where the two counts of passes differ. Asynchronous copies are in none of the card's counters.
Needs CuPy and `ncu`; `--launch` is what runs under it.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from tilebench.layout import SharedLayout, bank_conflicts
from tilebench.layout.choose import AccessPattern, best_swizzle

ROWS = 64
# Elements a row and bits of each: powers of two, and those of heads that are none.
TILES = ((64, 16), (32, 16), (128, 16), (96, 16), (80, 16), (40, 16), (72, 16), (32, 32), (48, 32), (96, 8))
PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
METRICS = tuple(f"{name}_op_{way}.sum" for name in (PASSES, CONFLICTS) for way in ("ld", "st"))
LOADS = """
extern "C" __global__ void {name}(const int* offset, int count, const int4* from, int* out) {{
    extern __shared__ __align__(128) char shared[];
    unsigned base = (unsigned)__cvta_generic_to_shared(shared);
    int sum = 0;
    for (int k = 0; k < count; ++k) {{
        int own = offset[k * 32 + threadIdx.x], a = 1, b = 2, c = 3, d = 4;
        if (own >= 0) {{ asm volatile({text}); }}
        sum ^= a ^ b ^ c ^ d;
    }}
    {end}
    out[threadIdx.x] = sum;
}}
"""
REGISTERS = '"{ptx}" : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "r"(base + own), "l"(from) : "memory"'
ACCESSES = {
    "ld2": "{{.reg .u16 h; ld.shared.u16 h, [%4]; cvt.u32.u16 %0, h;}}",
    "ld4": "ld.shared.u32 %0, [%4];",
    "ld8": "ld.shared.v2.u32 {{%0, %1}}, [%4];",
    "ld16": "ld.shared.v4.u32 {{%0, %1, %2, %3}}, [%4];",
    "st2": "{{.reg .u16 h; cvt.u16.u32 h, %0; st.shared.u16 [%4], h;}}",
    "st4": "st.shared.u32 [%4], %0;",
    "st8": "st.shared.v2.u32 [%4], {{%0, %1}};",
    "st16": "st.shared.v4.u32 [%4], {{%0, %1, %2, %3}};",
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%0, %1, %2, %3}}, [%4];",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%4], {{%0, %1, %2, %3}};",
    "cp.async": "cp.async.cg.shared.global [%4], [%5], 16;",
}


def source() -> str:
    """A kernel of one warp for each kind of access, which takes each lane's place from a table."""
    texts: list[str] = []
    for name, ptx in ACCESSES.items():
        end = 'asm volatile("cp.async.wait_all;");' if name == "cp.async" else ""
        text = REGISTERS.format(ptx=ptx.replace("{{", "{").replace("}}", "}"))
        texts.append(LOADS.format(name=name.replace(".", "_"), text=text, end=end))
    return "\n".join(texts)


def accesses(columns: int, bits: int) -> dict[str, tuple[str, AccessPattern]]:
    """What is done to a tile: the instruction, and each lane's first element, a row an instruction."""
    vector = 128 // bits
    lane, turn = np.arange(32)[None, :], np.arange(8)[:, None]
    units = columns // vector
    number = (turn * 32 + lane) % (ROWS * units)
    along = (number // units, number % units * vector)
    matrix = (turn % 2 * 32 + lane, turn // 2 % units * vector + 0 * lane)
    wide = (turn * 4 + lane // 8, lane % 8 * vector % columns)
    down = (lane + turn * 0, turn + 0 * lane)
    quad = (turn * 8 % ROWS + lane // 4, lane % 4 * 2 + turn * 0)
    both = ("ldmatrix", "stmatrix") if bits == 16 else ("ld16", "st16")
    # Of bytes four at a time: nothing is narrower than a bank.
    one = max(1, 16 // bits) if bits > 8 else 4
    two = 2 if bits > 8 else 4
    return {
        "vectors of 8 rows": (both[0], AccessPattern(matrix, vector)),
        "the same, stored": (both[1], AccessPattern(matrix, vector)),
        "rows, asynchronous": ("cp.async", AccessPattern(along, vector)),
        "rows, stored": ("st16", AccessPattern(along, vector)),
        "rows, loaded": ("ld16", AccessPattern(wide, vector)),
        "a column of elements": (f"ld{one * bits // 8}", AccessPattern(down, one)),
        "pairs of a quad": (f"st{two * bits // 8}", AccessPattern(quad, two)),
    }  # fmt: skip


def cases() -> list[tuple[str, str, str, np.ndarray, int]]:
    """Each launch: the tile, its layout, the access, byte addresses (instructions, lanes) and their width."""
    found: list[tuple[str, str, str, np.ndarray, int]] = []
    for columns, bits in TILES:
        shape = (ROWS, columns)
        used = accesses(columns, bits)
        chosen = best_swizzle(shape, bits, 16, [p for _, p in used.values()][:5], 32, 4).layout
        for layout in dict.fromkeys([SharedLayout.rows(shape), chosen]):
            for what, (word, pattern) in used.items():
                place = np.asarray(layout.offset(pattern.index)) * bits // 8
                width = pattern.elements * bits // 8
                title = f"{ROWS}x{columns} of {bits} bits"
                found.append((title, _name(layout), f"{what} ({word})", place - place % width, width))
    return found


def _name(layout: SharedLayout) -> str:
    return repr(layout).removeprefix("T.SharedLayout").replace("T.Swizzle", "")


def launch() -> None:
    """All cases on the card, in order."""
    import cupy as cp

    module: Any = cp.RawModule(code=source(), options=("-std=c++17",))
    out, block = cp.zeros(32, np.int32), cp.zeros(16, np.int32)
    for *_, what, places, _ in cases():
        word = what.rpartition("(")[2].rstrip(")").replace(".", "_")
        function = module.get_function(word)
        function.max_dynamic_shared_size_bytes = 64 << 10
        table = cp.asarray(np.ascontiguousarray(places, np.int32))
        args = (table, np.int32(len(places)), block, out)
        function((1,), (32,), args, shared_mem=64 << 10)
    cp.cuda.Device().synchronize()


def counted() -> list[dict[str, float]]:
    """The card's counters of each launch, in order."""
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(METRICS)]
    # Filling arrays launches nothing of ours: only kernels of the module are counted.
    names = "|".join(name.replace(".", "_") for name in ACCESSES)
    command += ["-k", f"regex:^({names})$", sys.executable, __file__, "--launch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if not lines:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    head, _, *rows = csv.reader(lines)
    return [{key: _number(value) for key, value in zip(head, row, strict=True)} for row in rows]


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return float("nan")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launch", action="store_true")
    if parser.parse_args().launch:
        launch()
        return 0
    counts, wrong, tile = counted(), 0, ""
    all_cases = cases()
    print(f"{len(counts)} accesses; of each the wavefronts: ours, the ideal, the card's")
    for (title, layout, what, places, width), card in zip(all_cases, counts, strict=True):
        if (title, layout) != tile:
            tile = title, layout
            print(f"{title}, {layout}")
        ours = bank_conflicts(places, width, 32, 4)
        passes, extra = (int(card[METRICS[k]] + card[METRICS[k + 1]]) for k in (0, 2))
        counted_there = "cp.async" not in what
        differs = counted_there and ours.total != passes
        wrong += differs
        said = f"{passes}, conflicts by ncu {extra}" if counted_there else "not counted"
        print(f"  {what}: {ours.total} {int(ours.ideal.sum())} {said}{' DIFFERS' if differs else ''}")
    print(f"{wrong} of {len(counts)} differ")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
