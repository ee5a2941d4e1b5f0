"""Functions of a kernel's own CUDA text with pointers, on a card: `python tests/device/check_pointers.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch

from tests.language import test_pointers as kernels


def run(function: Any, want: Any, **parameters: Any) -> None:
    kernel = function.using(target="cuda")(**parameters)
    for seed in range(3):
        arrays = kernels.given(kernel, seed)
        tensors = {name: torch.from_numpy(array.copy()).cuda() for name, array in arrays.items()}
        tensors["B"].fill_(float("nan"))
        kernel(*tensors.values())
        found = tensors["B"].cpu().numpy()
        np.testing.assert_array_equal(found, want(arrays["A"]))
    used = kernel.resources
    print(
        "ok",
        function.name,
        parameters,
        used.registers,
        "registers",
        used.local_bytes,
        "local bytes",
        flush=True,
    )


def tables() -> None:
    """Arrays of their own, by a table of addresses, beside torch."""
    from tests.language.test_addresses import scaled_groups

    for dtype in ("float16", "float32", "bfloat16"):
        kind = getattr(torch, dtype)
        sources = [torch.randn(100, 72, device="cuda").to(kind) for _ in range(3)]
        results = [torch.full((100, 80), float("nan"), device="cuda", dtype=kind) for _ in range(3)]
        a, b = (torch.tensor([x.data_ptr() for x in xs], device="cuda") for xs in (sources, results))
        by = torch.tensor([0.5, 2.0, -1.0], device="cuda")
        scaled_groups.using(target="cuda")(dtype=dtype)(a, b, by)
        for source, result, factor in zip(sources, results, by.tolist(), strict=True):
            assert torch.equal(result[:, :72], source * factor)
            assert result[:, 72:].isnan().all()
    print("ok tables of addresses", flush=True)


def main() -> None:
    print(torch.cuda.get_device_name())
    turned = lambda a: ((a * np.float32(2.5)).reshape(4, 64, 8)[:, ::-1] + 1).reshape(256, 8)  # noqa: E731
    run(kernels.of_threads, kernels._decoded)
    run(kernels.of_elements, kernels._decoded)
    run(kernels.in_place, turned, stages=0)
    run(kernels.in_place, turned, stages=3)
    run(kernels.of_the_block, lambda a: a[:, ::-1])
    tables()


if __name__ == "__main__":
    main()
