"""Extents, tests and conversions are worked out, and how loops are pipelined is planned."""
