"""P2, feedback headroom; P3, spend parity; P5, feedback accumulation collapse; P6, burst penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verdiv.estimators.load import NotEstimable
from verdiv.estimators.observations import FloatArray
from verdiv.falsification.decision import Component, Part
from verdiv.falsification.evidence import Evidence
from verdiv.pricing.breakeven import measured_dividend
from verdiv.pricing.closed import recovery
from verdiv.pricing.series import as_array

__all__ = ["MIN_LATE_REPAIRS", "Headroom", "headroom", "p2", "p3", "p5", "p6", "parity_parts"]

MIN_LATE_REPAIRS = 5
"""Late repairs of a class below which P5 leaves the class out: the first repair left almost nothing to collapse."""


@dataclass(frozen=True)
class Headroom:
    """What D_c is made of, in shared posterior draws of shape ``(draws,)``."""

    p_d: FloatArray
    sigma: FloatArray
    s1: FloatArray
    s2: FloatArray
    dividend: FloatArray
    form: str
    """Which form of the dividend was computed."""


def headroom(e: Evidence) -> Headroom | str:
    """Assemble the first repair dividend, or say what is missing for it.

    ``D_c = p_d[σ(s1 − b1) + (1 − σ)(s2 − b2)]`` with the measured blind redraws; without A2s the printed form
    ``p_d[σ s1 + (1 − σ)φ]``. Where the truth sent draws to retry, ``p_d = 1 − q0`` and σ is the structural share of
    the answered errors; without classes σ = 0.
    """
    t, d = e.tally, e.direct
    zero = np.zeros(e.draws)
    if "A3" not in t.arms:
        return "arm A3"
    truth = t.gate == "truth"
    if truth:
        stage = "q_greedy" if t.repair_decoding == "greedy" else "q"
        p_d = 1.0 - d.mean(stage)
    elif t.has("p_d") or (t.has("delta") and t.events["p_d"].total_n > 0):
        p_d = d.rate("p_d")
    else:
        return "verifier flags on initial draws"
    share = "answered_structural" if truth else "sigma"
    if t.unclassified:
        sigma = zero
    elif t.has(share):
        sigma = d.rate(share)
    else:
        return "classes of the flagged errors"
    rates = {}
    for stage in ("s1", "s2"):
        if t.has(stage):
            rates[stage] = d.rate(stage)
        elif stage == "s1" and t.unclassified:
            rates[stage] = zero
        else:
            return f"first repairs of {'structural' if stage == 's1' else 'semantic'} errors"
    blind = {}
    if t.has("s_blind"):
        for stage in ("b1", "b2"):
            blind[stage] = d.rate(stage if t.has(stage) else "s_blind", exchanged=True)
        dividend = measured_dividend(p_d, sigma, rates["s1"], rates["s2"], blind["b1"], blind["b2"])
        form = "p_d[σ(s1 − b1) + (1 − σ)(s2 − b2)], b measured in A2s"
        if not (t.has("b1") or t.unclassified) or not t.has("b2"):
            form += " (a class without blind redraws takes s_blind)"
    else:
        q = d.mean("q_greedy" if t.repair_decoding == "greedy" else "q", exchanged=True)
        dividend = p_d * (sigma * rates["s1"] + (1.0 - sigma) * (rates["s2"] - q))
        form = "p_d[σ s1 + (1 − σ)φ]: no A2s to measure blind redraws"
    if truth:
        form += "; p_d = 1 − q0, since the truth sent draws to retry"
    return Headroom(p_d, sigma, rates["s1"], rates["s2"], np.asarray(dividend), form)


def _majority_part(e: Evidence, found: Headroom | str) -> Part:
    rule = e.plan.rules.P2
    k = rule.k
    claim = f"above the crossover, A3 at B = {k} is no worse than A1 at k = {k} by more than {rule.quality_margin:g}"
    missing = tuple(
        f"arm {arm} at {what} {k}" for arm, what in (("A1", "k ="), ("A3", "B =")) if not e.has_arm(arm, k)
    )
    if missing or isinstance(found, str):
        return Part("b", claim, missing=missing or (str(found),))
    stage = "q_greedy" if e.tally.repair_decoding == "greedy" else "q"
    gain = e.direct.quality("A1", k) - e.direct.mean(stage, exchanged=True)
    repaired = as_array(recovery(k - 1, found.sigma, found.s1, found.s2))
    crossover = np.divide(gain, repaired, out=np.full(e.draws, np.inf), where=repaired > 0)
    above = float((found.p_d >= crossover).mean())
    if above < rule.crossover_probability:
        return Part("b", claim, skipped=f"below the crossover: P(p_d ≥ p_d^fb({k})) = {above:.3f}")
    a3, a1 = e.tally.at_budget["A3", k], e.tally.at_budget["A1", k]
    both = (a3.n > 0) & (a1.n > 0)
    component = Component(
        "majority_gap",
        f"quality of A3 at B = {k} minus A1 at k = {k}",
        e.direct.contrast(("A3", k), ("A1", k)),
        claim_low=-rule.quality_margin,
        n=float(a3.n[both].sum()),
        tasks=int(both.sum()),
        paired=True,
        floor=e.floor(("A3", k), ("A1", k)),
        margin=rule.quality_margin,
        alternative=rule.quality_alternative,
    )
    return Part("b", claim, (component,), note=f"P(p_d ≥ p_d^fb({k})) = {above:.3f}")


def p2(e: Evidence) -> list[Part]:
    """P2: the first message buys more than a blind redraw, and A3 keeps up with the majority vote."""
    rule = e.plan.rules.P2
    claim = f"first repair dividend D_c above {rule.headroom_margin:g}"
    found = headroom(e)
    if isinstance(found, str):
        return [Part("a", claim, missing=(found,)), _majority_part(e, found)]
    repairs = e.tally.events["s1"].total_n + e.tally.events["s2"].total_n
    component = Component(
        "D_c",
        "first repair dividend D_c",
        found.dividend,
        claim_low=rule.headroom_margin,
        n=repairs,
        tasks=len(e.tally.tasks),
        margin=rule.headroom_margin,
        alternative=rule.headroom_alternative,
    )
    return [Part("a", claim, (component,), note=f"D_c = {found.form}"), _majority_part(e, found)]


def parity_parts(
    e: Evidence, *, margin: float, alternative: float, weights: FloatArray | None = None, label: str = ""
) -> tuple[Component, Component]:
    """Quality and bill of A3 at the registered B* against A4's, as components of P3 and R2."""
    b = e.plan.break_even_budget
    a3, a4 = e.tally.at_budget["A3", b], e.tally.at_budget["A4", 1]
    inside = np.ones(len(e.tally.tasks), dtype=bool) if weights is None else weights[e.tally.family] > 0
    both = (a3.n > 0) & (a4.n > 0) & inside
    tail = f", {label}" if label else ""
    quality = Component(
        f"quality{':' + label if label else ''}",
        f"quality of A3 at B = {b} minus A4{tail}",
        e.direct.contrast(("A3", b), ("A4", 1), weights=weights),
        claim_low=-margin,
        n=float(a3.n[both].sum()),
        tasks=int(both.sum()),
        paired=True,
        floor=e.floor(("A3", b), ("A4", 1)),
        margin=margin,
        alternative=alternative,
    )
    bill = Component(
        f"bill{':' + label if label else ''}",
        f"bill of A3 at B = {b} minus A4's, units of one small draw{tail}",
        e.direct.bill("A3", b, weights=weights) - e.direct.bill("A4", 1, exchanged=True, weights=weights),
        claim_high=0.0,
        n=float(a3.bill_n[both].sum()),
        tasks=int(both.sum()),
    )
    return quality, bill


