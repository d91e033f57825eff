r"""Weighted sums over tasks for the Bayesian bootstrap, by exact weights or, for very many tasks, by a fast transform.

With Exp(1) weights a sum :math:`\sum_i w_i x_i` has mean :math:`\sum_i x_i` and covariance :math:`\sum_i x_i y_i` with
another. Drawn one by one, the weights of T tasks cost T random numbers a posterior draw. Above :data:`MANY` tasks they
are drawn only where a sum rests on few of them (fewer than :data:`FEW`); the others enter as

.. math::
    \sum_i x_i + \sum_b (H D_b x_b)_{r_b}

with blocks b of at least as many tasks as there are posterior draws, H the Walsh–Hadamard matrix of a block, D_b
random signs and r_b a random row of each block for each posterior draw, no row drawn twice. Rows of H D have entries ±1
and are orthogonal, so mean and covariance are exactly those of the weights; the sum over at least :data:`FEW` tasks is
close to normal, where the exact one has a skewness of :math:`2/\sqrt{FEW}` at most, which moves an interval's end by
.03 standard deviations. The map is linear and the same for every column, so contrasts keep their joint distribution.
Its price grows with T alone, and H, a Kronecker product of two small matrices, is applied as two matrix products.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from verdiv.estimators.observations import BoolArray, FloatArray, IntArray

__all__ = ["FEW", "MANY", "TaskWeights", "Transform", "rare_tasks"]

MANY = 10_000
"""Tasks above which weights are drawn one by one only where few tasks make a sum."""

FEW = 1_000
"""Tasks that a sum must rest on for the fast transform."""

BLOCK = 4_000_000
"""Weights held in memory at once."""

KEPT = 16_000_000
"""Weights that are kept from one call to the next at most."""

TASK_STREAM, SIGN_STREAM = 0xB007, 0x516E
"""Separate random streams of task weights and of the transform."""


def rare_tasks(columns: Iterable[FloatArray], tasks: int) -> BoolArray:
    """Tasks behind any column that rests on few of them, shape ``(tasks,)``.

    Parameters
    ----------
    columns
        Columns whose sums matter by themselves, differences of counts included.
    tasks
        Number of tasks.
    """
    rare = np.zeros(tasks, dtype=bool)
    for values in columns:
        there = values != 0
        if 0 < int(there.sum()) < FEW:
            rare |= there
    return rare


def hadamard(size: int) -> FloatArray:
    """Return the Walsh–Hadamard matrix of a size that is a power of 2.

    Examples
    --------
    >>> hadamard(2).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    made = np.ones((1, 1))
    while len(made) < size:
        made = np.kron(np.array([[1.0, 1.0], [1.0, -1.0]]), made)
    return made


class Transform:
    """Multiplies by the Walsh–Hadamard matrix of a size, a power of 2.

    Examples
    --------
    >>> Transform(4)(np.array([[1.0, 2.0, 0.0, 0.0]])).ravel().tolist()
    [3.0, -1.0, 3.0, -1.0]
    """

    def __init__(self, size: int) -> None:
        bits = size.bit_length() - 1
        self.size = size
        self._outer, self._inner = hadamard(1 << bits // 2), hadamard(1 << (bits - bits // 2))

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Transform each row, shape ``(rows, size)``."""
        split = rows.reshape(-1, len(self._outer), len(self._inner))
        done: FloatArray = np.matmul(self._outer, split @ self._inner).reshape(-1, self.size)
        return done


class TaskWeights:
    """Sums of any columns under one set of task weights.

    Parameters
    ----------
    bounds
        Where each family's tasks begin and end, tasks sorted by family; shape ``(families + 1,)``.
    draws, seed
        Posterior draws and seed; the same seed gives the same weights.
    rare
        Tasks whose weights are drawn one by one even where there are many, shape ``(tasks,)``; None for all.
    """

    def __init__(self, bounds: IntArray, draws: int, seed: int, rare: BoolArray | None = None) -> None:
        self.bounds, self.draws, self._seed = bounds, draws, seed
        self.tasks = int(bounds[-1])
        self._kept: FloatArray | None = None
        exact = np.ones(self.tasks, dtype=bool)
        if rare is not None and self.tasks > MANY:
            exact = rare.copy()
            for start, end in self._families():
                if int((~exact[start:end]).sum()) < draws:
                    exact[start:end] = True
        self._exact = np.flatnonzero(exact)
        self._fast = ~exact

    def _families(self) -> Iterable[tuple[int, int]]:
        return zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True)

    def sums(self, matrix: FloatArray) -> FloatArray:
        """Weighted sums of columns.

        Parameters
        ----------
        matrix
            Shape ``(tasks, columns)``, tasks sorted by family.

        Returns
        -------
        numpy.ndarray
            Shape ``(draws, families, columns)``.
        """
        out = np.zeros((self.draws, len(self.bounds) - 1, matrix.shape[1]))
        self._add_exact(matrix, out)
        if self._fast.any():
            self._add_fast(matrix, out)
        return out

    def _add_exact(self, matrix: FloatArray, out: FloatArray) -> None:
        count = len(self._exact)
        if count == 0:
            return
        whole = count == self.tasks
        inside = matrix if whole else matrix[self._exact]
        ends = np.searchsorted(self._exact, self.bounds)
        for start, w in self._blocks(count):
            for f in range(len(ends) - 1):
                mine = slice(ends[f], ends[f + 1])
                out[start : start + len(w), f] = w[:, mine] @ inside[mine]

    def _blocks(self, count: int) -> Iterable[tuple[int, FloatArray]]:
        """Yield weights of successive posterior draws, each of shape ``(some, count)``."""
        if self._kept is not None:
            yield 0, self._kept
            return
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, TASK_STREAM]))
        if self.draws * count <= KEPT:
            self._kept = rng.standard_exponential((self.draws, count))
            yield 0, self._kept
            return
        step = max(1, BLOCK // count)
        for start in range(0, self.draws, step):
            yield start, rng.standard_exponential((min(step, self.draws - start), count))

    def _add_fast(self, matrix: FloatArray, out: FloatArray) -> None:
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, SIGN_STREAM]))
        transform = Transform(1 << int(self.draws - 1).bit_length())
        columns = matrix.T
        for f, (start, end) in enumerate(self._families()):
            fast = start + np.flatnonzero(self._fast[start:end])
            for first in range(0, len(fast), transform.size):
                rows = fast[first : first + transform.size]
                sign = np.where(rng.random(len(rows)) < 0.5, -1.0, 1.0)
                drawn = rng.choice(transform.size, self.draws, replace=False)
                part = columns[:, rows]
                padded = np.zeros((len(columns), transform.size))
                np.multiply(part, sign, out=padded[:, : len(rows)])
                out[:, f] += (part.sum(axis=1)[:, None] + transform(padded)[:, drawn]).T
