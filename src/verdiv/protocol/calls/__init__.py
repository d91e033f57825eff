"""Tool calls as bytes: how a model's output is read, what its shape must be, and how a verdict reads."""
