"""The decision rule: from posterior draws of components to one verdict.

Supported: all components inside their claims, jointly in the same posterior draws, with probability at least γ.
Falsified: some component lies beyond one side of its claim with probability at least ``1 − (1 − γ)/J``, J the number
of component sides of the rule; a mean paired difference must also exceed its noise floor. Everything else is
inconclusive. That P(claim) is small never falsifies by itself: a diffuse posterior has no mass in a narrow claim.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from verdiv.estimators.bootstrap import summarise_draws
from verdiv.estimators.observations import FloatArray
from verdiv.falsification.floors import Floor
from verdiv.falsification.verdict import ComponentResult, PartResult, RuleResult, Verdict
from verdiv.rounding import exact, width
from verdiv.rounding import probability as shown

__all__ = ["Component", "Part", "decide", "sides"]


@dataclass(frozen=True)
class Component:
    """One quantity with a claim interval."""

    id: str
    label: str
    draws: FloatArray
    """Posterior draws, shape ``(draws,)``."""
    claim_low: float | None = None
    claim_high: float | None = None
    n: float | None = None
    """Draws, pairs or chains behind it."""
    tasks: int | None = None
    """Tasks behind it, for how many would decide."""
    paired: bool = False
    """A mean paired difference, which needs a noise floor."""
    floor: Floor | None = None
    margin: float | None = None
    alternative: float | None = None
    """Value at which severity is judged."""


@dataclass(frozen=True)
class Part:
    """One part of a rule: components judged jointly, or a settled verdict, or what is missing."""

    id: str
    claim: str
    components: tuple[Component, ...] = ()
    missing: tuple[str, ...] = ()
    """What the log or the registration lacks; not empty means untestable."""
    settled: tuple[Verdict, str] | None = None
    """Verdict and reason where the part is a count, not a posterior."""
    skipped: str | None = None
    """Why the part does not apply to this run; a skipped part is untestable without failing the rule's other parts."""
    note: str | None = None


def sides(parts: Sequence[Part]) -> int:
    """Count the component sides of a rule: what could falsify it, J in ``1 − (1 − γ)/J``."""
    count = 0
    for part in parts:
        if part.settled is not None:
            count += 1
        for c in part.components:
            count += (c.claim_low is not None) + (c.claim_high is not None)
    return max(count, 1)


def _inside(c: Component) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    inside = np.ones(len(c.draws), dtype=bool)
    if c.claim_low is not None:
        inside &= c.draws >= c.claim_low
    if c.claim_high is not None:
        inside &= c.draws <= c.claim_high
    return inside


def _severity(c: Component, sd: float, threshold: float) -> float | None:
    """Chance of falsifying under the alternative, were the posterior normal with this run's standard deviation."""
    if c.alternative is None or not sd > 0.0:
        return None
    z = float(ndtri(threshold))
    chance = 0.0
    if c.claim_low is not None and c.alternative < c.claim_low:
        edge = c.claim_low - z * sd
        if c.paired:
            edge = min(edge, -c.floor.value) if c.floor else -math.inf
        chance = float(ndtr((edge - c.alternative) / sd))
    elif c.claim_high is not None and c.alternative > c.claim_high:
        edge = c.claim_high + z * sd
        if c.paired:
            edge = max(edge, c.floor.value) if c.floor else math.inf
        chance = float(ndtr((c.alternative - edge) / sd))
    else:
        return None
    return chance


def _tasks_to_decide(c: Component, mean: float, sd: float, gamma: float, threshold: float) -> int | None:
    """Tasks at which the present mean would be decided, the posterior sd shrinking with the root of their number."""
    if c.tasks is None or not sd > 0.0:
        return None
    gaps = []
    for edge, sign in ((c.claim_low, 1.0), (c.claim_high, -1.0)):
        if edge is not None:
            gaps.append(sign * (mean - edge))
    nearest = min(gaps)
    if nearest == 0.0:
        return None
    level = gamma if nearest > 0 else threshold
    if nearest > 0 and len(gaps) == 2:
        level = 1.0 - (1.0 - gamma) / 2.0
    ratio = float(ndtri(level)) * sd / abs(nearest)
    if ratio > 1e4:
        return None
    return max(c.tasks, math.ceil(c.tasks * ratio**2))


