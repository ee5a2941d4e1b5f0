"""What a target is, as plain data. No room but `targets/` compares a target's name: ask these."""

from .instruction import WHOLE_BLOCK, Boxes, Instruction, MatrixLoad, OperandForm
from .types import SM, Machine, MemoryLevel, Occupancy

__all__ = [
    "SM",
    "WHOLE_BLOCK",
    "Boxes",
    "Instruction",
    "Machine",
    "MatrixLoad",
    "MemoryLevel",
    "Occupancy",
    "OperandForm",
]
