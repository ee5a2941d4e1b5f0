"""What a target is, as plain data. No room but `targets/` compares a target's name: ask these."""

from .instruction import WHOLE_BLOCK, Boxes, Instruction, MatrixLoad, OperandForm
from .types import SM, VECTOR_ADDS, Machine, MemoryLevel, Occupancy

__all__ = [
    "SM",
    "VECTOR_ADDS",
    "WHOLE_BLOCK",
    "Boxes",
    "Instruction",
    "Machine",
    "MatrixLoad",
    "MemoryLevel",
    "Occupancy",
    "OperandForm",
]
