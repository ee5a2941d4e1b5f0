"""Tensor maps in a file that runs alone: encoded by the driver's own function, which the runtime finds."""

from __future__ import annotations

from collections.abc import Mapping

from ....ir import Function
from ....ir.sizes import Number
from ..tensor_maps import PROMOTION_256, encoding_of, tensor_maps

ENCODE = """
// What a card is told of an array of which boxes are copied: innermost dimension first, strides in bytes.
static tb_tensor_map described(void* array, int element, int rank, const unsigned long long* extents,
                               const unsigned long long* strides, const unsigned* box, int swizzle,
                               int level) {
  typedef int (*Encode)(void*, int, unsigned, void*, const unsigned long long*, const unsigned long long*,
                        const unsigned*, const unsigned*, int, int, int, int);
  void* found = nullptr;
  cudaDriverEntryPointQueryResult state;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &state));
  const unsigned every[5] = {1, 1, 1, 1, 1};
  tb_tensor_map map;
  int failed = -1;
  if (found != nullptr) {
    failed = ((Encode)found)(&map, element, rank, array, extents, strides, box, every, 0, swizzle, level, 0);
  }
  if (failed != 0) {
    std::fprintf(stderr, "no tensor map can describe this array: %d\\n", failed);
    std::exit(1);
  }
  return map;
}
"""


def maps_of_file(part: Function, number: int, values: Mapping[str, Number]) -> tuple[list[str], list[str]]:
    """The lines that describe the arrays of a launch, and what it is passed for them."""
    made: list[str] = []
    passed: list[str] = []
    for k, one in enumerate(tensor_maps(part)):
        told, name = encoding_of(one, values), f"map_{number}_{k}"
        lists = [
            f"const {kind} {name}_{what}[] = {{{', '.join(f'{n}{suffix}' for n in numbers or (0,))}}};"
            for what, kind, suffix, numbers in (
                ("extents", "unsigned long long", "ull", told.extents),
                ("strides", "unsigned long long", "ull", told.strides),
                ("box", "unsigned", "u", told.box),
            )
        ]
        made += [f"  {line}" for line in lists]
        rank, way = len(told.extents), f"{told.swizzle}, {PROMOTION_256}"
        made.append(
            f"  tb_tensor_map {name} = described({one.array.name}_device, {told.element}, {rank}, "
            f"{name}_extents, {name}_strides, {name}_box, {way});"
        )
        passed.append(f"&{name}")
    return made, passed
