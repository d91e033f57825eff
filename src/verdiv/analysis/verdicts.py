"""Rules, floors, conjunction and sensitivity of the results document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from verdiv.analysis.estimates import whole
from verdiv.estimators.bootstrap import summarise_draws
from verdiv.falsification.evidence import Evidence
from verdiv.falsification.rules import evaluate_rules
from verdiv.falsification.verdict import ComponentResult, RuleResult, Verdict
from verdiv.preregistration import Preregistration

__all__ = ["conjunction_block", "expected_wrong", "floors_block", "rules_block", "sensitivity_block"]

SCALES = (0.5, 2.0)
"""Factors on every margin, fraction and tolerance at which the verdicts are looked at again."""
GAMMAS = (0.9, 0.99)
"""Other levels of γ at which the verdicts are looked at again."""


def _component(c: ComponentResult) -> dict[str, Any]:
    return {
        "id": c.id,
        "label": c.label,
        "estimate": c.estimate,
        "low": c.low,
        "high": c.high,
        "claim_low": c.claim_low,
        "claim_high": c.claim_high,
        "probability_claim": c.probability_claim,
        "exceedance_low": c.exceedance_low,
        "exceedance_high": c.exceedance_high,
        "n": whole(c.n),
        "floor": c.floor,
        "floor_n": c.floor_n,
        "severity": c.severity,
        "tasks_to_decide": c.tasks_to_decide,
    }


def rules_block(results: Mapping[str, RuleResult]) -> dict[str, Any]:
    """All ten rules in registered order."""
    block = {}
    for name, r in results.items():
        components = [c for p in r.parts for c in p.components]
        weakest = min(components, key=lambda c: c.probability_claim) if components else None
        floored = next((c for c in components if c.floor is not None), None)
        block[name] = {
            "title": r.title,
            "verdict": r.verdict.value,
            "reason": r.reason,
            "sentence": r.sentence,
            "claim": r.claim,
            "target": r.target,
            "estimate": weakest.estimate if weakest else None,
            "interval": None
            if weakest is None
            else {"low": weakest.low, "high": weakest.high, "kind": "eti", "probability": 0.95},
            "statistic": r.statistic,
            "component": weakest.label if weakest else None,
            "n": whole(weakest.n) if weakest else None,
            "floor": floored.floor if floored else None,
            "floor_n": floored.floor_n if floored else None,
            "margin": r.margin,
            "probability_claim": r.probability_claim,
            "exceedance": r.exceedance,
            "gamma": r.gamma,
            "threshold": r.threshold,
            "tasks_to_decide": r.tasks_to_decide,
            "severity": r.severity,
            "missing": list(r.missing),
            "parts": [
                {
                    "id": p.id,
                    "verdict": p.verdict.value,
                    "reason": p.reason,
                    "claim": p.claim,
                    "probability_claim": p.probability_claim,
                    "components": [_component(c) for c in p.components],
                }
                for p in r.parts
            ],
        }
    return block


def floors_block(evidence: Evidence, results: Mapping[str, RuleResult]) -> dict[str, Any]:
    """Flip rates of the arms and floors of the contrasts that were judged."""
    flips = {}
    for f in evidence.measured_flips():
        s = summarise_draws(f.draws)
        flips[f"{f.arm}@{f.budget}"] = {
            "mean": s.mean,
            "low": s.low,
            "high": s.high,
            "flips": f.flips,
            "pairs": f.pairs,
            "tasks": f.tasks,
        }
    contrasts = [
        {
            "rule": name,
            "component": c.label,
            "floor": c.floor,
            "tasks": c.floor_tasks,
            "replicates": c.floor_n // c.floor_tasks if c.floor_n and c.floor_tasks else None,
        }
        for name, r in results.items()
        for p in r.parts
        for c in p.components
        if c.floor is not None
    ]
    return {"p_flip": flips, "contrasts": contrasts}


def conjunction_block(results: Mapping[str, RuleResult]) -> dict[str, Any]:
    """Joint probability of P1 to P6 over the rules that could be tested, named."""
    testable = [
        r for name, r in results.items()
        if name.startswith("P") and r.verdict not in (Verdict.UNTESTABLE, Verdict.VOID)
    ]  # fmt: skip
    arrays = [r.holds for r in testable if r.holds is not None]
    probability = None
    if testable:
        settled_false = any(r.holds is None and r.probability_claim == 0.0 for r in testable)
        joint = float(np.logical_and.reduce(arrays).mean()) if arrays else 1.0
        probability = 0.0 if settled_false else joint
    return {"rules": [r.id for r in testable], "probability": probability}


def expected_wrong(results: Mapping[str, RuleResult]) -> float:
    """Expected number of wrong verdicts among the decided rules: what each decision left open, added up."""
    total = 0.0
    for r in results.values():
        if r.verdict is Verdict.SUPPORTED and r.probability_claim is not None:
            total += 1.0 - r.probability_claim
        elif r.verdict is Verdict.FALSIFIED:
            total += 1.0 - (r.exceedance if r.exceedance is not None else 1.0)
    return total


def _scaled(plan: Preregistration, factor: float) -> Preregistration:
    """The same plan with every smallest effect of interest multiplied."""
    rules = {}
    for name in ("P1", "P2", "P3", "P4", "P5", "P6", "R1", "R2", "R3", "R4"):
        rule = getattr(plan.rules, name)
        changed = {
            key: min(getattr(rule, key) * factor, 1.0)
            for key in ("margin", "fraction", "tolerance", "headroom_margin", "quality_margin")
            if hasattr(rule, key)
        }
        rules[name] = rule.model_copy(update=changed)
    return plan.model_copy(update={"rules": plan.rules.model_copy(update=rules)})


def sensitivity_block(evidence: Evidence, results: Mapping[str, RuleResult]) -> list[dict[str, Any]]:
    """Each rule's verdict with halved and doubled margins and with other γ; nothing here is a verdict of the run."""
    rows: dict[str, dict[str, Any]] = {
        name: {"rule": name, "as registered": r.verdict.value} for name, r in results.items()
    }
    variants = [(f"margins × {factor:g}", _scaled(evidence.plan, factor)) for factor in SCALES]
    for gamma in GAMMAS:
        decision = evidence.plan.decision.model_copy(update={"gamma": gamma})
        variants.append((f"γ = {gamma:g}", evidence.plan.model_copy(update={"decision": decision})))
    for label, plan in variants:
        for name, r in evaluate_rules(replace(evidence, plan=plan)).items():
            rows[name][label] = r.verdict.value
    return list(rows.values())
