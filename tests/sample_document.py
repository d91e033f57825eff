"""Results documents made by hand for the tests of the reports: complete, hostile, crowded and bare."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["HOSTILE", "bare_document", "crowded_document", "hostile_document", "sample_document"]

HOSTILE = "<script>alert('x')</script> | `code` **bold** [a](http://evil.example/) ${1} @someone &amp; \u202e\x00\"'"
"""A text that tries every way out of a page."""

FIXED = {
    "status", "verdict", "mode", "source", "kind", "arm", "schema", "target", "gate", "severity",
}  # fmt: skip
"""Keys whose values the format fixes, or that a document's own arms name."""


def _band(mean: float, sd: float) -> dict[str, float]:
    low, high = round(mean - 1.96 * sd, 5), round(mean + 1.96 * sd, 5)
    return {"mean": mean, "median": round(mean + 0.02 * sd, 5), "sd": sd, "low": low, "high": high}


def _estimate(
    mean: float,
    sd: float,
    k: int | None,
    n: int | None,
    *,
    population: str,
    registered: float | None = None,
    source: str = "model",
    agrees: bool = True,
    families: bool = False,
) -> dict[str, Any]:
    model, direct = _band(mean, sd), _band(round(mean + 0.4 * sd, 5), round(1.1 * sd, 5))
    shown = model if source == "model" else direct
    record: dict[str, Any] = {
        "status": "estimated",
        "reason": None,
        "target": "new_tasks",
        "population": population,
        **shown,
        "interval": {"kind": "eti", "probability": 0.95},
        "k": k,
        "n": n,
        "unit": "draws" if n else None,
        "components": None if n else {"s2": {"k": 21, "n": 96}, "q0": {"k": 1234, "n": 1500}},
        "tasks": 40,
        "registered": registered,
        "source": source,
        "direct": direct,
        "model": model,
        "agreement": {"gap_in_sd": 0.4 if agrees else 3.1, "agrees": agrees},
        "these_tasks": {"value": round(mean, 4), "k": k, "n": n},
        "cross_check": None,
        "by_family": {},
    }
    if k is not None and n:
        record["cross_check"] = {
            "method": "Wilson",
            "estimate": round(k / n, 5),
            "low": round(max(k / n - 2 * sd, 0), 5),
            "high": round(min(k / n + 2 * sd, 1), 5),
            "cluster_robust": {"estimate": round(k / n, 5), "low": shown["low"], "high": shown["high"]},
        }
    if families and k is not None and n:
        record["by_family"] = {
            name: {
                "k": round(k * share),
                "n": round(n * share),
                **{key: shown[key] for key in ("mean", "low", "high")},
            }
            for name, share in (("arithmetic", 0.35), ("dates", 0.325), ("filters", 0.325))
        }
    return record


def _absent(reason: str) -> dict[str, Any]:
    return {
        "status": "not_estimable",
        "reason": reason,
        "target": "new_tasks",
        "population": None,
        **dict.fromkeys(("mean", "median", "sd", "low", "high", "interval", "k", "n", "unit", "components")),
        **dict.fromkeys(("tasks", "source", "direct", "model", "agreement", "these_tasks", "cross_check")),
        "registered": 0.9,
        "by_family": {},
    }


