"""The model column: composition of stage rates, held to the paper's figures and to simulated truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from verdiv.estimators.compose import compose
from verdiv.estimators.crosscheck import cross_check
from verdiv.estimators.missing import reason_not_estimable
from verdiv.estimators.observations import draw_columns
from verdiv.estimators.posterior import IccPosterior
from verdiv.estimators.tally import Tally, tally_draws
from verdiv.protocol.simulator.design import Design
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.protocol.simulator.table import simulate
from verdiv.protocol.simulator.world import World


def tally(world: World | None = None, tasks: int = 12, gate: str = "verifier", **design: object) -> Tally:
    """A small run, for its arms and decoding only."""
    table = simulate(world or World.worked(), Design(tasks=tasks, **design), 1)  # type: ignore[arg-type]
    return tally_draws(draw_columns(table), gate=gate)


def point(value: float, families: int = 3) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """One posterior draw, equal in all families."""
    return np.full((1, families), value)


WORKED = {
    "q": point(0.80),
    "q_greedy": point(0.80),
    "delta": point(0.90),
    "sigma": point(0.60),
    "s1": point(0.99),
    "s2": point(0.85),
    "q_T": point(0.90),
    "delta_T": point(0.80),
}
THIRDS = np.full(3, 1 / 3)


def test_worked_parameters_give_the_papers_frontier() -> None:
    """Composition at the worked parameters prints the paper's qualities, bills and break-even."""
    made = compose(WORKED, tally(), THIRDS, {}, rho=2.5, b_max=5, majority_k=5)
    quality = {key: round(float(p.quality[0]), 4) for key, p in made.frontier.items()}
    bill = {key: round(float(p.bill[0]), 4) for key, p in made.frontier.items()}
    assert quality["A3", 2] == 0.9681
    assert bill["A3", 2] == bill["A2", 2] == 1.18
    assert quality["A2", 5] == quality["A0", 1] == 0.80
    assert (quality["A5", 2], bill["A5", 2]) == (0.9720, 2.70)
    assert (quality["blended", 2], round(bill["blended", 2], 2)) == (0.9788, 1.21)
    assert made.break_even is not None
    assert made.break_even[0] == 2
    moved = compose(WORKED | {"s2": point(0.80)}, tally(), THIRDS, {}, rho=2.5, b_max=5, majority_k=5)
    assert round(float(moved.frontier["A3", 2].quality[0]), 4) != 0.9681


def test_rates_are_mixed_by_mass_not_averaged() -> None:
    """Families with more errors weigh more in every conditional rate."""
    m = {"q": np.array([[0.9, 0.5]]), "delta": np.array([[1.0, 0.5]])}
    world = replace(World.worked(), families=World.worked().families[:2])
    made = compose(
        m, tally(world, a3_stochastic=True), np.array([0.5, 0.5]), {}, rho=2.5, b_max=2, majority_k=3
    )
    assert made.estimates["delta"][0] == pytest.approx((0.1 * 1.0 + 0.5 * 0.5) / 0.6)
    assert made.estimates["delta"][0] != pytest.approx(0.75, abs=0.05)
    assert made.estimates["p_d"][0] == pytest.approx(0.5 * 0.1 + 0.5 * 0.25)


def test_where_the_truth_is_the_gate_every_error_is_sent_back() -> None:
    """In a log gated by the truth the forms use δ = 1; delta itself stays what the flags say."""
    m = WORKED | {"answered_structural": point(0.6)}
    made = compose(m, tally(gate="truth"), THIRDS, {}, rho=2.5, b_max=2, majority_k=3)
    assert made.estimates["delta"][0] == pytest.approx(0.9)
    assert made.frontier["A3", 2].bill[0] == pytest.approx(1.2)
    assert made.frontier["A3", 2].quality[0] == pytest.approx(0.8 + 0.2 * (0.6 * 0.99 + 0.4 * 0.85))


