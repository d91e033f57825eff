"""The one module that knows two generations of the stack: ArviZ 0.23 with PyMC 5, and ArviZ 1 with PyMC 6.

Everything else hands NumPy arrays of shape (chain, draw, ...) in and gets NumPy arrays back.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

__all__ = [
    "arrays",
    "arviz_generation",
    "ess_bulk",
    "ess_tail",
    "hdi",
    "inference_data",
    "load",
    "mcse_mean",
    "mcse_sd",
    "quiet",
    "r_hat",
    "read_netcdf",
    "versions",
    "write_netcdf",
]

Floats = npt.NDArray[np.float64]

ENGINE = "h5netcdf"
"""Backend of netCDF files, pinned so that both generations write the same kind of file."""


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings of the stack about itself (renamed options, coming releases, thread counts)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def load(name: str) -> ModuleType:
    """Import a heavy module of the stack without the notices it prints at import."""
    with quiet():
        return import_module(name)


def arviz_generation() -> int:
    """Return 0 for ArviZ 0.x (InferenceData) and 1 for ArviZ 1.x (DataTree), without importing it."""
    return int(version("arviz").split(".", 1)[0])


def versions() -> dict[str, str]:
    """Versions of the packages that a fit depends on."""
    return {name: version(name) for name in ("arviz", "numpy", "nutpie", "pymc", "scipy", "xarray")}


def _dataset(values: Floats) -> xr.Dataset:
    dims = ("chain", "draw", *(f"axis_{i}" for i in range(values.ndim - 2)))
    return xr.Dataset({"x": (dims, values)})


def _diagnose(values: Floats, function: str, **options: Any) -> Floats:
    """Apply one ArviZ diagnostic that reduces chain and draw."""
    with quiet():
        found = getattr(load("arviz"), function)(_dataset(values), **options)
    return np.asarray(found["x"].to_numpy(), dtype=np.float64)


def r_hat(values: Floats) -> Floats:
    """Rank-normalised split R-hat of an array (chain, draw, ...)."""
    return _diagnose(values, "rhat", method="rank")


def ess_bulk(values: Floats) -> Floats:
    """Bulk effective sample size of an array (chain, draw, ...)."""
    return _diagnose(values, "ess", method="bulk")


def ess_tail(values: Floats) -> Floats:
    """Tail effective sample size, the smaller of the 5 % and the 95 % quantile's, of an array (chain, draw, ...)."""
    return _diagnose(values, "ess", method="tail", prob=(0.05, 0.95))


def mcse_mean(values: Floats) -> Floats:
    r"""Monte-Carlo standard error of the mean, :math:`sd / \sqrt{ess}`, of an array (chain, draw, ...)."""
    return np.asarray(values.std(axis=(0, 1)) / np.sqrt(_diagnose(values, "ess", method="mean")))


def mcse_sd(values: Floats) -> Floats:
    r"""Monte-Carlo standard error of the standard deviation, of an array (chain, draw, ...).

    By the delta method from the squared deviations :math:`z`: :math:`\sqrt{Var(z) / ess(z)} / (2 sd)`. (The
    version of ArviZ 0.23 fails on recent NumPy.)
    """
    square = (values - values.mean(axis=(0, 1))) ** 2
    variance = square.mean(axis=(0, 1))
    error = np.sqrt(square.var(axis=(0, 1)) / _diagnose(square, "ess", method="mean"))
    return np.asarray(error / (2.0 * np.sqrt(variance)))


def hdi(values: Floats, probability: float) -> tuple[float, float]:
    """Highest-density interval of a vector of draws, by ArviZ."""
    az = load("arviz")
    draws = np.asarray(values, dtype=np.float64)
    with quiet():
        if arviz_generation() == 0:
            low, high = np.asarray(az.hdi(draws, hdi_prob=probability))
        else:
            low, high = np.asarray(az.hdi(draws, prob=probability, axis=-1))
    return float(low), float(high)


def inference_data(
    groups: Mapping[str, Mapping[str, Floats]],
    *,
    coords: Mapping[str, Sequence[Any]] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    attrs: Mapping[str, str] | None = None,
) -> Any:
    """Build inference data: InferenceData in ArviZ 0.x, a DataTree in ArviZ 1.x.

    Parameters
    ----------
    groups
        Group name to variables; each of shape (chain, draw, ...), data groups without chain and draw.
    coords, dims
        Labels of the further axes.
    attrs
        Attributes of the posterior group.
    """
    az = load("arviz")
    plain = {name: {key: np.asarray(value) for key, value in group.items()} for name, group in groups.items()}
    options: dict[str, Any] = {
        "coords": dict(coords or {}),
        "dims": {key: list(value) for key, value in (dims or {}).items()},
    }
    with quiet():
        data = az.from_dict(**plain, **options) if arviz_generation() == 0 else az.from_dict(plain, **options)
    if attrs and "posterior" in plain:
        data["posterior"].attrs.update(attrs)
    return data


def arrays(data: Any, group: str) -> dict[str, Floats]:
    """Return the variables of one group as NumPy arrays, of either generation."""
    return {str(name): np.asarray(data[group][name].to_numpy()) for name in data[group].data_vars}


def write_netcdf(data: Any, path: str | os.PathLike[str]) -> None:
    """Write inference data to one netCDF file."""
    with quiet():
        data.to_netcdf(os.fspath(path), engine=ENGINE)


def read_netcdf(path: str | os.PathLike[str]) -> Any:
    """Read inference data back, whichever generation wrote it."""
    with quiet():
        if arviz_generation() == 0:
            return load("arviz").from_netcdf(os.fspath(path), engine=ENGINE)
        with xr.open_datatree(os.fspath(path), engine=ENGINE) as found:
            return found.load()
