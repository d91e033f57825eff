"""Names of the quantities, rules, arms and verdicts, in words that a reader can check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from verdiv.reports.blocks import Cell, Tone, clean

__all__ = [
    "ESTIMANDS",
    "RULES",
    "RULE_IDS",
    "SEVEN",
    "SEVERITIES",
    "VERDICTS",
    "ArmName",
    "Estimand",
    "RuleName",
    "Verdict",
    "arm_label",
    "estimand",
    "verdict_cell",
]


@dataclass(frozen=True, slots=True)
class Estimand:
    """How an estimate is named."""

    symbol: str
    name: str
    meaning: str
    """Its definition as a probability of events on draws."""
    share: bool = True
    """True for a quantity between 0 and 1."""


@dataclass(frozen=True, slots=True)
class RuleName:
    """How a rule is named."""

    name: str
    question: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a verdict is shown: its word, its sign in plain text, what it means."""

    word: str
    sign: str
    meaning: str
    tone: Tone


ArmName = str

VERDICTS: Final[dict[str, Verdict]] = {
    "supported": Verdict(
        "supported", "✓", "the whole claim holds with at least the registered probability", "supported"
    ),
    "falsified": Verdict(
        "falsified",
        "✗",
        "some quantity lies beyond one side of its claim with at least the registered probability, "
        "and outside the noise floor where there is one",
        "falsified",
    ),
    "inconclusive": Verdict(
        "inconclusive", "?", "the data decide neither way; the reason is named", "inconclusive"
    ),
    "untestable": Verdict(
        "untestable", "–", "an arm, a column or a contrast is missing; it is named", "untestable"
    ),
    "void": Verdict("void", "⊘", "a broken lock or a failed fit forbids any verdict", "void"),
}

RULES: Final[dict[str, RuleName]] = {
    "P1": RuleName(
        "Blind flatness", "Does redrawing without feedback buy no more than exchangeable draws do?"
    ),
    "P2": RuleName("Feedback headroom", "Does repairing with the message beat redrawing and voting?"),
    "P3": RuleName("Spend parity", "Does the feedback arm reach the teacher's quality for at most its bill?"),
    "P4": RuleName("Detection-rate drift", "Are wrong retries flagged as often as wrong first draws?"),
    "P5": RuleName("Feedback accumulation collapse", "Do late repairs still succeed as often as first ones?"),
    "P6": RuleName("Burst penalty", "Does the load that retries add stay cheap?"),
    "R1": RuleName("Seeds", "Is the result the same for every fixed seed?"),
    "R2": RuleName("Family composition", "Does spend parity survive leaving any one family out?"),
    "R3": RuleName("Quantization", "Is the result the same at the other numeric format?"),
    "R4": RuleName("Serving load", "Is the result the same under heavy load?"),
}

RULE_IDS: Final = tuple(RULES)

