"""P1, blind flatness, and P4, detection-rate drift."""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, betaincinv

from verdiv.estimators.observations import FloatArray
from verdiv.falsification.decision import Component, Part
from verdiv.falsification.evidence import Evidence
from verdiv.falsification.verdict import Verdict
from verdiv.rounding import estimate

__all__ = ["blind_gap", "p1", "p4", "u_statistic"]


def _flatness(e: Evidence) -> Part:
    allowed = e.plan.rules.P1.flips_allowed
    claim = f"A2: at most {allowed} flips of correct among greedy blind redraws"
    if "A2" not in e.tally.arms:
        return Part("a", claim, missing=("arm A2 (gated blind retry at temperature 0)",))
    g = e.tally.greedy
    if g.redraws == 0:
        return Part("a", claim, skipped="no greedy blind redraw was made, so none could flip")
    said = f"{g.flips} of {g.redraws} greedy blind redraws flipped"
    if g.bytes_differ:
        said += f" ({g.bytes_differ} differ in their bytes)"
    if g.flips <= allowed:
        return Part("a", claim, settled=(Verdict.SUPPORTED, said))
    if g.reruns == 0:
        why = f"{said}, but no greedy rerun of such a draw outside A2 tells whether the decoder flips"
        return Part("a", claim, settled=(Verdict.INCONCLUSIVE, why))
    threshold = 1.0 - (1.0 - e.plan.decision.gamma) / 3.0
    grid = (np.arange(2000) + 0.5) / 2000
    redraw = betaincinv(g.flips + 0.5, g.redraws - g.flips + 0.5, grid)
    chance = float(betainc(g.rerun_flips + 0.5, g.reruns - g.rerun_flips + 0.5, redraw).mean())
    beside = f"{g.rerun_flips} of {g.reruns} greedy reruns of such draws outside A2 flipped"
    if chance >= threshold:
        return Part(
            "a", claim, settled=(Verdict.FALSIFIED, f"{said}, more than {beside} (probability {chance:.3f})")
        )
    return Part(
        "a", claim, settled=(Verdict.INCONCLUSIVE, f"{said}; {beside}: the decoder is not deterministic")
    )


def u_statistic(drawn: FloatArray, correct: FloatArray, wrong_flagged: FloatArray, budget: int) -> FloatArray:
    """Unbiased estimate, per task, of the exchangeable blind form at a budget.

    ``U_i(B) = Σ_{j<B} c d(d−1)…(d−j+1) / [N(N−1)…(N−j)]``: the share of ordered tuples of parallel draws in which
    ``j`` flagged wrong draws are followed by a correct one. It holds whatever the dependence of q and δ within a task.

    Parameters
    ----------
    drawn, correct, wrong_flagged
        N, c and d per task, shape ``(tasks,)``.
    budget
        B; tasks with N < B give NaN.

    Examples
    --------
    Of 4 draws 2 right, 1 wrong and flagged: 2/4 + 2·1/(4·3).

    >>> float(u_statistic(np.array([4.0]), np.array([2.0]), np.array([1.0]), 2)[0])
    0.6666666666666666
    """
    total = np.zeros_like(drawn)
    term = np.where(drawn >= budget, 1.0, np.nan)
    for j in range(budget):
        total = total + term * correct / np.where(drawn - j > 0, drawn - j, np.nan)
        term = term * np.maximum(wrong_flagged - j, 0.0) / np.where(drawn - j > 0, drawn - j, np.nan)
    return total


def blind_gap(e: Evidence, budget: int) -> FloatArray | None:
    """``[G(B) − V(B)]/V(B)``: by how much A2s gains more than exchangeable draws would, as a share.

    ``G = direct(B) − direct(1)`` of A2s, ``V = U(B) − U(1)`` of the parallel draws of the same tasks, under the same
    task weights. Both carry half a pseudo-draw on each side in units of chains, drawn apart, so that no event at all
    is ignorance and not a gain of exactly zero.

    Returns
    -------
    numpy.ndarray or None
        Shape ``(draws,)``; None where no task has the draws.
    """
    name = f"blind@{budget}"
    if not e.direct.bootstrap.has(f"{name}.n"):
        every = {budget, *(b for arm, b in e.tally.at_budget if arm == "A2s" and b > 1)}
        e.direct.bootstrap.extend({k: v for b in sorted(every) for k, v in _blind_columns(e, b).items()})
    if not e.direct.bootstrap.has(f"{name}.n"):
        return None
    made = e.direct.bootstrap.rate(f"{name}.g", f"{name}.n", f"{name}.n")
    predicted = e.direct.bootstrap.rate(f"{name}.v", f"{name}.n", f"{name}.n", exchanged=True)
    return (made - predicted) / np.maximum(predicted, 1e-12)


