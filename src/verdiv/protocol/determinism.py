"""Whether a server's greedy decoding is deterministic, judged from a run's own redraws."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from verdiv.runlog.records import Draw

__all__ = ["GreedyDeterminism", "judge_determinism"]


@dataclass(frozen=True, slots=True)
class GreedyDeterminism:
    """Greedy draws of equal prompts, compared byte by byte with the first of them."""

    prompts: int
    """Prompts drawn at temperature 0 more than once."""
    redraws: int
    """Draws beyond the first of each such prompt."""
    differing: int
    """Redraws whose bytes differ from the first draw."""
    flips: int
    """Redraws whose outcome differs from the first draw's."""

    @property
    def share(self) -> float:
        """Differing share of the redraws; NaN where there is none."""
        return self.differing / self.redraws if self.redraws else float("nan")

    def __str__(self) -> str:
        """Say it in one sentence."""
        if not self.redraws:
            return "No greedy redraw was made, so that determinism cannot be judged."
        if not self.differing:
            return f"Greedy decoding was deterministic: {self.redraws} redraws byte-equal."
        return (
            f"Greedy decoding was not deterministic: {self.differing} of {self.redraws} redraws differ in their "
            f"bytes ({self.share:.1%}), {self.flips} in their outcome."
        )


def judge_determinism(draws: Iterable[Draw]) -> GreedyDeterminism:
    """Compare greedy draws of one prompt, tier, model, precision and condition with the first of them.

    "The Verifier's Dividend", assumption A4, takes byte-equal redraws for granted; servers that batch requests
    break it now and then.

    Parameters
    ----------
    draws
        Draws of a run in the order of its log; copies and failed draws are passed over.

    Returns
    -------
    GreedyDeterminism
        Counts; all 0 where no prompt was drawn twice at temperature 0.

    Examples
    --------
    >>> print(judge_determinism([]))
    No greedy redraw was made, so that determinism cannot be judged.
    """
    first: dict[tuple[object, ...], Draw] = {}
    again: set[tuple[object, ...]] = set()
    redraws = differing = flips = 0
    for draw in draws:
        greedy = draw.decoding is not None and draw.decoding.temperature == 0
        if not greedy or draw.copy_of is not None or draw.error is not None or draw.prompt_sha256 is None:
            continue
        key = (draw.prompt_sha256, draw.tier, draw.model, draw.precision, draw.condition)
        if key not in first:
            first[key] = draw
            continue
        again.add(key)
        redraws += 1
        differing += draw.output_sha256 != first[key].output_sha256
        flips += draw.correct is not first[key].correct
    return GreedyDeterminism(len(again), redraws, differing, flips)
