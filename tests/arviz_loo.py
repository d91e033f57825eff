"""Leave-one-out by ArviZ, of either generation, as the second opinion of the project's own."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from verdiv.estimators import stack
from verdiv.estimators.psis import PsisLoo

__all__ = ["arviz_loo", "arviz_tail"]

CHAINS = 4


def arviz_tail(draws: int) -> int:
    """Weights that ArviZ smooths: its first generation rounds the published length up, its second one down."""
    length = min(draws / 5, 3 * math.sqrt(draws))
    return math.ceil(length) if stack.arviz_generation() == 0 else math.floor(length)


def arviz_loo(log_likelihood: npt.NDArray[np.float64]) -> PsisLoo:
    """PSIS-LOO of log likelihoods of shape (draws, P), the draws taken as independent."""
    shaped = log_likelihood.reshape(CHAINS, -1, log_likelihood.shape[1])
    groups = {"posterior": {"total": shaped.sum(axis=-1)}, "log_likelihood": {"y": shaped}}
    with stack.quiet():
        found = stack.load("arviz").loo(stack.inference_data(groups), pointwise=True, var_name="y", reff=1.0)
    pointwise = found["loo_i"] if stack.arviz_generation() == 0 else found.elpd_i
    return PsisLoo(np.asarray(pointwise).ravel(), np.asarray(found.pareto_k).ravel())
