"""What an engine hands back, whichever it was: joint draws of the stage rates and their moments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["IccPosterior", "StagePosterior"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StagePosterior:
    """Posterior of the rates of every stage and family."""

    engine: Literal["grid", "nuts"]
    """Which engine computed it."""
    stages: tuple[str, ...]
    """Stage names, S of them."""
    families: tuple[str, ...]
    """Family names, F of them."""
    m: Mapping[str, Floats]
    """Stage name to joint posterior draws of the families' rates, shape (draws, F). Rows of different stages
    are independent draws: the stages share no parameter."""
    mu: Mapping[str, Floats]
    """Stage name to posterior draws of the suite mean in logits, shape (draws,)."""
    tau: Mapping[str, Floats]
    """Stage name to posterior draws of the spread between families in logits, shape (draws,); all 0 with one
    family."""
    mean: Floats
    """Posterior means of the rates, shape (S, F); by quadrature from the grid, from the draws with NUTS."""
    cov: Floats
    """Posterior covariances of one stage's rates across families, shape (S, F, F); same origin."""
    error: Floats
    """Largest numerical error of mean or standard deviation, in posterior standard deviations, shape (S,):
    half against full resolution for the grid, Monte-Carlo standard error with NUTS."""

    @property
    def draws(self) -> int:
        """Number of joint draws."""
        return next(iter(self.m.values())).shape[0] if self.m else 0

    @property
    def sd(self) -> Floats:
        """Posterior standard deviations of the rates, shape (S, F)."""
        return np.sqrt(np.diagonal(self.cov, axis1=1, axis2=2))

    def pooled(self, weights: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of a weighted mean of the families' rates, per stage.

        Parameters
        ----------
        weights
            Shape (S, F), rows summing to 1.

        Returns
        -------
        tuple of ndarray
            Mean and standard deviation, each of shape (S,).
        """
        mean = np.sum(weights * self.mean, axis=1)
        variance = np.einsum("sf,sfg,sg->s", weights, self.cov, weights)
        return mean, np.sqrt(np.maximum(variance, 0.0))


@dataclass(frozen=True, slots=True)
class IccPosterior:
    """Posterior of the within-task correlation of one block."""

    name: str
    """Name of the block."""
    icc: Floats
    """Posterior draws, shape (draws,), between 0 and 1."""
    m: Floats
    """Joint draws of the families' task-averaged rates, shape (draws, F); for predictions only."""
    prior_sd: float
    """Standard deviation of the prior of icc."""
    mean: float
    """Posterior mean of icc."""
    posterior_sd: float
    """Posterior standard deviation of icc."""
    estimable: bool
    """Whether the data, not the prior, speak: at least ten tasks of at least two draws, and a posterior
    standard deviation of at most half the prior's."""
    reason: str
    """Why it is not estimable; empty where it is."""
