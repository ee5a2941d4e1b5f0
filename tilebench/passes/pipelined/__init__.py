"""The plan of loops becomes rings of tiles, with waits for what is in flight."""
