"""How each tile statement becomes loops: a module a family."""
