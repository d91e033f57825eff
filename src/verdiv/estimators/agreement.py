"""How far two engines that computed the same posterior lie apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verdiv.estimators.posterior import StagePosterior

__all__ = ["EngineGap", "compare_engines"]

ENDS = (0.025, 0.975)
"""Quantiles compared as interval ends."""


@dataclass(frozen=True, slots=True)
class EngineGap:
    """Largest differences over all stages and families that draws reached, in units of the grid's posterior sd."""

    mean: float
    """Largest distance of posterior means."""
    sd: float
    """Largest distance of posterior standard deviations, as a share of the grid's."""
    end: float
    """Largest distance of the ends of 95 % intervals, both from draws."""
    stage: str
    """Stage of the largest distance of means."""
    family: str
    """Its family."""
    monte_carlo: float
    """Largest Monte-Carlo standard error of a sampled mean, which no distance can be expected to undercut."""


def compare_engines(
    grid: StagePosterior, sampled: StagePosterior, reached: npt.NDArray[np.bool_]
) -> EngineGap:
    """Compare the grid's posterior with a sampled one.

    Parameters
    ----------
    grid, sampled
        Posteriors of the same stages and families in the same order.
    reached
        Families that draws reached, shape (S, F); the others follow the hierarchy alone and are not compared.

    Returns
    -------
    EngineGap
        Zeros where nothing was reached.
    """
    if not reached.any():
        return EngineGap(0.0, 0.0, 0.0, "", "", 0.0)
    gap = np.where(reached, np.abs(sampled.mean - grid.mean) / grid.sd, 0.0)
    width = np.where(reached, np.abs(sampled.sd / grid.sd - 1.0), 0.0)
    ends = np.zeros_like(gap)
    for row, stage in enumerate(grid.stages):
        a, b = (np.quantile(p.m[stage], ENDS, axis=0) for p in (grid, sampled))
        ends[row] = np.where(reached[row], np.abs(a - b).max(axis=0) / grid.sd[row], 0.0)
    at, column = divmod(int(gap.argmax()), gap.shape[1])
    return EngineGap(
        mean=float(gap.max()),
        sd=float(width.max()),
        end=float(ends.max()),
        stage=grid.stages[at],
        family=grid.families[column],
        monte_carlo=float(np.max(sampled.error)),
    )
