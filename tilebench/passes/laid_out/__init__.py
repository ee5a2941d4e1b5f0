"""Every tile gets a layout, every loop a mapping, every operation an instruction."""
