"""The tile language: `import tilebench.language as T`.

A kernel says what is computed on which tile. Launch and loops: `Kernel`, `Parallel`, `Pipelined`,
`serial`, `unroll`, `vectorized`, `grid`. Tiles: `alloc_shared`, `alloc_fragment`, `alloc_local`,
`alloc_var`. Operations on them: `copy`, `fill`, `clear`, `gemm`, `reduce_sum`, `reduce_max`,
`reduce_min`, `cumsum`. Parts of a block: `threads`, `ws`, `get_thread_binding`. Sizes that a call
brings: `dynamic`. Functions of elements: `exp`, `max`, `if_then_else`, `cast` and more. Dtypes are names
here too (`T.float16`), and convert when called.
"""

from __future__ import annotations

from typing import Any as _Any

from . import addresses as _addresses
from . import bits as _bits
from . import clusters as _clusters
from . import copies_by_hand as _copies_by_hand
from . import extern as _extern
from . import float_functions as _float_functions
from . import further_functions as _further_functions
from . import hints as _hints
from . import macros as _macros
from . import magnitudes as _magnitudes
from . import mbarriers as _mbarriers
from . import persistent as _persistent
from . import pointers as _pointers
from . import printing as _printing
from . import products_by_hand as _products_by_hand
from . import promises as _promises
from . import random_numbers as _random_numbers
from . import reduce as _reduce
from . import reducers as _reducers
from . import registers as _registers
from . import spellings as _spellings
from . import thread_numbers as _thread_numbers
from . import thread_reduction as _thread_reduction
from . import thread_words as _thread_words
from . import tile_idioms as _tile_idioms
from . import vectors as _vectors
from . import views as _views
from . import wide_accesses as _wide_accesses
from .addresses import *
from .annotate_layouts import annotate_layout
from .annotations import PrimFunc, StridedTensor, Tensor, TensorSpec, prim_func
from .atomic import atomic_add, atomic_load, atomic_max, atomic_min, atomic_or, atomic_store
from .atomic_neighbours import atomic_addx2, atomic_addx4
from .bits import *
from .clusters import *
from .convolution import im2col
from .copies_by_hand import *
from .copy import clear, copy, fill
from .dynamic import dynamic, symbolic
from .eager import const, empty
from .elementwise import (
    abs,
    align_up,
    cast,
    ceil,
    ceildiv,
    clamp,
    cos,
    erf,
    exp,
    exp2,
    floor,
    floordiv,
    floormod,
    if_then_else,
    infinity,
    log,
    log2,
    max,
    max_value,
    min,
    min_value,
    pow,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    tanh,
)
from .extensions import function_of as _function_of
from .extern import *
from .float_functions import *
from .further_functions import *
from .gemm import GemmWarpPolicy, gemm
from .grid_barriers import sync_grid
from .groups import threads, ws
from .hints import *
from .knobs import Knob, knob
from .known import MissingWord as _MissingWord
from .known import explain_missing as _explain_missing
from .launch import Kernel, Parallel, Pipelined, grid, serial, unroll, use_swizzle, vectorized
from .layouts import ForwardFragment as Fragment
from .layouts import ForwardLayout as Layout
from .macros import *
from .magnitudes import *
from .mbarriers import *
from .memory import alloc_fragment, alloc_global, alloc_local, alloc_shared, alloc_var, swizzle
from .persistent import *
from .pointers import *
from .printing import *
from .products_by_hand import *
from .promises import *
from .random_numbers import *
from .reduce import *
from .reducers import *
from .registers import *
from .spellings import *
from .thread_numbers import *
from .thread_reduction import *
from .thread_words import *
from .tile_idioms import *
from .tracing.expressions import SHORT as _short
from .tracing.expressions import WORDS as _dtypes
from .tracing.taken import show_types as _show_types
from .vectors import *
from .vectors import vector_word as _vector_word
from .views import *
from .wide_accesses import *
from .words import registry

Serial, Unroll, Vectorized = serial, unroll, vectorized

