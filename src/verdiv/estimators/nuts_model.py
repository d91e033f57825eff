r"""The hierarchical model in PyMC: all stages and all within-task blocks as one vectorised graph.

Stage part, for every stage s and family f with effective counts k of n:

.. math::
    \mathrm{logit}\, m_{s,f} = x_{s,f} = \mu_s + \tau_s u_{s,f}, \quad u \sim N(0, 1), \quad
    \log L = k x - n \log(1 + e^x)

sampled non-centred, in coordinates that leave nothing for the sampler to learn. Write :math:`\hat x, p` for the
family's empirical logit and its precision :math:`n \hat m (1 - \hat m)` (0 for a family that the stage never
reached). Given :math:`\mu, \tau` the Gaussian approximation of u has precision :math:`1 + \tau^2 p` and mean
:math:`\tau p (\hat x - \mu) / (1 + \tau^2 p)`, and given :math:`\tau` that of :math:`\mu` has precision
:math:`1/\sigma_0^2 + \sum_f p / (1 + \tau^2 p)`; the sampler's coordinates are u and mu standardised by these. The
change of variables is exact (its Jacobian is in the density), so the approximation affects speed only: with
little data it is the plain non-centred form, with much the centred one.

Block part: the beta-binomial of ``rising``, with a normal logit per family and icc ~ Beta(a, b), sampled on its
logit w, where the log density of the Beta is :math:`a w - (a + b) \log(1 + e^w)` up to a constant. (Written out,
because the Beta of the library brings gamma functions into the graph, and compiling is most of a fit's time.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from verdiv.estimators.priors import Priors
from verdiv.estimators.rising import rising_terms
from verdiv.estimators.stack import load
from verdiv.estimators.summary import CountBlock, StageSummary

__all__ = ["ModelShape", "block_logits", "build_model", "model_data", "model_shape", "stage_logits"]

Floats = npt.NDArray[np.float64]

UNIFORM_SCALE = 1.8
"""Standard deviation, in logits, of a uniform rate: pi / sqrt(3), rounded; coordinates only."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What a compiled model depends on; everything else is data."""

    stages: int
    """Number of stages."""
    families: int
    """Number of families; with one, the spread between families is dropped."""
    blocks: int
    """Number of within-task blocks."""
    terms: int
    """Terms of a block's products, padded to a power of two."""
    uniform: bool = False
    """Whether location priors are logistic (rates uniform) instead of normal."""


def model_shape(summary: StageSummary, blocks: Sequence[CountBlock], priors: Priors) -> ModelShape:
    """Return the shape under which a compiled model can be shared."""
    widths = [rising_terms(block, summary.families).width for block in blocks]
    width = 1 << (max(widths) - 1).bit_length() if widths else 0
    return ModelShape(
        len(summary.stages),
        len(summary.families),
        len(blocks),
        max(width, 8) if widths else 0,
        priors.uniform,
    )


def _stage_data(summary: StageSummary, priors: Priors) -> dict[str, Floats]:
    k, n = summary.k_effective, summary.n_effective
    rate = (k + 0.5) / (n + 1.0)
    mean, sd = priors.locations(summary.stages)
    data = {
        "k": k,
        "n": n,
        "centre": np.log(rate) - np.log1p(-rate),
        "precision": n * rate * (1.0 - rate),
        "mu_mean": mean,
        "mu_precision": 1.0 / sd**2,
        "tau_sd": np.full_like(mean, priors.tau_sd),
    }
    if priors.uniform:
        data["mu_mean"] = np.zeros_like(mean)
        data["mu_precision"] = np.full_like(sd, UNIFORM_SCALE**-2)
    return data


def _block_data(
    blocks: Sequence[CountBlock], families: Sequence[str], priors: Priors, width: int
) -> dict[str, Floats]:
    terms = [rising_terms(block, families).padded(width) for block in blocks]

    def stacked(part: str) -> Floats:
        return np.stack([getattr(term, part) for term in terms])

    mean, sd = priors.locations([block.name for block in blocks])
    return {
        "block_node": np.stack([stacked("right_node"), stacked("wrong_node"), stacked("all_node")], axis=1),
        "block_weight": np.stack([stacked("right"), stacked("wrong"), -stacked("all")], axis=1),
        "block_mean": np.repeat(mean[:, None], len(families), axis=1),
        "block_sd": np.repeat(sd[:, None], len(families), axis=1),
        "icc_a": np.full(len(blocks), priors.icc_a),
        "icc_b": np.full(len(blocks), priors.icc_b),
    }


def model_data(
    summary: StageSummary, blocks: Sequence[CountBlock], priors: Priors, shape: ModelShape
) -> dict[str, Floats]:
    """Return everything a compiled model of this shape is told, by the name of its data variable."""
    data = _stage_data(summary, priors) if shape.stages else {}
    if shape.families == 1:
        data.pop("tau_sd", None)
    if shape.blocks:
        data |= _block_data(blocks, summary.families, priors, shape.terms)
        if shape.uniform:
            del data["block_mean"], data["block_sd"]
    return data


