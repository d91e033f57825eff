"""The plan of an exploratory analysis: everything that a log shows, with default margins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from verdiv.errors import Fault, InputRefused
from verdiv.preregistration.parts import ArmPlan, RateCardPlan, StoppingRule, Suite, Tier
from verdiv.preregistration.plan import Preregistration
from verdiv.preregistration.rules import (
    P1Plan,
    P2Plan,
    P3Plan,
    P4Plan,
    P5Plan,
    P6Plan,
    R1Plan,
    R2Plan,
    R3Plan,
    R4Plan,
    RulesPlan,
)
from verdiv.runlog.records import Gate

__all__ = ["DEFAULT_HYPOTHESES", "DEFAULT_RHO", "default_preregistration", "default_rules"]

DEFAULT_RHO = 2.5
"""Price of a teacher draw in units of a small one where no rate card is registered (the paper's)."""

DEFAULT_HYPOTHESES: Mapping[str, str] = {
    "P1": "Blind flatness: redrawing without feedback buys nothing at temperature 0, and at higher "
    "temperatures no more and no less than exchangeable draws of the same tasks would.",
    "P2": "Feedback headroom: the verifier's message repairs what redrawing would not, and the feedback arm "
    "is no worse than a majority vote of as many draws.",
    "P3": "Spend parity: at the break-even budget the gated small model has the teacher's quality for at "
    "most the teacher's bill.",
    "P4": "No detection-rate drift: wrong retries are flagged as often as the same task's wrong first draws.",
    "P5": "No feedback accumulation collapse: late repairs keep their share of the first repair's success.",
    "P6": "Small burst penalty: the load that retries add hardly raises the bill, which stays below the "
    "teacher's.",
    "R1": "Seeds: quality at the break-even budget hardly depends on the fixed seed.",
    "R2": "Family composition: spend parity does not hang on one task family or on the weights.",
    "R3": "Quantization: the small model's quality hardly depends on its numeric format.",
    "R4": "Serving load: the small model's quality hardly depends on the load, and the burst penalty stays "
    "small under heavy load.",
}
"""The ten hypotheses in words."""

_PROMPTS: Mapping[str, str] = {
    "A0": "none",
    "A1": "initial",
    "A2": "blind",
    "A2s": "blind",
    "A3": "feedback",
    "A4": "none",
    "A5": "blind",
}


def default_rules() -> RulesPlan:
    """Return the default margins: .05 on quality, .10 on detection, .25 and .5 as fractions.

    Examples
    --------
    >>> default_rules().P3.quality_margin
    0.05
    """
    return RulesPlan(
        P1=P1Plan(fraction=0.25),
        P2=P2Plan(headroom_margin=0.02, quality_margin=0.05),
        P3=P3Plan(quality_margin=0.05),
        P4=P4Plan(margin=0.10),
        P5=P5Plan(fraction=0.5),
        P6=P6Plan(tolerance=0.05),
        R1=R1Plan(margin=0.05),
        R2=R2Plan(margin=0.05),
        R3=R3Plan(margin=0.05),
        R4=R4Plan(margin=0.05),
    )


def _arm(name: str, budget: int) -> ArmPlan:
    tier = "teacher" if name in ("A4", "A5") else "small"
    prompt = _PROMPTS.get(name, "feedback" if budget > 1 else "none")
    if prompt == "none" and budget > 1:
        prompt = "blind"
    k = budget if prompt == "initial" else None
    return ArmPlan.model_validate({"tier": tier, "budget": budget, "prompt": prompt, "k": k})


def default_preregistration(
    families: Mapping[str, int],
    arms: Iterable[str],
    max_attempt_by_arm: Mapping[str, int],
    gate: Gate | str,
) -> Preregistration:
    """Build the plan of an exploratory analysis from what a log holds.

    Family f with n_f of n tasks weighs n_f/n, so that the suite is the log's own mix of tasks. Arms have
    the largest attempt seen as budget; margins, priors and the decision rule are the defaults.

    Parameters
    ----------
    families
        Family to its number of tasks in the log.
    arms
        Arms of the log.
    max_attempt_by_arm
        Arm to the largest attempt in the log; for A1, to its number of votes. An arm without an entry has 1.
    gate
        What sent draws to retry.

    Returns
    -------
    Preregistration
        A plan with ``digest`` None, hence exploratory.

    Raises
    ------
    InputRefused
        No family has a task.

    Examples
    --------
    >>> plan = default_preregistration({"f": 3, "g": 1}, ["A0", "A3"], {"A3": 4}, "verifier")
    >>> plan.families, plan.arms["A3"].budget, plan.registered
    ({'f': 0.75, 'g': 0.25}, 4, False)
    """
    counts = {family: int(count) for family, count in families.items() if count > 0}
    total = sum(counts.values())
    if total == 0:
        raise InputRefused(
            "An exploratory plan needs tasks.",
            [Fault("log", "at least one task", "none", "pass a log that holds draws")],
        )
    names = sorted(set(arms))
    plans = {name: _arm(name, max(1, int(max_attempt_by_arm.get(name, 1)))) for name in names}
    gated = [plan.budget for plan in plans.values() if plan.prompt in ("blind", "feedback")]
    rules = default_rules()
    votes = plans["A1"].k if "A1" in plans else None
    if votes is not None and votes != rules.P2.k:
        rules = rules.model_copy(update={"P2": rules.P2.model_copy(update={"k": votes})})
    return Preregistration(
        title="Exploratory analysis",
        authors=(),
        seen_before="Nothing was registered: the data were there before the rules were chosen.",
        hypotheses=dict(DEFAULT_HYPOTHESES),
        tiers={
            "small": Tier(model="as logged", cost_units=1.0),
            "teacher": Tier(model="as logged", cost_units=DEFAULT_RHO),
        },
        suite=Suite(tasks=total, tasks_by_family=counts),
        families={family: count / total for family, count in counts.items()},
        arms=plans,
        seeds=(),
        greedy_reruns=0,
        rate_card=RateCardPlan(rho=DEFAULT_RHO),
        gate=Gate(gate),
        max_budget=max([5, *gated]),
        rules=rules,
        stopping=StoppingRule(kind="other", text="Not registered."),
    )
