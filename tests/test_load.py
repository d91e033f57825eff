"""H by regression: recovered, compared with a second computation, and refused where it cannot be told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from verdiv.estimators.load import LoadFit, NotEstimable, fit_load, load_draws
from verdiv.estimators.observations import DrawColumns, draw_columns
from verdiv.protocol.simulator.design import Design
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.protocol.simulator.table import simulate


def columns(tasks: int = 60, h: float = 0.3) -> DrawColumns:
    """A simulated run with a known load exponent."""
    world = named_world("null")
    world = replace(world, load=replace(world.load, h=h))
    return draw_columns(simulate(world, Design(tasks=tasks, a3_stochastic=True), 4))


def test_a_known_exponent_is_recovered() -> None:
    """The interval holds the true H and is narrow enough to miss a wrong one."""
    fit = fit_load(columns())
    assert isinstance(fit, LoadFit)
    assert fit.kind == "device seconds"
    assert abs(fit.H - 0.3) < 4 * fit.se
    assert abs(fit.H - 0.35) > 4 * fit.se


def test_dummies_give_the_same_slope_as_demeaning() -> None:
    """Least squares with one dummy a task, solved directly, equals the within-task regression."""
    d = columns(tasks=20)
    fit = fit_load(d)
    assert isinstance(fit, LoadFit)
    use = (
        d.measured
        & d.condition.equals("primary")
        & ~d.tier.equals("teacher")
        & (d.source == np.arange(len(d)))
    )
    use &= np.isfinite(d.device_seconds)
    dummies = pd.get_dummies(pd.Series(d.task[use])).to_numpy(dtype=float)
    design = np.column_stack([np.log(d.in_flight[use]), np.log(d.tokens_out[use]), dummies])
    slope = np.linalg.lstsq(design, np.log(d.device_seconds[use]), rcond=None)[0]
    assert pytest.approx(slope[0], rel=1e-8) == fit.H
    assert fit.beta == pytest.approx(slope[1], rel=1e-8)


def test_constant_load_is_not_estimable() -> None:
    """A run at one load says nothing of load, and says so."""
    d = columns(tasks=20)
    found = fit_load(replace(d, in_flight=np.full(len(d), 4.0)))
    assert isinstance(found, NotEstimable)
    assert "constant load" in found.reason


def test_load_that_varies_in_few_tasks_has_no_clustered_error() -> None:
    """Two tasks with varying load would give a standard error near 0: not estimable instead."""
    d = columns(tasks=20)
    load = np.where(d.task < 2, d.in_flight, 4.0)
    found = fit_load(replace(d, in_flight=load))
    assert isinstance(found, NotEstimable)
    assert "within 2 tasks;" in found.reason


def test_latency_is_labelled() -> None:
    """Without device seconds the wall clock is used, and the name says so."""
    d = columns(tasks=20)
    fit = fit_load(replace(d, device_seconds=np.full(len(d), np.nan)))
    assert isinstance(fit, LoadFit)
    assert fit.kind == "latency"


def test_draws_follow_the_fit() -> None:
    """Posterior draws of H have the fit's centre and at least its standard error."""
    fit = fit_load(columns())
    assert isinstance(fit, LoadFit)
    draws = load_draws(fit, 50_000, 1)
    assert draws.mean() == pytest.approx(fit.H, abs=0.02 * fit.se)
    assert fit.se < draws.std() < 1.1 * fit.se
