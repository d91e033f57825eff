"""The fit as inference data: everything needed to look at it again with ArviZ, whichever engine made it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from verdiv.estimators.posterior import IccPosterior, StagePosterior
from verdiv.estimators.priors import Priors
from verdiv.estimators.summary import CountBlock, StageSummary

__all__ = ["FitArchive", "fit_archive"]

Floats = npt.NDArray[np.float64]

SAMPLED = ("posterior", "sample_stats")
"""Groups whose variables start with the axes chain and draw."""


@dataclass(frozen=True, slots=True)
class FitArchive:
    """Groups of labelled arrays, as a netCDF file of ArviZ holds them."""

    groups: Mapping[str, Mapping[str, Floats]]
    """Group to variables; those of posterior and sample_stats have shape (chain, draw, …)."""
    dims: Mapping[str, Sequence[str]]
    """Variable to the names of its axes beyond chain and draw."""
    coords: Mapping[str, Sequence[str]]
    """Axis to labels; axes without are numbered."""
    attrs: Mapping[str, str]
    """Attributes of the posterior."""

    def axes(self, group: str, name: str) -> tuple[str, ...]:
        """Names of a variable's axes."""
        values = self.groups[group][name]
        first = ("chain", "draw") if group in SAMPLED else ()
        own = tuple(self.dims.get(name, ()))
        missing = range(values.ndim - len(first) - len(own))
        return first + own + tuple(f"{name}_dim_{i}" for i in missing)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a netCDF file that ArviZ, xarray and ``stack.read_netcdf`` open; imports neither.

        The same archive gives the same variables; the file holds no time of writing.
        """
        import h5netcdf
        import h5py

        with h5netcdf.File(os.fspath(path), "w") as file:
            for group, variables in self.groups.items():
                part = file.create_group(group)
                if group == "posterior":
                    for key, value in self.attrs.items():
                        part.attrs[key] = value
                for name, values in variables.items():
                    axes = self.axes(group, name)
                    for axis, size in zip(axes, values.shape, strict=True):
                        if axis not in part.dimensions:
                            part.dimensions[axis] = size
                            _label(part, axis, size, self.coords.get(axis), h5py.string_dtype())
                    yes_or_no = values.dtype == np.bool_
                    data = values.astype(np.int8) if yes_or_no else values
                    made = part.create_variable(name, axes, data=data, compression="gzip", compression_opts=4)
                    if yes_or_no:
                        # netCDF has no such type; readers that know the mark give it back.
                        made.attrs["dtype"] = "bool"

    def inference_data(self) -> Any:
        """Return it as InferenceData (ArviZ 0.x) or DataTree (ArviZ 1.x), which it imports."""
        from verdiv.estimators import stack

        return stack.inference_data(self.groups, coords=self.coords, dims=self.dims, attrs=self.attrs)


def _label(group: Any, axis: str, size: int, labels: Sequence[str] | None, text: Any) -> None:
    """Write the coordinate of an axis."""
    if labels is None:
        group.create_variable(axis, (axis,), data=np.arange(size, dtype=np.int64))
        return
    group.create_variable(axis, (axis,), dtype=text)[...] = np.asarray(list(labels), dtype=object)


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
) -> FitArchive:
    """Collect the inference data of a fit.

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
    FitArchive
        Written with :meth:`FitArchive.write`.
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
    return FitArchive(
        groups,
        dims,
        {"stage": list(order), "family": list(summary.families)},
        {
            "engine": posterior.engine,
            "priors": json.dumps(asdict(priors), sort_keys=True),
            "seed": str(seed),
        },
    )
