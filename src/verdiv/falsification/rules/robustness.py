"""R1 seeds, R2 family composition, R3 quantization, R4 serving load."""

from __future__ import annotations

import numpy as np

from verdiv.estimators.observations import FloatArray
from verdiv.estimators.tally import Tally
from verdiv.falsification.decision import Component, Part
from verdiv.falsification.evidence import Evidence, break_even_draws
from verdiv.falsification.floors import Floor, noise_draws, noise_floor
from verdiv.falsification.rules.dividend import burst_parts, parity_missing, parity_parts

__all__ = ["compositions", "r1", "r2", "r3", "r4"]


def r1(e: Evidence) -> list[Part]:
    """R1: quality at the registered B* hardly differs between the fixed seeds, on the tasks that were run."""
    rule, b = e.plan.rules.R1, e.plan.break_even_budget
    claim = f"pairwise differences of A3's quality at B = {b} between seeds within ±{rule.margin:g}"
    if not e.has_arm("A3", b):
        return [Part("a", claim, missing=(f"arm A3 at B = {b}",))]
    answers = e.tally.answers("A3", b)
    if len(answers) < 2:
        return [Part("a", claim, missing=("a second seed in arm A3",))]
    if sum(a.executed for a in answers) < 2:
        return [
            Part(
                "a",
                claim,
                skipped="the seeds share all their draws by construction: they differ by exactly 0",
            )
        ]
    flips = e.flips("A3", b)
    if flips is None:
        return [
            Part(
                "a",
                claim,
                missing=("independent replicates of arm A3 (the replicates share seed and prompt)",),
            )
        ]
    components = []
    for i, pair in enumerate(e.tally.seed_differences(b)):
        n = pair.tasks
        if n == 0:
            continue
        rng = np.random.default_rng(np.random.SeedSequence([e.seed, 0x5EED, i]))
        observed = pair.difference / n
        components.append(
            Component(
                f"seed{pair.first}-seed{pair.second}",
                f"quality under seed {pair.first} minus seed {pair.second}",
                observed - noise_draws(flips, flips, tasks=n, replicates=1, rng=rng),
                -rule.margin,
                rule.margin,
                n=float(n),
                tasks=n,
                paired=True,
                floor=noise_floor(flips, flips, tasks=n, replicates=1),
                margin=rule.margin,
                alternative=rule.alternative,
            )
        )
    if not components:
        return [Part("a", claim, missing=("tasks run under two seeds",))]
    return [Part("a", claim, tuple(components))]


def compositions(families: tuple[str, ...], weights: FloatArray) -> list[tuple[str, FloatArray]]:
    """Leave-one-family-out suites and the equally weighted one, as weight vectors of shape ``(families,)``."""
    out = []
    for f, name in enumerate(families):
        w = weights.copy()
        w[f] = 0.0
        if w.sum() > 0:
            out.append((f"without {name}", w / w.sum()))
    out.append(("equal weights", np.full(len(families), 1.0 / len(families))))
    return out


def r2(e: Evidence) -> list[Part]:
    """R2: spend parity and B* hold in every leave-one-family-out suite and with equal weights, jointly."""
    rule, b = e.plan.rules.R2, e.plan.break_even_budget
    claim = f"P3 holds and B* is at most {b} without any one family and with equal weights, jointly"
    if len(e.tally.families) < 2:
        return [Part("a", claim, missing=("a second task family",))]
    missing = parity_missing(e)
    if missing:
        return [Part("a", claim, missing=missing)]
    components: list[Component] = []
    for label, weights in compositions(e.tally.families, e.direct.bootstrap.weights):
        quality, bill = parity_parts(
            e, margin=rule.margin, alternative=rule.alternative, weights=weights, label=label
        )
        found = break_even_draws(e.direct, e.plan.max_budget, weights=weights)
        components += [quality, bill]
        if found is not None:
            never = float(e.plan.max_budget + 1)
            components.append(
                Component(
                    f"B*:{label}",
                    f"B*, {label} (none by B_max counts as {never:g})",
                    np.where(found > 0, found, never),
                    claim_high=float(b),
                    n=quality.n,
                    tasks=quality.tasks,
                )
            )
    return [Part("a", claim, tuple(components))]


def _condition_component(
    e: Evidence, other: Tally, condition: str, budget: int, margin: float, alternative: float, stream: int
) -> Component | str:
    primary, changed = e.tally.at_budget.get(("A3", budget)), other.at_budget.get(("A3", budget))
    if primary is None or changed is None:
        return f"arm A3 at B = {budget} under both conditions"
    common = (primary.n > 0) & (changed.n > 0)
    n = int(common.sum())
    if n == 0:
        return "tasks run under both conditions"
    mean = (primary.k[common] / primary.n[common] - changed.k[common] / changed.n[common]).mean()
    replicates = max(1, round(float(np.minimum(primary.n, changed.n)[common].mean())))
    first = e.flips("A3", budget)
    second = e.flips("A3", budget, condition) or first
    first = first or second
    floor: Floor | None = None
    if first is None or second is None:
        return "independent replicates of arm A3 to measure item flips"
    floor = noise_floor(first, second, tasks=n, replicates=replicates)
    rng = np.random.default_rng(np.random.SeedSequence([e.seed, stream, budget]))
    noise = noise_draws(first, second, tasks=n, replicates=replicates, rng=rng)
    return Component(
        f"Q_{budget}",
        f"quality of A3 at B = {budget}, primary minus {condition}",
        float(mean) - noise,
        -margin,
        margin,
        n=float(n * replicates),
        tasks=n,
        paired=True,
        floor=floor,
        margin=margin,
        alternative=alternative,
    )


def _condition_part(e: Evidence, condition: str, margin: float, alternative: float, stream: int) -> Part:
    b = e.plan.break_even_budget
    claim = f"quality of A3 at B = 1 and B = {b} under {condition} within ±{margin:g} of primary"
    other = e.conditions.get(condition)
    if other is None or "A3" not in other.arms:
        return Part("a", claim, missing=(f"arm A3 under condition {condition!r}",))
    made = [_condition_component(e, other, condition, k, margin, alternative, stream) for k in sorted({1, b})]
    missing = tuple(dict.fromkeys(m for m in made if isinstance(m, str)))
    return Part("a", claim, tuple(c for c in made if isinstance(c, Component)), missing)


def r3(e: Evidence) -> list[Part]:
    """R3: the small tier's quality hardly depends on its numeric format, on the tasks that were run."""
    rule = e.plan.rules.R3
    return [_condition_part(e, rule.condition, rule.margin, rule.alternative, 0xB16)]


def r4(e: Evidence) -> list[Part]:
    """R4: nor on the serving load, and P6 holds at heavy load."""
    rule = e.plan.rules.R4
    return [
        _condition_part(e, rule.condition, rule.margin, rule.alternative, 0x10AD),
        *burst_parts(e, condition=rule.condition, prefix=("b", "c")),
    ]
