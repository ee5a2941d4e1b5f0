"""How a call in a kernel becomes a node: values, operands, conversions, and the builder they end in."""