def _blind_columns(e: Evidence, budget: int) -> dict[str, FloatArray]:
    """Columns of the blind arm's gain and of its prediction; none where no task has the draws."""
    first, later = e.tally.at_budget.get(("A2s", 1)), e.tally.at_budget.get(("A2s", budget))
    if first is None or later is None:
        return {}
    n, c, d = e.tally.parallel.T
    usable = (n >= budget) & (first.n > 0) & (later.n > 0)
    if not usable.any():
        return {}
    gain = u_statistic(n, c, d, budget) - u_statistic(n, c, d, 1)
    name = f"blind@{budget}"
    return {
        f"{name}.g": np.where(usable, later.k - first.k, 0.0),
        f"{name}.v": np.where(usable, np.nan_to_num(gain) * later.n, 0.0),
        f"{name}.n": np.where(usable, later.n, 0.0),
    }


def _tracking(e: Evidence) -> Part:
    rule = e.plan.rules.P1
    claim = (
        f"A2s at B = 2 gains what exchangeable draws of the same tasks would, within ±{rule.fraction:g} of it"
    )
    if ("A2s", 1) not in e.tally.at_budget:
        return Part("b", claim, missing=("arm A2s (gated blind retry, stochastic)",))
    if ("A2s", 2) not in e.tally.at_budget:
        return Part("b", claim, missing=("second draws in arm A2s",))
    gap = blind_gap(e, 2)
    if gap is None:
        return Part(
            "b",
            claim,
            missing=(
                "two or more parallel stochastic initial draws of a task (arm A1, or replicates of A2s)",
            ),
        )
    cell = e.tally.at_budget["A2s", 2]
    used = (e.tally.parallel[:, 0] >= 2) & (cell.n > 0)
    more = []
    for budget in range(3, e.plan.max_budget + 1):
        further = blind_gap(e, budget)
        if further is not None:
            low, mid, high = np.quantile(further, [0.025, 0.5, 0.975])
            more.append(f"B = {budget}: {estimate(float(mid), float(low), float(high))}")
    return Part(
        "b",
        claim,
        (
            Component(
                "blind_gap",
                "gain of A2s over one draw, relative to the exchangeable form",
                gap,
                -rule.fraction,
                rule.fraction,
                n=float(cell.n[used].sum()),
                tasks=int(used.sum()),
                alternative=rule.alternative,
            ),
        ),
        note="; ".join(more) or None,
    )


def p1(e: Evidence) -> list[Part]:
    """P1: greedy blind redraws change nothing; stochastic ones track the exchangeable form."""
    return [_flatness(e), _tracking(e)]


def p4(e: Evidence) -> list[Part]:
    """P4: the detection rate does not drift, neither along a chain nor along the run."""
    rule = e.plan.rules.P4
    components, missing = [], []
    for stage, arm, words in (("drift_blind", "A2s", "blind"), ("drift_feedback", "A3", "feedback")):
        if arm not in e.tally.arms:
            missing.append(f"arm {arm}")
            continue
        if not e.tally.has(stage):
            missing.append(
                f"wrong {words} draws at attempts 2 and later beside other chains' wrong initial draws of the same "
                "task (verifier flags and replicates)"
            )
            continue
        events = e.tally.events[stage]
        components.append(
            Component(
                stage,
                f"detection rate of wrong {words} retries minus that of other chains' wrong initial draws",
                e.direct.rate(stage),
                -rule.margin,
                rule.margin,
                n=events.total_n,
                tasks=events.tasks,
                alternative=rule.alternative,
            )
        )
    along = (
        f"detection of wrong retries within ±{rule.margin:g} of other chains' wrong initial draws, "
        "blind and feedback apart"
    )
    part_a = Part("a", along, tuple(components), tuple(missing))
    claim = f"detection rate of the second half of the run within ±{rule.margin:g} of the first half's"
    halves = ("delta_first_half", "delta_second_half")
    if not all(e.tally.has(stage) for stage in halves):
        return [
            part_a,
            Part(
                "b",
                claim,
                missing=("start times and flags of wrong initial draws in both halves of the run",),
            ),
        ]
    drift = e.direct.rate(halves[1]) - e.direct.rate(halves[0], exchanged=True)
    n = sum(e.tally.events[stage].total_n for stage in halves)
    tasks = int(((e.tally.events[halves[0]].n > 0) | (e.tally.events[halves[1]].n > 0)).sum())
    second = Component(
        "delta_halves",
        "detection rate, second half of the run minus first",
        drift,
        -rule.margin,
        rule.margin,
        n=n,
        tasks=tasks,
        alternative=rule.alternative,
    )
    return [part_a, Part("b", claim, (second,))]
