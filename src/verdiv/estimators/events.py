"""Events per task: who reaches each stage of a run, and what happens there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from verdiv.estimators.observations import (
    KINDS,
    SEMANTIC,
    STRUCTURAL,
    UNCLASSIFIED,
    BoolArray,
    DrawColumns,
    FloatArray,
    IntArray,
    observation_weights,
)

__all__ = [
    "CLASS_NAMES",
    "IF_GREEDY",
    "IF_UNCLASSIFIED",
    "TEACHER",
    "Counter",
    "Events",
    "Starts",
    "answered_classes",
    "initial_events",
    "late_events",
    "middle_of",
    "pair_events",
    "pool_starts",
    "retry_events",
    "split_halves",
]

TEACHER = "teacher"
IF_GREEDY = "!greedy"
"""Marks counts that stand where the feedback arm starts from greedy draws."""
IF_UNCLASSIFIED = "!unclassified"
"""Marks counts that stand where no answered error of the run carries a class."""
CLASS_NAMES = {STRUCTURAL: "structural", SEMANTIC: "semantic", UNCLASSIFIED: "unclassified"}


@dataclass(frozen=True)
class Events:
    """Counts of one stage per task; arrays of shape ``(tasks,)``."""

    stage: str
    n: FloatArray
    """Draws that reached the stage, each distinct observation once."""
    k: FloatArray
    """Those at which the event happened."""
    base: FloatArray
    """Initial draws the stage hangs from: what makes ``n/base`` the share of draws that reach it."""
    population: str
    """What the draws are, in words."""
    unit: Literal["draws", "pairs"] = "draws"
    pairs: tuple[FloatArray, FloatArray] | None = None
    """Raw counts (n, k) of pairs per task, where the unit is pairs; ``n`` and ``k`` then count first draws."""

    @property
    def total_n(self) -> float:
        """Draws (or pairs) over all tasks."""
        return float((self.pairs[0] if self.pairs else self.n).sum())

    @property
    def total_k(self) -> float:
        """Events over all tasks."""
        return float((self.pairs[1] if self.pairs else self.k).sum())

    @property
    def tasks(self) -> int:
        """Tasks that reach the stage."""
        return int((self.n > 0).sum())


def _per_task(draws: DrawColumns, rows: IntArray, weights: FloatArray) -> FloatArray:
    return np.bincount(draws.task[rows], weights=weights, minlength=len(draws.tasks)).astype(np.float64)


class Counter:
    """Weighs a set of draws once and counts conditions among them."""

    def __init__(self, draws: DrawColumns, mask: BoolArray) -> None:
        self.draws = draws
        self.rows = np.flatnonzero(mask)
        self.weights, self.groups = observation_weights(draws, self.rows)
        self.base = _per_task(draws, self.rows, self.weights)

    def count(self, mask: BoolArray) -> FloatArray:
        """Weighted draws per task among those where ``mask`` holds, shape ``(tasks,)``."""
        inside = mask[self.rows]
        return _per_task(self.draws, self.rows[inside], self.weights[inside])

    def events(
        self, stage: str, reach: BoolArray, event: BoolArray, population: str, base: FloatArray | None = None
    ) -> Events:
        """Count a stage: who reaches it, and where the event happens."""
        return Events(
            stage,
            self.count(reach),
            self.count(reach & event),
            self.base if base is None else base,
            population,
        )


def initial_events(draws: DrawColumns, ok: BoolArray, out: dict[str, Events]) -> Counter:
    """Count initial draws, false positives and the teacher; returns the pool of small initial draws.

    Masses ``p_d`` and ``p_s`` are counted for either decoding: only the whole run tells which the feedback arm uses.
    """
    small, initial = ~draws.tier.equals(TEACHER), draws.kind == KINDS["initial"]
    greedy = draws.temperature == 0.0
    correct, wrong = draws.correct == 1, draws.correct == 0
    seen, flagged = draws.flagged >= 0, draws.flagged == 1
    pool = Counter(draws, ok & small & initial)
    for stage, mask, words in (
        ("q", ~greedy, "initial draws of the small tier, stochastic or unknown decoding"),
        ("q_greedy", greedy, "initial draws of the small tier at temperature 0"),
    ):
        count = Counter(draws, ok & small & initial & mask)
        out[stage] = count.events(stage, ok, correct, words)
    words = "initial draws of the small tier, of the decoding that the feedback arm uses"
    for suffix, own in ((IF_GREEDY, greedy), ("", ~greedy)):
        arm = Counter(draws, ok & small & initial & own & seen)
        out[f"p_d{suffix}"] = arm.events("p_d", ok, wrong & flagged, words)
        out[f"p_s{suffix}"] = arm.events("p_s", ok, wrong & ~flagged, words)
    out["delta"] = pool.events(
        "delta", wrong & seen, flagged, "wrong initial draws of the small tier that a verifier saw"
    )
    classed = wrong & flagged & (draws.error_class > 0)
    out["sigma"] = pool.events(
        "sigma",
        classed,
        draws.error_class == STRUCTURAL,
        "wrong, flagged and classified initial draws of the small tier",
    )
    silent = wrong & seen & ~flagged & (draws.oracle >= 0)
    out["eta_ox"] = pool.events(
        "eta_ox", silent, draws.oracle == 1, "silent initial draws that the oracle check saw"
    )
    every = Counter(draws, ok)
    out["fpr"] = every.events(
        "fpr", correct & seen, flagged, "correct draws of every tier and attempt that a verifier saw"
    )
    out["fpr_initial"] = pool.events(
        "fpr_initial", correct & seen, flagged, "correct initial draws of the small tier"
    )
    teacher = Counter(draws, ok & ~small & initial)
    out["q_T"] = teacher.events("q_T", ok, correct, "initial draws of the teacher")
    out["delta_T"] = teacher.events(
        "delta_T", wrong & seen, flagged, "wrong initial draws of the teacher that a verifier saw"
    )
    return pool


def _answers_error(draws: DrawColumns) -> BoolArray:
    """Draws that do not answer a correct one."""
    answers: BoolArray = ~((draws.parent >= 0) & (draws.correct[draws.parent] == 1))
    return answers


def answered_classes(draws: DrawColumns, ok: BoolArray) -> FloatArray:
    """First repairs by the class of the error they answer: none, structural, semantic, unclassified; shape ``(4,)``.

    Where the last is all there is, nothing of the run carries a class.
    """
    first = ok & draws.arm.equals("A3") & (draws.kind == KINDS["feedback"]) & (draws.attempt == 2)
    return np.bincount(draws.answered[first & _answers_error(draws)], minlength=4).astype(np.float64)


def _passed(draws: DrawColumns, gate: str) -> BoolArray:
    """Draws that answer one which the gate let pass: of a redraw, no retry at all."""
    parent = draws.parent
    let_pass = draws.correct[parent] == 1 if gate == "truth" else draws.flagged[parent] == 0
    answers: BoolArray = (parent >= 0) & let_pass
    return answers


def retry_events(draws: DrawColumns, ok: BoolArray, gate: str, out: dict[str, Events]) -> None:
    """Count first repairs and first blind redraws, for runs with and without classes of errors."""
    correct, wrong = draws.correct == 1, draws.correct == 0
    seen, flagged = draws.flagged >= 0, draws.flagged == 1
    first, second = draws.attempt == 1, draws.attempt == 2
    feedback, blind = draws.kind == KINDS["feedback"], draws.kind == KINDS["blind"]
    a3 = ok & draws.arm.equals("A3")
    chains = Counter(draws, a3 & first)
    repairs = Counter(draws, a3 & feedback & second)
    answers_error = _answers_error(draws)
    for suffix, stages in (
        ("", (("s1", STRUCTURAL), ("s2", SEMANTIC))),
        (IF_UNCLASSIFIED, (("s2", UNCLASSIFIED),)),
    ):
        for stage, cls in stages:
            name = CLASS_NAMES[cls]
            reach = answers_error & (draws.answered == cls)
            words = (
                f"first repairs (attempt 2 of A3) that answer a{'n' if name[0] == 'u' else ''} {name} error"
            )
            out[f"{stage}{suffix}"] = repairs.events(stage, reach, correct, words, chains.base)
            lam = "lambda1" if stage == "s1" else "lambda2"
            out[f"{lam}{suffix}"] = repairs.events(
                lam, reach & wrong & seen, ~flagged, f"wrong {words}", chains.base
            )
    out["answered_structural"] = repairs.events(
        "answered_structural",
        answers_error & (draws.answered > 0) & (draws.answered != UNCLASSIFIED),
        draws.answered == STRUCTURAL,
        "first repairs whose answered error is classified",
        chains.base,
    )
    out["s_false"] = repairs.events(
        "s_false", ~answers_error, correct, "first repairs of a correct, flagged draw", chains.base
    )
    a2s = ok & ~(draws.temperature == 0.0) & draws.arm.equals("A2s")
    base = Counter(draws, a2s & first)
    redraws = Counter(draws, a2s & blind & second)
    sent_back = ~_passed(draws, gate)
    out["s_blind"] = redraws.events(
        "s_blind",
        sent_back,
        correct,
        "first blind redraws (attempt 2 of A2s) after a draw that the gate sent back",
        base.base,
    )
    parent_class = np.where(draws.parent >= 0, draws.error_class[draws.parent], 0)
    for name, mask in (
        ("b1", parent_class == STRUCTURAL),
        ("b2", parent_class == SEMANTIC),
        (f"b2{IF_UNCLASSIFIED}", np.ones(len(draws), dtype=bool)),
    ):
        stage = name[:2]
        out[name] = redraws.events(
            stage,
            answers_error & sent_back & mask,
            correct,
            f"first blind redraws by class of the first error ({stage})",
            base.base,
        )


def late_events(draws: DrawColumns, ok: BoolArray, pool: Counter, b_max: int, out: dict[str, Events]) -> None:
    """Count late repairs, and compare wrong retries with other chains' initial wrong draws of the same task."""
    a3 = ok & draws.arm.equals("A3") & (draws.kind == KINDS["feedback"])
    late = Counter(draws, a3 & (draws.attempt >= 3) & (draws.attempt <= b_max))
    answers_error = _answers_error(draws)
    for name, cls in (
        ("late1", STRUCTURAL),
        ("late2", SEMANTIC),
        (f"late2{IF_UNCLASSIFIED}", UNCLASSIFIED),
    ):
        out[name] = late.events(
            name[:5],
            answers_error & (draws.answered == cls),
            draws.correct == 1,
            f"repairs at attempts 3 to {b_max}, {CLASS_NAMES[cls]} error",
            out["s1"].base,
        )
    wrong_seen = (draws.correct == 0) & (draws.flagged >= 0)
    flagged = draws.flagged == 1
    wrong, marked = pool.count(wrong_seen), pool.count(wrong_seen & flagged)
    size = np.maximum(np.bincount(pool.groups, minlength=len(draws)), 1)
    share_n, share_k = (
        np.bincount(pool.groups, weights=mask[pool.rows].astype(float), minlength=len(draws)) / size
        for mask in (wrong_seen, wrong_seen & flagged)
    )
    first_row = _first_rows(draws)
    for stage, arm, kind in (("drift_blind", "A2s", "blind"), ("drift_feedback", "A3", "feedback")):
        mask = ok & draws.arm.equals(arm) & (draws.kind == KINDS[kind]) & (draws.attempt >= 2)
        if kind == "blind":
            mask &= ~(draws.temperature == 0.0)
        count = Counter(draws, mask)
        own = draws.observation[first_row[count.rows]]
        others_n = wrong[draws.task[count.rows]] - share_n[own]
        others_k = marked[draws.task[count.rows]] - share_k[own]
        fair = wrong_seen[count.rows] & (others_n > 0.5)
        gap = flagged[count.rows][fair] - others_k[fair] / others_n[fair]
        rows, weights = count.rows[fair], count.weights[fair]
        out[stage] = Events(
            stage,
            _per_task(draws, rows, weights),
            _per_task(draws, rows, weights * gap),
            _per_task(draws, rows, weights),
            f"wrong {kind} draws at attempts 2 and later, against other chains' initial wrong draws of the same task",
        )


