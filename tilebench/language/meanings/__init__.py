"""What the language means in NumPy, with error bounds: elements and tiles. The oracle of every test."""
