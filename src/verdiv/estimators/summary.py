"""What the model sees: per stage and family N, K and one design effect; per block, count vectors.

A *stage* is a conditional event on draws (correct; flagged given wrong; ...). Tasks are the sampling unit, so
the draws of one task are not independent: the design effect of clustering by task divides the counts before
they enter the likelihood, as in small-area estimation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, UsageRefused

__all__ = [
    "CountBlock",
    "StageSummary",
    "StageTally",
    "all_equal",
    "cluster_size",
    "count_block",
    "design_effect",
    "summarise",
]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StageTally:
    """Counts of one stage, task by task."""

    stage: str
    """Name of the stage, e.g. ``q``."""
    family: Ints
    """Index of the task's family, shape (T,)."""
    n: Floats
    """Draws of the task that reached the stage, shape (T,); 0 is allowed and means the task never did."""
    k: Floats
    """Draws among them where the event happened, shape (T,)."""

    def __post_init__(self) -> None:
        """Refuse counts that cannot be counts."""
        _check_counts(f"stage {self.stage}", self.family, self.n, self.k)


@dataclass(frozen=True, slots=True)
class StageSummary:
    """Everything the stage model is told: sums per stage and family, and the design effect per stage."""

    stages: tuple[str, ...]
    """Stage names, S of them."""
    families: tuple[str, ...]
    """Family names, F of them."""
    N: Floats
    """Draws that reached the stage, shape (S, F); 0 where a family never did."""
    K: Floats
    """Events among them, shape (S, F)."""
    deff: Floats
    """Design effect of clustering by task, shape (S,), at least 1."""
    tasks: Ints
    """Tasks that reached the stage, shape (S, F)."""

    @property
    def n_effective(self) -> Floats:
        """Effective draws N / d, shape (S, F)."""
        return self.N / self.deff[:, None]

    @property
    def k_effective(self) -> Floats:
        """Effective events K / d, shape (S, F)."""
        return self.K / self.deff[:, None]

    def only(self, stages: Sequence[str]) -> StageSummary:
        """Keep the named stages, in the order given."""
        rows = [self.stages.index(stage) for stage in stages]
        return StageSummary(
            tuple(stages), self.families, self.N[rows], self.K[rows], self.deff[rows], self.tasks[rows]
        )


@dataclass(frozen=True, slots=True)
class CountBlock:
    """Distinct count vectors of a within-task block, with how many tasks share each."""

    name: str
    """Name of the block, e.g. ``q``."""
    family: Ints
    """Index of the family, shape (P,)."""
    n: Ints
    """Draws a task, shape (P,), at least 1."""
    k: Ints
    """Events among them, shape (P,)."""
    multiplicity: Ints
    """Tasks of this family with exactly these counts, shape (P,), at least 1."""

    @property
    def tasks(self) -> int:
        """Tasks in the block."""
        return int(self.multiplicity.sum())

    @property
    def replicated_tasks(self) -> int:
        """Tasks with at least two draws, the only ones that tell of correlation."""
        return int(self.multiplicity[self.n >= 2].sum())


def _check_counts(where: str, family: Ints, n: Floats, k: Floats) -> None:
    if not (family.ndim == 1 and family.shape == n.shape == k.shape):
        got = f"{family.shape}, {n.shape}, {k.shape}"
        fault = Fault(where, "three vectors of one length", got, "pass one entry a task")
        raise UsageRefused("The tally cannot be used.", [fault])
    good = np.isfinite(n) & np.isfinite(k) & (k >= 0) & (k <= n) & (family >= 0)
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        got = f"family {family[row]}, n {n[row]}, k {k[row]} for task {row}"
        fault = Fault(where, "finite counts with 0 <= k <= n and a known family", got, "recount the task")
        raise UsageRefused("The tally cannot be used.", [fault])


def all_equal(n: Floats, k: Floats) -> bool:
    """Whether no draw differs from another: 0 of n or n of n. Such a sample cannot tell how draws cluster in tasks."""
    return bool((k == 0).all() or (k == n).all())


def cluster_size(n: Floats) -> float:
    r"""Draws that count as one where every task is all or nothing, :math:`\sum n_i^2 / \sum n_i`, at least 1.

    :math:`N / c = N^2 / \sum n_i^2` is then the effective number of tasks (Kish), the tasks themselves where all have
    equally many draws.

    Examples
    --------
    >>> cluster_size(np.array([3.0, 3.0, 0.0])), cluster_size(np.array([1.0, 3.0]))
    (3.0, 2.5)
    """
    total = float(n.sum())
    return max(1.0, float((n * n).sum()) / total) if total > 0 else 1.0


