"""Traits of single tasks: sampled for a run, or laid out as integration nodes for the true values."""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from verdiv.protocol.simulator.law import FloatArray, IntArray, Traits
from verdiv.protocol.simulator.rates import DEPENDENT_STAGES, TRAITS, Rates
from verdiv.protocol.simulator.world import World

__all__ = ["beta_quantile", "draw_traits", "family_nodes"]

NODES = 1 << 14
"""Integration nodes a family; true values then agree with eight times as many to about 2e-4."""


def beta_quantile(mean: float, icc: float, u: FloatArray) -> FloatArray:
    """Return quantiles of ``Beta(mean kappa, (1 - mean) kappa)`` with ``icc = 1/(1 + kappa)``.

    A mean of 0 or 1, or an icc of 0, is a point.

    Examples
    --------
    >>> beta_quantile(0.5, 1 / 3, np.array([0.2, 0.9])).round(6).tolist()
    [0.2, 0.9]
    """
    if icc <= 0.0 or mean <= 0.0 or mean >= 1.0:
        return np.full(u.shape, mean)
    kappa = (1.0 - icc) / icc
    return np.asarray(betaincinv(mean * kappa, (1.0 - mean) * kappa, u), dtype=np.float64)


def _family_traits(world: World, rates: Rates, u: dict[str, FloatArray], size: int) -> dict[str, FloatArray]:
    """Map independent uniforms of each varying stage to traits, with the copula on the ease."""
    found: dict[str, FloatArray] = {}
    for stage in TRAITS:
        mean, icc = float(getattr(rates, stage)), float(getattr(world.icc, stage))
        if icc == 0.0:
            found[stage] = np.full(size, mean)
            continue
        own = u[stage]
        if stage in DEPENDENT_STAGES and world.icc.q > 0.0:
            tie = float(getattr(world.ease, stage))
            if tie != 0.0:
                own = ndtr(tie * ndtri(u["q"]) + np.sqrt(1.0 - tie * tie) * ndtri(own))
        found[stage] = beta_quantile(mean, icc, own)
    for name in ("lambda1", "lambda2", "fpr", "s_false", "eta_ox"):
        value = getattr(rates, name)
        found[name] = np.full(size, np.nan if value is None else value)
    return found


def draw_traits(world: World, family: IntArray, rng: np.random.Generator) -> Traits:
    """Draw the traits of tasks.

    Parameters
    ----------
    world
        Rates, icc and dependence.
    family
        Family index of each task, shape ``(tasks,)``.
    rng
        Source of randomness; the same number of values is taken whatever the icc.

    Returns
    -------
    Traits
        Arrays of shape ``(tasks,)``.
    """
    uniforms = dict(zip(TRAITS, rng.random((len(TRAITS), len(family))), strict=True))
    out: dict[str, FloatArray] = {}
    for index, one in enumerate(world.families):
        mine = np.flatnonzero(family == index)
        part = _family_traits(world, one.rates, {name: u[mine] for name, u in uniforms.items()}, len(mine))
        for name, values in part.items():
            out.setdefault(name, np.empty(len(family)))[mine] = values
    return Traits(**out)


def family_nodes(world: World, rates: Rates, nodes: int = NODES) -> Traits:
    """Lay out equally weighted integration nodes over the traits of one family.

    The nodes are Sobol points, mapped through the same quantiles as the sampled traits. A family without scatter
    needs one node.

    Parameters
    ----------
    world
        Within-task correlation and dependence.
    rates
        Mean rates of the family.
    nodes
        Number of nodes, a power of two.

    Returns
    -------
    Traits
        Arrays of shape ``(nodes,)``, or ``(1,)``.
    """
    varying = [stage for stage in TRAITS if getattr(world.icc, stage) > 0.0]
    if not varying:
        return Traits(**_family_traits(world, rates, {}, 1))
    from scipy.stats import qmc

    points = qmc.Sobol(len(varying), scramble=False).random_base2(nodes.bit_length() - 1) + 0.5 / nodes
    uniforms = {stage: points[:, i] for i, stage in enumerate(varying)}
    return Traits(**_family_traits(world, rates, uniforms, nodes))
