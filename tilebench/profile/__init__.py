"""How measurements are made and read: the timing method, ceilings, roofline, environment."""