def parity_missing(e: Evidence) -> tuple[str, ...]:
    """Arms that spend parity needs and the log lacks."""
    b = e.plan.break_even_budget
    cells = (("A3", b, f"arm A3 at B = {b}"), ("A4", 1, "arm A4 (teacher)"))
    return tuple(words for arm, budget, words in cells if not e.has_arm(arm, budget))


def p3(e: Evidence) -> list[Part]:
    """P3: at the registered B*, A3 has the teacher's quality for at most the teacher's bill."""
    rule, b = e.plan.rules.P3, e.plan.break_even_budget
    claims = (
        f"quality of A3 at B = {b} at least A4's minus {rule.quality_margin:g}",
        f"mean bill of A3 at B = {b} at most A4's",
    )
    missing = parity_missing(e)
    if missing:
        return [Part("a", claims[0], missing=missing), Part("b", claims[1], missing=missing)]
    quality, bill = parity_parts(e, margin=rule.quality_margin, alternative=rule.alternative)
    return [Part("a", claims[0], (quality,)), Part("b", claims[1], (bill,))]


def p5(e: Evidence) -> list[Part]:
    """P5: late repairs keep a share of the first repair's success."""
    rule = e.plan.rules.P5
    claim = f"P(repair | attempts 3 … {e.plan.max_budget}) at least {rule.fraction:g} of the first repair's"
    if "A3" not in e.tally.arms:
        return [Part("a", claim, missing=("arm A3",))]
    components, notes = [], []
    for late, first, block in (("late2", "s2", "s2"), ("late1", "s1", "s1")):
        events = e.tally.events[late]
        name = (
            "unclassified"
            if e.tally.unclassified and late == "late2"
            else ("semantic" if late == "late2" else "structural")
        )
        if not e.tally.has(first) or events.total_n == 0:
            continue
        if events.total_n < MIN_LATE_REPAIRS:
            notes.append(f"{name}: {events.total_n:g} late repairs, fewer than {MIN_LATE_REPAIRS}, left out")
            continue
        ratio = e.direct.rate(late) / np.maximum(e.direct.rate(first, exchanged=True), 1e-12)
        icc = e.icc.get(block)
        if icc is not None and icc.estimable:
            of_all = np.arange(ratio.size) * icc.icc.size // ratio.size  # the fit has its own number of draws
            ratio = ratio / np.maximum(1.0 - icc.icc[of_all], 1e-3)
            notes.append(
                f"{name}: expected to fall to 1 − icc of the first repair by selection alone, taken out"
            )
        else:
            notes.append(f"{name}: icc of repairs not estimable, selection not taken out (homogeneous form)")
        components.append(
            Component(
                f"h_{name}",
                f"late over first repair success, {name} errors",
                ratio,
                claim_low=rule.fraction,
                n=events.total_n,
                tasks=events.tasks,
                alternative=rule.alternative,
            )
        )
    if not components:
        return [
            Part(
                "a",
                claim,
                missing=(f"{MIN_LATE_REPAIRS} or more feedback draws at attempts 3 to {e.plan.max_budget}",),
            )
        ]
    return [Part("a", claim, tuple(components), note="; ".join(notes))]


