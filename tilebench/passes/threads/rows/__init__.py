"""The lowerings of operations, a module each, found by being here: each has a value `LOWERINGS`."""
