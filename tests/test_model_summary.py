"""What the hierarchical model sees: sums, design effects, count vectors, priors."""

from __future__ import annotations

import numpy as np
import pytest

from verdiv.errors import UsageRefused
from verdiv.estimators.priors import Priors
from verdiv.estimators.summary import StageTally, count_block, design_effect, summarise


def tally(family: list[int], n: list[float], k: list[float], stage: str = "q") -> StageTally:
    """Build a tally."""
    return StageTally(stage, np.array(family, dtype=np.int64), np.array(n), np.array(k))


TWO_FAMILIES = tally([0, 0, 1, 1, 1], [2, 2, 3, 3, 2], [2, 0, 3, 1, 0])
"""Family 0: r = 2.5/5 = .5, residuals 1 and -1, squares 2, times 2/1 = 4, over 4 (.25) = 1.
Family 1: r = 4.5/9 = .5, residuals 1.5, -.5, -1, squares 3.5, times 3/2 = 5.25, over 8 (.25) = 2."""


def test_design_effect_by_hand() -> None:
    """Numerators and denominators are each summed over families: (4 + 5.25) / (1 + 2)."""
    assert design_effect(TWO_FAMILIES, 2) == pytest.approx(9.25 / 3, rel=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [(2 + 3.5) / 3, (4 / 1 + 5.25 / 2) / 2, 5 / 4 * (2 + 3.5) / 3],
    ids=["without t/(t-1)", "mean of families", "one factor for all tasks"],
)
def test_design_effect_is_not(wrong: float) -> None:
    """The twins of the hand example, plausible and wrong, are told apart."""
    assert abs(design_effect(TWO_FAMILIES, 2) - wrong) > 0.05


def test_design_effect_of_whole_task_dependence_is_the_cluster_size() -> None:
    """Where all ten draws of a task agree, each task counts once: d is 10 up to t/(t - 1) and the half draws."""
    k = [10.0] * 50 + [0.0] * 50
    found = design_effect(tally([0] * 100, [10.0] * 100, k), 1)
    assert found == pytest.approx(10 * 100 / 99, rel=1e-12)


def test_design_effect_is_one_without_information() -> None:
    """One task a family tells nothing of clustering, and independent draws never raise the effective count."""
    assert design_effect(tally([0, 1], [50, 50], [20, 20]), 2) == 1.0
    even = design_effect(tally([0, 0], [10, 10], [5, 5]), 1)
    assert even == 1.0


def test_tasks_that_never_reach_the_stage_are_not_clusters() -> None:
    """A task with n = 0 changes neither d nor the number of tasks."""
    more = tally([0, 0, 1, 1, 1, 0, 1], [2, 2, 3, 3, 2, 0, 0], [2, 0, 3, 1, 0, 0, 0])
    assert design_effect(more, 2) == design_effect(TWO_FAMILIES, 2)
    assert summarise([more], ["a", "b"]).tasks.tolist() == [[2, 3]]


def test_families_without_draws_stay() -> None:
    """A family that a stage never reached keeps its column with N = 0."""
    found = summarise([tally([0, 0], [3, 2], [1, 1]), tally([2], [4], [4], "delta")], ["a", "b", "c"])
    assert found.N.tolist() == [[5, 0, 0], [0, 0, 4]]
    assert found.K.tolist() == [[2, 0, 0], [0, 0, 4]]
    assert found.only(["delta"]).stages == ("delta",)
    assert np.allclose(found.n_effective * found.deff[:, None], found.N)


@pytest.mark.parametrize(
    ("family", "n", "k"),
    [([0], [2.0], [3.0]), ([0], [np.nan], [0.0]), ([-1], [2.0], [1.0]), ([0], [2.0], [-1.0])],
)
def test_impossible_counts_are_refused(family: list[int], n: list[float], k: list[float]) -> None:
    """More events than draws, missing or negative counts never reach the model."""
    with pytest.raises(UsageRefused, match="0 <= k <= n"):
        tally(family, n, k)


def test_stages_and_families_are_checked() -> None:
    """A stage given twice and a family without a name are errors, not overwritten rows."""
    with pytest.raises(UsageRefused, match="each stage once"):
        summarise([tally([0], [1], [1]), tally([0], [1], [1])], ["a"])
    with pytest.raises(UsageRefused, match="family index below 1"):
        summarise([tally([1], [1], [1])], ["a"])


def test_count_vectors_lose_nothing() -> None:
    """Distinct (family, n, k) with multiplicity add up to the tally."""
    block = count_block(tally([0, 1, 0, 0, 1], [3, 3, 3, 0, 3], [1, 1, 1, 0, 2]), ["a", "b"])
    rows = list(zip(block.family, block.n, block.k, block.multiplicity, strict=True))
    assert rows == [(0, 3, 1, 2), (1, 3, 1, 1), (1, 3, 2, 1)]
    assert (block.tasks, block.replicated_tasks) == (4, 4)
    with pytest.raises(UsageRefused, match="whole counts"):
        count_block(tally([0], [1.5], [1.0]), ["a"])


def test_priors_are_distributions() -> None:
    """False positives have their own prior; scales must be finite and positive, all faults told at once."""
    assert Priors().mu("fpr_initial") == Priors().mu("fpr") != Priors().mu("delta")
    wide = Priors().scaled(mu=2.0, tau=0.5)
    assert (wide.mu_sd, wide.fpr_mu_sd, wide.tau_sd) == (5.0, 6.0, 0.35)
    with pytest.raises(UsageRefused) as caught:
        Priors(mu_sd=0.0, tau_sd=float("nan"), mu_mean=float("inf"))
    assert [fault.field for fault in caught.value.faults] == ["mu_sd", "tau_sd", "mu_mean"]
