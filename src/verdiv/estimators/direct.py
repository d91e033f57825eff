"""Direct estimates of every estimand and of every arm at every budget, from one set of bootstrap weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from verdiv.estimators.bootstrap import Bootstrap
from verdiv.estimators.chains import ArmAtBudget
from verdiv.estimators.events import Events
from verdiv.estimators.observations import BoolArray, FloatArray
from verdiv.estimators.tally import Tally

__all__ = ["RATES", "Direct", "Estimate", "estimate_directly"]

RATES: Mapping[str, str] = {
    "delta": "delta",
    "eta_ox": "eta_ox",
    "sigma": "sigma",
    "s1": "s1",
    "s2": "s2",
    "lambda1": "lambda1",
    "lambda2": "lambda2",
    "s_blind": "s_blind",
    "s_blind_pairs": "s_blind_pairs",
    "s_blind_exchangeable": "s_blind_exchangeable",
    "fpr": "fpr",
    "fpr_initial": "fpr_initial",
    "delta_t": "delta_T",
    "p_d": "p_d",
    "p_s": "p_s",
}
"""Estimate id to the stage whose draw-weighted rate it is."""

MEANS: Mapping[str, str] = {"q0": "q", "q0_greedy": "q_greedy", "q_t": "q_T"}
"""Estimate id to the stage whose mean over tasks it is."""


@dataclass(frozen=True)
class Estimate:
    """Direct posterior draws of one estimand, with the counts behind them."""

    draws: FloatArray
    """Shape ``(draws,)``."""
    n: float | None
    k: float | None
    tasks: int
    population: str
    components: tuple[str, ...] = ()
    """Estimands it is made of, where it has no counts of its own."""
    note: str | None = None


class Direct:
    """The direct column: estimands, arms at budgets, and paired contrasts under shared weights.

    Parameters
    ----------
    tally
        Counts of the run.
    weights
        Family weights, shape ``(families,)``.
    draws, seed
        Of the Bayesian bootstrap.
    """

    def __init__(self, tally: Tally, weights: FloatArray, *, draws: int = 4000, seed: int = 0) -> None:
        self.tally = tally
        columns: dict[str, FloatArray] = {}
        for stage, events in tally.events.items():
            columns |= event_columns(stage, events)
        for (arm, budget), cell in tally.at_budget.items():
            columns |= arm_columns(f"{arm}@{budget}", cell)
            columns |= blended_columns(tally, budget) if arm == "A3" else {}
            for other in (("A4", 1), ("A1", budget)) if arm == "A3" else ():
                if other in tally.at_budget:
                    columns |= paired_columns(f"{(arm, budget)}-{other}", cell, tally.at_budget[other])
        # All of them at once: each further pass draws every weight again.
        self.bootstrap = Bootstrap(tally.family, weights, draws=draws, seed=seed, watch=_watched(tally))
        self.bootstrap.extend(columns)

    def rate(self, stage: str, *, exchanged: bool = False, weights: FloatArray | None = None) -> FloatArray:
        """Draw-weighted rate of a stage, shape ``(draws,)``; NaN where nothing reaches it."""
        least = -1.0 if stage.startswith("drift") else 0.0
        return self.bootstrap.rate(
            f"{stage}.k", f"{stage}.n", f"{stage}.base", least=least, exchanged=exchanged, weights=weights
        )

    def mean(self, stage: str, *, exchanged: bool = False, weights: FloatArray | None = None) -> FloatArray:
        """Mean of a stage over tasks, shape ``(draws,)``."""
        return self.bootstrap.mean(f"{stage}.k", f"{stage}.n", exchanged=exchanged, weights=weights)

    def quality(
        self, arm: str, budget: int, *, exchanged: bool = False, weights: FloatArray | None = None
    ) -> FloatArray:
        """Quality of an arm at a budget, shape ``(draws,)``."""
        name = f"{arm}@{budget}"
        return self.bootstrap.mean(f"{name}.k", f"{name}.n", exchanged=exchanged, weights=weights)

    def bill(
        self, arm: str, budget: int, *, exchanged: bool = False, weights: FloatArray | None = None
    ) -> FloatArray:
        """Mean bill of an arm at a budget in units of one small draw, shape ``(draws,)``.

        Its pseudo-tasks stand at the least and the greatest bill of a chain. Where all chains must cost the same,
        the bill is known.
        """
        name = f"{arm}@{budget}"
        cell = self.tally.at_budget[arm, budget]
        return self.bootstrap.mean(
            f"{name}.bill",
            f"{name}.bill_n",
            least=cell.least,
            greatest=cell.greatest,
            exchanged=exchanged,
            weights=weights,
        )

    def contrast(
        self, first: tuple[str, int], second: tuple[str, int], *, weights: FloatArray | None = None
    ) -> FloatArray:
        """Paired difference in quality of two arms over the tasks that both ran, shape ``(draws,)``."""
        a, b = self.tally.at_budget[first], self.tally.at_budget[second]
        return self.paired(f"{first}-{second}", a, b, weights=weights)

    def paired(
        self, name: str, a: ArmAtBudget, b: ArmAtBudget, *, weights: FloatArray | None = None
    ) -> FloatArray:
        """Paired difference of two tallies of the same tasks, shape ``(draws,)``."""
        common: BoolArray = (a.n > 0) & (b.n > 0)
        if not common.any():
            return np.full(self.bootstrap.draws, np.nan)
        if not self.bootstrap.has(f"{name}.a.k"):
            self.bootstrap.extend(paired_columns(name, a, b))
        left = self.bootstrap.mean(f"{name}.a.k", f"{name}.a.n", weights=weights)
        right = self.bootstrap.mean(f"{name}.b.k", f"{name}.b.n", exchanged=True, weights=weights)
        return left - right

    def blended(
        self, budget: int, *, weights: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray] | None:
        """Quality and bill of A3 with its residual sent to the teacher, A4's draw of the same task spliced in."""
        a3, a4 = self.tally.at_budget.get(("A3", budget)), self.tally.at_budget.get(("A4", 1))
        if a3 is None or a4 is None:
            return None
        if not ((a3.n > 0) & (a4.n > 0)).any():
            return None
        name = f"blended@{budget}"
        return (
            self.bootstrap.mean(f"{name}.k", f"{name}.n", weights=weights),
            self.bootstrap.mean(
                f"{name}.bill",
                f"{name}.bill_n",
                least=a3.least,
                greatest=a3.greatest + a4.greatest,
                weights=weights,
            ),
        )