def design_effect(tally: StageTally, families: int) -> float:
    r"""Design effect of clustering by task, pooled over families.

    .. math::
        r_f = \frac{K_f + 1/2}{N_f + 1}, \qquad d = \max\Bigl(1,
        \frac{\sum_f \frac{t_f}{t_f - 1} \sum_i (k_i - r_f n_i)^2}{\sum_f N_f r_f (1 - r_f)}\Bigr)

    with :math:`t_f` the tasks of family f that reach the stage. It is the linearised (ultimate cluster)
    variance of the ratio :math:`K_f / N_f` over its binomial variance, numerators and denominators summed
    over families so that small families borrow it.

    Where all draws are equal (0/n, n/n) there is no variance to compare, and the formula gives 1 whatever the
    clustering. A task then counts once: d is the cluster size, see :func:`cluster_size`.

    Parameters
    ----------
    tally
        Counts of one stage; tasks with n = 0 are ignored.
    families
        Number of families F.

    Returns
    -------
    float
        At least 1. Exactly 1 where draws differ and no family has two tasks: one cluster tells nothing of
        clustering, so such families are left out of both sums.

    Examples
    --------
    Two tasks of two draws, one all right and one all wrong: r = 2.5 / 5 and
    d = 2 (1 + 1) / (4 / 4) = 4, twice the 2 that whole-task dependence costs, since t / (t - 1) = 2.

    >>> two = np.array([2.0, 2.0])
    >>> design_effect(StageTally("q", np.zeros(2, dtype=np.int64), two, np.array([2.0, 0.0])), 1)
    4.0
    """
    reached = tally.n > 0
    family, n, k = tally.family[reached], tally.n[reached], tally.k[reached]
    if all_equal(n, k):
        return cluster_size(n)
    total = np.bincount(family, n, minlength=families)
    events = np.bincount(family, k, minlength=families)
    tasks = np.bincount(family, minlength=families)
    rate = (events + 0.5) / (total + 1)
    squares = np.bincount(family, (k - rate[family] * n) ** 2, minlength=families)
    several = tasks > 1
    if not several.any():
        return 1.0
    t = tasks[several]
    between = float(np.sum(t / (t - 1) * squares[several]))
    binomial = float(np.sum((total * rate * (1 - rate))[several]))
    return max(1.0, between / binomial)


def summarise(tallies: Sequence[StageTally], families: Sequence[str]) -> StageSummary:
    """Sum per-task counts to what the stage model needs.

    Parameters
    ----------
    tallies
        One per stage. A stage that no draw reached must be left out by the caller: nothing is to be
        estimated from its prior alone.
    families
        Family names; a family that a stage never reached keeps N = 0 there.

    Returns
    -------
    StageSummary
        Sums, tasks and design effects, stages in the order given.

    Raises
    ------
    UsageRefused
        If a tally names a family that is not there, or a stage twice.
    """
    names = tuple(tally.stage for tally in tallies)
    if len(set(names)) != len(names):
        fault = Fault("stages", "each stage once", ", ".join(names), "merge the tallies of one stage")
        raise UsageRefused("The stages cannot be summarised.", [fault])
    count = len(families)
    shape = (len(tallies), count)
    total, events = np.zeros(shape), np.zeros(shape)
    tasks = np.zeros(shape, dtype=np.int64)
    deff = np.ones(len(tallies))
    for row, tally in enumerate(tallies):
        _check_family(tally.stage, tally.family, count)
        total[row] = np.bincount(tally.family, tally.n, minlength=count)
        events[row] = np.bincount(tally.family, tally.k, minlength=count)
        tasks[row] = np.bincount(tally.family[tally.n > 0], minlength=count)
        deff[row] = design_effect(tally, count)
    return StageSummary(names, tuple(families), total, events, deff, tasks)


def _check_family(where: str, family: Ints, count: int) -> None:
    if family.size and int(family.max()) >= count:
        got = f"index {int(family.max())}"
        fault = Fault(where, f"a family index below {count}", got, "name the family")
        raise UsageRefused("The tally cannot be used.", [fault])


def count_block(tally: StageTally, families: Sequence[str]) -> CountBlock:
    """Collapse per-task counts to distinct (family, n, k) with multiplicity, which lose nothing.

    Parameters
    ----------
    tally
        Counts of one binary event; tasks with n = 0 are dropped. Counts must be whole numbers.
    families
        Family names.

    Returns
    -------
    CountBlock
        Sorted by family, n, k; empty where no task was reached.
    """
    _check_family(tally.stage, tally.family, len(families))
    reached = tally.n > 0
    counts = np.stack([tally.n[reached], tally.k[reached]], axis=1)
    rows = np.concatenate([tally.family[reached, None], np.rint(counts)], axis=1)
    if not np.allclose(rows[:, 1:], counts, rtol=0.0, atol=1e-6):
        fault = Fault(tally.stage, "whole counts", "fractional counts", "pass raw counts to a block")
        raise UsageRefused("The count block cannot be built.", [fault])
    distinct, multiplicity = np.unique(rows.astype(np.int64), axis=0, return_counts=True)
    return CountBlock(
        tally.stage,
        distinct[:, 0].copy(),
        distinct[:, 1].copy(),
        distinct[:, 2].copy(),
        multiplicity.astype(np.int64),
    )
