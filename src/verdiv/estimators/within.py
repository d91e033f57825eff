r"""Within-task correlation of a binary block by quadrature: beta-binomial counts, families' rates integrated out.

.. math::
    k_i \sim \mathrm{BetaBinomial}(n_i, m_f \kappa, (1 - m_f) \kappa), \quad
    \rho = 1/(1 + \kappa) \sim \mathrm{Beta}(a, b), \quad \mathrm{logit}\, m_f \sim N(\mu_0, \sigma_0^2)

The families' rates here average over tasks; they serve the predictions of the exchangeable forms and are never
reported as rates, which are draw-weighted.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verdiv.estimators.posterior import IccPosterior
from verdiv.estimators.priors import Priors
from verdiv.estimators.rising import RisingTerms, rising_terms
from verdiv.estimators.spline import middles, spline_matrix
from verdiv.estimators.summary import CountBlock

__all__ = ["MIN_REPLICATED_TASKS", "estimability", "fit_icc_grid", "fit_independent_grid"]

Floats = npt.NDArray[np.float64]

MIN_REPLICATED_TASKS = 10
"""Tasks of at least two draws below which icc is not estimable."""

DROP = 22.0
"""Nats below the peak that the meshes reach."""

RATE_NODES = 49
"""Nodes in a family's logit, given icc."""

ICC_NODES = 81
"""Nodes in the logit of icc."""

FINE = 8
"""How many times finer than the nodes the meshes are from which draws come."""


@dataclass(frozen=True, slots=True)
class _Rates:
    """Families' logits given each icc on their own meshes; R icc nodes, F families, X nodes."""

    low: Floats
    """Shape (R, F)."""
    high: Floats
    """Shape (R, F)."""
    log_density: Floats
    """Shape (R, F, X)."""
    log_mass: Floats
    """Shape (R, F)."""


def _rate_density(terms: RisingTerms, x: Floats, icc: Floats, priors: Priors, name: str) -> Floats:
    """Log of likelihood times prior at logits x, shape (R, F, X)."""
    m = 1.0 / (1.0 + np.exp(-x))
    edge = np.finfo(np.float64).tiny
    likelihood = terms.log_likelihood(np.clip(m, 1e-300, 1.0 - 1e-16), icc[:, None, None])
    prior = priors.mu(name)
    if priors.uniform:
        return likelihood + np.log(m * (1.0 - m) + edge)
    return likelihood - 0.5 * ((x - prior.mean) / prior.sd) ** 2


def _rates(terms: RisingTerms, icc: Floats, priors: Priors, name: str) -> _Rates:
    """Zoom in on each family's logit given each icc, then integrate."""
    prior = priors.mu(name)
    reach = 34.0 if priors.uniform else 7.0 * prior.sd
    centre = 0.0 if priors.uniform else prior.mean
    shape = (icc.size, terms.right.shape[0])
    low, high = np.full(shape, centre - reach), np.full(shape, centre + reach)
    for _ in range(4):
        x = low[..., None] + (high - low)[..., None] * np.linspace(0.0, 1.0, 33)
        density = _rate_density(terms, x, icc, priors, name)
        held = density > density.max(axis=-1, keepdims=True) - DROP
        first = np.maximum(held.argmax(axis=-1) - 1, 0)
        last = np.minimum(32, 33 - held[..., ::-1].argmax(axis=-1))
        low = np.take_along_axis(x, first[..., None], -1)[..., 0]
        high = np.take_along_axis(x, last[..., None], -1)[..., 0]
    x = low[..., None] + (high - low)[..., None] * np.linspace(0.0, 1.0, RATE_NODES)
    density = _rate_density(terms, x, icc, priors, name)
    top = density.max(axis=-1)
    total = np.exp(density - top[..., None]).sum(axis=-1)
    return _Rates(low, high, density, top + np.log(total * (high - low)))


def _icc_mesh(terms: RisingTerms, priors: Priors, name: str) -> tuple[Floats, Floats, _Rates]:
    """Nodes in the logit of icc, the log posterior density there, and the rates given each."""
    w = np.linspace(-26.0, 26.0, 53)
    for count in (53, 41, ICC_NODES):
        w = np.linspace(w[0], w[-1], count)
        icc = 1.0 / (1.0 + np.exp(-w))
        rates = _rates(terms, icc, priors, name)
        log_other = -np.logaddexp(0.0, w)
        prior = priors.icc_a * (w + log_other) + priors.icc_b * log_other
        density = prior + rates.log_mass.sum(axis=1)
        if count != ICC_NODES:
            held = np.flatnonzero(density > density.max() - DROP)
            w = w[[max(held[0] - 1, 0), min(held[-1] + 1, count - 1)]]
    return w, density, rates