def test_correlation_enters_the_predictions_only_where_it_is_estimable() -> None:
    """With icc .5 a majority of five at q .80 is worth .821; without an estimable icc the form is named homogeneous."""
    block = IccPosterior("q", np.array([0.5]), point(0.8), 0.26, 0.5, 0.05, True, "")
    run = tally()
    made = compose(WORKED, run, THIRDS, {"q": block}, rho=2.5, b_max=2, majority_k=5)
    assert round(float(made.frontier["A1", 5].quality[0]), 3) == 0.821
    assert made.estimates["sticky_ratio_model"][0] == pytest.approx(0.5)
    poor = replace(block, estimable=False, reason="too few")
    plain = compose(WORKED, run, THIRDS, {"q": poor}, rho=2.5, b_max=2, majority_k=5)
    assert round(float(plain.frontier["A1", 5].quality[0]), 3) == 0.942
    assert "homogeneous" in plain.frontier["A1", 5].form
    assert "sticky_ratio_model" not in plain.estimates


def test_nothing_is_filled_in_for_a_stage_without_draws() -> None:
    """Without repairs there is no phi, no A3 and no break-even from the prior."""
    m = {k: v for k, v in WORKED.items() if k not in ("s1", "s2")}
    made = compose(m, tally(), THIRDS, {}, rho=2.5, b_max=3, majority_k=3)
    assert "phi" not in made.estimates
    assert ("A3", 2) not in made.frontier
    assert made.break_even is None


def test_cross_checks_agree_with_a_hand_calculation() -> None:
    """Wilson for 8 of 10, Clopper–Pearson at 0 of n, and the sandwich of a ratio by its formula."""
    wilson = cross_check(np.ones(10), np.r_[np.ones(8), np.zeros(2)])
    assert wilson is not None
    z = 1.959963984540054
    centre = (0.8 + z * z / 20) / (1 + z * z / 10)
    half = z / (1 + z * z / 10) * np.sqrt(0.8 * 0.2 / 10 + z * z / 400)
    assert (wilson.low, wilson.high) == pytest.approx((centre - half, centre + half))
    assert wilson.cluster_robust is None
    n, k = np.array([4.0, 4.0, 4.0, 2.0]), np.array([4.0, 1.0, 3.0, 0.0])
    found = cross_check(n, k)
    assert found is not None
    assert found.cluster_robust is not None
    p = k.sum() / n.sum()
    se = np.sqrt(4 / 3 * ((k - p * n) ** 2).sum()) / n.sum()
    from scipy import stats

    half = stats.t.ppf(0.975, 3) * se
    assert (found.cluster_robust.low, found.cluster_robust.high) == pytest.approx((p - half, p + half))
    assert cross_check(np.zeros(3), np.zeros(3)) is None


def test_reasons_name_the_missing_arm_or_column() -> None:
    """A not-estimable quantity says what the log lacks."""
    run = tally(budgets={"A1": 5})
    assert "A3" in reason_not_estimable("s2", run)
    assert "A2s" in reason_not_estimable("s_blind", run)
    assert "teacher" in reason_not_estimable("q_t", run)
    assert "A4" in reason_not_estimable("break_even", run)


def test_simulated_rates_compose_to_the_simulated_truth() -> None:
    """Fed the true stage rates of each family, composition returns the simulator's own draw-weighted truth."""
    world = named_world("null")
    uneven = world.spread(q=(0.8, 0.0, -1.0), delta=(0.4, 0.0, -0.4))
    flat = replace(uneven, icc=type(uneven.icc)(), ease=type(uneven.ease)())
    design = Design(tasks=12, a3_stochastic=True)
    truth = flat.true_values(design)
    rates = [f.rates for f in flat.families]
    m = {
        "q": np.array([[r.q for r in rates]]),
        "delta": np.array([[r.delta for r in rates]]),
        "sigma": np.array([[r.sigma for r in rates]]),
        "s1": np.array([[r.s1 for r in rates]]),
        "s2": np.array([[r.s2 for r in rates]]),
    }
    weights = np.array([flat.weights[f.name] for f in flat.families])
    run = tally(flat, a3_stochastic=True)
    made = compose(m, run, weights, {}, rho=2.5, b_max=2, majority_k=3)
    for name in ("q0", "p_d", "p_s", "delta", "sigma", "s1", "s2", "phi"):
        assert made.estimates[name][0] == pytest.approx(truth.estimates[name], abs=2e-3), name