def _watched(tally: Tally) -> Iterator[FloatArray]:
    """Yield the columns whose sums matter by themselves: events, non-events, changes from one budget to the next."""
    for events in tally.events.values():
        yield events.n
        yield events.k
        yield events.n - events.k
    for (arm, budget), cell in tally.at_budget.items():
        first = tally.at_budget.get((arm, 1), cell)
        yield cell.k
        yield cell.n - cell.k
        yield cell.residual
        yield cell.bill - first.bill
        if budget > 1:
            yield cell.k - first.k


def paired_columns(name: str, a: ArmAtBudget, b: ArmAtBudget) -> dict[str, FloatArray]:
    """Columns of a paired difference over the tasks that both arms ran."""
    common = (a.n > 0) & (b.n > 0)
    return {
        f"{name}.{side}.{part}": np.where(common, getattr(cell, part), 0.0)
        for side, cell in (("a", a), ("b", b))
        for part in ("k", "n")
    }


def blended_columns(tally: Tally, budget: int) -> dict[str, FloatArray]:
    """Columns of A3 with its residual sent to the teacher; none where A4 was not run."""
    a3, a4 = tally.at_budget.get(("A3", budget)), tally.at_budget.get(("A4", 1))
    if a3 is None or a4 is None:
        return {}
    common = (a3.n > 0) & (a4.n > 0)
    q_teacher = np.divide(a4.k, a4.n, out=np.zeros_like(a4.k), where=a4.n > 0)
    b_teacher = np.divide(a4.bill, a4.bill_n, out=np.zeros_like(a4.bill), where=a4.bill_n > 0)
    name = f"blended@{budget}"
    return {
        f"{name}.k": np.where(common, a3.settled + a3.residual * q_teacher, 0.0),
        f"{name}.n": np.where(common, a3.n, 0.0),
        f"{name}.bill": np.where(common, a3.bill + a3.residual * b_teacher, 0.0),
        f"{name}.bill_n": np.where(common, a3.bill_n, 0.0),
    }


