"""Step 2: the accelerator's language, C11 with names of threads and blocks in front.

A `Dialect` is a table of spellings; statements, expressions, conversions and line numbers come from
`tilebench.targets.clike`. A function without a row here is refused at the user's line.
"""

from __future__ import annotations

from tilebench.targets.clike.dialect import Dialect
from tilebench.targets.clike.functions import STRUCTURAL, called, sigmoid

from .machine import SHARED_BYTES
from .prelude import PRELUDE

TYPES = {
    "float64": "double", "float32": "float", "int8": "signed char", "int16": "short", "int32": "int",
    "int64": "long long", "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned",
    "uint64": "unsigned long long", "bool": "bool",
}  # fmt: skip
FLOATS = ("float32", "float64")
# Numbers that an exchange between the threads of a warp carries.
EXCHANGED = (*FLOATS, "int32", "int64", "uint32", "uint64")
# <tgmath.h> picks the function for the argument's type.
MATH = ("exp", "exp2", "log", "log2", "sqrt", "tanh", "floor", "ceil", "erf", "sin", "cos", "pow")

TOY_C = Dialect(
    language="toy C",
    types=TYPES,
    kernel="tb_kernel void {entry}({params}) {{",
    parameter="{const}{type}* restrict {name}",
    thread="tb_thread",
    blocks=("tb_block[0]", "tb_block[1]", "tb_block[2]"),
    shared_block=f"static _Alignas(1024) unsigned char tb_shared[{SHARED_BYTES}];",
    shared="{type}* const {name} = ({type}*)(tb_shared + {offset});",
    registers="_Alignas(16) {type} {name}[{size}];",
    functions={
        **STRUCTURAL,
        **{word: called(f"{word}({{args}})", FLOATS) for word in MATH},
        "sigmoid": sigmoid("exp"),
        "abs": called("fabs({args})", FLOATS),
        "min": called("tb_min_{dtype}({args})"),
        "max": called("tb_max_{dtype}({args})"),
        "clamp": called("tb_clamp_{dtype}({args})", FLOATS),
        "toy_ramp": called("tb_ramp({args})", ("float32",)),
        "shfl_xor": called("tb_shfl_xor_{dtype}({args})", EXCHANGED),
        "shfl_down": called("tb_shfl_down_{dtype}({args})", EXCHANGED),
    },
    prelude=PRELUDE,
    floor_division="tb_{word}_{dtype}({a}, {b})",
    special="tb_{word}_{suffix}()",
    # C leaves open what a float outside an integer's range becomes; the accelerator stops at its ends.
    to_integer="tb_to_{dtype}({value})",
    narrow_integer="tb_to_{dtype}({value})",
    reserved=frozenset({"INFINITY", "NAN", "NULL", "I", "restrict"}),
)