def _judge(c: Component, gamma: float, threshold: float) -> ComponentResult:
    s = summarise_draws(c.draws)
    tame = s.low <= s.mean <= s.high  # not so for a ratio whose denominator comes close to 0
    sd = s.sd if tame else (s.high - s.low) / (2.0 * float(ndtri(0.975)))
    below = float((c.draws < c.claim_low).mean()) if c.claim_low is not None else None
    above = float((c.draws > c.claim_high).mean()) if c.claim_high is not None else None
    return ComponentResult(
        id=c.id,
        label=c.label,
        estimate=s.mean if tame else s.median,
        low=s.low,
        high=s.high,
        claim_low=c.claim_low,
        claim_high=c.claim_high,
        probability_claim=float(_inside(c).mean()),
        exceedance_low=below,
        exceedance_high=above,
        n=c.n,
        floor=c.floor.value if c.floor else None,
        floor_n=c.floor.tasks * c.floor.replicates if c.floor else None,
        floor_tasks=c.floor.tasks if c.floor else None,
        severity=_severity(c, sd, threshold),
        tasks_to_decide=_tasks_to_decide(c, s.mean, sd, gamma, threshold) if tame else None,
    )


def _beyond(c: Component, r: ComponentResult, threshold: float) -> bool:
    exceeds = any(p is not None and p >= threshold for p in (r.exceedance_low, r.exceedance_high))
    if not (exceeds and c.paired):
        return exceeds
    return c.floor is not None and abs(r.estimate) > c.floor.value


def _blocked(part: Part) -> str | None:
    """Why a paired difference cannot be supported however its posterior lies."""
    for c in part.components:
        if c.paired and c.floor is None:
            return f"no noise floor for {c.label}: no independent replicates to measure item flips"
        if c.paired and c.floor is not None and c.margin is not None and c.floor.value > c.margin:
            return f"margin below the noise floor: {exact(c.margin)} < {width(c.floor.value)} for {c.label}"
    return None


def _part(part: Part, gamma: float, threshold: float) -> PartResult:
    if part.missing:
        return PartResult(
            part.id,
            part.claim,
            Verdict.UNTESTABLE,
            "missing: " + "; ".join(part.missing),
            None,
            (),
            part.missing,
        )
    if part.skipped is not None:
        return PartResult(part.id, part.claim, Verdict.UNTESTABLE, part.skipped, None, (), ())
    judged = tuple(_judge(c, gamma, threshold) for c in part.components)
    if part.settled is not None:
        verdict, reason = part.settled
        probability = {Verdict.SUPPORTED: 1.0, Verdict.FALSIFIED: 0.0}.get(verdict)
        return PartResult(part.id, part.claim, verdict, reason, probability, judged)
    joint = np.logical_and.reduce([_inside(c) for c in part.components])
    probability = float(joint.mean())
    beyond = [r for c, r in zip(part.components, judged, strict=True) if _beyond(c, r, threshold)]
    if beyond:
        worst = max(beyond, key=lambda r: max(r.exceedance_low or 0.0, r.exceedance_high or 0.0))
        chance = max(worst.exceedance_low or 0.0, worst.exceedance_high or 0.0)
        reason = (
            f"{worst.label} lies beyond its claim with probability {chance:.3f}, at least {threshold:.3f}"
        )
        return PartResult(part.id, part.claim, Verdict.FALSIFIED, reason, probability, judged)
    blocked = _blocked(part)
    if blocked is None and probability >= gamma:
        reason = f"P(claim) {shown(probability)}, at least {gamma:g}"
        return PartResult(part.id, part.claim, Verdict.SUPPORTED, reason, probability, judged)
    return PartResult(
        part.id,
        part.claim,
        Verdict.INCONCLUSIVE,
        blocked or _undecided(judged, probability, gamma),
        probability,
        judged,
    )


def _undecided(judged: Sequence[ComponentResult], probability: float, gamma: float) -> str:
    text = f"P(claim) {shown(probability)}, short of {gamma:g}"
    need = [r.tasks_to_decide for r in judged if r.probability_claim < gamma]
    known = [n for n in need if n is not None]
    if known and len(known) == len(need):
        text += f"; about {max(known):,} tasks would decide"
    return text


