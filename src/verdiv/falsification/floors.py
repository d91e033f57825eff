"""Item-flip noise floors, with their own uncertainty.

``p_flip`` of an arm is the chance that two independent replicates of one task differ in ``correct``. The floor of a
mean paired difference is the smallest size that pure flipping exceeds at most 5 % of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verdiv.estimators.bootstrap import Bootstrap
from verdiv.estimators.chains import Chains, replicate_pairs
from verdiv.estimators.observations import DrawColumns, FloatArray

__all__ = ["FlipRate", "Floor", "flip_rate", "flip_rate_of", "flip_rates", "noise_draws", "noise_floor"]

LEVEL = 0.05
"""How often pure flipping may exceed its floor."""

MIXTURE = 400
"""Posterior points of p_flip that the floor is averaged over at most."""


REACH = 10.0
"""Standard deviations of a sum of flips beyond which nothing is left of its distribution."""


@dataclass(frozen=True)
class FlipRate:
    """Posterior of an arm's item-flip rate."""

    arm: str
    budget: int
    draws: FloatArray
    """Posterior draws, shape ``(draws,)``."""
    pairs: int
    """Unordered pairs of independent replicates."""
    flips: int
    """Pairs that differ in ``correct``."""
    tasks: int
    """Tasks with at least two independent replicates."""


@dataclass(frozen=True)
class Floor:
    """Noise floor of a mean paired difference of two arms."""

    value: float
    tasks: int
    replicates: int
    pairs: int
    """A/A pairs behind it, both arms together."""


def flip_rate(columns: DrawColumns, chains: Chains, budget: int, *, draws: int, seed: int) -> FlipRate | None:
    """Posterior of p_flip of an arm at a budget.

    The task mean of ``2c(r−c)/(r(r−1))`` over tasks with ``r ≥ 2`` independent replicates, ``c`` of them correct,
    bootstrapped by task with half a pseudo-task at 0 and half a pseudo-task at 1: no flip among ``m`` tasks gives
    exactly Beta(½, m + ½).

    Returns
    -------
    FlipRate or None
        None where no task has two independent replicates.
    """
    return flip_rate_of(chains.arm, budget, replicate_pairs(columns, chains, budget), draws=draws, seed=seed)


def flip_rate_of(
    arm: str, budget: int, pairs: tuple[FloatArray, FloatArray], *, draws: int, seed: int
) -> FlipRate | None:
    """Posterior of p_flip from replicates and differing pairs per task; see :func:`flip_rate`."""
    return flip_rates({(arm, budget): pairs}, draws=draws, seed=seed)[arm, budget]


def flip_rates(
    pairs: Mapping[tuple[str, int], tuple[FloatArray, FloatArray]], *, draws: int, seed: int
) -> dict[tuple[str, int], FlipRate | None]:
    """Posteriors of p_flip of several arms at budgets, under one set of task weights; see :func:`flip_rate`."""
    columns: dict[str, FloatArray] = {}
    tasks = 0
    for (arm, budget), (r, flips) in pairs.items():
        several = r >= 2
        rate = np.divide(2.0 * flips, r * (r - 1.0), out=np.zeros_like(r), where=several)
        columns[f"{arm}@{budget}.k"] = np.where(several, rate, 0.0)
        columns[f"{arm}@{budget}.n"] = several.astype(np.float64)
        tasks = len(r)
    boot = Bootstrap(
        np.zeros(tasks, dtype=np.int64),
        np.ones(1),
        draws=draws,
        seed=seed,
        alone=True,
        watch=columns.values(),
    )
    boot.extend(columns)
    return {key: _flip_rate(*key, *pairs[key], boot) for key in pairs}


def _flip_rate(arm: str, budget: int, r: FloatArray, flips: FloatArray, boot: Bootstrap) -> FlipRate | None:
    several = r >= 2
    if not several.any():
        return None
    return FlipRate(
        arm,
        budget,
        boot.mean(f"{arm}@{budget}.k", f"{arm}@{budget}.n"),
        round(float((r * (r - 1.0) / 2.0)[several].sum())),
        round(float(flips[several].sum())),
        int(several.sum()),
    )


def _tails(total: int, step: FloatArray) -> FloatArray:
    """P(|Σ d| > s) for s = 0, 1, …, averaged over ``step`` = P(d = 1) = P(d = −1).

    The characteristic function ``(1 − 2p + 2p cos t)^total`` at ``size`` angles gives the distribution of the sum
    modulo ``size``: exact where ``size`` exceeds twice the total, and else where no more than 1e-20 lies beyond
    ``REACH`` standard deviations. It is averaged over p first, and even in t, so that one transform of half of it is
    enough.
    """
    spread = float(np.sqrt(2.0 * float(step.max()) * total))
    size = min(2 * total + 1, 2 * int(REACH * spread + REACH**2) + 1)
    angle = 2.0 * np.pi * np.arange(size // 2 + 1) / size
    fall = 2.0 * (np.cos(angle) - 1.0)
    mean = np.zeros_like(angle)
    for p in step:
        mean += (1.0 + p * fall) ** total
    pmf = np.fft.irfft(mean / len(step), n=size)
    both = pmf[: size // 2 + 1].copy()
    both[1:] *= 2.0
    return np.asarray(1.0 - np.cumsum(both), dtype=np.float64)


def noise_floor(first: FlipRate, second: FlipRate, *, tasks: int, replicates: int) -> Floor:
    """Floor of a mean paired difference over ``tasks`` tasks and ``replicates`` replicates.

    Smallest ε with ``P(|Σ d| > ε n r) ≤ .05``, the ``n r`` differences independent in {−1, 0, 1} with
    ``P(±1) = (p_flip,A + p_flip,B)/4`` each, averaged over the posterior of both flip rates. Both arms' posteriors
    come from the same task weights.

    Raises
    ------
    ValueError
        If there is no task or no replicate.
    """
    total = tasks * replicates
    if total < 1:
        raise ValueError("a floor needs at least one task and one replicate")
    rate = (first.draws + second.draws) / 4.0
    points = np.quantile(rate, (np.arange(MIXTURE) + 0.5) / MIXTURE) if len(rate) > MIXTURE else rate
    tails = _tails(total, points)
    return Floor(float(np.argmax(tails <= LEVEL)) / total, tasks, replicates, first.pairs + second.pairs)


def noise_draws(
    first: FlipRate, second: FlipRate, *, tasks: int, replicates: int, rng: np.random.Generator
) -> FloatArray:
    """Posterior draws of the flip noise of a mean paired difference, shape ``(draws,)``.

    For statements about the tasks that were run: the observed difference minus this noise is the difference that
    endless replicates of the same tasks would show.
    """
    total = tasks * replicates
    p = np.clip((first.draws + second.draws) / 4.0, 0.0, 0.5)
    up = rng.binomial(total, p)
    down = rng.binomial(total - up, np.clip(p / np.maximum(1.0 - p, 1e-12), 0.0, 1.0))
    noise: npt.NDArray[np.float64] = (up - down) / total
    return noise