def burst_parts(e: Evidence, *, condition: str, prefix: tuple[str, str]) -> list[Part]:
    """P6's two parts under a condition: relative surcharge, and loaded bill against the teacher's."""
    rule, b = e.plan.rules.P6, e.plan.break_even_budget
    claims = (
        f"H(E_B − 1) at B = {b} at most {rule.tolerance:g}",
        f"bill under load E_B(1 + H(E_B − 1)) at B = {b} at most the teacher's",
    )
    fit = e.load if condition == "primary" else e.load_heavy
    missing = [] if e.has_arm("A3", b, condition) else [f"arm A3 at B = {b}"]
    if isinstance(fit, NotEstimable):
        missing.append(f"H: {fit.reason}")
    if missing or isinstance(fit, NotEstimable):
        return [Part(p, c, missing=tuple(missing)) for p, c in zip(prefix, claims, strict=True)]
    h = e.h_draws(fit)
    if condition == "primary":
        bill = e.direct.bill("A3", b)
    else:
        cell = e.conditions[condition].at_budget["A3", b]
        name = f"{condition}:A3@{b}"
        e.direct.bootstrap.extend({f"{name}.bill": cell.bill, f"{name}.bill_n": cell.bill_n})
        bill = e.direct.bootstrap.mean(
            f"{name}.bill", f"{name}.bill_n", least=cell.least, greatest=cell.greatest
        )
    label = "H" if fit.kind == "device seconds" else "H (latency)"
    surcharge = Component(
        "surcharge",
        f"{label}·(E_B − 1), relative surcharge on the bill",
        h * (bill - 1.0),
        claim_high=rule.tolerance,
        n=float(fit.draws),
        tasks=fit.tasks,
        margin=rule.tolerance,
        alternative=rule.alternative,
    )
    first = Part(prefix[0], claims[0], (surcharge,))
    if fit.kind == "latency":
        why = "device_seconds: latency rises with batching while device seconds fall, so it cannot price the device"
        return [first, Part(prefix[1], claims[1], missing=(why,))]
    price = (
        e.direct.bill("A4", 1, exchanged=True)
        if e.has_arm("A4", 1)
        else np.full(e.draws, e.plan.rate_card.rho)
    )
    loaded = Component(
        "loaded_bill",
        "bill under load minus the teacher's, units of one small draw",
        bill * (1.0 + h * (bill - 1.0)) - price,
        claim_high=0.0,
        n=float(fit.draws),
        tasks=fit.tasks,
    )
    return [first, Part(prefix[1], claims[1], (loaded,))]


def p6(e: Evidence) -> list[Part]:
    """P6: the burst of retries loads the device little."""
    return burst_parts(e, condition="primary", prefix=("a", "b"))