float16, bfloat16, float32, float64 = (_dtypes[n] for n in ("float16", "bfloat16", "float32", "float64"))
float8_e4m3fn, float8_e5m2 = _dtypes["float8_e4m3fn"], _dtypes["float8_e5m2"]
float4_e2m1fn, int4, uint4 = _dtypes["float4_e2m1fn"], _dtypes["int4"], _dtypes["uint4"]
int8, int16, int32, int64 = (_dtypes[n] for n in ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = (_dtypes[n] for n in ("uint8", "uint16", "uint32", "uint64"))
bool = _dtypes["bool"]
float, half, int = _short["float"], _short["half"], _short["int"]

__all__ = [
    "Fragment",
    "GemmWarpPolicy",
    "Kernel",
    "Knob",
    "Layout",
    "Parallel",
    "Pipelined",
    "PrimFunc",
    "Serial",
    "StridedTensor",
    "Tensor",
    "TensorSpec",
    "Unroll",
    "Vectorized",
    "abs",
    "align_up",
    "alloc_fragment",
    "alloc_global",
    "alloc_local",
    "alloc_shared",
    "alloc_var",
    "annotate_layout",
    "atomic_add",
    "atomic_addx2",
    "atomic_addx4",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_store",
    "bfloat16",
    "bool",
    "cast",
    "ceil",
    "ceildiv",
    "clamp",
    "clear",
    "const",
    "copy",
    "cos",
    "dynamic",
    "empty",
    "erf",
    "exp",
    "exp2",
    "fill",
    "float",
    "float4_e2m1fn",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "floor",
    "floordiv",
    "floormod",
    "gemm",
    "grid",
    "half",
    "if_then_else",
    "im2col",
    "infinity",
    "int",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "knob",
    "log",
    "log2",
    "max",
    "max_value",
    "min",
    "min_value",
    "pow",
    "prim_func",
    "registry",
    "rsqrt",
    "serial",
    "sigmoid",
    "sin",
    "sqrt",
    "swizzle",
    "symbolic",
    "sync_grid",
    "tanh",
    "threads",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unroll",
    "use_swizzle",
    "vectorized",
    "ws",
]  # fmt: skip
# What a family exports is said by the family.
__all__ += _reduce.__all__
__all__ += _extern.__all__
__all__ += _pointers.__all__
__all__ += _hints.__all__
__all__ += _promises.__all__
__all__ += _random_numbers.__all__
__all__ += _reducers.__all__
__all__ += _registers.__all__
__all__ += _magnitudes.__all__
__all__ += _mbarriers.__all__
__all__ += _macros.__all__
__all__ += _printing.__all__
__all__ += _products_by_hand.__all__
__all__ += _bits.__all__
__all__ += _clusters.__all__
__all__ += _copies_by_hand.__all__
__all__ += _addresses.__all__
__all__ += _views.__all__
__all__ += _vectors.__all__
__all__ += _wide_accesses.__all__
__all__ += _tile_idioms.__all__
__all__ += _float_functions.__all__
__all__ += _further_functions.__all__
__all__ += _persistent.__all__
__all__ += _spellings.__all__
__all__ += _thread_numbers.__all__
__all__ += _thread_words.__all__
__all__ += _thread_reduction.__all__
# All words by name, for those who look one up.
NAMES: list[str] = [name for name in dir() if name in __all__]


def __getattr__(name: str) -> _Any:
    if name in _float_functions.FAST:
        return _float_functions.FAST[name]
    if name.startswith("__"):
        raise AttributeError(name)
    vector = _vector_word(name)
    if vector is not None:
        return vector
    added = _function_of(name)
    if added is not None:
        return added
    what, hint = _explain_missing(name, __all__)
    raise _MissingWord(what, hint=hint)


def __dir__() -> list[str]:
    """What `T.<Tab>` offers: the words, and not the modules that they live in."""
    return [name for name in NAMES if name not in ("PrimFunc", "TensorSpec", "registry")]


_show_types(globals()[name] for name in NAMES)