def _first_rows(draws: DrawColumns) -> IntArray:
    """Row of the initial draw at the root of each draw's chain, found by following parents."""
    root = np.arange(len(draws), dtype=np.int64)
    for _ in range(MAX_DEPTH):
        up = np.where(draws.parent[root] >= 0, draws.parent[root], root)
        if (up == root).all():
            break
        root = up
    return root


MAX_DEPTH = 64
"""Longest chain of parents that is followed."""


@dataclass(frozen=True)
class Starts:
    """When initial draws started, as far as the halves of a run need it."""

    pool: FloatArray
    """Start of every small initial draw in seconds since the epoch, NaN where unknown, shape ``(draws,)``."""
    started: FloatArray
    """Start of the wrong ones that a verifier saw, shape ``(wrong,)``."""
    task: IntArray
    """Their tasks."""
    weight: FloatArray
    """Their weights as observations."""
    flagged: BoolArray
    """Whether the verifier flagged them."""


def pool_starts(draws: DrawColumns, pool: Counter) -> Starts:
    """Collect the start times behind the halves of a run."""
    wrong = (draws.correct[pool.rows] == 0) & (draws.flagged[pool.rows] >= 0)
    rows = pool.rows[wrong]
    return Starts(
        draws.started[pool.rows],
        draws.started[rows],
        draws.task[rows],
        pool.weights[wrong],
        draws.flagged[rows] == 1,
    )


