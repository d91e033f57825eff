"""Seeds that a runner derives from the registered one, draw by draw."""

from __future__ import annotations

from verdiv.protocol.runner.design import draw_seed

__all__ = ["derived_seed"]


def derived_seed(seed: int, arm: str, task_id: str, attempt: int) -> tuple[int, ...]:
    """Return the seeds that stand for a registered one at a draw."""
    value = draw_seed(seed, arm, task_id, attempt)
    return () if value is None else (value,)
