"""A fit as price parameters: posterior means, draws with the fit's spread, and its own frontier.

A results document keeps mean and standard deviation of every rate, not its draws. The stages of the model share
no parameter, so independent draws of the stage rates (q0, δ, σ, s1, s2, λ1, λ2, fpr, q_T, δ_T) are taken, each
from the Beta distribution with the fit's mean and standard deviation, and composed; p_d = (1 − q0)δ follows.
Rows that the fit itself priced keep the fit's own bands beside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from verdiv.errors import Fault, InputRefused
from verdiv.pricing.parameters import Parameters
from verdiv.pricing.series import Array

__all__ = ["FIT_DRAWS", "FitParameters", "read_fit"]

FIT_DRAWS = 4000
"""Draws composed from a fit."""


@dataclass(frozen=True, slots=True)
class FitParameters:
    """What a fit says about prices."""

    point: Parameters
    draws: Mapping[str, Array]
    sampled: Mapping[str, Array]
    """q0 and p_d of stochastic decoding, where A3 is greedy."""
    cost_small_usd: float | None
    stored: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]


def _band(estimates: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    """Give mean and standard deviation of an estimate: the model's, else the direct one."""
    found = estimates.get(name) or {}
    if found.get("status") != "estimated":
        return None
    side = found.get("model") or found.get("direct") or found
    mean, sd = side.get("mean"), side.get("sd")
    return None if mean is None or sd is None else (float(mean), float(sd))


def beta_draws(mean: float, sd: float, rng: np.random.Generator, size: int) -> Array:
    """Draw from the Beta distribution with a mean and a standard deviation.

    A spread as wide as m(1 − m) allows, or none at all, has no Beta density: the first is drawn as wide as
    κ = 0.01 gives, the second is constant.

    Examples
    --------
    >>> bool(abs(beta_draws(0.8, 0.05, np.random.default_rng(1), 100_000).std() - 0.05) < 0.001)
    True
    """
    m = min(max(mean, 0.0), 1.0)
    if sd <= 0 or m in (0.0, 1.0):
        return np.full(size, m)
    kappa = max(m * (1.0 - m) / sd**2 - 1.0, 0.01)
    return rng.beta(m * kappa, (1.0 - m) * kappa, size=size)


def read_fit(path: Path, base: Parameters, *, seed: int) -> FitParameters:
    """Read a fit.

    Parameters
    ----------
    path
        Output folder of ``verdiv analyze``, or its results.json.
    base
        Fills what the fit could not estimate; every such parameter is named in the notes.
    seed
        Seed of the draws.

    Raises
    ------
    InputRefused
        An unreadable document, or one whose fit failed.
    """
    from verdiv.reports.schema import load_document

    source = path / "results.json" if path.is_dir() else path
    document = load_document(source)
    estimates = document.get("estimates") or {}
    if (document.get("diagnostics") or {}).get("status") == "failed":
        fault = Fault(str(source), "a fit that passed its diagnostics", "a failed one", "fit again, longer")
        raise InputRefused("This fit is no ground for prices.", [fault])
    rng = np.random.default_rng(seed)
    draws: dict[str, Array] = {}
    notes = [
        f"Parameters from {source}: independent Beta draws with the fit's means and standard deviations."
    ]
    missing = []

    def take(name: str, estimate: str) -> bool:
        found = _band(estimates, estimate)
        if found is not None:
            draws[name] = beta_draws(*found, rng, FIT_DRAWS)
        return found is not None

    greedy = _greedy(estimates)
    if not take("q0", "q0_greedy" if greedy else "q0"):
        fault = Fault(str(source), "an estimated q0", "not estimable", "analyse a log with initial draws")
        raise InputRefused("This fit has no first-draw success to price from.", [fault])
    truth = document.get("gate") == "truth"
    if truth:
        delta: Array | None = np.ones(FIT_DRAWS)
        notes.append("The log's gate was the truth: every wrong draw counts as flagged (delta = 1).")
    else:
        delta = draws.pop("delta") if take("delta", "delta") else None
    if delta is None:
        missing.append("p_d")
        point_delta = 0.0 if base.q0 >= 1 else base.p_d / (1.0 - base.q0)
        delta = np.full(FIT_DRAWS, point_delta)
    draws["p_d"] = (1.0 - draws["q0"]) * delta
    unclassified = _band(estimates, "sigma") is None and _band(estimates, "s2") is not None
    if unclassified:
        draws["sigma"] = np.zeros(FIT_DRAWS)
        notes.append("Errors are unclassified: all are priced as semantic (sigma = 0), with their common s2.")
    for name, estimate in (("sigma", "sigma"), ("s1", "s1"), ("s2", "s2"), ("eta_ox", "eta_ox")):
        if not (name == "sigma" and unclassified) and not take(name, estimate):
            missing.append(name)
    draws.setdefault("s2", np.full(FIT_DRAWS, base.s2))
    for name in () if truth else ("lambda1", "lambda2", "fpr"):
        take(name, name)
    if take("q_T", "q_t"):
        rate = _band(estimates, "delta_t")
        if rate is not None:
            draws["p_dT"] = (1.0 - draws["q_T"]) * beta_draws(*rate, rng, FIT_DRAWS)
        else:
            draws["p_dT"] = np.zeros(FIT_DRAWS)
            notes.append("The teacher's detection is not estimable: A5 is priced without a flag (p_dT = 0).")
    else:
        missing.append("q_T")
    if missing:
        notes.append(
            "Not estimable in this fit, taken from the parameters given: " + ", ".join(missing) + "."
        )
    sampled: dict[str, Array] = {}
    apart = _band(estimates, "q0")
    if greedy and apart is not None:
        sampled["q0"] = beta_draws(*apart, rng, FIT_DRAWS)
        sampled["p_d"] = (1.0 - sampled["q0"]) * delta
        notes.append("A1 and A2s are priced from stochastic first draws, the other arms from greedy ones.")
    card = ((document.get("preregistration") or {}).get("plan") or {}).get("rate_card") or {}
    return FitParameters(
        point=_point(base, draws, card),
        draws=draws,
        sampled=sampled,
        cost_small_usd=card.get("cost_small_usd"),
        stored=tuple(document.get("frontier") or ()),
        notes=tuple(notes),
    )


def _greedy(estimates: Mapping[str, Any]) -> bool:
    """Tell whether A3 decodes greedily: whose first draws the fit's p_d belongs to."""
    cold, warm = _band(estimates, "q0_greedy"), _band(estimates, "q0")
    if cold is None or warm is None:
        return cold is not None
    mass, silent = _band(estimates, "p_d"), _band(estimates, "p_s")
    if mass is None or silent is None:
        return True
    own = 1.0 - mass[0] - silent[0]
    return abs(own - cold[0]) <= abs(own - warm[0])


def _point(base: Parameters, draws: Mapping[str, Array], card: Mapping[str, Any]) -> Parameters:
    """Give the posterior means as a point, with the registered price of a teacher draw."""
    means: dict[str, object] = {name: float(value.mean()) for name, value in draws.items()}
    if card.get("rho") is not None:
        means["rho"] = float(card["rho"])
    return Parameters.from_mapping(means, where="the fit", base=base.with_(p_dT=0.0, q_T=base.q_T))
