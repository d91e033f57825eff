"""Bounds of a rate of which no event was seen, where the draws of a task are alike.

A task's own rate is θ ~ Beta(pκ, (1 − p)κ) with mean p and correlation icc = 1/(1 + κ) between draws. A bound U of 0/n
misses p > U with the chance that nothing is seen, ``Π E(1 − θ)^n_i``, which is largest at U itself. The table holds one
minus that chance, which is exact, by bound and correlation; ``--simulate`` draws samples beside it.

    python studies/rare.py
    python studies/rare.py --simulate 20000
    python studies/rare.py --few 400
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.optimize import brentq
from scipy.special import betaln

from verdiv.estimators.bootstrap import Bootstrap
from verdiv.estimators.crosscheck import cross_check

Array = npt.NDArray[np.float64]

LEVEL = 0.95
"""Confidence of the one-sided bounds."""

CORRELATIONS = (0.0, 0.3, 0.6, 0.9, 1.0)
DESIGNS = {
    "40 × 3": np.full(40, 3.0),
    "40 × 12": np.full(40, 12.0),
    "40 × 1 … 23": np.tile(np.arange(1.0, 24.0, 22.0 / 9.0).round(), 4),
    "200 × 12": np.full(200, 12.0),
}
"""Draws of each task that reach the stage."""


def nothing(n: Array, p: float, icc: float) -> float:
    """Chance that no draw shows an event."""
    if icc <= 0.0:
        return float((1.0 - p) ** n.sum())
    if icc >= 1.0:
        return float((1.0 - p) ** len(n))
    kappa = 1.0 / icc - 1.0
    a, b = p * kappa, (1.0 - p) * kappa
    return float(np.exp((betaln(a, b + n) - betaln(a, b)).sum()))


def at_correlation(n: Array, icc: float) -> float:
    """Bound that is exact where the correlation is known."""
    return float(brentq(lambda p: nothing(n, p, icc) - (1.0 - LEVEL), 1e-9, 1.0 - 1e-9))


def averaged(n: Array) -> float:
    """Bound of a posterior with icc ~ Beta(1, 1.5) and Jeffreys' prior of the rate."""
    icc = (np.arange(40) + 0.5) / 40
    weight = stats.beta.pdf(icc, 1.0, 1.5)
    logit = np.linspace(-12.0, 4.0, 600)
    p = 1.0 / (1.0 + np.exp(-logit))
    seen = np.array([[nothing(n, x, r) for r in icc] for x in p]) @ weight
    mass = np.cumsum(seen * np.sqrt(p * (1.0 - p)))
    return float(np.interp(LEVEL * mass[-1], mass, p))


def direct(n: Array) -> float:
    """Bound of the direct column, as rules see it."""
    b = Bootstrap(np.zeros(len(n), dtype=np.int64), np.ones(1), draws=200_000 // len(n) * 10, seed=1)
    b.extend({"k": np.zeros(len(n)), "n": n})
    return float(np.quantile(b.rate("k", "n", "n"), LEVEL))


def bounds(n: Array) -> dict[str, float]:
    """Every bound of 0/n."""
    checked = cross_check(n, np.zeros(len(n)), level=2.0 * LEVEL - 1.0)
    assert checked is not None
    assert checked.by_tasks is not None
    total = float(n.sum())
    return {
        "Clopper–Pearson, draws": checked.high,
        "half a pseudo-draw": float(stats.beta.ppf(LEVEL, 0.5, total + 0.5)),
        "icc .3 taken as known": at_correlation(n, 0.3),
        "icc .6 taken as known": at_correlation(n, 0.6),
        "icc averaged over its prior": averaged(n),
        "half a pseudo-task": float(stats.beta.ppf(LEVEL, 0.5, checked.by_tasks.effective + 0.5)),
        "Clopper–Pearson, tasks": checked.by_tasks.high,
        "direct, as rules use it": direct(n),
    }


def simulated(n: Array, p: float, icc: float, samples: int, rng: np.random.Generator) -> float:
    """Share of samples without an event."""
    if icc <= 0.0:
        theta = np.full((samples, len(n)), p)
    elif icc >= 1.0:
        theta = (rng.random((samples, len(n))) < p).astype(float)
    else:
        kappa = 1.0 / icc - 1.0
        theta = rng.beta(p * kappa, (1.0 - p) * kappa, (samples, len(n)))
    return float((rng.binomial(n.astype(int), theta).sum(axis=1) == 0).mean())


def covered_by_direct(n: Array, p: float, icc: float, runs: int, rng: np.random.Generator) -> float:
    """Share of simulated runs whose direct bound lies above the rate, whatever was seen."""
    hits = 0
    kappa = 1.0 / icc - 1.0
    for run in range(runs):
        theta = rng.beta(p * kappa, (1.0 - p) * kappa, len(n))
        b = Bootstrap(np.zeros(len(n), dtype=np.int64), np.ones(1), draws=1000, seed=run)
        b.extend({"k": rng.binomial(n.astype(int), theta).astype(float), "n": n})
        hits += float(np.quantile(b.rate("k", "n", "n"), LEVEL)) >= p
    return hits / runs


def few(runs: int) -> None:
    """Print coverage at rates at which few tasks show an event, or none."""
    rng = np.random.default_rng(1)
    touched = (0.7, 1.5, 3.0, 6.0)
    print("| tasks × draws | icc | " + " | ".join(f"{t:g} tasks" for t in touched) + " |")
    print("|---|---|" + "---|" * len(touched))
    for name, n in DESIGNS.items():
        for icc in (0.3, 0.9):
            found = [covered_by_direct(n, t / len(n), icc, runs, rng) for t in touched]
            print(f"| {name} | {icc:g} | " + " | ".join(f"{c:.3f}" for c in found) + " |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulate", type=int, default=0)
    parser.add_argument(
        "--few", type=int, default=0, help="Simulated runs a cell at rates that show a few events."
    )
    args = parser.parse_args()
    if args.few:
        few(args.few)
        return
    rng = np.random.default_rng(1)
    print(
        "| tasks × draws | bound of 0/n | its value | "
        + " | ".join(f"icc {r:g}" for r in CORRELATIONS)
        + " |"
    )
    print("|---|---|---|" + "---|" * len(CORRELATIONS))
    for name, n in DESIGNS.items():
        for bound, value in bounds(n).items():
            covered = [1.0 - nothing(n, value, icc) for icc in CORRELATIONS]
            print(f"| {name} | {bound} | {value:.4f} | " + " | ".join(f"{c:.3f}" for c in covered) + " |")
            if args.simulate:
                found = [1.0 - simulated(n, value, icc, args.simulate, rng) for icc in CORRELATIONS]
                print("| | simulated | | " + " | ".join(f"{c:.3f}" for c in found) + " |")


if __name__ == "__main__":
    main()
