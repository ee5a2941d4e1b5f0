"""From `bounded` to `loops`: tiles in scratch memory, statements as loops over vectors."""
