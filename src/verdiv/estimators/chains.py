"""Chains of gated arms, and what an arm answers at every budget, read from one run by truncation.

A chain is what an arm does with one task in one replicate. At budget ``B`` a gated arm emits its first draw that
was not sent to retry, else the last draw it made within ``B``. A majority arm emits the plurality of the canonical
outputs of its first ``k`` draws, ties to the earliest.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from verdiv.estimators.observations import (
    KINDS,
    BoolArray,
    DrawColumns,
    FloatArray,
    IntArray,
)

__all__ = [
    "ArmAtBudget",
    "Chains",
    "Majority",
    "chains_of",
    "greatest_bill",
    "majority_by_marks",
    "majority_by_outputs",
    "replicate_pairs",
]

MAX_ATTEMPTS = 64
"""Attempts of a chain that are looked at; longer chains are cut there."""


@dataclass(frozen=True)
class ArmAtBudget:
    """What an arm did per task at one budget; arrays of shape ``(tasks,)``."""

    arm: str
    budget: int
    n: FloatArray
    """Chains whose answer at this budget was scored."""
    k: FloatArray
    """Those whose answer was correct."""
    bill_n: FloatArray
    """Chains whose bill is known."""
    bill: FloatArray
    """Sum of their bills within the budget, in units of one small draw."""
    residual: FloatArray
    """Scored chains still sent to retry at this budget."""
    settled: FloatArray
    """Scored chains with a correct answer that was not sent to retry."""
    highest: float
    """Largest bill of a chain within the budget, as seen."""
    greatest: float
    """Largest bill of a chain within the budget, in the same units; two first draws where none was retried."""
    least: float
    """Smallest bill of a chain."""


@dataclass(frozen=True)
class Chains:
    """All chains of one arm under one condition; matrices have shape ``(chains, attempts)``."""

    arm: str
    tasks: int
    task: IntArray
    replicate: IntArray
    length: IntArray
    correct: IntArray
    """1, 0 or -1 (not scored, or not drawn)."""
    retry: IntArray
    """1 where the gate sent the draw to retry, 0 where it let it pass, -1 unknown."""
    billed: FloatArray
    rows: IntArray
    """Row of the draw in the draws table, -1 where there is none."""
    greedy: BoolArray
    """Chains that start with a draw at temperature 0."""
    _identity: list[tuple[IntArray, IntArray]] = field(default_factory=list, compare=False, repr=False)
    """Made when asked for."""

    def identity(self, draws: DrawColumns) -> tuple[IntArray, IntArray]:
        """Number the chains of a task that share their first draw, and those that share their seed.

        Returns
        -------
        tuple
            Two arrays of shape ``(chains,)``; chains of two tasks never share a number. A greedy chain has no seed.
        """
        if not self._identity:
            first = self.rows[:, 0]
            seed = draws.seed[first]
            known = ~self.greedy & ~np.isnan(seed)
            distinct, place = np.unique(seed[known], return_inverse=True)
            code = len(distinct) + np.arange(len(first))
            code[known] = place
            width = len(distinct) + len(first)
            self._identity.append((self.task * len(draws) + draws.source[first], self.task * width + code))
        return self._identity[0]

    @property
    def attempts(self) -> int:
        """Longest chain."""
        return int(self.correct.shape[1])

    def emission(self, budget: int) -> IntArray:
        """Index of the emitted attempt within ``budget`` of each chain, shape ``(chains,)``."""
        width = min(budget, self.attempts)
        passes = self.retry[:, :width] != 1
        passes &= np.arange(width)[None, :] < self.length[:, None]
        first = np.where(passes.any(axis=1), passes.argmax(axis=1), np.minimum(self.length, width) - 1)
        return first.astype(np.int64)

    def at(self, budget: int) -> ArmAtBudget:
        """Tally answers, bills and residuals per task at one budget.

        Parameters
        ----------
        budget
            Draws per chain, at least 1.

        Returns
        -------
        ArmAtBudget
            Sums per task.
        """
        chain = np.arange(len(self.task))
        emitted = self.emission(budget)
        outcome = self.correct[chain, emitted]
        scored = outcome >= 0
        pending = self.retry[chain, emitted] == 1
        width = min(budget, self.attempts)
        bill = np.nansum(
            np.where(np.arange(width)[None, :] <= emitted[:, None], self.billed[:, :width], 0.0), axis=1
        )
        first = self.billed[:, 0] if self.billed.size else np.ones(1)

        def total(values: FloatArray) -> FloatArray:
            return np.bincount(self.task, weights=values, minlength=self.tasks).astype(np.float64)

        return ArmAtBudget(
            arm=self.arm,
            budget=budget,
            n=total(scored.astype(float)),
            k=total((outcome == 1).astype(float)),
            bill_n=total(np.ones(len(chain))),
            bill=total(bill),
            residual=total((pending & scored).astype(float)),
            settled=total(((outcome == 1) & ~pending).astype(float)),
            highest=float(bill.max()) if len(bill) else 1.0,
            greatest=greatest_bill(
                float(bill.max()) if len(bill) else 1.0,
                float(np.nanmax(first)) if len(first) else 1.0,
                budget,
                self.attempts,
            ),
            least=float(np.nanmin(first)) if len(first) else 1.0,
        )

    def answers(self, budget: int) -> IntArray:
        """Outcome of each chain's answer at one budget: 1, 0, or -1 where it was not scored."""
        return np.asarray(self.correct[np.arange(len(self.task)), self.emission(budget)])


