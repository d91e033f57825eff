"""The model column: stage rates of the families, composed to estimands, arms and break-even.

Per posterior draw and family the stage rates multiply to masses; masses are mixed with the family weights π, and every
rate is a ratio of masses (*The Verifier's Dividend*, A1 to A3). Averaging the rates themselves would be another
quantity, since hard families reach the later stages more often.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from verdiv.estimators.observations import FloatArray
from verdiv.estimators.posterior import IccPosterior
from verdiv.estimators.tally import Tally
from verdiv.pricing.breakeven import break_even, measured_dividend, regime
from verdiv.pricing.closed import Price, majority, teacher
from verdiv.pricing.correlated import blind_exchangeable, majority_correlated, sticky_ratio_exchangeable
from verdiv.pricing.general import (
    blind_general,
    blind_greedy_general,
    feedback_general,
    teacher_gated_general,
)

__all__ = ["MODEL_STAGES", "Composition", "ModelPoint", "compose"]

MODEL_STAGES = (
    "q", "q_greedy", "delta", "sigma", "eta_ox", "fpr", "s1", "s2", "lambda1", "lambda2", "answered_structural",
    "s_false", "s_blind", "b1", "b2", "q_T", "delta_T", "fpr_initial", "s_blind_exchangeable",
)  # fmt: skip
"""Stages of the hierarchical model, in the order in which a run passes them."""


@dataclass(frozen=True)
class ModelPoint:
    """One arm at one budget, as the model prices it; arrays of shape ``(draws,)``."""

    quality: FloatArray
    bill: FloatArray
    form: str
    """Which closed form it was."""


@dataclass(frozen=True)
class Composition:
    """Everything that follows from the stage rates."""

    estimates: Mapping[str, FloatArray]
    """Estimate id to posterior draws, shape ``(draws,)``."""
    by_family: Mapping[str, FloatArray]
    """Estimate id to draws per family, shape ``(draws, families)``."""
    frontier: Mapping[tuple[str, int], ModelPoint]
    break_even: FloatArray | None
    """B* per draw, 0 for "none by B_max"; None without A3 and A4."""
    regime: FloatArray | None
    """Index of the regime per draw; None without A3 and A4."""


class _Rates:
    """Stage rates with the stand-ins that the gate demands."""

    def __init__(self, m: Mapping[str, FloatArray], tally: Tally, weights: FloatArray) -> None:
        self.m = m
        self.tally = tally
        self.pi = weights[None, :]
        self.draws = len(next(iter(m.values()))) if m else 0
        self.shape = (self.draws, len(weights))
        own = "q_greedy" if tally.repair_decoding == "greedy" else "q"
        self.own = own if own in m else ("q" if "q" in m else own)

    def get(self, stage: str, default: float | None = None) -> FloatArray | None:
        if stage in self.m:
            return self.m[stage]
        return None if default is None else np.full(self.shape, default)

    @property
    def truth(self) -> bool:
        return self.tally.gate == "truth"

    @property
    def q(self) -> FloatArray | None:
        return self.get(self.own)

    @property
    def delta_gate(self) -> FloatArray | None:
        """P(sent to retry | wrong): 1 where the truth is the gate."""
        return np.ones(self.shape) if self.truth else self.get("delta")

    @property
    def share(self) -> FloatArray | None:
        """Structural share of the answered errors."""
        if self.tally.unclassified:
            return np.zeros(self.shape)
        return self.get("answered_structural" if self.truth else "sigma")

    def mix(self, values: FloatArray) -> FloatArray:
        return np.asarray((self.pi * values).sum(axis=1), dtype=np.float64)

    def weighted(self, values: FloatArray, mass: FloatArray) -> FloatArray:
        total = (self.pi * mass).sum(axis=1)
        events: FloatArray = (self.pi * mass * values).sum(axis=1)
        return np.asarray(np.divide(events, total, out=np.full(self.draws, np.nan), where=total > 0))


def _masses(r: _Rates) -> dict[str, FloatArray]:
    """Mass per initial draw that reaches each stage, shape ``(draws, families)``, where it can be told."""
    masses: dict[str, FloatArray] = {}
    q, delta, gate, share = r.q, r.get("delta"), r.delta_gate, r.share
    if q is None:
        return masses
    masses["delta"] = 1.0 - q
    masses["fpr"] = masses["fpr_initial"] = masses["s_false"] = q
    if delta is not None:
        masses["sigma"] = (1.0 - q) * delta
        masses["eta_ox"] = (1.0 - q) * (1.0 - delta)
    if gate is not None:
        flagged = (1.0 - q) * gate
        masses["answered_structural"] = flagged
        blind_q = r.get("q")
        masses["s_blind"] = (1.0 - (q if blind_q is None else blind_q)) * gate
        masses["s_blind_exchangeable"] = masses["s_blind"]
        if share is not None:
            masses["s1"], masses["s2"] = flagged * share, flagged * (1.0 - share)
            masses["b1"], masses["b2"] = masses["s_blind"] * share, masses["s_blind"] * (1.0 - share)
            for lam, s in (("lambda1", "s1"), ("lambda2", "s2")):
                rate = r.get(s)
                if rate is not None:
                    masses[lam] = masses[s] * (1.0 - rate)
    teacher_q = r.get("q_T")
    if teacher_q is not None:
        masses["delta_T"] = 1.0 - teacher_q
    return masses


def _estimates(
    r: _Rates, icc: Mapping[str, IccPosterior]
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    out: dict[str, FloatArray] = {}
    families: dict[str, FloatArray] = {}
    masses = _masses(r)
    for name, stage in (("q0", "q"), ("q0_greedy", "q_greedy"), ("q_t", "q_T")):
        rate = r.get(stage)
        if rate is not None:
            out[name], families[name] = r.mix(rate), rate
    for stage, mass in masses.items():
        rate = r.get(stage)
        if rate is not None:
            name = stage.lower()
            out[name], families[name] = r.weighted(rate, mass), rate
    q, delta = r.q, r.get("delta")
    if q is not None and delta is not None:
        families["p_d"], families["p_s"] = (1.0 - q) * delta, (1.0 - q) * (1.0 - delta)
        out["p_d"], out["p_s"] = r.mix(families["p_d"]), r.mix(families["p_s"])
    if "s2" in out and q is not None:
        out["phi"] = out["s2"] - r.mix(q)
    if "s_blind" in out and "q0" in out:
        out["sticky_ratio"] = out["s_blind"] / np.maximum(out["q0"], 1e-12)
    stochastic, block = r.get("q"), icc.get("q")
    if "s_blind_exchangeable" in out and "q0" in out:
        out["sticky_ratio_model"] = out["s_blind_exchangeable"] / np.maximum(out["q0"], 1e-12)
    elif stochastic is not None and block is not None and block.estimable:
        # Where every wrong draw is sent back this is exact; elsewhere it takes detection as independent of difficulty.
        gate = r.delta_gate
        reach = np.ones(r.shape) if gate is None else gate
        rho = correlation_by_family(icc, r.shape)
        ratio = sticky_ratio_exchangeable(r.pi, stochastic, rho, reach)
        out["sticky_ratio_model"] = ratio
        out["s_blind_exchangeable"] = ratio * r.mix(stochastic)
        families["s_blind_exchangeable"] = stochastic * (1.0 - rho)
    return out, families


def correlation_by_family(icc: Mapping[str, IccPosterior], shape: tuple[int, int]) -> FloatArray:
    """Correlation of initial draws within a task, per draw and family, shape ``(draws, families)``.

    A family whose own tasks tell its correlation (block ``q/f`` estimable) keeps it; the others share the suite's.
    """
    rho = np.empty(shape)
    for f in range(shape[1]):
        own = icc.get(f"q/{f}")
        block = own if own is not None and own.estimable else icc["q"]
        rho[:, f] = np.resize(block.icc, shape[0])
    return rho


def _point(r: _Rates, price: Price, form: str) -> ModelPoint:
    return ModelPoint(
        r.mix(np.broadcast_to(price.quality, r.shape)), r.mix(np.broadcast_to(price.bill, r.shape)), form
    )


def _small_frontier(
    r: _Rates, icc: Mapping[str, IccPosterior], b_max: int, k_max: int
) -> dict[tuple[str, int], ModelPoint]:
    out: dict[tuple[str, int], ModelPoint] = {}
    arms = set(r.tally.arms)
    stochastic, greedy, own = r.get("q"), r.get("q_greedy"), r.q
    fpr = np.zeros(r.shape) if r.truth else (r.get("fpr", 0.0) if "fpr" in r.m else np.zeros(r.shape))
    gate, block = r.delta_gate, icc.get("q")
    correlated = block is not None and block.estimable
    rho = correlation_by_family(icc, r.shape) if correlated else None
    if "A0" in arms:
        a0 = greedy if greedy is not None else stochastic
        if a0 is not None:
            out["A0", 1] = ModelPoint(r.mix(a0), np.ones(r.draws), "one shot")
    if "A1" in arms and stochastic is not None:
        for k in range(1, k_max + 1, 2):
            if rho is not None:
                price, form = (
                    majority_correlated(k, stochastic, rho),
                    "majority, correlated draws (Beta moments)",
                )
            else:
                price, form = majority(k, stochastic), "majority, independent draws (homogeneous form)"
            out["A1", k] = _point(r, price, form)
    for b in range(1, b_max + 1):
        if "A2" in arms and greedy is not None and gate is not None:
            price = blind_greedy_general(
                b, greedy, (1.0 - greedy) * gate, fpr=fpr if fpr is not None else 0.0
            )
            out["A2", b] = _point(r, price, "gated blind, greedy: flat by determinism")
        if "A2s" in arms and stochastic is not None and gate is not None:
            if rho is not None:
                whole = blind_exchangeable(b, np.asarray(r.pi), stochastic, rho, gate)
                out["A2s", b] = ModelPoint(
                    np.asarray(whole.quality),
                    np.asarray(whole.bill),
                    "gated blind, exchangeable draws (Beta moments)"
                    + ("" if r.truth else ", detection independent of difficulty"),
                )
            else:
                price = blind_general(
                    b, stochastic, (1.0 - stochastic) * gate, fpr=fpr if fpr is not None else 0.0
                )
                out["A2s", b] = _point(r, price, "gated blind, independent draws (homogeneous form)")
        repaired = _feedback(r, b, own, gate, fpr)
        if "A3" in arms and repaired is not None:
            out["A3", b] = _point(
                r, repaired, "gated feedback, class-stable, homogeneous tasks (general form)"
            )
    return out


def _feedback(
    r: _Rates, budget: int, q: FloatArray | None, gate: FloatArray | None, fpr: FloatArray | None
) -> Price | None:
    share, s1, s2 = r.share, r.get("s1"), r.get("s2")
    if r.tally.unclassified:
        s1 = np.zeros(r.shape)
    if q is None or gate is None or share is None or s1 is None or s2 is None:
        return None
    silent = [
        np.zeros(r.shape) if r.truth else (r.m[s] if s in r.m else np.zeros(r.shape))
        for s in ("lambda1", "lambda2")
    ]
    return feedback_general(
        budget, q, (1.0 - q) * gate, share, s1, s2, lambda1=silent[0], lambda2=silent[1],
        fpr=0.0 if fpr is None else fpr, s_false=r.m.get("s_false", np.ones(r.shape)),
    )  # fmt: skip


def _teacher_frontier(r: _Rates, rho: float, b_max: int) -> dict[tuple[str, int], ModelPoint]:
    out: dict[tuple[str, int], ModelPoint] = {}
    q, delta = r.get("q_T"), r.get("delta_T")
    arms = set(r.tally.arms)
    if q is None:
        return out
    if "A4" in arms:
        out["A4", 1] = _point(r, teacher(q, rho), "teacher, one shot")
    gate = np.ones(r.shape) if r.truth else delta
    if "A5" in arms and gate is not None:
        for b in range(1, b_max + 1):
            price = teacher_gated_general(b, q, (1.0 - q) * gate, rho, fpr=0.0)
            out["A5", b] = _point(r, price, "teacher, gated, independent draws")
    return out


def compose(
    m: Mapping[str, FloatArray],
    tally: Tally,
    weights: FloatArray,
    icc: Mapping[str, IccPosterior],
    *,
    rho: float,
    b_max: int,
    majority_k: int,
) -> Composition:
    """Compose the model column.

    Parameters
    ----------
    m
        Stage to posterior draws of the families' rates, shape ``(draws, families)``; stages that no draw reached are
        absent and nothing that needs them is estimated.
    tally
        Counts of the run: gate, decoding and arms.
    weights
        Registered family weights, shape ``(families,)``.
    icc
        Within-task correlation by block (``q``, ``s1``, ``s2``).
    rho
        Price of a teacher draw in units of one small draw.
    b_max, majority_k
        Largest budget and number of votes priced.

    Returns
    -------
    Composition
        Draws of estimands, frontier, break-even and regime.
    """
    r = _Rates(m, tally, weights)
    if r.draws == 0:
        return Composition({}, {}, {}, None, None)
    estimates, families = _estimates(r, icc)
    frontier = _small_frontier(r, icc, b_max, majority_k) | _teacher_frontier(r, rho, b_max)
    q, gate = r.q, r.delta_gate
    fpr = np.zeros(r.shape) if r.truth or "fpr" not in r.m else r.m["fpr"]
    q_t = r.get("q_T")
    if q_t is not None and "A3" in tally.arms:
        for b in range(1, b_max + 1):
            price = _feedback(r, b, q, gate, fpr)
            if price is not None:
                quality = price.quality - price.residual_correct + price.residual * q_t
                frontier["blended", b] = ModelPoint(
                    r.mix(quality), r.mix(price.bill + price.residual * rho), "A3, residual to the teacher"
                )
    found = regimes = None
    if q_t is not None and ("A3", 1) in frontier:
        budgets = range(1, b_max + 1)
        found = break_even(
            np.stack([frontier["A3", b].quality for b in budgets], axis=1),
            np.stack([frontier["A3", b].bill for b in budgets], axis=1),
            estimates["q_t"],
            np.full(r.draws, rho),
        ).astype(np.float64)
    pooled = _pooled_repairs(r, estimates)
    if pooled is not None:
        p_d, sigma, s1, s2, q0 = pooled
        if "s_blind" in r.m:
            masses = _masses(r)
            b1 = r.weighted(r.m.get("b1", r.m["s_blind"]), masses["b1"])
            b2 = r.weighted(r.m.get("b2", r.m["s_blind"]), masses["b2"])
            dividend = measured_dividend(p_d, sigma, s1, s2, np.nan_to_num(b1), b2)
        else:
            dividend = p_d * (sigma * s1 + (1.0 - sigma) * (s2 - q0))
        estimates["D_c"] = np.asarray(dividend)
        if q_t is not None:
            regimes = regime(q0, p_d, sigma, s1, s2, estimates["q_t"], dividend=dividend).astype(np.float64)
    return Composition(estimates, families, frontier, found, regimes)


def _pooled_repairs(
    r: _Rates, estimates: Mapping[str, FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray] | None:
    q, gate, share = r.q, r.delta_gate, r.share
    if q is None or gate is None or share is None or "s2" not in estimates:
        return None
    if "s1" not in estimates and not r.tally.unclassified:
        return None
    p_d = r.mix((1.0 - q) * gate)
    sigma = r.weighted(share, (1.0 - q) * gate)
    s1 = estimates.get("s1", np.zeros(r.draws))
    return p_d, sigma, np.nan_to_num(s1), estimates["s2"], r.mix(q)
