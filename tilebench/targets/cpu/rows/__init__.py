"""Passes over `loops` that keep rows near the processor: joined, shortened, overlapped."""