def _estimates() -> dict[str, Any]:
    initial = "initial draws of A1 and A2s"
    return {
        "q0": _estimate(0.8231, 0.0213, 1234, 1500, population=initial, registered=0.80, families=True),
        "q0_greedy": _estimate(0.802, 0.031, 96, 120, population="initial draws of A3", registered=0.80),
        "p_d": _estimate(0.1612, 0.0188, 242, 1500, population=initial, registered=0.18),
        "p_s": _estimate(0.0161, 0.0047, 24, 1500, population=initial, registered=0.02),
        "delta": _estimate(0.909, 0.024, 242, 266, population=initial, registered=0.90, families=True),
        "eta_ox": _absent("no oracle column in the log"),
        "sigma": _estimate(0.604, 0.052, 146, 242, population=initial, registered=0.60, families=True),
        "s1": _estimate(0.958, 0.021, 139, 145, population="first repairs of A3", registered=0.99),
        "s2": _estimate(0.219, 0.047, 21, 96, population="first repairs of A3", registered=0.85),
        "phi": _estimate(-0.604, 0.051, None, None, population="s2 less q0", registered=0.05),
        "phi_matched": _estimate(0.113, 0.058, None, None, population="tasks of A3", source="direct"),
        "sticky_ratio": _estimate(0.231, 0.061, None, None, population="A2s", agrees=False, source="direct"),
        "fpr": _estimate(0.00041, 0.00021, 1, 2461, population="every draw of every tier", registered=0.0),
        "q_t": _estimate(0.897, 0.024, 108, 120, population="initial draws of A4", registered=0.90),
        "break_even": _estimate(
            2.0, 0.1, None, None, population="A3 against A4", registered=2.0, source="direct"
        ),
        "h": _absent("constant load: the log has one value of in_flight"),
        "D_c": _estimate(0.101, 0.014, None, None, population="A3 and A2s", registered=0.1116),
        "my_own_rate": _estimate(0.5, 0.05, 5, 10, population="an estimate of a later version"),
    }


def _frontier() -> list[dict[str, Any]]:
    curves: dict[str, list[tuple[float, float]]] = {
        "A0": [(0.802, 1.0)],
        "A1": [(0.861, 5.0)],
        "A2": [(0.802, 1 + 0.161 * b) for b in range(5)],
        "A2s": [(0.823, 1.0), (0.853, 1.16), (0.858, 1.19), (0.859, 1.2), (0.859, 1.2)],
        "A3": [(0.802, 1.0), (0.914, 1.16), (0.929, 1.21), (0.94, 1.25), (0.949, 1.29)],
        "A4": [(0.897, 2.5)],
        "A5": [(0.897, 2.5), (0.951, 2.71)],
        "blended": [(0.897, 2.5), (0.958, 1.29)],
    }
    points = []
    for arm, curve in curves.items():
        for budget, (quality, bill) in enumerate(curve, start=5 if arm == "A1" else 1):
            model = {
                "quality": _band(round(quality + 0.004, 4), 0.018),
                "bill": _band(round(bill, 4), 0.02 if budget > 1 else 0.0),
                "form": "class-stable, within-task correlation" if arm in ("A1", "A3") else "general",
            }
            direct = {
                "quality": _band(quality, 0.021),
                "bill": _band(round(bill, 4), 0.03 if budget > 1 and arm != "A1" else 0.0),
                "chains": 120,
            }
            points.append(
                {
                    "arm": arm,
                    "budget": budget,
                    "quality": quality,
                    "bill": round(bill, 4),
                    "direct": direct,
                    "model": None if arm == "A0" else model,
                }
            )
    return points


def _component(
    name: str,
    estimate: float | None,
    sd: float,
    claim: tuple[float | None, float | None],
    p: float | None,
    floor: float | None = None,
) -> dict[str, Any]:
    below = 1.0 if claim[1] is None else 0.0 if claim[0] is None else 0.9 if (estimate or 0) < 0 else 0.1
    return {
        "id": name,
        "estimate": estimate,
        "low": None if estimate is None else round(estimate - 1.96 * sd, 5),
        "high": None if estimate is None else round(estimate + 1.96 * sd, 5),
        "claim_low": claim[0],
        "claim_high": claim[1],
        "probability_claim": p,
        "exceedance_low": None if claim[0] is None or p is None else round((1 - p) * below, 5),
        "exceedance_high": None if claim[1] is None or p is None else round((1 - p) * (1 - below), 5),
        "n": 40,
        "floor": floor,
        "severity": 0.81 if p is not None and p > 0.95 else None,
    }


def _part(
    name: str, verdict: str, claim: str, *components: dict[str, Any], reason: str | None = None
) -> dict[str, Any]:
    return {"id": name, "verdict": verdict, "reason": reason, "claim": claim, "components": list(components)}


