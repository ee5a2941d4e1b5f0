"""What passes write and no kernel does: values that hold a decision, and the words of one thread."""
