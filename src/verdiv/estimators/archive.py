"""The fit as inference data: everything needed to look at it again with ArviZ, whichever engine made it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from verdiv.estimators import stack
from verdiv.estimators.posterior import IccPosterior, StagePosterior
from verdiv.estimators.priors import Priors
from verdiv.estimators.summary import CountBlock, StageSummary

__all__ = ["fit_archive"]

Floats = npt.NDArray[np.float64]


def fit_archive(
    summary: StageSummary,
    blocks: Sequence[CountBlock],
    posterior: StagePosterior,
    icc: Mapping[str, IccPosterior],
    priors: Priors,
    *,
    chains: int = 1,
    sample_stats: Mapping[str, Floats] | None = None,
    seed: int = 0,
) -> Any:
    """Build inference data of a fit, ready for ``stack.write_netcdf``.

    Parameters
    ----------
    summary, blocks
        The data; they become ``observed_data``, count vectors as variables of their own.
    posterior, icc
        The fit: ``m`` (stage, family), ``mu`` and ``tau`` (stage), ``icc_<block>`` and ``block_m_<block>``.
    priors
        Its priors, kept as an attribute of the posterior.
    chains
        Number of chains whose draws stand one after another; 1 for the grid, whose draws are independent.
    sample_stats
        Statistics of the sampler, each of shape (chain, draw).
    seed
        Seed of the fit.

    Returns
    -------
    InferenceData or DataTree
        As the installed generation of ArviZ has it.
    """

    def shaped(values: Floats) -> Floats:
        length = values.shape[0] // chains
        return values[: chains * length].reshape(chains, length, *values.shape[1:])

    order = summary.stages
    draws = {
        "m": shaped(np.stack([posterior.m[stage] for stage in order], axis=1)),
        "mu": shaped(np.stack([posterior.mu[stage] for stage in order], axis=1)),
        "tau": shaped(np.stack([posterior.tau[stage] for stage in order], axis=1)),
    }
    dims: dict[str, Sequence[str]] = {"m": ["stage", "family"], "mu": ["stage"], "tau": ["stage"]}
    observed: dict[str, Floats] = {
        "N": summary.N,
        "K": summary.K,
        "deff": summary.deff,
        "tasks": summary.tasks.astype(np.float64),
    }
    dims |= {"N": ["stage", "family"], "K": ["stage", "family"], "tasks": ["stage", "family"]}
    dims["deff"] = ["stage"]
    for block in blocks:
        if block.name not in icc:
            continue
        fit, vector = icc[block.name], f"vector_{block.name}"
        draws[f"icc_{block.name}"] = shaped(fit.icc)
        draws[f"block_m_{block.name}"] = shaped(fit.m)
        dims[f"block_m_{block.name}"] = ["family"]
        for part in ("family", "n", "k", "multiplicity"):
            observed[f"{part}_{block.name}"] = getattr(block, part).astype(np.float64)
            dims[f"{part}_{block.name}"] = [vector]
    groups: dict[str, Mapping[str, Floats]] = {"posterior": draws, "observed_data": observed}
    if sample_stats:
        groups["sample_stats"] = sample_stats
    return stack.inference_data(
        groups,
        coords={"stage": list(order), "family": list(summary.families)},
        dims=dims,
        attrs={
            "engine": posterior.engine,
            "priors": json.dumps(asdict(priors), sort_keys=True),
            "seed": str(seed),
        },
    )