def _rule(verdict: str, claim: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    first = next(
        (item for part in parts for item in part["components"] if item["estimate"] is not None), None
    )
    record: dict[str, Any] = {
        "verdict": verdict,
        "reason": None,
        "sentence": None,
        "claim": claim,
        "target": "new_tasks",
        "estimate": first and first["estimate"],
        "interval": first
        and {"low": first["low"], "high": first["high"], "kind": "eti", "probability": 0.95},
        "statistic": None,
        "n": 40,
        "floor": first and first["floor"],
        "floor_n": 120 if first and first["floor"] is not None else None,
        "margin": 0.05,
        "probability_claim": first and first["probability_claim"],
        "exceedance": None,
        "gamma": 0.95,
        "threshold": 0.95,
        "tasks_to_decide": None,
        "severity": None,
        "missing": [],
        "parts": list(parts),
    }
    return {**record, **more}


def _rules() -> dict[str, Any]:
    low = (-0.05, None)
    both = (-0.05, 0.05)
    return {
        "P1": _rule(
            "inconclusive",
            "A2 never flips; A2s tracks the exchangeable form within a quarter",
            _part(
                "a",
                "supported",
                "no flip among greedy blind redraws",
                _component("flips", 0.0, 0.0, (None, 0.0), 0.98),
            ),
            _part(
                "b",
                "inconclusive",
                "[G(2) − V(2)]/V(2) within ± 0.25",
                _component("gain ratio at B = 2", -0.11, 0.31, (-0.25, 0.25), 0.55),
                reason="the interval reaches beyond the claim on both sides",
            ),
            reason="the interval reaches beyond the claim on both sides",
            sentence="No greedy blind redraw changed; the stochastic gain is 0.11 below its prediction, ± 0.61.",
            statistic="[G(2) − V(2)]/V(2)",
            estimate=-0.11,
            interval={"low": -0.72, "high": 0.5, "kind": "eti", "probability": 0.95},
            probability_claim=0.541,
            margin=0.25,
            exceedance=0.41,
            tasks_to_decide=1400,
        ),
        "P2": _rule(
            "supported",
            "D_c above 0.02, and A3 not below A1 at budget 5",
            _part("a", "supported", "D_c above 0.02", _component("D_c", 0.101, 0.014, (0.02, None), 0.9996)),
            _part(
                "b",
                "supported",
                "Q5 A3 − Q5 A1 at least −0.05",
                _component("A3 − A1", 0.088, 0.027, low, 0.9991, 0.031),
            ),
            sentence="The first repair adds 10.1 points more than redrawing would; A3 lies 8.8 points above the vote.",
            probability_claim=0.9989,
            exceedance=0.0009,
            severity=0.87,
        ),
        "P3": _rule(
            "supported",
            "At B* = 2, A3 has the teacher's quality at no more than its bill",
            _part(
                "quality",
                "supported",
                "Q2 A3 − Q A4 at least −0.05",
                _component("A3 − A4", 0.017, 0.029, low, 0.9897, 0.034),
            ),
            _part(
                "bill",
                "supported",
                "bill of A3 at most A4's",
                _component("bill A3 − A4", -1.34, 0.03, (None, 0.0), 1.0),
            ),
            sentence="A3 answers 1.7 points more than the teacher for 1.16 instead of 2.50 small draws.",
            probability_claim=0.9897,
            exceedance=0.0093,
            severity=0.71,
        ),
        "P4": _rule(
            "inconclusive",
            "Detection at attempts 2 and later within ± 0.10 of that of first draws",
            _part(
                "feedback",
                "inconclusive",
                "drift within ± 0.10",
                _component("drift, feedback", 0.031, 0.082, (-0.1, 0.1), 0.79),
                reason="margin below the noise floor",
            ),
            _part(
                "halves",
                "inconclusive",
                "second half as the first",
                _component("drift, halves", 0.01, 0.06, (-0.1, 0.1), 0.9),
            ),
            reason="margin below the noise floor",
            sentence="Late wrong answers were flagged 3.1 points more often than first ones, give or take 16.",
            margin=0.1,
            exceedance=0.2,
            tasks_to_decide=310,
        ),
        "P5": _rule(
            "falsified",
            "Late semantic repairs succeed at least half as often as first ones",
            _part(
                "semantic",
                "falsified",
                "ratio at least 0.5",
                _component("h / s2", 0.13, 0.11, (0.5, None), 0.0004),
            ),
            sentence="At attempts 3 to 5 a repair succeeds 0.13 times as often as the first one.",
            statistic="h / s2",
            margin=0.5,
            exceedance=0.9996,
            threshold=0.95,
        ),
        "P6": _rule(
            "untestable",
            "H (E_B − 1) at most 0.05, and the loaded bill at most ρ",
            _part("surcharge", "untestable", "H (E_B − 1) at most 0.05", reason="constant load"),
            reason="constant load",
            missing=["a second value of in_flight"],
            estimate=None,
        ),
        "R1": _rule(
            "void",
            "Quality at B* within ± 0.05 between the fixed seeds",
            _part(
                "seeds",
                "void",
                "pairwise differences within ± 0.05",
                _component("seed 1 − seed 2", 0.008, 0.03, both, 0.91),
            ),
            reason="the lock does not hold for the amended seeds",
            target="these_tasks",
        ),
        "R2": _rule(
            "supported",
            "P3 holds without any one family and with equal weights",
            *(
                _part(
                    f"without {family}",
                    "supported",
                    "Q2 A3 − Q A4 at least −0.05",
                    _component("A3 − A4", value, 0.021, low, 0.985),
                )
                for family, value in (("arithmetic", 0.021), ("dates", 0.009), ("filters", 0.024))
            ),
            sentence="The smallest leave-one-out difference is 0.9 points above the teacher.",
            severity=0.64,
            exceedance=0.002,
        ),
        "R3": _rule(
            "untestable",
            "BF16 and NVFP4 within ± 0.05",
            reason="no draws under the condition nvfp4",
            missing=["draws under the condition nvfp4", "a second precision of the small tier"],
            estimate=None,
            target="these_tasks",
        ),
        "R4": _rule(
            "falsified",
            "Light and heavy load within ± 0.05",
            _part(
                "quality",
                "falsified",
                "difference within ± 0.05",
                _component("light − heavy", 0.121, 0.024, both, 0.0021, 0.033),
            ),
            sentence="Under heavy load 12.1 points fewer tasks are answered.",
            target="these_tasks",
            exceedance=0.9979,
            threshold=0.975,
        ),
    }


def _density(mean: float, sd: float, low: float = 0.0, high: float = 1.0) -> dict[str, Any]:
    xs = [
        round(max(low, mean - 4 * sd) + i * (min(high, mean + 4 * sd) - max(low, mean - 4 * sd)) / 80, 5)
        for i in range(81)
    ]
    ys = [round(math.exp(-0.5 * ((x - mean) / sd) ** 2) / sd / 2.50663, 4) for x in xs]
    return {"x": xs, "y": ys, "prior": [round(0.6 + 0.4 * x, 3) if x > 0 else 0.6 for x in xs]}


def _plan() -> dict[str, Any]:
    return {
        "schema": 1,
        "title": "Verifier-gated retries, 40 tasks",
        "authors": ["A. Author", "B. Author"],
        "seen_before": "A pilot of 36 tasks, discarded.",
        "hypotheses": {
            "P1": "Blind redraws buy nothing.",
            "P3": "At budget 2 the small tier reaches the teacher.",
        },
        "tiers": {
            "small": {"model": "small-4b", "precision": "BF16", "cost_units": 1.0},
            "teacher": {"model": "teacher-27b", "precision": "NVFP4", "cost_units": 2.5},
        },
        "suite": {
            "path": "suite.jsonl",
            "sha256": "c" * 64,
            "tasks": 40,
            "tasks_by_family": {"arithmetic": 14, "dates": 13, "filters": 13},
        },
        "families": {"arithmetic": 0.35, "dates": 0.325, "filters": 0.325},
        "arms": {
            "A0": {"tier": "small", "budget": 1, "temperature": 0.0, "prompt": "none", "k": None},
            "A3": {"tier": "small", "budget": 5, "temperature": 0.0, "prompt": "feedback", "k": None},
        },
        "conditions": {},
        "seeds": [1, 2, 3],
        "greedy_reruns": 1,
        "rate_card": {"rho": 2.5, "cost_small_usd": 0.001, "declared_bound_units": 28.5},
        "gate": "verifier",
        "deployment_gate": 0.85,
        "break_even_budget": 2,
        "max_budget": 5,
        "estimands": {"q0": 0.8, "sigma": 0.6, "h": None},
        "priors": {"mu_mean": 0.0, "mu_sd": 2.5, "tau_sd": 0.7},
        "decision": {"gamma": 0.95},
        "rules": {
            "P1": {"flips_allowed": 0, "fraction": 0.25, "alternative": 0.5},
            "P3": {"quality_margin": 0.05, "alternative": -0.1},
        },
        "exclusions": [
            {
                "id": "errors",
                "text": "Draws with an infrastructure error.",
                "scope": "draw",
                "when": "error",
                "values": [],
            }
        ],
        "retries": {
            "max_per_draw": 5,
            "kinds": ["timeout", "429"],
            "text": "A request without an answer is sent again.",
        },
        "stopping": {
            "kind": "fixed",
            "text": "All planned draws are made.",
            "planned_tasks": 40,
            "planned_replicates": 3,
        },
        "missing_data": {"handling": "drop", "text": "A draw without an outcome is no measurement."},
    }


def sample_document() -> dict[str, Any]:
    """Return a complete document with every verdict kind, every figure and some hostile texts."""
    arms = ("A0", "A1", "A2", "A2s", "A3", "A4", "A5")
    draws = {"A0": 120, "A1": 600, "A2": 154, "A2s": 148, "A3": 155, "A4": 120, "A5": 133}
    stages = (
        "q greedy",
        "q stochastic",
        "flagged | wrong",
        "structural | flagged",
        "correct | structural",
        "correct | semantic",
    )
    return {
        "schema": 1,
        "title": "Verifier-gated retries, 40 tasks <script>alert(1)</script>",
        "mode": "registered",
        "gate": "verifier",
        "inputs": [
            {
                "path": "run|one`.runlog.jsonl",
                "sha256": "a" * 64,
                "draws": 1430,
                "tasks": 40,
                "status": "complete",
            },
            {
                "path": "floor.runlog.jsonl",
                "sha256": "b" * 64,
                "draws": 40,
                "tasks": 40,
                "status": "incomplete",
            },
        ],
        "preregistration": {
            "digest": "0123456789abcdef" * 4,
            "status": "locked",
            "title": "Verifier-gated retries, 40 tasks",
            "authors": ["A. Author", "B. <b>Author</b>"],
            "seen_before": "A pilot of 36 tasks, discarded.",
            "plan": _plan(),
            "locked_at": "2026-03-01T09:00:00Z",
            "strength": "git commit",
            "first_draw_at": "2026-03-01T10:12:00Z",
            "order": "locked 72 minutes before the first draw",
            "amendments": [
                {
                    "at": "2026-03-02T08:00:00Z",
                    "author": "A. Author",
                    "reason": "seed 3 | added",
                    "seen": "nothing",
                }
            ],
        },
        "estimates": _estimates(),
        "frontier": _frontier(),
        "break_even": {
            "B_star": {"1": 0.004, "2": 0.913, "3": 0.058, "4": 0.011, "5": 0.003, "none": 0.011},
            "model": {"1": 0.001, "2": 0.942, "3": 0.041, "4": 0.008, "5": 0.002, "none": 0.006},
            "B_max": 5,
            "regime": {"0": 0.002, "i": 0.897, "ii": 0.093, "iii": 0.008},
            "D_c": 0.101,
            "sentence": "The first repair with the message pays for the teacher's edge.",
        },
        "hazards": [
            {"arm": "A3", "class": "structural", "attempt": 2, "k": 139, "n": 145},
            {"arm": "A3", "class": "structural", "attempt": 3, "k": 4, "n": 6},
            {"arm": "A3", "class": "semantic", "attempt": 2, "k": 21, "n": 96},
            {"arm": "A3", "class": "semantic", "attempt": 3, "k": 2, "n": 71},
            {"arm": "A3", "class": "semantic", "attempt": 4, "k": 2, "n": 66},
            {"arm": "A3", "class": "semantic", "attempt": 5, "k": 0, "n": 63},
            {"arm": "A2s", "class": None, "attempt": 2, "k": 5, "n": 28},
            {"arm": "A2s", "class": None, "attempt": 3, "k": 1, "n": 21},
            {"arm": "A2", "class": None, "attempt": 2, "k": 0, "n": 0},
        ],
        "floors": {
            "p_flip": {
                "A3": {"mean": 0.021, "low": 0.004, "high": 0.05, "flips": 2, "pairs": 120, "tasks": 40},
                "A4": {"mean": 0.017, "low": 0.002, "high": 0.044, "flips": 1, "pairs": 120, "tasks": 40},
            },
            "contrasts": [
                {"rule": "P3", "arm_a": "A3", "arm_b": "A4", "floor": 0.034, "tasks": 40, "replicates": 3},
                {
                    "rule": "R4",
                    "arm_a": "A3",
                    "arm_b": "A3 heavy",
                    "floor": 0.033,
                    "tasks": 40,
                    "replicates": 3,
                },
            ],
        },
        "rules": _rules(),
        "conjunction": {"rules": ["P2", "P3", "P5"], "probability": 0.0004},
        "expected_wrong_verdicts": 0.0342,
        "diagnostics": {
            "engine": "NUTS (PyMC, nutpie)",
            "status": "passed",
            "reasons": [],
            "r_hat_max": 1.0031,
            "ess_bulk_min": 1412.3,
            "ess_tail_min": 1203.9,
            "divergences": 0,
            "stages": [
                {
                    "stage": stage,
                    "family_count": 3,
                    "N": 1500.0,
                    "K": 1234.0,
                    "deff": 2.37,
                    "mean": 0.8231,
                    "sd": 0.0213,
                    "grid_mean": 0.8229,
                    "grid_sd": 0.0212,
                    "r_hat": 1.0012,
                    "ess_bulk": 2210.0,
                    "ess_tail": 1871.0,
                }
                for stage in stages
            ],
            "predictive": [
                {"stage": stage, "family": family, "k": 12, "n": 40, "prior_p": 0.41, "posterior_p": 0.52}
                for stage in stages[:3]
                for family in ("arithmetic", "dates", "filters")
            ],
            "prior_sensitivity": [
                {
                    "id": "q0",
                    "prior": "μ ~ N(0, 1.5²)",
                    "mean": 0.8222,
                    "low": 0.781,
                    "high": 0.861,
                    "verdicts_changed": 0,
                },
                {
                    "id": "sigma",
                    "prior": "τ ~ HalfNormal(1.4)",
                    "mean": 0.6031,
                    "low": 0.49,
                    "high": 0.71,
                    "verdicts_changed": 0,
                },
            ],
            "loo": [
                {
                    "block": "initial draws",
                    "model": "beta-binomial",
                    "elpd": -214.3,
                    "se": 11.2,
                    "difference": 0.0,
                },
                {
                    "block": "initial draws",
                    "model": "binomial",
                    "elpd": -391.8,
                    "se": 20.1,
                    "difference": -177.5,
                },
            ],
        },
        "densities": {
            "q0": _density(0.8231, 0.0213),
            "delta": _density(0.909, 0.024),
            "sigma": _density(0.604, 0.052),
            "phi": _density(-0.604, 0.051, -1.0, 1.0),
            "sticky_ratio": _density(0.231, 0.061),
            "fpr": _density(0.0009, 0.0004),
            "D_c": {"x": [0.1, 0.1], "y": [1.0, 1.0], "prior": None},
        },
        "flow": [
            {
                "arm": arm,
                "condition": "primary",
                "planned": draws[arm] + 2,
                "attempted": draws[arm] + 1,
                "errored": 1,
                "unscored": 0,
                "copies": 120 if arm in ("A2", "A3") else 0,
                "analysed": draws[arm],
            }
            for arm in arms
        ]
        + [
            {
                "arm": "A3",
                "condition": "heavy-load",
                "planned": None,
                "attempted": 151,
                "errored": 3,
                "unscored": 1,
                "copies": 0,
                "analysed": 147,
            }
        ],
        "ledger": {
            "rows": [
                {
                    "arm": arm,
                    "draws": draws[arm],
                    "units": draws[arm] * (2.5 if arm in ("A4", "A5") else 1.0),
                    "units_per_task": draws[arm] / 120,
                    "as_registered": None if arm == "A0" else 5.0,
                }
                for arm in arms
            ],
            "total_units": 1809.5,
            "units_per_task": 15.08,
            "declared_bound": 28.5,
            "within_bound": True,
            "usd": 1.8095,
        },
        "per_seed": [
            {
                "arm": arm,
                "budget": 2 if arm == "A3" else 1,
                "replicate": seed,
                "quality": 0.9 + 0.01 * seed,
                "tasks": 40,
            }
            for arm in ("A3", "A4")
            for seed in range(3)
        ],
        "exploratory": {
            "cost_per_correct_answer": {"A3": 1.27, "A4": 2.79},
            "stickiness_by_family": [
                {"family": "arithmetic", "ratio": 0.31, "pairs": 41},
                {"family": "dates", "ratio": None, "pairs": 0},
            ],
            "note": "Structural errors fall | by half <i>after</i> the first repair.",
        },
        "sensitivity": [
            {"rule": "P3", "change": "margin 0.03", "verdict": "inconclusive", "probability_claim": 0.941},
            {
                "rule": "P5",
                "change": "without 3 flipped tasks",
                "verdict": "falsified",
                "probability_claim": 0.0007,
            },
        ],
        "findings": [
            {
                "severity": "low",
                "check": "log",
                "message": "The second file has no footer: incomplete.",
                "rules": [],
            },
            {
                "severity": "high",
                "check": "copies",
                "message": "Two copies of one greedy draw disagree <img src=x onerror=alert(1)>.",
                "rules": ["P1", "P3"],
            },
            {
                "severity": "medium",
                "check": "seeds",
                "message": "Seed 3 was added by an amendment.",
                "rules": ["R1"],
            },
            {
                "severity": "info",
                "check": None,
                "message": "7 draws were retried after timeouts.",
                "rules": None,
            },
        ],
        "exclusions": [{"rule": "errors", "draws": 8, "tasks": 5}],
        "settings": {"engine": "nuts", "draws": 1000, "chains": 4, "bootstrap_draws": 4000},
        "deviations": [
            {
                "registered": "seeds 1, 2",
                "done": "seeds 1, 2, 3",
                "found": "declared",
                "timing": "before the data",
                "rules": ["R1"],
                "effect": "none expected",
            },
        ],
        "audit": {
            "status": "run",
            "checks": [
                {
                    "check": "chain",
                    "outcome": "pass",
                    "severity": None,
                    "message": "1,430 draws, head matches",
                },
                {
                    "check": "scoring",
                    "outcome": "could not run",
                    "severity": None,
                    "message": "outputs are not in the log",
                },
            ],
            "undeclared": [],
            "not_found": [],
        },
        "limits": ["The teacher is the small model with a longer prompt."],
        "meta": {
            "versions": {"verdiv": "0.1.0", "python": "3.11.9", "numpy": "2.1.0"},
            "started_at": "2026-03-03T10:00:00Z",
            "finished_at": "2026-03-03T10:00:41Z",
            "seconds": 41.3,
            "command": "verdiv analyze run.runlog.jsonl --prereg plan.toml -o out --seed 1",
            "seed": 1,
        },
    }


def _replaced(value: Any, key: str = "") -> Any:
    if isinstance(value, str):
        return value if key in FIXED else HOSTILE
    if isinstance(value, list):
        return [_replaced(item, key) for item in value]
    if isinstance(value, Mapping):
        return {name: _replaced(item, name) for name, item in value.items()}
    return value


def hostile_document() -> dict[str, Any]:
    """Return the sample with every free text, arm, family and free key replaced by a hostile one."""
    document: dict[str, Any] = _replaced(sample_document())
    for point in document["frontier"]:
        if point["arm"] in ("A1", "A5"):
            point["arm"] = HOSTILE
    for row in [*document["hazards"], *document["flow"], *document["ledger"]["rows"], *document["per_seed"]]:
        row["arm"] = HOSTILE
    for finding in document["findings"]:
        finding["severity"] = HOSTILE
    document["gate"] = HOSTILE
    document["estimates"][HOSTILE] = document["estimates"]["q0"]
    document["densities"][HOSTILE] = document["densities"]["q0"]
    document["estimates"]["q0"]["by_family"] = {
        HOSTILE: {"k": 1, "n": 2, "mean": 0.5, "low": 0.1, "high": 0.9}
    }
    document["floors"]["p_flip"][HOSTILE] = document["floors"]["p_flip"]["A3"]
    document["exploratory"][HOSTILE] = {HOSTILE: [HOSTILE], "deep": {"er": {"and": {"deeper": {HOSTILE: 1}}}}}
    document["preregistration"]["plan"][HOSTILE] = {HOSTILE: {HOSTILE: HOSTILE}}
    document["meta"][HOSTILE] = HOSTILE
    document["meta"]["versions"][HOSTILE] = HOSTILE
    return document


def crowded_document() -> dict[str, Any]:
    """Return the sample with 20 families of long names, huge numbers, many arms, budgets and words without end."""
    document = sample_document()
    long = "a_family_with_a_name_that_never_ends_" * 4
    names = [f"{long}{index}" for index in range(20)]
    for record in document["estimates"].values():
        if record["by_family"]:
            one = next(iter(record["by_family"].values()))
            record["by_family"] = {name: {**one, "k": 12345678, "n": 987654321} for name in names}
    document["estimates"]["q0"].update(k=8_123_456_789, n=9_876_543_210, tasks=100_000_000)
    document["estimates"]["sticky_ratio"].update(mean=1.2e11, low=3.0e4, high=8.8e12)
    document["ledger"].update(total_units=1.23456789e11, usd=98765432.1, units_per_task=123456.789)
    document["title"] = "Verifier-gated retries " + "with-a-title-that-goes-on-and-on-" * 6
    document["rules"]["P1"]["reason"] = "because " + "of-this-and-that-" * 30
    document["findings"] = [
        {"severity": "high", "check": "grid", "message": "cell missing " * 60, "rules": ["P1"]}
        for _ in range(50)
    ]
    template = next(point for point in document["frontier"] if point["arm"] == "A3")
    for index in range(9):
        document["frontier"] += [
            {**template, "arm": f"policy-of-our-own-number-{index}", "budget": budget}
            for budget in range(1, 20)
        ]
    document["break_even"]["B_star"] = {str(budget): 0.04 for budget in range(1, 25)} | {"none": 0.04}
    document["break_even"]["B_max"] = 24
    return document


def bare_document() -> dict[str, Any]:
    """Return the least document that the schema accepts: nothing estimated, nothing tested, nothing recorded."""
    rule: dict[str, Any] = {"verdict": "untestable", "parts": []}
    return {
        "schema": 1,
        "title": "Nothing",
        "mode": "exploratory",
        "inputs": [],
        "preregistration": {"status": "none"},
        "estimates": {"q0": {"status": "not_estimable"}},
        "frontier": [],
        "break_even": None,
        "hazards": [],
        "floors": {},
        "rules": {
            f"{kind}{index}": dict(rule)
            for kind, last in (("P", 6), ("R", 4))
            for index in range(1, last + 1)
        },
        "diagnostics": None,
        "flow": [],
        "ledger": None,
        "findings": [],
        "deviations": [],
        "audit": None,
        "meta": {},
    }
