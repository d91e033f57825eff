"""The rules as data, and the loop that judges them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from verdiv.falsification.decision import Part, decide
from verdiv.falsification.evidence import Evidence
from verdiv.falsification.rules.blind import p1, p4
from verdiv.falsification.rules.dividend import p2, p3, p5, p6
from verdiv.falsification.rules.robustness import r1, r2, r3, r4
from verdiv.falsification.sentences import sentence
from verdiv.falsification.verdict import RuleResult
from verdiv.preregistration import Preregistration

__all__ = ["RULES", "RuleSpec", "evaluate_rules"]

NEW, THESE = "new tasks", "these tasks"


@dataclass(frozen=True)
class RuleSpec:
    """What a rule is, apart from any run."""

    id: str
    title: str
    target: str
    statistic: str
    margin: Callable[[Preregistration], float | None]
    evaluate: Callable[[Evidence], list[Part]]


RULES: Sequence[RuleSpec] = (
    RuleSpec(
        "P1",
        "Blind flatness",
        f"(a) {THESE}; (b) {NEW}",
        "(a) flips among greedy blind redraws; (b) [G(2) − V(2)]/V(2)",
        lambda p: p.rules.P1.fraction,
        p1,
    ),
    RuleSpec(
        "P2",
        "Feedback headroom",
        NEW,
        "(a) D_c; (b) paired quality A3 − A1 at equal budget",
        lambda p: p.rules.P2.headroom_margin,
        p2,
    ),
    RuleSpec(
        "P3",
        "Spend parity",
        NEW,
        "(a) paired quality A3 − A4; (b) bill A3 − A4",
        lambda p: p.rules.P3.quality_margin,
        p3,
    ),
    RuleSpec(
        "P4",
        "Detection-rate drift",
        NEW,
        "(a) flag share of wrong retries minus other chains' wrong initial draws; (b) second half minus first",
        lambda p: p.rules.P4.margin,
        p4,
    ),
    RuleSpec(
        "P5",
        "Feedback accumulation collapse",
        NEW,
        "late over first repair success",
        lambda p: p.rules.P5.fraction,
        p5,
    ),
    RuleSpec(
        "P6", "Burst penalty", NEW, "(a) H(E_B − 1); (b) loaded bill − ρ", lambda p: p.rules.P6.tolerance, p6
    ),
    RuleSpec("R1", "Seeds", THESE, "pairwise differences of Q_B*", lambda p: p.rules.R1.margin, r1),
    RuleSpec("R2", "Family composition", NEW, "P3 and B* per composition", lambda p: p.rules.R2.margin, r2),
    RuleSpec("R3", "Quantization", THESE, "differences of Q_1 and Q_B*", lambda p: p.rules.R3.margin, r3),
    RuleSpec(
        "R4",
        "Serving load",
        THESE,
        "differences of Q_1 and Q_B*; P6 at heavy load",
        lambda p: p.rules.R4.margin,
        r4,
    ),
)
"""All ten rules in the order in which they are registered and reported."""


def evaluate_rules(evidence: Evidence, *, void: str | None = None) -> dict[str, RuleResult]:
    """Judge all ten rules.

    Parameters
    ----------
    evidence
        What the run shows.
    void
        Why no verdict may stand, or None.

    Returns
    -------
    dict
        Rule id to result, in registered order; all ten are always there.
    """
    results = {}
    for spec in RULES:
        parts = spec.evaluate(evidence)
        result = decide(
            spec.id,
            spec.title,
            "; ".join(f"({p.id}) {p.claim}" if len(parts) > 1 else p.claim for p in parts),
            spec.target,
            parts,
            gamma=evidence.plan.decision.gamma,
            statistic=spec.statistic,
            margin=spec.margin(evidence.plan),
            void=void,
        )
        results[spec.id] = replace(result, sentence=sentence(result, parts))
    return results
