"""Benchmarks: what verdiv costs as a run grows, beside programs that answer a part of the same question."""
