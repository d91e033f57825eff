"""Direct estimates: the Bayesian bootstrap over tasks.

Real tasks get Exp(1) weights (Rubin 1981). Per family two pseudo-tasks stand at the extremes of what is averaged,
with Gamma(n_f / 2n) weights each, so that 0/n and n/n give proper intervals and the whole suite carries one
pseudo-task; a family reported alone carries one by itself. A mean over chains weighs its pseudo-tasks like an average
task; a ratio of counts weighs them like half a pseudo-draw on each side, which for one draw a task is exactly the
Jeffreys posterior. Where all draws of tasks with several are equal, nothing tells how they cluster, and the extreme
that was not seen gets a whole task: with equally many draws a task the posterior is Beta(1, tasks), whose one-sided
bound is that of Clopper and Pearson for no event in any task. All terms of a contrast share one weight vector, and the
second term sees the two extremes exchanged, so that the contrast itself has its pseudo-tasks at its own extremes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from verdiv.estimators.observations import BoolArray, FloatArray, IntArray
from verdiv.estimators.summary import all_equal, cluster_size
from verdiv.estimators.weights import MANY, TaskWeights, rare_tasks

__all__ = ["Bootstrap", "Columns", "Summary", "summarise_draws"]

SMALL = 5_000
"""Tasks below which columns are told apart by their bytes, and not by a digest of them."""

AT_ONCE = 256
"""Columns that are weighed at once."""

PSEUDO_STREAM, UNSEEN_STREAM = 0x9E0D, 0x5EE0
"""Random streams of pseudo-task weights and of their second halves, apart from that of task weights."""

Columns = Mapping[str, FloatArray]


@dataclass(frozen=True)
class Summary:
    """A posterior in five numbers; the interval is equal-tailed with probability .95."""

    mean: float
    median: float
    sd: float
    low: float
    high: float


def summarise_draws(draws: FloatArray, probability: float = 0.95) -> Summary:
    """Summarise posterior draws by mean, median, sd and an equal-tailed interval.

    Parameters
    ----------
    draws
        Posterior draws, shape ``(draws,)``, without NaN.
    probability
        Mass of the interval.

    Examples
    --------
    >>> summarise_draws(np.linspace(0.0, 1.0, 1001)).high
    0.975
    """
    tail = (1.0 - probability) / 2.0
    low, median, high = np.quantile(draws, [tail, 0.5, 1.0 - tail])
    return Summary(float(draws.mean()), float(median), float(draws.std()), float(low), float(high))


class Bootstrap:
    """Posterior draws of any smooth function of per-task sums, by reweighting tasks.

    Parameters
    ----------
    family
        Family index of each task, shape ``(tasks,)``.
    weights
        Registered family weights, shape ``(families,)``, summing to 1.
    draws
        Posterior draws.
    seed
        Seed of the weights; the same seed gives the same weights for every quantity.
    alone
        True where each family is reported by itself, so that each carries a whole pseudo-task.
    watch
        Columns whose sums matter by themselves; beyond :data:`~verdiv.estimators.weights.MANY` tasks those that few
        tasks make are weighed exactly.
    """

    def __init__(
        self,
        family: IntArray,
        weights: FloatArray,
        *,
        draws: int = 4000,
        seed: int = 0,
        alone: bool = False,
        watch: Iterable[FloatArray] = (),
    ) -> None:
        self.draws = draws
        self.weights = np.asarray(weights, dtype=np.float64)
        self.families = len(self.weights)
        self.tasks = len(family)
        self.size = np.bincount(family, minlength=self.families).astype(np.float64)
        self._columns: dict[str, FloatArray] = {}
        self._sums: dict[str, FloatArray] = {}
        self._order = np.argsort(family, kind="stable")
        bounds = np.searchsorted(family[self._order], np.arange(self.families + 1))
        rare = rare_tasks(watch, self.tasks)[self._order] if self.tasks > MANY else None
        self._task_weights = TaskWeights(np.asarray(bounds, dtype=np.int64), draws, seed, rare)
        share = np.full(self.families, 0.5) if alone else 0.5 * self.size / max(self.tasks, 1)
        self._shape = np.where(self.size > 0, share, 0.0)
        self._seed = seed
        self.high, self.low = self._gammas(PSEUDO_STREAM)
        self._halves: tuple[FloatArray, FloatArray] | None = None

    def _gammas(self, stream: int) -> tuple[FloatArray, FloatArray]:
        """Weights of half a pseudo-task at each extreme, shape ``(draws, families)`` each."""
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, stream]))
        made = rng.standard_gamma(np.maximum(self._shape, 1e-300), (2, self.draws, self.families))
        high, low = np.where(self._shape > 0, made, 0.0)
        return high, low

    def extend(self, columns: Columns) -> None:
        """Add per-task columns; every column of a bootstrap sees the same weights.

        Parameters
        ----------
        columns
            Name to per-task values, each of shape ``(tasks,)``. Names already there are replaced.
        """
        distinct: dict[bytes, FloatArray] = {}
        places: dict[str, bytes] = {}
        for name, values in columns.items():
            mine = np.ascontiguousarray(values, dtype=np.float64)
            if name in self._columns and np.array_equal(self._columns[name], mine):
                continue
            self._columns[name] = mine
            places[name] = mine.tobytes() if self.tasks < SMALL else sha256(mine.tobytes()).digest()
            distinct.setdefault(places[name], mine)
        if not distinct:
            return
        known = {key: i for i, key in enumerate(distinct)}
        arrays = list(distinct.values())
        found = []
        for start in range(0, len(arrays), AT_ONCE):
            rows = np.empty((len(arrays[start : start + AT_ONCE]), self.tasks))
            for row, values in zip(rows, arrays[start : start + AT_ONCE], strict=True):
                np.take(values, self._order, out=row, mode="clip")  # unlike "raise", without a buffer
            sums = self._task_weights.sums(rows.T)
            found += [np.ascontiguousarray(sums[:, :, j]) for j in range(sums.shape[2])]
        for name, key in places.items():
            self._sums[name] = found[known[key]]

    def has(self, name: str) -> bool:
        """Whether a column was added under this name."""
        return name in self._sums

    def sums(self, name: str) -> FloatArray:
        """Weighted sums of a column, shape ``(draws, families)``."""
        return self._sums[name]

    def column(self, name: str) -> FloatArray:
        """The column itself, shape ``(tasks,)``."""
        return self._columns[name]

    def _pseudo(self, exchanged: bool) -> tuple[FloatArray, FloatArray]:
        return (self.low, self.high) if exchanged else (self.high, self.low)

    def _unseen(
        self, k: FloatArray, n: FloatArray, least: float, greatest: float, exchanged: bool
    ) -> tuple[FloatArray, FloatArray] | None:
        """Pseudo-tasks of a ratio whose draws are all equal though tasks have several; None where the usual ones do.

        A whole task of average size stands at each extreme that was not seen, none at the one that was.
        """
        size = cluster_size(n)
        if size <= 1.0 or not all_equal(n, k):
            return None
        if self._halves is None:
            self._halves = self._gammas(UNSEEN_STREAM)
        second = self._halves[::-1] if exchanged else self._halves
        high, low = (size * (a + b) for a, b in zip(self._pseudo(exchanged), second, strict=True))
        seen = 0.0 if not k.any() else 1.0
        return (0.0 * high if seen == greatest else high), (0.0 * low if seen == least else low)

    def _mix(self, values: FloatArray, present: BoolArray, weights: FloatArray | None) -> FloatArray:
        """Average over families with weights renormalised to the families that have data."""
        pi = np.where(present, self.weights if weights is None else weights, 0.0)
        total = pi.sum()
        if total <= 0.0:
            return np.full(self.draws, np.nan)
        mixed: FloatArray = np.where(present, values, 0.0) @ (pi / total)
        return mixed

    def mean(
        self,
        k: str,
        n: str,
        *,
        least: float = 0.0,
        greatest: float = 1.0,
        exchanged: bool = False,
        weights: FloatArray | None = None,
    ) -> FloatArray:
        """Mean of a task-level quantity, e.g. an arm's quality or bill.

        Per family ``(Σ w k + c̄ (g_high · greatest + g_low · least)) / (Σ w n + c̄ (g_high + g_low))`` with ``c̄`` the
        mean of ``n`` over the family's tasks that have any; families are mixed with their weights.

        Parameters
        ----------
        k, n
            Names of the columns of sums and counts.
        least, greatest
            Extremes of the quantity, where the two pseudo-tasks stand.
        exchanged
            True for the second term of a contrast.
        weights
            Family weights other than the registered ones, shape ``(families,)``.

        Returns
        -------
        numpy.ndarray
            Shape ``(draws,)``; NaN where no family has data.
        """
        high, low = self._pseudo(exchanged)
        total = self.column(n)
        present = self.sums(n).max(axis=0) > 0
        typical = float(total[total > 0].mean()) if (total > 0).any() else 1.0
        num = self.sums(k) + typical * (high * greatest + low * least)
        den = self.sums(n) + typical * (high + low)
        return self._mix(np.divide(num, den, out=np.zeros_like(num), where=den > 0), present, weights)

    def rate(
        self,
        k: str,
        n: str,
        base: str,
        *,
        least: float = 0.0,
        greatest: float = 1.0,
        exchanged: bool = False,
        weights: FloatArray | None = None,
    ) -> FloatArray:
        """Draw-weighted rate of an event among draws that reach a stage: a ratio of population means.

        ``Σ_f π_f K_f/C_f / Σ_f π_f N_f/C_f`` with ``K_f = Σ w k + g_high·greatest + g_low·least``,
        ``N_f = Σ w n + g_high + g_low`` and ``C_f = Σ w base``. Averaging task rates would be another quantity:
        hard tasks reach the later stages more often. Where all draws are equal, see :meth:`_unseen`.

        Returns
        -------
        numpy.ndarray
            Shape ``(draws,)``; NaN where nothing reaches the stage.
        """
        num, den = self.parts(
            k, n, base, least=least, greatest=greatest, exchanged=exchanged, weights=weights
        )
        rate: FloatArray = np.divide(num, den, out=np.full(self.draws, np.nan), where=den > 0)
        return rate

    def parts(
        self,
        k: str,
        n: str,
        base: str,
        *,
        least: float = 0.0,
        greatest: float = 1.0,
        exchanged: bool = False,
        weights: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Numerator and denominator of :meth:`rate`: population means per initial draw, shape ``(draws,)`` each."""
        clustered = self._unseen(self.column(k), self.column(n), least, greatest, exchanged)
        high, low = self._pseudo(exchanged) if clustered is None else clustered
        c = self.sums(base)
        present = c.max(axis=0) > 0
        if not (self.sums(n).max(axis=0) > 0).any():
            return np.full(self.draws, np.nan), np.zeros(self.draws)
        c = np.where(c > 0, c, 1.0)
        num = (self.sums(k) + high * greatest + low * least) / c
        den = (self.sums(n) + high + low) / c
        return self._mix(num, present, weights), self._mix(den, present, weights)