def _draw_cells(log_density: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Draw positions, in nodes, from one density given on nodes."""
    count = log_density.size
    place, density = middles(count, FINE), spline_matrix(count, FINE) @ log_density
    edges = np.cumsum(np.exp(density - density.max()))
    cell = np.minimum(np.searchsorted(edges, rng.random(draws) * edges[-1], side="right"), place.size - 1)
    return np.asarray(place[cell] + (rng.random(draws) - 0.5) / FINE, dtype=np.float64)


def _draw_rates(rates: _Rates, node: npt.NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """Draw the families' rates given the icc node of each draw; shape (draws, F)."""
    _, families, count = rates.log_density.shape
    out = np.empty((node.size, families))
    for index in np.unique(node):
        mine = np.flatnonzero(node == index)
        for f in range(families):
            at = _draw_cells(rates.log_density[index, f], mine.size, rng)
            low, high = rates.low[index, f], rates.high[index, f]
            out[mine, f] = 1.0 / (1.0 + np.exp(-(low + (high - low) * at / (count - 1))))
    return out


def _rng(block: CountBlock, seed: int, model: str) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(f"{model} {block.name}".encode())])


def estimability(block: CountBlock, posterior_sd: float, prior_sd: float) -> str:
    """Return why the within-task correlation of a block is not estimable, or nothing where it is.

    Parameters
    ----------
    block
        The block's count vectors.
    posterior_sd, prior_sd
        Standard deviations of icc after and before the data.
    """
    if block.replicated_tasks < MIN_REPLICATED_TASKS:
        return (
            f"{block.replicated_tasks} tasks of at least two draws, where {MIN_REPLICATED_TASKS} are required"
        )
    if not posterior_sd <= 0.5 * prior_sd:
        return f"posterior sd {posterior_sd:.3f} is above half the prior's {prior_sd:.3f}"
    return ""


def fit_icc_grid(
    block: CountBlock, families: Sequence[str], priors: Priors, *, draws: int = 4000, seed: int = 0
) -> IccPosterior:
    """Posterior of a block's within-task correlation by quadrature.

    Parameters
    ----------
    block
        Distinct count vectors. Tasks of one draw inform the families' rates only.
    families
        Family names.
    priors
        Beta prior of icc and normal prior of the rates' logits.
    draws, seed
        Number and seed of the joint draws; the moments come from the mesh.

    Returns
    -------
    IccPosterior
        Without replicated tasks the posterior is the prior, and ``estimable`` says no.
    """
    terms = rising_terms(block, families)
    w, density, rates = _icc_mesh(terms, priors, block.name)
    rng = _rng(block, seed, "icc")
    at = _draw_cells(density, draws, rng)
    icc = 1.0 / (1.0 + np.exp(-np.interp(at, np.arange(w.size), w)))
    node = np.clip(np.floor(at + rng.random(draws)), 0, w.size - 1).astype(np.int64)
    m = _draw_rates(rates, node, rng)
    weight = np.exp(density - density.max())
    weight /= weight.sum()
    nodes = 1.0 / (1.0 + np.exp(-w))
    mean = float(weight @ nodes)
    sd = float(np.sqrt(weight @ (nodes - mean) ** 2))
    reason = estimability(block, sd, priors.icc_sd)
    return IccPosterior(block.name, icc, m, priors.icc_sd, mean, sd, not reason, reason)


def fit_independent_grid(
    block: CountBlock, families: Sequence[str], priors: Priors, *, draws: int = 4000, seed: int = 0
) -> Floats:
    """Draws of the families' rates under the same block without correlation (icc = 0).

    Returns
    -------
    ndarray
        Shape (draws, F).
    """
    rates = _rates(rising_terms(block, families), np.zeros(1), priors, block.name)
    return _draw_rates(rates, np.zeros(draws, dtype=np.int64), _rng(block, seed, "independent"))