def greatest_bill(highest: float, first: float, budget: int, attempts: int) -> float:
    """Largest bill seen within a budget, or two first draws where nothing was ever retried.

    The pseudo-task of the bootstrap stands there. At the largest bill possible it would pull the mean of a
    bill that is nearly always that of one draw by several standard errors.

    Parameters
    ----------
    highest, first
        Largest bill of a chain within the budget, and of a first draw.
    budget, attempts
        Budget, and attempts of the longest chain.
    """
    return max(highest, first if min(budget, attempts) == 1 else 2.0 * first)


def _matrix(
    values: FloatArray, chain: IntArray, place: IntArray, shape: tuple[int, int], fill: float
) -> FloatArray:
    out = np.full(shape, fill)
    out[chain, place] = values
    return out


def chains_of(draws: DrawColumns, arm: str, *, gate: str, condition: str = "primary") -> Chains | None:
    """Assemble the chains of a gated or one-shot arm.

    A draw that is no measurement stands in its chain as unscored, so that the chain's answer is missing from there
    on unless its own flag sent the chain further; were it left out, the flagged draw before it would pass for the
    answer. Of several records for one cell of
    task, replicate and attempt the first measured one counts.

    Parameters
    ----------
    draws
        All draws.
    arm
        Arm to assemble.
    gate
        What sent a draw to retry: ``verifier``, ``truth`` or ``none``.
    condition
        Experimental condition.

    Returns
    -------
    Chains or None
        None where the arm has no draw under the condition.
    """
    rows = np.flatnonzero(draws.arm.equals(arm) & draws.condition.equals(condition))
    rows = rows[draws.attempt[rows] <= MAX_ATTEMPTS]
    if len(rows) == 0:
        return None
    lost = ~draws.measured[rows]
    row = rows[np.lexsort((rows, lost, draws.attempt[rows], draws.replicate[rows], draws.task[rows]))]
    task, replicate, attempt = draws.task[row], draws.replicate[row], draws.attempt[row]
    chain_starts = np.ones(len(row), dtype=bool)
    chain_starts[1:] = (np.diff(task) != 0) | (np.diff(replicate) != 0)
    cell_starts = chain_starts.copy()
    cell_starts[1:] |= np.diff(attempt) != 0
    row, chain_starts, attempt = row[cell_starts], chain_starts[cell_starts], attempt[cell_starts]
    chain = np.cumsum(chain_starts) - 1
    place = np.arange(len(row)) - np.flatnonzero(chain_starts)[chain]
    contiguous = attempt == place + 1
    row, chain, place = row[contiguous], chain[contiguous], place[contiguous]
    if len(row) == 0:
        return None
    kept, chain = np.unique(chain, return_inverse=True)
    shape = (len(kept), int(place.max()) + 1)
    outcome = np.where(draws.errored[row], -1, draws.correct[row])
    correct = _matrix(outcome.astype(float), chain, place, shape, -1.0).astype(np.int64)
    flagged = draws.flagged[row]
    if gate == "truth":
        signal = np.where(outcome >= 0, 1 - outcome, -1)
    elif gate == "verifier":
        signal = flagged
    else:
        signal = np.zeros(len(row), dtype=np.int64)
    retry = _matrix(signal.astype(float), chain, place, shape, -1.0).astype(np.int64)
    rows_of = _matrix(row.astype(float), chain, place, shape, -1.0).astype(np.int64)
    first = place == 0
    task = np.zeros(len(kept), dtype=np.int64)
    task[chain[first]] = draws.task[row[first]]
    replicate = np.zeros(len(kept), dtype=np.int64)
    replicate[chain[first]] = draws.replicate[row[first]]
    greedy = np.zeros(len(kept), dtype=bool)
    greedy[chain[first]] = draws.temperature[row[first]] == 0.0
    return Chains(
        arm=arm,
        tasks=len(draws.tasks),
        task=task,
        replicate=replicate,
        length=np.bincount(chain, minlength=len(kept)).astype(np.int64),
        correct=correct,
        retry=retry,
        billed=_matrix(draws.billed[row], chain, place, shape, np.nan),
        rows=rows_of,
        greedy=greedy,
    )


@dataclass(frozen=True)
class Majority:
    """Answers of a majority arm over its first draws, by one way of telling the plurality."""

    tally: ArmAtBudget
    emitted: Chains
    """The emitted draws as one-draw chains."""
    unknown: int
    """Chains whose plurality cannot be told in this way; unless 0, nothing else here counts."""


