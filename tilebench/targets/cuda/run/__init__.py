"""Running on a card through the driver API: devices, contexts, memory, launches, timing."""