def middle_of(starts: Sequence[Starts]) -> float | None:
    """Time that halves the initial draws of a run; None where one is unknown or all are the same."""
    every = np.concatenate([s.pool for s in starts]) if starts else np.empty(0)
    if len(every) == 0 or np.isnan(every).any() or np.ptp(every) == 0:
        return None
    return float(np.median(every))


def split_halves(starts: Starts, middle: float, tasks: int, base: FloatArray) -> dict[str, Events]:
    """Count detection in the first and the second half of the run."""
    out = {}
    for stage, mask in (
        ("delta_first_half", starts.started <= middle),
        ("delta_second_half", starts.started > middle),
    ):
        n, k = (
            np.bincount(starts.task[m], weights=starts.weight[m], minlength=tasks).astype(np.float64)
            for m in (mask, mask & starts.flagged)
        )
        out[stage] = Events(stage, n, k, base, "wrong initial draws, by half of the run")
    return out


def pair_events(stage: str, drawn: FloatArray, correct: FloatArray, first: FloatArray, words: str) -> Events:
    r"""Ordered pairs of parallel draws of one task; each first draw counts once, however many partners it has.

    With N draws of a task, c of them correct and d that may stand first (none of them correct),

    .. math:: E\Bigl[\frac{d\,c}{N(N-1)}\Bigr] = P(\text{first})\,P(\text{correct})

    given the task, whatever the dependence of the two over tasks. The rate of the stage, :math:`\sum d c/(N-1)` over
    :math:`\sum d`, therefore estimates E[P(first) q]/E[P(first)]: what a redraw after such a first draw comes to if it
    is one more draw like the others.

    Parameters
    ----------
    stage
        Its name.
    drawn, correct, first
        N, c and d per task, shape ``(tasks,)``; tasks of one draw make no pair.
    words
        What the first draw of a pair is.
    """
    several = drawn >= 2
    first = np.where(several, first, 0.0)
    partners = np.where(several, drawn - 1.0, 1.0)
    return Events(
        stage,
        first,
        first * correct / partners,
        np.where(several, drawn, 0.0),
        f"ordered pairs of parallel stochastic initial draws of one task, the first of them {words}",
        unit="pairs",
        pairs=(first * partners, first * correct),
    )
