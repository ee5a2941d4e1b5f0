"""What a target is, as plain data. No room but `targets/` compares a target's name: ask these."""

from .types import SM, InstructionEntry, Machine, MemoryLevel, Occupancy

__all__ = ["SM", "InstructionEntry", "Machine", "MemoryLevel", "Occupancy"]