def event_columns(stage: str, events: Events) -> dict[str, FloatArray]:
    """Columns of a stage, named ``stage.k``, ``stage.n`` and ``stage.base``."""
    return {f"{stage}.k": events.k, f"{stage}.n": events.n, f"{stage}.base": events.base}


def arm_columns(name: str, cell: ArmAtBudget) -> dict[str, FloatArray]:
    """Columns of an arm at a budget, named ``arm@budget.…``."""
    return {
        f"{name}.k": cell.k,
        f"{name}.n": cell.n,
        f"{name}.bill": cell.bill,
        f"{name}.bill_n": cell.bill_n,
        f"{name}.residual": cell.residual,
    }


def _ratio(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.divide(a, b, out=np.full_like(a, np.nan), where=b > 0)


def estimate_directly(direct: Direct) -> dict[str, Estimate]:
    """Compute every estimand that the run's draws allow.

    Parameters
    ----------
    direct
        Bootstrap over the run's tasks.

    Returns
    -------
    dict
        Estimate id to its posterior draws and counts; an estimand without draws is absent.
    """
    tally = direct.tally
    found: dict[str, Estimate] = {}
    for name, stage in (dict(MEANS) | dict(RATES)).items():
        if not tally.has(stage):
            continue
        events = tally.events[stage]
        draws = direct.mean(stage) if name in MEANS else direct.rate(stage)
        found[name] = Estimate(draws, events.total_n, events.total_k, events.tasks, events.population)
    own = "q0_greedy" if tally.repair_decoding == "greedy" else "q0"
    if "s2" in found and own in found:
        stage = MEANS[own]
        found["phi"] = Estimate(
            found["s2"].draws - direct.mean(stage, exchanged=True),
            None,
            None,
            found["s2"].tasks,
            "first repairs of semantic errors, against initial draws of the same decoding",
            ("s2", own),
        )
    if "s_blind" in found and "q0" in found:
        found["sticky_ratio"] = Estimate(
            _ratio(found["s_blind"].draws, found["q0"].draws),
            None,
            None,
            found["s_blind"].tasks,
            "first blind redraws, relative to initial draws of the same decoding",
            ("s_blind", "q0"),
        )
    if "s_blind_exchangeable" in found and "q0" in found:
        found["sticky_ratio_model"] = Estimate(
            _ratio(found["s_blind_exchangeable"].draws, found["q0"].draws),
            None,
            None,
            found["s_blind_exchangeable"].tasks,
            "parallel draws after a wrong one that is sent to retry, relative to initial draws of the same decoding",
            ("s_blind_exchangeable", "q0"),
        )
    matched = _phi_matched(direct)
    if matched is not None:
        found["phi_matched"] = matched
    return found


def _phi_matched(direct: Direct) -> Estimate | None:
    """Repair minus blind redraw on the same tasks and class, weighted by A3's repairs."""
    tally = direct.tally
    if not (tally.has("s2") and tally.has("b2")):
        return None
    s, b = tally.events["s2"], tally.events["b2"]
    both = (s.n > 0) & (b.n > 0)
    if not both.any():
        return None
    rate = np.divide(b.k, b.n, out=np.zeros_like(b.k), where=both)
    direct.bootstrap.extend(
        {
            "phi_matched.k": np.where(both, s.k - s.n * rate, 0.0),
            "phi_matched.n": np.where(both, s.n, 0.0),
            "phi_matched.base": np.where(both, s.base, 0.0),
        }
    )
    draws = direct.bootstrap.rate("phi_matched.k", "phi_matched.n", "phi_matched.base", least=-1.0)
    note = f"{int(both.sum())} of {s.tasks} tasks of the repairs have a blind redraw to match"
    return Estimate(
        draws,
        None,
        None,
        int(both.sum()),
        "first repairs and first blind redraws of the same tasks",
        ("s2", "s_blind"),
        note,
    )
