"""Tasks with exact ground truth: three families, a seeded generator, and the interface for one's own."""
