"""What ``verdiv policy recommend`` computes and how it says it: inputs to a document, a document to text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np

from verdiv import rounding
from verdiv.cli.price_inputs import PriceInput
from verdiv.cli.price_text import cell, table
from verdiv.policy.recommend import Candidate, Goal, Recommendation, candidates, recommend
from verdiv.pricing.forms import Hazards, choose_form, solve

__all__ = ["ADVICE_SCHEMA", "advice_document", "advice_text", "advise"]

ADVICE_SCHEMA = 1
"""Version of the document."""

SHOWN = 12
"""Candidates that the terminal lists."""

COST_SMALL_USD = 0.001
"""USD of a small draw, where nobody gives another."""


def advise(
    source: PriceInput,
    *,
    form: str | None,
    hazards: Hazards | None,
    goal: Goal,
    target: float,
    b_max: int,
    votes: int,
    teacher_max: int,
    assurance: float | None,
    gate: float | None,
    seed: int,
) -> Recommendation:
    """Price the candidates and choose.

    Parameters
    ----------
    source
        Parameters, or posterior draws of them.
    form, hazards
        How A3 is priced.
    goal, target, assurance
        What is to be reached.
    b_max, votes, teacher_max
        Largest budgets compared.
    gate
        Deployment gate; that of the parameters if None.
    seed
        Seed of the permutations.
    """
    r = source.rates()
    chosen = choose_form(form, r, hazards)
    found = candidates(
        r,
        chosen,
        b_max=b_max,
        votes=votes,
        teacher_max=teacher_max,
        hazards=hazards,
        sampled=source.rates(sampled=True) if source.sampled else None,
    )
    return recommend(
        found,
        goal,
        target,
        b_star=solve(chosen, r, max(b_max, 2), hazards).b_star,
        assurance=assurance,
        gate=source.point.gate if gate is None else gate,
        parameters=source.draws,
        seed=seed,
    )


def _band(draws: Any) -> dict[str, float] | float:
    """Give mean and equal-tailed 95 % interval, or the one value there is."""
    if len(draws) == 1 or float(np.ptp(draws)) == 0.0:
        return float(draws[0])
    low, high = np.quantile(draws, [0.025, 0.975])
    return {"mean": float(np.mean(draws)), "low": float(low), "high": float(high)}


def _candidate(candidate: Candidate, cost: float, share: float) -> dict[str, Any]:
    return {
        "label": candidate.label,
        "arm": candidate.arm,
        "budget": candidate.budget,
        "teacher_budget": candidate.teacher_budget,
        "escalation": "none"
        if not candidate.teacher_budget
        else "residual to the teacher, one draw"
        if candidate.teacher_budget == 1
        else f"residual to the teacher, gated, up to {candidate.teacher_budget} draws",
        "quality": _band(candidate.quality),
        "bill": _band(candidate.bill),
        "usd": float(np.mean(candidate.bill)) * cost,
        "optimum": share,
    }


def advice_document(
    advice: Recommendation, source: PriceInput, *, cost_small_usd: float | None, horizon: int
) -> dict[str, Any]:
    """Lay the advice out as plain JSON values.

    Parameters
    ----------
    advice
        The recommendation.
    source
        The parameters that it rests on.
    cost_small_usd
        USD of a small draw; that of the source if None.
    horizon
        Tasks that the policy will serve.
    """
    cost = source.cost_small_usd if cost_small_usd is None else cost_small_usd
    cost = COST_SMALL_USD if cost is None else cost
    listed = {c.label: _candidate(c, cost, advice.optimum.get(c.label, 0.0)) for c in advice.candidates}
    known, seal = advice.information, advice.certificate
    information = None
    if known is not None:
        unit = cost * horizon if advice.goal is Goal.COST else None
        information = {
            "unit": "units of one small draw per task" if advice.goal is Goal.COST else "quality per task",
            "perfect": known.perfect,
            "break_even": known.break_even,
            "parameters": dict(known.parameters),
            "horizon": horizon,
            "perfect_usd": None if unit is None else known.perfect * unit,
            "break_even_usd": None if unit is None else known.break_even * unit,
        }
    return {
        "schema": ADVICE_SCHEMA,
        "kind": "recommendation",
        "goal": advice.goal.value,
        "target": advice.target,
        "assurance": advice.assurance,
        "draws": len(advice.candidates[0].quality) if source.draws else 0,
        "choice": None if advice.choice is None else listed[advice.choice.label],
        "best_effort": listed[advice.best_effort.label],
        "right": advice.right,
        "meets": advice.meets,
        "optimum": dict(advice.optimum),
        "B_star": dict(advice.b_star),
        "gate": None
        if seal is None
        else {"gate": seal.gate, "probability": seal.probability, "passed": seal.passed},
        "information": information,
        "rate_card": {"rho": source.point.rho, "cost_small_usd": cost},
        "candidates": list(listed.values()),
        "notes": list(source.notes),
    }


def _wrapped(words: str) -> str:
    return textwrap.fill(words, 100)


def _share(value: float, drawn: bool) -> str:
    """Write a probability; without a posterior it is a plain yes or no."""
    return rounding.probability(value) if drawn else ("yes" if value >= 0.5 else "no")


def _headline(document: Mapping[str, Any]) -> str:
    """Say the choice, or that there is none."""
    choice, cost = document["choice"], document["goal"] == "cost"
    sought = (
        f"an expected quality of at least {document['target']:g}"
        if cost
        else f"an expected bill of at most {document['target']:g} small draws a task"
    )
    if document["assurance"] is not None:
        sought += f", kept with probability {document['assurance']:g}"
    if choice is None:
        best = document["best_effort"]
        return _wrapped(
            f"No policy compared here has {sought}. Nearest: {best['label']}, "
            f"quality {cell(best['quality'])}, bill {cell(best['bill'])}."
        )
    words = "Cheapest policy with" if cost else "Best policy with"
    return _wrapped(
        f"{words} {sought}: {choice['label']}. Quality {cell(choice['quality'])}, bill {cell(choice['bill'])} "
        f"small draws ({rounding.usd(choice['usd'])}) a task; escalation: {choice['escalation']}."
    )


def _doubts(document: Mapping[str, Any]) -> str:
    """Say how sure the choice is and what measuring is worth."""
    if document["choice"] is None:
        return ""
    gate = document["gate"]
    if not document["draws"]:
        reached = "reaches" if gate["passed"] else "does not reach"
        return _wrapped(
            f"The parameters are taken as exact, so the choice is right if they are, and nothing is gained by "
            f"measuring; it {reached} the deployment gate of {gate['gate']:g}. Give --fit for the doubt."
        )
    rivals = [
        f"{name} {rounding.probability(p)}"
        for name, p in document["optimum"].items()
        if name != document["choice"]["label"] and p >= 0.005
    ][:4]
    lines = [
        f"The choice is right with probability {rounding.probability(document['right'])}"
        + (f"; else {', '.join(rivals)}." if rivals else "."),
        f"It meets the target with probability {rounding.probability(document['meets'])}, and the deployment "
        f"gate of {gate['gate']:g} with {rounding.probability(gate['probability'])}.",
        "B*: " + ", ".join(f"{b}: {rounding.probability(p)}" for b, p in document["B_star"].items()) + ".",
    ]
    known = document["information"]
    if known is not None:
        lines += _worth(known)
    return "\n".join(_wrapped(line) for line in lines)


def _worth(known: Mapping[str, Any]) -> list[str]:
    """Say what measuring more is worth."""
    cost = known["perfect_usd"] is not None

    def worth(value: float) -> str:
        return f"{value:.3g} small draws a task" if cost else f"{100 * value:.3g} points of quality"

    total = f" ({rounding.usd(known['perfect_usd'])} over {known['horizon']:,} tasks)" if cost else ""
    lines = [
        f"Measuring more is worth at most {worth(known['perfect'])}{total}; knowing B* alone, "
        f"{worth(known['break_even'])}."
    ]
    useful = [(name, value) for name, value in known["parameters"].items() if value > 0]
    if useful:
        lines.append(
            "Worth most to know alone: " + ", ".join(f"{name} ({worth(v)})" for name, v in useful[:3]) + "."
        )
    return lines


def advice_text(document: Mapping[str, Any]) -> str:
    """Write a recommendation for the terminal."""
    drawn = document["draws"] > 0
    order = sorted(
        document["candidates"],
        key=lambda c: (-c["optimum"], c["usd"] if document["goal"] == "cost" else -_mean(c["quality"])),
    )
    if document["choice"] is not None:
        order.sort(key=lambda c: c["label"] != document["choice"]["label"])
    rows = [
        [c["label"], cell(c["quality"]), cell(c["bill"]), rounding.usd(c["usd"]), _share(c["optimum"], drawn)]
        for c in order[:SHOWN]
    ]
    card = document["rate_card"]
    parts = [
        _headline(document),
        _doubts(document),
        table(["policy", "quality", "bill", "USD a task", "P(optimum)" if drawn else "optimum"], rows),
    ]
    if len(order) > SHOWN:
        parts.append(f"{len(order) - SHOWN} more candidates in --json.")
    parts.append(
        _wrapped(
            f"Rate card: a teacher draw costs {card['rho']:g} small draws, a small draw "
            f"{rounding.usd(card['cost_small_usd'])}."
        )
    )
    parts += [_wrapped(note) for note in document["notes"]]
    return "\n\n".join(part for part in parts if part)


def _mean(value: Any) -> float:
    return float(value["mean"] if isinstance(value, Mapping) else value)
