"""Diagnostics of the results document: what the sampler said, and the grid beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from verdiv.analysis.fit import Fit
from verdiv.analysis.gather import Gathered

__all__ = ["diagnostics_block"]


def _pooled(fit: Fit, gathered: Gathered) -> tuple[Any, Any, Any, Any]:
    """Mean and sd of each stage's weighted rate, by the engine and by the grid."""
    seen = fit.summary.N > 0
    weights = np.where(seen, gathered.weights[None, :], 0.0)
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    mean, sd = fit.posterior.pooled(weights)
    grid_mean, grid_sd = fit.grid.pooled(weights)
    return mean, sd, grid_mean, grid_sd


def diagnostics_block(fit: Fit, gathered: Gathered) -> dict[str, Any]:
    """Collect what a reader needs to trust the fit, or to refuse it.

    Returns
    -------
    dict
        ``status`` is ``failed`` where the engine failed its own diagnostics; verdicts are void then.
    """
    mean, sd, grid_mean, grid_sd = _pooled(fit, gathered)
    summary = fit.summary
    stages: list[dict[str, Any]] = [
        {
            "stage": stage,
            "family_count": int((summary.N[s] > 0).sum()),
            "N": float(summary.N[s].sum()),
            "K": float(summary.K[s].sum()),
            "deff": float(summary.deff[s]),
            "mean": float(mean[s]),
            "sd": float(sd[s]),
            "grid_mean": float(grid_mean[s]),
            "grid_sd": float(grid_sd[s]),
            "r_hat": None,
            "ess_bulk": None,
            "ess_tail": None,
        }
        for s, stage in enumerate(summary.stages)
    ]
    block: dict[str, Any] = {
        "engine": fit.engine,
        "status": "passed",
        "reasons": [],
        "r_hat_max": None,
        "ess_bulk_min": None,
        "ess_tail_min": None,
        "divergences": None,
        "grid_error_in_sd": float(fit.grid.error.max()) if len(fit.grid.error) else None,
        "stages": stages,
        "icc": [
            {
                "block": name,
                "mean": icc.mean,
                "sd": icc.posterior_sd,
                "prior_sd": icc.prior_sd,
                "estimable": icc.estimable,
                "reason": icc.reason or None,
            }
            for name, icc in fit.icc.items()
        ],
        "predictive": [],
        "prior_sensitivity": [],
        "loo": [],
    }
    return block