ESTIMANDS: Final[dict[str, Estimand]] = {
    "q0": Estimand(
        "q0", "first-draw success, stochastic", "P(correct), initial prompt, stochastic or unknown decoding"
    ),
    "q0_greedy": Estimand(
        "q0 greedy", "first-draw success, greedy", "P(correct), initial prompt, temperature 0"
    ),
    "p_d": Estimand("p_d", "detected errors", "P(wrong and flagged), initial draws"),
    "p_s": Estimand("p_s", "silent errors", "P(wrong and not flagged), initial draws"),
    "delta": Estimand("δ", "static detection rate", "P(flagged | wrong), initial draws"),
    "eta_ox": Estimand("η_ox", "oracle detection rate", "P(oracle flags | silent error)"),
    "sigma": Estimand("σ", "informative share", "P(structural | wrong and flagged)"),
    "s1": Estimand(
        "s1", "repair of structural errors", "P(first repair correct | structural error answered)"
    ),
    "s2": Estimand("s2", "repair of semantic errors", "P(first repair correct | semantic error answered)"),
    "lambda1": Estimand(
        "λ1", "silent failure of structural repairs", "P(silent | first repair wrong, structural)"
    ),
    "lambda2": Estimand(
        "λ2", "silent failure of semantic repairs", "P(silent | first repair wrong, semantic)"
    ),
    "phi": Estimand("φ", "feedback headroom, as registered", "s2 − q0", share=False),
    "phi_matched": Estimand(
        "φ matched",
        "feedback headroom, matched tasks",
        "s2 − blind success on the same tasks and class",
        share=False,
    ),
    "s_blind": Estimand(
        "s_blind", "blind redraw success", "P(first blind redraw correct | initial draw flagged)"
    ),
    "sticky_ratio": Estimand(
        "s_blind/q0", "sticky-failure ratio", "blind redraw success over first-draw success", share=False
    ),
    "sticky_ratio_model": Estimand(
        "s_blind/q0 predicted",
        "sticky-failure ratio, exchangeable draws",
        "what exchangeability predicts",
        share=False,
    ),
    "s_blind_pairs": Estimand(
        "s_blind pairs", "redraw success, parallel pairs", "P(second correct | first wrong), order-free pairs"
    ),
    "s_blind_exchangeable": Estimand(
        "s_blind exchangeable", "redraw success, exchangeable draws", "what exchangeability predicts"
    ),
    "fpr": Estimand("fpr", "false-positive rate", "P(flagged | correct), every draw"),
    "fpr_initial": Estimand(
        "fpr initial", "false-positive rate, initial draws", "P(flagged | correct), initial draws"
    ),
    "q_t": Estimand("q_T", "teacher's success", "P(correct), teacher's initial draws"),
    "delta_t": Estimand("δ_T", "teacher's detection rate", "P(flagged | wrong), teacher's initial draws"),
    "p_d_t": Estimand("p_dT", "teacher's detected errors", "P(wrong and flagged), teacher's initial draws"),
    "break_even": Estimand(
        "B*",
        "break-even budget",
        "smallest budget with the teacher's quality at no more than its bill",
        share=False,
    ),
    "h": Estimand("H", "load correction", "elasticity of device seconds in requests in flight", share=False),
    "d_c": Estimand(
        "D_c", "first repair dividend", "quality that the first feedback repair adds", share=False
    ),
}
"""Lower-case estimate id to its name, in the order of the report."""

SEVEN: Final = (
    ("delta", "eta_ox"),
    ("sigma",),
    ("phi",),
    ("sticky_ratio",),
    ("fpr",),
    ("break_even",),
    ("h",),
)
"""The seven registered estimands ("The Verifier's Dividend", Preregistered Protocol); the first is a pair."""

SEVERITIES: Final = ("critical", "high", "medium", "low", "info", "note")
"""Severities of findings, most serious first."""

_ARMS: Final[dict[str, str]] = {
    "A0": "one-shot, small tier",
    "A1": "majority vote, small tier",
    "A2": "gated blind retry, greedy",
    "A2s": "gated blind retry, stochastic",
    "A3": "gated feedback retry",
    "A4": "teacher, one-shot",
    "A5": "teacher, gated",
    "blended": "feedback retry, then the teacher",
}


def estimand(name: str) -> Estimand:
    """Return how an estimate is named; an unknown id stands for itself."""
    known = ESTIMANDS.get(name.lower())
    return known if known is not None else Estimand(clean(name), clean(name), "", share=False)


def arm_label(arm: ArmName) -> str:
    """Return an arm's name with what it does, where that is known.

    Examples
    --------
    >>> arm_label("A3"), arm_label("mine")
    ('A3, gated feedback retry', 'mine')
    """
    words = _ARMS.get(arm)
    return f"{clean(arm)}, {words}" if words else clean(arm)


def verdict_cell(verdict: str, note: str = "", link: str = "") -> Cell:
    """Return a verdict as a cell: its word, dressed by its kind."""
    kind = VERDICTS[verdict]
    return Cell(kind.word, kind.tone, note=clean(note), link=link)
