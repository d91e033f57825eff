"""The estimates block of the results document: model and direct side by side, each with its counts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from verdiv.analysis.fit import Fit, prior_draws
from verdiv.analysis.gather import Gathered
from verdiv.estimators.bootstrap import Summary, summarise_draws
from verdiv.estimators.compose import Composition, compose
from verdiv.estimators.crosscheck import cross_check
from verdiv.estimators.direct import MEANS, RATES, Direct, Estimate
from verdiv.estimators.events import Events
from verdiv.estimators.load import LoadFit, NotEstimable, load_draws
from verdiv.estimators.missing import reason_not_estimable
from verdiv.estimators.observations import FloatArray

__all__ = ["ESTIMATE_IDS", "band", "density", "estimates_block"]

ESTIMATE_IDS = (
    "q0", "q0_greedy", "p_d", "p_s", "delta", "eta_ox", "sigma", "s1", "s2", "lambda1", "lambda2", "phi",
    "phi_matched", "s_blind", "sticky_ratio", "s_blind_pairs", "s_blind_exchangeable", "sticky_ratio_model", "fpr",
    "fpr_initial", "q_t", "delta_t", "D_c", "break_even", "h",
)  # fmt: skip
"""All estimate ids, in the order in which they are reported; every one is always there."""

COMPONENTS = {
    "phi": ("s2", "q0"),
    "phi_matched": ("s2", "s_blind"),
    "sticky_ratio": ("s_blind", "q0"),
    "sticky_ratio_model": ("q0", "icc_q"),
    "s_blind_exchangeable": ("q0", "icc_q"),
    "D_c": ("p_d", "sigma", "s1", "s2", "s_blind"),
}
INTERVAL = {"kind": "eti", "probability": 0.95}
DENSITY_POINTS = 120


def whole(value: float | None) -> float | int | None:
    """Write a count as an integer where it is one; copies that disagree count at their mean, to three decimals."""
    if value is None:
        return None
    near = round(float(value), 3)
    return int(near) if near.is_integer() else near


def band(s: Summary | None) -> dict[str, float] | None:
    """A posterior summary as the document holds it."""
    if s is None:
        return None
    return {"mean": s.mean, "median": s.median, "sd": s.sd, "low": s.low, "high": s.high}


def density(draws: FloatArray, prior: FloatArray | None = None) -> dict[str, Any]:
    """Smoothed histogram of posterior draws at no more than 200 points, with the prior on the same points."""
    low, high = float(draws.min()), float(draws.max())
    if high <= low:
        return {"x": [low], "y": [1.0], "prior": None}
    edges = np.linspace(low, high, DENSITY_POINTS + 1)
    height, _ = np.histogram(draws, bins=edges, density=True)
    kernel = np.exp(-0.5 * (np.arange(-6, 7) / 2.0) ** 2)
    kernel /= kernel.sum()
    smooth = np.convolve(np.pad(height, 6, mode="reflect"), kernel, mode="valid")
    behind = None
    if prior is not None:
        finite = prior[np.isfinite(prior)]
        counts, _ = np.histogram(finite, bins=edges)
        flat = counts / max(len(finite), 1) / (edges[1] - edges[0])
        behind = np.convolve(np.pad(flat, 6, mode="reflect"), kernel, mode="valid").tolist()
    return {"x": ((edges[1:] + edges[:-1]) / 2.0).tolist(), "y": smooth.tolist(), "prior": behind}


def _agreement(direct: Summary | None, model: Summary | None) -> dict[str, Any] | None:
    if direct is None or model is None:
        return None
    scale = max(direct.sd, model.sd)
    gap = abs(direct.mean - model.mean) / scale if scale > 0 else 0.0
    inside = model.low <= direct.median <= model.high and direct.low <= model.median <= direct.high
    return {"gap_in_sd": gap, "agrees": bool(inside)}


def _summary(draws: FloatArray | None) -> Summary | None:
    if draws is None:
        return None
    finite = draws[np.isfinite(draws)]
    return summarise_draws(finite) if len(finite) else None


def _by_family(
    name: str, events: Events | None, gathered: Gathered, composition: Composition
) -> dict[str, dict[str, Any]] | None:
    draws = composition.by_family.get(name)
    out: dict[str, dict[str, Any]] = {}
    if events is None:
        for f, family in enumerate(gathered.tally.families):
            s = _summary(draws[:, f]) if draws is not None else None
            if s is not None:
                out[family] = {"k": None, "n": None, "mean": s.mean, "low": s.low, "high": s.high}
        return out or None
    n, k = events.pairs if events.pairs else (events.n, events.k)
    for f, family in enumerate(gathered.tally.families):
        mine = gathered.tally.family == f
        count, hits = float(n[mine].sum()), float(k[mine].sum())
        s = _summary(draws[:, f]) if draws is not None and count > 0 else None
        if s is None and count > 0:
            found = cross_check(n[mine], k[mine], independent=events.pairs is None)
            ends = (
                {"mean": found.estimate, "low": found.low, "high": found.high}
                if found
                else {"mean": hits / count}
            )
        else:
            ends = {"mean": s.mean, "low": s.low, "high": s.high} if s else {}
        out[family] = {"k": whole(hits), "n": whole(count), "mean": None, "low": None, "high": None, **ends}
    return out


def _cross(events: Events | None) -> dict[str, Any] | None:
    if events is None:
        return None
    found = cross_check(events.n, events.k, independent=events.pairs is None)
    if found is None:
        return None
    robust = found.cluster_robust
    return {
        "method": found.method,
        "estimate": found.estimate,
        "low": found.low,
        "high": found.high,
        "cluster_robust": None
        if robust is None
        else {"estimate": robust.estimate, "low": robust.low, "high": robust.high},
        "by_tasks": None if found.by_tasks is None else asdict(found.by_tasks),
    }


def _events_of(name: str, gathered: Gathered) -> Events | None:
    stage = (dict(MEANS) | dict(RATES)).get(name)
    return gathered.tally.events.get(stage) if stage is not None and gathered.tally.has(stage) else None


def _by_beta_form(gathered: Gathered) -> bool:
    """Whether a verifier picks the draws that go to retry, and no pair of parallel draws tells which tasks it picks."""
    tally = gathered.tally
    return tally.has_flags and tally.gate != "truth" and not tally.has("s_blind_exchangeable")


def _record(
    name: str, gathered: Gathered, composition: Composition, direct: Estimate | None, model: FloatArray | None
) -> dict[str, Any]:
    registered = gathered.plan.estimands.stated().get(name)
    d, m = _summary(direct.draws if direct else None), _summary(model)
    head = m or d
    if head is None:
        return {
            "status": "not_estimable",
            "reason": reason_not_estimable(name, gathered.tally),
            "target": "new_tasks",
            "registered": registered,
        }
    events = _events_of(name, gathered)
    label = None
    if name in ("s2", "phi", "phi_matched") and gathered.tally.unclassified:
        label = "unclassified errors: the log gives no classes, so all answered errors are counted"
    elif name in ("s_blind_exchangeable", "sticky_ratio_model") and _by_beta_form(gathered):
        label = (
            "from q0 and its correlation within tasks, detection taken as independent of a task's difficulty"
        )
    components = COMPONENTS.get(name) if events is None else None
    if direct is not None and direct.components:
        components = direct.components
    record: dict[str, Any] = {
        "status": "estimated",
        "reason": label or (direct.note if direct else None),
        "target": "new_tasks",
        "population": direct.population if direct else None,
        **(band(head) or {}),
        "interval": INTERVAL,
        "k": whole(events.total_k) if events else None,
        "n": whole(events.total_n) if events else None,
        "unit": events.unit if events else None,
        "components": list(components) if components else None,
        "tasks": events.tasks if events else (direct.tasks if direct else None),
        "registered": registered,
        "source": "model" if m is not None else "direct",
        "direct": band(d),
        "model": band(m),
        "agreement": _agreement(d, m),
        "these_tasks": None,
        "cross_check": _cross(events),
        "by_family": _by_family(name, events, gathered, composition),
    }
    if events is not None:
        record["these_tasks"] = {
            "value": events.total_k / events.total_n,
            "k": whole(events.total_k),
            "n": whole(events.total_n),
        }
    return record


def _load_record(
    fit: LoadFit | NotEstimable, draws: int, seed: int, registered: Any
) -> tuple[dict[str, Any], FloatArray | None]:
    if isinstance(fit, NotEstimable):
        return {
            "status": "not_estimable",
            "reason": fit.reason,
            "target": "new_tasks",
            "registered": registered,
        }, None
    sample = load_draws(fit, draws, seed)
    record = {
        "status": "estimated",
        "reason": None if fit.kind == "device seconds" else "H (latency): from wall-clock times, not device seconds",
        "target": "new_tasks",
        "population": f"small-tier draws with {fit.kind}; least squares with task effects, errors clustered by task",
        **(band(summarise_draws(sample)) or {}),
        "interval": {"kind": "eti (t reference)", "probability": 0.95},
        "k": None,
        "n": None,
        "unit": None,
        "components": {"draws": fit.draws, "se": fit.se, "df": fit.df, "beta_tokens_out": fit.beta, "kind": fit.kind},
        "tasks": fit.tasks,
        "registered": registered,
        "source": "direct",
        "direct": band(summarise_draws(sample)),
        "model": None,
        "cross_check": {
            "method": "OLS, cluster-robust",
            "estimate": fit.H,
            "low": float(np.quantile(sample, 0.025)),
            "high": float(np.quantile(sample, 0.975)),
            "cluster_robust": None,
        },
    }  # fmt: skip
    return record, sample


def _break_even_record(
    gathered: Gathered, direct: FloatArray | None, model: FloatArray | None, registered: Any
) -> dict[str, Any]:
    if direct is None:
        return {
            "status": "not_estimable",
            "reason": reason_not_estimable("break_even", gathered.tally),
            "target": "new_tasks",
            "registered": registered,
        }
    never = gathered.plan.max_budget + 1
    values = np.where(direct > 0, direct, never)
    low, median, high = np.quantile(values, [0.025, 0.5, 0.975], method="inverted_cdf")

    def shown(x: float) -> int | None:
        return None if x >= never else int(x)

    return {
        "status": "estimated",
        "reason": f"null means none by B_max = {gathered.plan.max_budget}; the probabilities stand under break_even",
        "target": "new_tasks",
        "population": "paired bootstrap of A3 and A4",
        "mean": None,
        "median": shown(median),
        "sd": None,
        "low": shown(low),
        "high": shown(high),
        "interval": INTERVAL,
        "k": None,
        "n": None,
        "unit": "draws",
        "components": ["A3", "A4"],
        "tasks": len(gathered.tally.tasks),
        "registered": registered,
        "source": "direct",
        "direct": None,
        "model": None,
    }


def estimates_block(
    gathered: Gathered,
    fit: Fit,
    composition: Composition,
    direct: Direct,
    estimates: dict[str, Estimate],
    load: LoadFit | NotEstimable,
    break_even: FloatArray | None,
    dividend: FloatArray | None,
    seed: int,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Build the estimates and densities of the results document.

    Returns
    -------
    tuple
        ``estimates`` and ``densities``, by estimate id.
    """
    plan = gathered.plan
    prior = compose(
        prior_draws(fit, 4000, seed), gathered.tally, gathered.weights, {}, rho=plan.rate_card.rho,
        b_max=1, majority_k=1,
    ).estimates  # fmt: skip
    if dividend is not None:
        note = "first repair dividend from the direct estimates"
        estimates = estimates | {"D_c": Estimate(dividend, None, None, len(gathered.tally.tasks), note)}
    block: dict[str, Any] = {}
    densities: dict[str, Any] = {}
    for name in ESTIMATE_IDS:
        registered = plan.estimands.stated().get(name)
        if name == "h":
            block[name], sample = _load_record(load, direct.bootstrap.draws, seed, registered)
        elif name == "break_even":
            block[name], sample = (
                _break_even_record(gathered, break_even, composition.break_even, registered),
                None,
            )
        else:
            model, found = composition.estimates.get(name), estimates.get(name)
            block[name] = _record(name, gathered, composition, found, model)
            sample = model if _summary(model) is not None else (found.draws if found else None)
        if sample is not None:
            finite = sample[np.isfinite(sample)]
            if len(finite) and name != "break_even":
                densities[name] = density(finite, prior.get(name))
    return block, densities
