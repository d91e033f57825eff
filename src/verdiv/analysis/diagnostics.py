"""Diagnostics of the results document: what the sampler said, and the grid beside it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from verdiv.analysis.fit import Fit

__all__ = ["diagnostics_block"]


def diagnostics_block(fit: Fit) -> dict[str, Any]:
    """Collect what a reader needs to trust the fit, or to refuse it.

    Returns
    -------
    dict
        ``status`` is ``failed`` where the engine failed its own diagnostics; verdicts are void then.
    """
    found = asdict(fit.diagnostics)
    loo = [
        {
            "block": row["block"],
            "tasks": row["tasks"],
            "correlated": row["elpd_correlated"],
            "independent": row["elpd_independent"],
            "difference": row["difference"],
            "se": row["se"],
            "pareto_k_above_0.7": row["bad_k"],
            "preferred": row["preferred"],
        }
        for row in found.pop("loo")
    ]
    icc = [
        {
            "block": name,
            "mean": posterior.mean,
            "sd": posterior.posterior_sd,
            "prior_sd": posterior.prior_sd,
            "estimable": posterior.estimable,
            "reason": posterior.reason or None,
        }
        for name, posterior in fit.icc.items()
    ]
    error = float(fit.grid.error.max()) if len(fit.grid.error) else None
    if fit.beside is not None:
        found["warnings"] = [*found["warnings"], *(f"NUTS beside the grid: {r}" for r in fit.beside.reasons)]
    return {**found, "loo": loo, "icc": icc, "grid_error_in_sd": error, "engines": _engines(fit)}


def _engines(fit: Fit) -> dict[str, Any] | None:
    """Say how far the engines lie apart, where both ran."""
    if fit.gap is None:
        return None
    gap, judged = fit.gap, fit.beside or fit.diagnostics
    return {
        "compared": ["grid", "nuts"],
        "largest_mean_gap_in_sd": gap.mean,
        "stage": gap.stage,
        "family": gap.family,
        "largest_sd_gap": gap.sd,
        "largest_end_gap_in_sd": gap.end,
        "monte_carlo_error_in_sd": gap.monte_carlo,
        "r_hat_max": judged.r_hat_max,
        "ess_bulk_min": judged.ess_bulk_min,
        "divergences": judged.divergences,
    }
