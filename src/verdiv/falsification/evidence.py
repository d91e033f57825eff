"""Everything the ten rules look at, gathered once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from verdiv.estimators.direct import Direct
from verdiv.estimators.load import LoadFit, NotEstimable, load_draws
from verdiv.estimators.observations import FloatArray
from verdiv.estimators.posterior import IccPosterior
from verdiv.estimators.tally import Tally
from verdiv.falsification.floors import FlipRate, Floor, flip_rates, noise_floor
from verdiv.preregistration import Preregistration
from verdiv.pricing.breakeven import break_even

__all__ = ["Evidence", "break_even_draws"]


@dataclass
class Evidence:
    """Direct estimates, other conditions, flip rates, load and correlation of one run."""

    plan: Preregistration
    direct: Direct
    conditions: Mapping[str, Tally]
    """Tallies of the conditions other than primary."""
    load: LoadFit | NotEstimable
    load_heavy: LoadFit | NotEstimable
    icc: Mapping[str, IccPosterior]
    """Within-task correlation by block."""
    seed: int = 0
    _measured: dict[str, dict[tuple[str, int], FlipRate | None]] = field(default_factory=dict)
    _flips: dict[tuple[str, str, int], FlipRate | None] = field(default_factory=dict)
    _floors: dict[tuple[tuple[str, int], tuple[str, int]], Floor | None] = field(default_factory=dict)

    @property
    def tally(self) -> Tally:
        """Counts under the primary condition."""
        return self.direct.tally

    @property
    def draws(self) -> int:
        """Posterior draws."""
        return self.direct.bootstrap.draws

    def has_arm(self, arm: str, budget: int, condition: str = "primary") -> bool:
        """Whether the arm can be read at the budget."""
        tally = self.tally if condition == "primary" else self.conditions.get(condition)
        return tally is not None and (arm, budget) in tally.at_budget

    def flips(self, arm: str, budget: int, condition: str = "primary") -> FlipRate | None:
        """Posterior flip rate of an arm at a budget, or None where no independent replicates exist."""
        key = (condition, arm, budget)
        if key not in self._flips:
            tally = self.tally if condition == "primary" else self.conditions[condition]
            if condition not in self._measured:
                measured = flip_rates(tally.pairs, draws=self.draws, seed=self.seed) if tally.pairs else {}
                self._measured[condition] = measured
            self._flips[key] = self._measured[condition].get((arm, budget))
        return self._flips[key]

    def floor(self, first: tuple[str, int], second: tuple[str, int]) -> Floor | None:
        """Noise floor of the paired difference of two arms under the primary condition."""
        if (first, second) not in self._floors:
            self._floors[first, second] = self._compute_floor(first, second)
        return self._floors[first, second]

    def _compute_floor(self, first: tuple[str, int], second: tuple[str, int]) -> Floor | None:
        a, b = self.flips(*first), self.flips(*second)
        if a is None or b is None:
            return None
        x, y = self.tally.at_budget[first], self.tally.at_budget[second]
        common = (x.n > 0) & (y.n > 0)
        tasks = int(common.sum())
        if tasks == 0:
            return None
        replicates = max(1, round(float(np.minimum(x.n, y.n)[common].mean())))
        return noise_floor(a, b, tasks=tasks, replicates=replicates)

    def measured_flips(self) -> list[FlipRate]:
        """Flip rates that were looked at and could be measured, primary condition."""
        return [f for (condition, _, _), f in self._flips.items() if f is not None and condition == "primary"]

    def h_draws(self, fit: LoadFit) -> FloatArray:
        """Posterior draws of H, shape ``(draws,)``."""
        return load_draws(fit, self.draws, self.seed)


def break_even_draws(direct: Direct, b_max: int, *, weights: FloatArray | None = None) -> FloatArray | None:
    """B* in every posterior draw of the paired bootstrap, shape ``(draws,)``; 0 is "none by B_max".

    Returns
    -------
    numpy.ndarray or None
        None where A3 or A4 was not run.
    """
    tally = direct.tally
    budgets = [b for b in range(1, b_max + 1) if ("A3", b) in tally.at_budget]
    if not budgets or ("A4", 1) not in tally.at_budget:
        return None
    quality = np.stack([direct.quality("A3", b, weights=weights) for b in budgets], axis=1)
    bill = np.stack([direct.bill("A3", b, weights=weights) for b in budgets], axis=1)
    teacher = direct.quality("A4", 1, exchanged=True, weights=weights)
    price = direct.bill("A4", 1, exchanged=True, weights=weights)
    return np.asarray(break_even(quality, bill, teacher, price), dtype=np.float64)
