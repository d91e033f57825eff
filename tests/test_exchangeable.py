"""What exchangeable redraws come to: pairs of parallel draws whose first is wrong and sent to retry."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from verdiv.analysis.fit import stage_summary
from verdiv.analysis.gather import Gathered, gather
from verdiv.estimators.compose import compose
from verdiv.estimators.direct import Direct, estimate_directly
from verdiv.estimators.events import pair_events
from verdiv.estimators.grid import fit_grid
from verdiv.estimators.missing import reason_not_estimable
from verdiv.estimators.observations import draw_columns
from verdiv.estimators.priors import Priors
from verdiv.estimators.tally import tally_draws
from verdiv.pricing.correlated import sticky_ratio_exchangeable
from verdiv.protocol.simulator.design import Design
from verdiv.protocol.simulator.rates import Ease, Icc
from verdiv.protocol.simulator.table import simulate
from verdiv.protocol.simulator.world import World
from verdiv.runlog.records import Gate, Header
from verdiv.runlog.table import InputFile, RunLog

STAGE = "s_blind_exchangeable"


def hard_tasks_slip_through() -> World:
    """A world where draws of one task are alike, and the wrong ones of hard tasks are seldom flagged."""
    base = World.worked().spread(q=(0.8, 0.0, -1.2), delta=(0.5, 0.0, -0.6))
    return replace(base, icc=Icc(q=0.3, delta=0.15), ease=Ease(delta=0.7))


def gathered(world: World, tasks: int, seed: int) -> Gathered:
    """A simulated run, counted."""
    design = Design(tasks=tasks, a3_stochastic=True)
    table = simulate(world, design, seed)
    header = Header(schema=1, run_id="x", gate=Gate.VERIFIER, harness="simulator")
    source = InputFile("simulated", "0" * 64, len(table), tasks, "complete", "verifier")
    return gather(RunLog((header,), table, (source,), ()), None)


def test_pairs_are_those_that_a_count_one_by_one_finds() -> None:
    """Counts of pairs equal an enumeration, and each first draw weighs the same however many partners it has."""
    rng = np.random.default_rng(2)
    size = np.array([1, 2, 3, 5, 8])
    tasks = [[(bool(c), bool(not c and f)) for c, f in rng.random((n, 2)) < 0.5] for n in size]
    drawn, correct, back = (
        np.array([f(t) for t in tasks], dtype=float)
        for f in (len, lambda t: sum(c for c, _ in t), lambda t: sum(b for _, b in t))
    )
    found = pair_events("x", drawn, correct, back, "so")
    assert found.pairs is not None
    for i, task in enumerate(tasks):
        pairs = [(a, b) for a, b in itertools.permutations(range(len(task)), 2) if task[a][1]]
        hits = sum(task[b][0] for _, b in pairs)
        assert (found.pairs[0][i], found.pairs[1][i]) == (len(pairs), hits)
        partners = max(len(task) - 1, 1)
        assert (found.n[i], found.k[i]) == pytest.approx((len(pairs) / partners, hits / partners))
    assert found.total_n > 0
    assert found.n[0] == found.base[0] == 0


def test_both_columns_find_what_exchangeable_redraws_do_where_detection_depends_on_difficulty() -> None:
    """At 6,000 tasks both columns lie within .012 of the truth; the form without dependence lies .02 below it."""
    world = hard_tasks_slip_through()
    run = gathered(world, 6000, 5)
    truth = world.true_values(Design(tasks=6000, a3_stochastic=True)).estimates[STAGE]
    direct = estimate_directly(Direct(run.tally, run.weights, draws=400, seed=1))
    rates = fit_grid(stage_summary(run).only(["q", "delta", STAGE]), Priors(), draws=400, seed=1).m
    model = compose(rates, run.tally, run.weights, {}, rho=2.5, b_max=1, majority_k=1).estimates
    for draws in (direct[STAGE].draws, model[STAGE]):
        assert draws.mean() == pytest.approx(truth, abs=0.012)
        assert np.quantile(draws, 0.025) < truth < np.quantile(draws, 0.975)
    q, delta = ([getattr(f.rates, name) for f in world.families] for name in ("q", "delta"))
    weights = list(world.weights.values())
    q0 = float(np.dot(weights, q))
    independent = float(sticky_ratio_exchangeable(weights, q, 0.3, delta)) * q0
    assert independent < truth - 0.02
    for draws in (direct["sticky_ratio_model"].draws, model["sticky_ratio_model"]):
        assert draws.mean() == pytest.approx(truth / q0, abs=0.02)


def test_the_model_counts_pairs_and_the_design_effect_sees_what_they_share() -> None:
    """With N draws a task the model's counts are the pairs themselves, and their design effect exceeds 1."""
    run = gathered(hard_tasks_slip_through(), 60, 3)
    events, summary = run.tally.events[STAGE], stage_summary(run)
    assert events.pairs is not None
    row = summary.stages.index(STAGE)
    assert summary.N[row].sum() == pytest.approx(events.total_n)
    assert summary.K[row].sum() == pytest.approx(events.total_k)
    assert summary.deff[row] > 2.0


@pytest.mark.parametrize(("gate", "flags"), [("truth", True), ("truth", False), ("none", False)])
def test_where_every_wrong_draw_is_sent_back_the_form_is_what_it_was(gate: str, flags: bool) -> None:
    """Without a verifier that picks draws the pairs stand once, and the prediction comes from the correlation."""
    table = simulate(World.worked(), Design(tasks=12), 1)
    if not flags:
        table["flagged"] = pd.array([pd.NA] * len(table), dtype="boolean")
        table["error_class"] = None
    tally = tally_draws(draw_columns(table), gate=gate)
    assert not tally.has(STAGE)
    assert tally.has("s_blind_pairs")
    assert tally.has_flags == flags
    assert "sent to retry" not in reason_not_estimable(STAGE, tally)


def test_what_is_missing_is_named() -> None:
    """With a verifier as gate and one draw a task, what is missing are pairs that it picked, or the correlation."""
    table = simulate(World.worked(), Design(tasks=12), 1)
    alone = table[(table["arm"] == "A2s") & (table["replicate"] == 0) & (table["attempt"] == 1)]
    tally = tally_draws(draw_columns(alone), gate="verifier")
    assert not tally.has(STAGE)
    assert "wrong and sent to retry" in reason_not_estimable(STAGE, tally)
