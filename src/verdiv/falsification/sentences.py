"""A sentence for each verdict that a reader can check against the numbers beside it."""

from __future__ import annotations

from collections.abc import Sequence

from verdiv.falsification.decision import Part
from verdiv.falsification.verdict import ComponentResult, RuleResult, Verdict
from verdiv.rounding import estimate, exact, probability, width

__all__ = ["sentence"]

SHOWN = 4
"""Components that a sentence spells out at most."""


def _claim(c: ComponentResult) -> str:
    if c.claim_low is not None and c.claim_high is not None:
        return f"between {exact(c.claim_low)} and {exact(c.claim_high)}"
    if c.claim_low is not None:
        return f"at least {exact(c.claim_low)}"
    return f"at most {exact(c.claim_high)}"


def _component(c: ComponentResult) -> str:
    text = f"{c.label}: {estimate(c.estimate, c.low, c.high)}, claimed {_claim(c)}, "
    text += f"P(claim) {probability(c.probability_claim)}"
    if c.floor is not None:
        text += f", noise floor {width(c.floor)} over {c.floor_n} pairs"
    return text


def sentence(result: RuleResult, parts: Sequence[Part]) -> str:
    """Say what was found, what was claimed, and why the verdict follows.

    Parameters
    ----------
    result
        The judged rule.
    parts
        Its parts, for their notes.

    Returns
    -------
    str
        One or a few sentences of plain text.
    """
    lead = {
        Verdict.SUPPORTED: "Supported",
        Verdict.FALSIFIED: "Falsified",
        Verdict.INCONCLUSIVE: "Inconclusive",
        Verdict.UNTESTABLE: "Untestable",
        Verdict.VOID: "Void",
    }[result.verdict]
    components = [c for p in result.parts for c in p.components]
    components.sort(key=lambda c: c.probability_claim)
    said = [_component(c) for c in components[:SHOWN]]
    if len(components) > SHOWN:
        said.append(f"and {len(components) - SHOWN} more components with larger P(claim)")
    notes = [p.note for p in parts if p.note]
    text = f"{lead}{', ' if result.reason.startswith('missing: ') else ': '}{result.reason}."
    if said:
        text += " Found: " + "; ".join(said) + "."
    if notes:
        text += " Note: " + "; ".join(notes) + "."
    return text
