"""The matrix product in registers: packing, and the register-blocked kernel."""