def decide(
    rule_id: str,
    title: str,
    claim: str,
    target: str,
    parts: Sequence[Part],
    *,
    gamma: float,
    statistic: str,
    margin: float | None,
    void: str | None = None,
) -> RuleResult:
    """Judge a rule from its parts.

    Parameters
    ----------
    rule_id, title, claim, target, statistic, margin
        What the rule is about; copied to the result.
    parts
        Parts in registered order.
    gamma
        Least posterior probability of the claim for ``supported``.
    void
        Why no verdict may stand (broken lock, failed fit), or None.

    Returns
    -------
    RuleResult
        Falsified if any testable part is; else untestable if any is; else supported if the joint probability of
        all components reaches γ; else inconclusive.
    """
    testable = [p for p in parts if not p.missing and p.skipped is None]
    j = sides(testable)
    threshold = gamma if j == 1 else 1.0 - (1.0 - gamma) / j
    judged = tuple(_part(p, gamma, threshold) for p in parts)
    components = [c for p in testable for c in p.components]
    holds = np.logical_and.reduce([_inside(c) for c in components]) if components else None
    joint = float(holds.mean()) if holds is not None else None
    settled = [p.settled[0] for p in testable if p.settled is not None]
    if holds is not None and joint is not None and any(v is Verdict.FALSIFIED for v in settled):
        joint, holds = 0.0, np.zeros_like(holds)
    if joint is None and settled and all(v in (Verdict.SUPPORTED, Verdict.FALSIFIED) for v in settled):
        joint = 1.0 if all(v is Verdict.SUPPORTED for v in settled) else 0.0
    verdict, reason = _combine(parts, judged, joint, gamma)
    chances = [
        x
        for p in judged
        for c in p.components
        for x in (c.exceedance_low, c.exceedance_high)
        if x is not None
    ]
    severities = [c.severity for p in judged for c in p.components if c.severity is not None]
    need = [c.tasks_to_decide for p in judged for c in p.components if c.tasks_to_decide is not None]
    result = RuleResult(
        id=rule_id,
        title=title,
        claim=claim,
        target=target,
        verdict=verdict,
        reason=reason,
        sentence="",
        probability_claim=joint,
        exceedance=max(chances) if chances else None,
        gamma=gamma,
        threshold=threshold,
        parts=judged,
        statistic=statistic,
        margin=margin,
        severity=min(severities) if severities else None,
        tasks_to_decide=max(need) if need and verdict is Verdict.INCONCLUSIVE else None,
        missing=tuple(dict.fromkeys(m for p in parts for m in p.missing)),
        holds=holds,
    )
    if void is not None:
        return replace(result, verdict=Verdict.VOID, reason=void)
    return result


def _reasons(chosen: Sequence[PartResult], parts: int) -> str:
    """Join the reasons of some parts of a rule, each once, behind the parts that it holds for."""
    by_reason: dict[str, list[str]] = {}
    for part in chosen:
        by_reason.setdefault(part.reason, []).append(part.id)
    return "; ".join(
        reason if len(ids) == parts else f"({', '.join(ids)}) {reason}" for reason, ids in by_reason.items()
    )


def _combine(
    parts: Sequence[Part], judged: Sequence[PartResult], joint: float | None, gamma: float
) -> tuple[Verdict, str]:
    by = {v: [p for p in judged if p.verdict is v] for v in Verdict}
    if by[Verdict.FALSIFIED]:
        return Verdict.FALSIFIED, _reasons(by[Verdict.FALSIFIED][:1], len(judged))
    missing = [p for p, plan in zip(judged, parts, strict=True) if p.verdict is Verdict.UNTESTABLE]
    if missing:
        return Verdict.UNTESTABLE, _reasons(missing, len(judged))
    if by[Verdict.INCONCLUSIVE]:
        return Verdict.INCONCLUSIVE, _reasons(by[Verdict.INCONCLUSIVE], len(judged))
    if joint is not None and joint >= gamma:
        return Verdict.SUPPORTED, f"P(claim) {shown(joint)}, at least {gamma:g}"
    return Verdict.INCONCLUSIVE, (
        f"every part holds by itself, but jointly P(claim) {shown(joint)}, short of {gamma:g}"
        if joint is not None
        else "nothing to judge"
    )
