r"""Beta-binomial likelihoods as sums of logarithms, without gamma functions.

With icc :math:`\rho = 1/(1 + \kappa)` the rising factorials of the beta-binomial are products of linear terms,

.. math::
    \frac{B(m\kappa + k, (1-m)\kappa + n - k)}{B(m\kappa, (1-m)\kappa)}
    = \frac{\prod_{j<k} [m(1-\rho) + j\rho] \prod_{j<n-k} [(1-m)(1-\rho) + j\rho]}{\prod_{j<n} [(1-\rho) + j\rho]}

which is exact from :math:`\rho = 0` (binomial) to 1, where ratios of gamma functions lose their digits. Summed over
tasks, the term of each j is weighted by the number of tasks whose count exceeds j: these weights are all that a
family's likelihood needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from verdiv.estimators.summary import CountBlock

__all__ = ["RisingTerms", "count_vector_log_likelihood", "rising_terms"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EXACT = 512
"""Terms kept one by one; later ones are merged two a segment."""

RATIO = 1.03
"""Ratio of the ends of a merged segment."""


@dataclass(frozen=True, slots=True)
class RisingTerms:
    """Nodes and weights of the three products, per family, padded with weight 0; all of shape (F, J)."""

    right_node: Floats
    """j of the terms of events."""
    right: Floats
    """Tasks with more than j events."""
    wrong_node: Floats
    """j of the terms of non-events."""
    wrong: Floats
    """Tasks with more than j non-events."""
    all_node: Floats
    """j of the terms of draws."""
    all: Floats
    """Tasks with more than j draws."""

    @property
    def width(self) -> int:
        """Number J of terms."""
        return int(self.right.shape[1])

    def padded(self, width: int) -> RisingTerms:
        """Append terms of weight 0 up to a width, so that blocks share one compiled model."""
        extra = ((0, 0), (0, width - self.width))
        parts = (self.right_node, self.right, self.wrong_node, self.wrong, self.all_node, self.all)
        return RisingTerms(*(np.pad(part, extra) for part in parts))

    def log_likelihood(self, m: Floats, icc: Floats) -> Floats:
        """Log likelihood of each family without the binomial coefficients.

        Parameters
        ----------
        m
            Rates strictly between 0 and 1, shape (..., F, X).
        icc
            Correlations in [0, 1), broadcasting against ``m``.

        Returns
        -------
        ndarray
            Shape (..., F, X).
        """
        total = np.zeros(np.broadcast_shapes(m.shape, icc.shape))
        keep, wrong = m * (1.0 - icc), (1.0 - m) * (1.0 - icc)
        for j in range(self.width):
            column = (slice(None), slice(j, j + 1))
            total += self.right[column] * np.log(keep + self.right_node[column] * icc)
            total += self.wrong[column] * np.log(wrong + self.wrong_node[column] * icc)
            total -= self.all[column] * np.log(1.0 - icc + self.all_node[column] * icc)
        return total


def _merge(node: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Replace the terms beyond EXACT by two a segment that match its weights' first four moments."""
    if node.size <= EXACT:
        return node, weight
    edges = np.unique(np.rint(EXACT * RATIO ** np.arange(1 + np.log(node.size / EXACT) / np.log(RATIO))))
    nodes, weights = [node[:EXACT]], [weight[:EXACT]]
    for part in np.split(np.arange(EXACT, node.size), edges[1:].astype(np.int64) - EXACT):
        total = float(weight[part].sum())
        if total <= 0:
            continue
        share = weight[part] / total
        centre = float(share @ node[part])
        away = node[part] - centre
        spread = float(np.sqrt(share @ away**2))
        skew = float(share @ away**3) / spread**3 if spread > 0 else 0.0
        root = np.sqrt(1.0 + skew * skew / 4.0)
        nodes.append(centre + spread * (skew / 2.0 + np.array([-root, root])))
        weights.append(total * 0.5 * (1.0 + np.array([1.0, -1.0]) * skew / (2.0 * root)))
    return np.concatenate(nodes), np.concatenate(weights)


def _exceeding(count: Ints, multiplicity: Ints) -> tuple[Floats, Floats]:
    """Number of tasks whose count exceeds j, for every j below the largest count."""
    size = int(count.max(initial=0))
    tasks = np.bincount(count, multiplicity.astype(np.float64), minlength=size + 1)
    above = tasks[::-1].cumsum()[::-1][1:]
    return _merge(np.arange(size, dtype=np.float64), above)


def rising_terms(block: CountBlock, families: Sequence[str]) -> RisingTerms:
    """Reduce a block to the weights of its products.

    Parameters
    ----------
    block
        Distinct count vectors with multiplicity.
    families
        Family names; a family without tasks has weight 0 throughout.

    Returns
    -------
    RisingTerms
        Exact up to 512 draws a task; beyond, terms are merged with a relative error of about 1e-9.
    """
    columns: list[tuple[Floats, Floats]] = []
    for count in (block.k, block.n - block.k, block.n):
        for f in range(len(families)):
            mine = block.family == f
            columns.append(_exceeding(count[mine], block.multiplicity[mine]))
    width = max((node.size for node, _ in columns), default=0)
    width = max(width, 1)
    shape = (3, len(families), width)
    nodes, weights = np.zeros(shape), np.zeros(shape)
    for index, (node, weight) in enumerate(columns):
        product, f = divmod(index, len(families))
        nodes[product, f, : node.size] = node
        weights[product, f, : weight.size] = weight
    return RisingTerms(nodes[0], weights[0], nodes[1], weights[1], nodes[2], weights[2])


def count_vector_log_likelihood(block: CountBlock, m: Floats, icc: Floats) -> Floats:
    """Log probability of every distinct count vector under each draw, binomial coefficient included.

    Parameters
    ----------
    block
        Distinct count vectors; multiplicities are not applied.
    m
        Draws of the families' rates, shape (D, F).
    icc
        Draws of the correlation, shape (D,); 0 gives the binomial.

    Returns
    -------
    ndarray
        Shape (D, P).

    Examples
    --------
    With m = 1/2 and icc = 1/3 (kappa = 2) every count of two draws is equally likely.

    >>> block = CountBlock("q", np.zeros(1, dtype=np.int64), np.array([2]), np.array([1]), np.array([1]))
    >>> one = count_vector_log_likelihood(block, np.array([[0.5]]), np.array([1 / 3]))
    >>> round(float(np.exp(one[0, 0])), 12)
    0.333333333333
    """
    choose = gammaln(block.n + 1.0) - gammaln(block.k + 1.0) - gammaln(block.n - block.k + 1.0)
    out = np.empty((icc.size, block.n.size))
    for p in range(block.n.size):
        rate = m[:, block.family[p]]
        keep, wrong = rate * (1.0 - icc), (1.0 - rate) * (1.0 - icc)
        out[:, p] = (
            choose[p]
            + _log_rising(keep, icc, int(block.k[p]))
            + _log_rising(wrong, icc, int(block.n[p] - block.k[p]))
            - _log_rising(1.0 - icc, icc, int(block.n[p]))
        )
    return out


def _log_rising(start: Floats, step: Floats, count: int) -> Floats:
    """Sum of log(start + j step) over j < count."""
    node, weight = _merge(np.arange(count, dtype=np.float64), np.ones(count))
    total = np.zeros_like(start)
    for j, w in zip(node, weight, strict=True):
        total += w * np.log(start + j * step)
    return total
