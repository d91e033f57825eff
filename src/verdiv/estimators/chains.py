"""Chains of gated arms, and what an arm answers at every budget, read from one run by truncation.

A chain is what an arm does with one task in one replicate. At budget ``B`` a gated arm emits its first draw that
was not sent to retry, else the last draw it made within ``B``. A majority arm emits the plurality of the canonical
outputs of its first ``k`` draws, ties to the earliest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from verdiv.estimators.observations import (
    KINDS,
    BoolArray,
    DrawColumns,
    FloatArray,
    IntArray,
)

__all__ = ["ArmAtBudget", "Chains", "chains_of", "majority_at", "replicate_pairs"]

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
            greatest=self._greatest(bill, width),
            least=float(np.nanmin(first)) if len(first) else 1.0,
        )

    def _greatest(self, bill: FloatArray, width: int) -> float:
        """Largest bill seen within a budget, or two first draws where nothing was ever retried.

        The pseudo-task of the bootstrap stands there. At the largest bill possible it would pull the mean of a
        bill that is nearly always that of one draw by several standard errors.
        """
        if not len(bill):
            return 1.0
        first = float(np.nanmax(self.billed[:, 0]))
        return max(float(bill.max()), first if width == 1 or self.attempts == 1 else 2.0 * first)

    def answers(self, budget: int) -> IntArray:
        """Outcome of each chain's answer at one budget: 1, 0, or -1 where it was not scored."""
        return np.asarray(self.correct[np.arange(len(self.task)), self.emission(budget)])


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
    rows = np.flatnonzero((draws.arm == arm) & (draws.condition == condition))
    rows = rows[draws.attempt[rows] <= MAX_ATTEMPTS]
    if len(rows) == 0:
        return None
    cell = pd.DataFrame(
        {
            "task": draws.task[rows],
            "replicate": draws.replicate[rows],
            "attempt": draws.attempt[rows],
            "lost": ~draws.measured[rows],
            "row": rows,
        }
    )
    cell = cell.sort_values(["task", "replicate", "attempt", "lost", "row"], kind="stable")
    cell = cell.drop_duplicates(["task", "replicate", "attempt"])
    chain = cell.groupby(["task", "replicate"], sort=False).ngroup().to_numpy()
    place = cell.groupby(["task", "replicate"], sort=False).cumcount().to_numpy()
    contiguous = cell["attempt"].to_numpy() == place + 1
    cell, chain, place = cell[contiguous], chain[contiguous], place[contiguous]
    if len(cell) == 0:
        return None
    kept, chain = np.unique(chain, return_inverse=True)
    row = cell["row"].to_numpy()
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


def majority_at(
    draws: DrawColumns, arm: str, k: int, *, condition: str = "primary"
) -> tuple[ArmAtBudget, Chains] | None:
    """Answer of a majority arm over its first ``k`` draws, per task.

    The plurality is taken over canonical outputs (their hashes), ties to the earliest. Where outputs were not
    shared, the draw marked ``emitted`` is used, which is possible only for ``k`` equal to the number of draws made.

    Returns
    -------
    tuple or None
        Tally per task, and the emitted draws as one-draw chains; None where no chain reaches ``k`` draws.
    """
    rows = np.flatnonzero(
        (draws.arm == arm)
        & (draws.condition == condition)
        & draws.measured
        & (draws.kind == KINDS["initial"])
    )
    if len(rows) == 0:
        return None
    cell = pd.DataFrame(
        {
            "task": draws.task[rows],
            "replicate": draws.replicate[rows],
            "attempt": draws.attempt[rows],
            "row": rows,
        }
    ).sort_values(["task", "replicate", "attempt", "row"], kind="stable")
    key = cell.groupby(["task", "replicate"], sort=False)
    chain, place = key.ngroup().to_numpy(), key.cumcount().to_numpy()
    size = np.bincount(chain)
    row = cell["row"].to_numpy()
    inside = (place < k) & (size[chain] >= k)
    if not inside.any():
        return None
    kept, number = np.unique(chain[inside], return_inverse=True)
    matrix = np.full((len(kept), k), -1, dtype=np.int64)
    matrix[number, place[inside]] = row[inside]
    outputs = draws.output[matrix]
    marked = draws.emitted[matrix] == 1
    if (outputs >= 0).all():
        votes = (outputs[:, :, None] == outputs[:, None, :]).sum(axis=2)
        winner = votes.argmax(axis=1)
    elif (size[kept] == k).all() and (marked.sum(axis=1) == 1).all():
        winner = marked.argmax(axis=1)
    else:
        return None
    chosen = matrix[np.arange(len(kept)), winner]
    task = draws.task[chosen]
    outcome = draws.correct[chosen]
    bill = draws.billed[matrix].sum(axis=1)
    tasks = len(draws.tasks)
    tally = ArmAtBudget(
        arm=arm,
        budget=k,
        n=np.bincount(task, minlength=tasks).astype(float),
        k=np.bincount(task, weights=(outcome == 1).astype(float), minlength=tasks).astype(float),
        bill_n=np.bincount(task, minlength=tasks).astype(float),
        bill=np.bincount(task, weights=bill, minlength=tasks).astype(float),
        residual=np.zeros(tasks),
        greatest=float(bill.max()),
        least=float(bill.min()),
    )
    emitted = Chains(
        arm=arm,
        tasks=tasks,
        task=task,
        replicate=draws.replicate[chosen],
        length=np.ones(len(kept), dtype=np.int64),
        correct=outcome[:, None],
        retry=np.zeros((len(kept), 1), dtype=np.int64),
        billed=bill[:, None],
        rows=chosen[:, None],
        greedy=draws.temperature[chosen] == 0.0,
    )
    return tally, emitted


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
    first = chains.rows[:, 0]
    order = np.arange(len(first))
    seeds = draws.seed[first]
    known = ~chains.greedy & ~np.isnan(seeds)
    table = pd.DataFrame(
        {"task": chains.task, "seed": np.where(known, seeds, -1.0 - order), "start": draws.source[first]}
    )
    scored = outcome >= 0
    fresh = np.zeros(len(first), dtype=bool)
    kept = table[scored].drop_duplicates(["task", "start"]).drop_duplicates(["task", "seed"])
    fresh[kept.index.to_numpy()] = True
    r = np.bincount(chains.task[fresh], minlength=chains.tasks).astype(np.float64)
    c = np.bincount(chains.task[fresh], weights=outcome[fresh].astype(float), minlength=chains.tasks)
    return r, np.asarray(c * (r - c), dtype=np.float64)