def _standardised(
    mu_z: Any, tau: Any, u_z: Any, data: Mapping[str, Any], maths: Any
) -> tuple[Any, Any, Any, Any]:
    """Carry the sampler's coordinates to mu, u and x; ``maths`` is NumPy or PyTensor.

    Returns mu (..., S), u and x (..., S, F), and the log Jacobian summed over the last axis, (..., S).
    """
    spread = tau[..., None]
    sharp = 1.0 + spread * spread * data["precision"]
    weight = data["precision"] / sharp
    total = data["mu_precision"] + weight.sum(axis=-1)
    mean = (data["mu_precision"] * data["mu_mean"] + (weight * data["centre"]).sum(axis=-1)) / total
    mu = mean + mu_z / maths.sqrt(total)
    u = spread * weight * (data["centre"] - mu[..., None]) + u_z / maths.sqrt(sharp)
    x = mu[..., None] + spread * u
    return mu, u, x, -0.5 * maths.log(total) - 0.5 * maths.log(sharp).sum(axis=-1)


def stage_logits(draws: Mapping[str, Floats], data: Mapping[str, Floats]) -> tuple[Floats, Floats, Floats]:
    """Return mu (..., S), tau (..., S) and the families' logits (..., S, F) from the sampler's coordinates."""
    if "tau_z" not in draws:
        mu = _single_mu(draws["mu_z"], data)
        return mu, np.zeros_like(mu), mu[..., None]
    tau = data["tau_sd"] * draws["tau_z"]
    mu, _, x, _ = _standardised(draws["mu_z"], tau, draws["u_z"], data, np)
    return mu, tau, x


def _single_mu(mu_z: Any, data: Mapping[str, Any]) -> Any:
    """Suite mean of a suite of one family, standardised by its Gaussian approximation."""
    total = data["mu_precision"] + data["precision"][:, 0]
    mean = (data["mu_precision"] * data["mu_mean"] + data["precision"][:, 0] * data["centre"][:, 0]) / total
    return mean + mu_z / total**0.5


def block_logits(draws: Mapping[str, Floats], data: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Return icc (..., B) and the families' logits (..., B, F) from the sampler's coordinates."""
    icc = 1.0 / (1.0 + np.exp(-draws["icc_w"]))
    if "block_sd" not in data:
        return icc, draws["block_z"]
    return icc, data["block_mean"] + data["block_sd"] * draws["block_z"]


def build_model(shape: ModelShape, data: Mapping[str, Floats]) -> Any:
    """Define the model in PyMC.

    Parameters
    ----------
    shape
        Sizes of all axes.
    data
        Initial values of the data variables, from :func:`model_data`; replaced later without recompiling.

    Returns
    -------
    pymc.Model
        With data variables named as in ``data`` and free variables ``mu_z``, ``tau_z``, ``u_z`` (stages; the
        last two only with several families), ``icc_w`` (logit of icc) and ``block_z`` (blocks).
    """
    load("arviz")
    pm, pt = load("pymc"), load("pytensor.tensor")
    with pm.Model() as model:
        held = {name: pm.Data(name, value, shape=value.shape) for name, value in data.items()}
        if shape.stages:
            pm.Potential("stage_density", _stage_density(shape, held, pm, pt))
        if shape.blocks:
            pm.Potential("block_density", _block_density(shape, held, pm, pt))
    return model


def _stage_density(shape: ModelShape, data: Mapping[str, Any], pm: Any, pt: Any) -> Any:
    stages, families = shape.stages, shape.families
    mu_z = pm.Flat("mu_z", shape=(stages,))
    if families == 1:
        mu = _single_mu(mu_z, data)
        likelihood = data["k"][:, 0] * mu - data["n"][:, 0] * pt.softplus(mu)
        prior: Any = 0.0
    else:
        tau = data["tau_sd"] * pm.HalfNormal("tau_z", 1.0, shape=(stages,))
        u_z = pm.Flat("u_z", shape=(stages, families))
        mu, u, x, prior = _standardised(mu_z, tau, u_z, data, pt)
        likelihood = (data["k"] * x - data["n"] * pt.softplus(x) - 0.5 * u * u).sum(axis=-1)
    if shape.uniform:
        prior += mu - 2.0 * pt.softplus(mu)
    else:
        prior += -0.5 * data["mu_precision"] * (mu - data["mu_mean"]) ** 2
    return (likelihood + prior).sum()


def _block_density(shape: ModelShape, data: Mapping[str, Any], pm: Any, pt: Any) -> Any:
    w = pm.Flat("icc_w", shape=(shape.blocks,))
    icc = pt.sigmoid(w)
    beta = data["icc_a"] * w - (data["icc_a"] + data["icc_b"]) * pt.softplus(w)
    size = (shape.blocks, shape.families)
    if shape.uniform:
        logit = pm.Logistic("block_z", 0.0, 1.0, shape=size)
    else:
        logit = data["block_mean"] + data["block_sd"] * pm.Normal("block_z", 0.0, 1.0, shape=size)
    # Rows of the product axis: m for events, 1 - m for the others, 1 for all draws.
    offset = np.array([0.0, 1.0, 1.0])[None, :, None, None]
    sign = np.array([1.0, -1.0, 0.0])[None, :, None, None]
    rate = offset + sign * pt.sigmoid(logit)[:, None, :, None]
    step = icc[:, None, None, None]
    terms = data["block_weight"] * pt.log(rate * (1.0 - step) + data["block_node"] * step)
    return terms.sum() + beta.sum()
