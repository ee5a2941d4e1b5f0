"""From `loops` to LLVM."""