def majority_by_outputs(
    draws: DrawColumns, arm: str, k: int, *, condition: str = "primary"
) -> Majority | None:
    """Answer by the plurality of canonical outputs (their hashes), ties to the earliest.

    Returns
    -------
    Majority or None
        Tally per task; None where no chain reaches ``k`` draws.
    """
    found = _ballots(draws, arm, k, condition)
    if found is None:
        return None
    matrix, _ = found
    outputs = draws.output[matrix]
    votes = (outputs[:, :, None] == outputs[:, None, :]).sum(axis=2)
    return _majority(draws, arm, matrix, votes.argmax(axis=1), int((outputs < 0).any(axis=1).sum()))


def majority_by_marks(draws: DrawColumns, arm: str, k: int, *, condition: str = "primary") -> Majority | None:
    """Answer by the draw that the log marks as ``emitted``, possible only where ``k`` is all that were drawn.

    Returns
    -------
    Majority or None
        Tally per task; None where no chain reaches ``k`` draws.
    """
    found = _ballots(draws, arm, k, condition)
    if found is None:
        return None
    matrix, size = found
    marked = draws.emitted[matrix] == 1
    unknown = int(((size != k) | (marked.sum(axis=1) != 1)).sum())
    return _majority(draws, arm, matrix, marked.argmax(axis=1), unknown)


def _ballots(draws: DrawColumns, arm: str, k: int, condition: str) -> tuple[IntArray, IntArray] | None:
    """Rows of the first ``k`` draws of each chain that has as many, and how many it has."""
    rows = np.flatnonzero(
        draws.arm.equals(arm)
        & draws.condition.equals(condition)
        & draws.measured
        & (draws.kind == KINDS["initial"])
    )
    if len(rows) == 0:
        return None
    order = np.lexsort((rows, draws.attempt[rows], draws.replicate[rows], draws.task[rows]))
    row = rows[order]
    new = np.ones(len(row), dtype=bool)
    new[1:] = (np.diff(draws.task[row]) != 0) | (np.diff(draws.replicate[row]) != 0)
    starts = np.flatnonzero(new)
    size = np.diff(np.append(starts, len(row)))
    enough = size >= k
    if not enough.any():
        return None
    matrix = row[starts[enough][:, None] + np.arange(k)[None, :]]
    return matrix.astype(np.int64), size[enough].astype(np.int64)


def _majority(draws: DrawColumns, arm: str, matrix: IntArray, winner: IntArray, unknown: int) -> Majority:
    k = matrix.shape[1]
    chosen = matrix[np.arange(len(matrix)), winner]
    task = draws.task[chosen]
    outcome = draws.correct[chosen]
    bill = draws.billed[matrix].sum(axis=1)
    tasks = len(draws.tasks)
    right = np.bincount(task, weights=(outcome == 1).astype(float), minlength=tasks).astype(float)
    chains = np.bincount(task, minlength=tasks).astype(float)
    tally = ArmAtBudget(
        arm=arm,
        budget=k,
        n=chains,
        k=right,
        bill_n=chains,
        bill=np.bincount(task, weights=bill, minlength=tasks).astype(float),
        residual=np.zeros(tasks),
        settled=right,
        highest=float(bill.max()),
        greatest=float(bill.max()),
        least=float(bill.min()),
    )
    emitted = Chains(
        arm=arm,
        tasks=tasks,
        task=task,
        replicate=draws.replicate[chosen],
        length=np.ones(len(matrix), dtype=np.int64),
        correct=outcome[:, None],
        retry=np.zeros((len(matrix), 1), dtype=np.int64),
        billed=bill[:, None],
        rows=chosen[:, None],
        greedy=draws.temperature[chosen] == 0.0,
    )
    return Majority(tally, emitted, unknown)


def replicate_pairs(draws: DrawColumns, chains: Chains, budget: int) -> tuple[FloatArray, FloatArray]:
    """Count, per task, replicates of an arm that are independent re-executions, and pairs of them that differ.

    Two replicates are an A/A pair when both were really drawn: replicates that start from one and the same draw
    (copies, shared first draws), or that share seed and prompt above temperature 0, are one. A greedy rerun is a
    pair when it was executed, under whichever arm it is recorded, since a seed means nothing at temperature 0.

    Returns
    -------
    tuple
        ``(r, flips)`` per task, shape ``(tasks,)``: replicates, and unordered pairs of them that differ.
    """
    outcome = chains.answers(budget)
    fresh = _executed(draws, chains, outcome >= 0)
    r = np.bincount(chains.task[fresh], minlength=chains.tasks).astype(np.float64)
    c = np.bincount(chains.task[fresh], weights=outcome[fresh].astype(float), minlength=chains.tasks)
    return r, np.asarray(c * (r - c), dtype=np.float64)


def _executed(draws: DrawColumns, chains: Chains, scored: BoolArray) -> IntArray:
    """Indices of the scored chains that were really drawn, the first of each start and of each seed."""
    kept = np.flatnonzero(scored)
    start, seed = chains.identity(draws)
    kept = kept[~pd.Series(start[kept]).duplicated().to_numpy()]
    return kept[~pd.Series(seed[kept]).duplicated().to_numpy()]
