"""A simulated run is built like a real one: chains, copies, prices, order and verdicts hold together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from verdiv.protocol.simulator.behaviour import Greedy, Losses
from verdiv.protocol.simulator.design import ConditionDesign, Design
from verdiv.protocol.simulator.scenarios import named_world
from verdiv.protocol.simulator.table import simulate
from verdiv.protocol.simulator.world import World
from verdiv.runlog.table import DRAW_COLUMNS

GATED = ("A0", "A2", "A2s", "A3", "A4", "A5")
CHAIN = ["condition", "arm", "task_id", "replicate"]

lossy = replace(named_world("plausible"), losses=Losses(errors=0.05, unscored=0.03))
conditions = (ConditionDesign(name="nvfp4"), ConditionDesign(name="heavy-load"))
RUNS: dict[str, tuple[World, Design]] = {
    "worked": (World.worked(), Design(tasks=60)),
    "lossy, three conditions": (lossy, Design(tasks=80, conditions=conditions)),
    "sampled repairs": (
        named_world("null+sticky"),
        Design(tasks=60, a3_stochastic=True, conditions=conditions),
    ),
    "greedy teacher, many reruns": (
        named_world("plausible"),
        Design(tasks=40, seeds=(7, 9), greedy_reruns=4, a5_stochastic=False),
    ),
    "two arms": (World.worked().with_rates(q=0.3), Design(tasks=50, budgets={"A2": 3, "A3": 4})),
    "one task, one seed": (World.worked().with_rates(q=0.0), Design(tasks=1, seeds=(4,))),
}


@pytest.fixture(params=list(RUNS), scope="module")
def run(request: pytest.FixtureRequest) -> tuple[World, Design, pd.DataFrame]:
    """Return one simulated run."""
    world, design = RUNS[request.param]
    return world, design, simulate(world, design, seed=11)


Run = tuple[World, Design, pd.DataFrame]


def made(table: pd.DataFrame) -> pd.DataFrame:
    """Drop infrastructure failures; draws whose truth is missing stay."""
    return table[table["error_kind"] != "timeout"]


def test_columns_are_the_contract(run: Run) -> None:
    """The table has exactly the columns and dtypes of a run log's draws table."""
    assert {name: str(dtype) for name, dtype in run[2].dtypes.items()} == DRAW_COLUMNS
    assert list(run[2].columns) == list(DRAW_COLUMNS)


def test_every_cell_of_the_grid_is_there_once(run: Run) -> None:
    """Each arm runs each task in each of its replicates, and no draw stands twice."""
    _, design, table = run
    assert table["draw_id"].is_unique
    first = made(table).loc[lambda t: t["attempt"] == 1]
    for condition in ("primary", *(c.name for c in design.conditions)):
        names = next((c.arms for c in design.conditions if c.name == condition), tuple(design.budgets))
        for arm in design.arms(names):
            mine = first[(first["arm"] == arm.name) & (first["condition"] == condition)]
            assert len(mine) == design.tasks * arm.replicates
            assert not mine.duplicated(["task_id", "replicate"]).any()


def test_a_chain_stops_at_the_first_unflagged_draw_or_at_its_budget(run: Run) -> None:
    """Every draw before the last is flagged, the last is unflagged or the budget's, and it alone is emitted."""
    _, design, table = run
    gated = made(table).loc[lambda t: t["arm"].isin(GATED)].sort_values([*CHAIN, "attempt"])
    for _, chain in gated.groupby(CHAIN):
        arm = str(chain["arm"].iloc[0])
        flags = chain["flagged"].tolist()
        assert chain["attempt"].tolist() == list(range(1, len(chain) + 1))
        assert all(flags[:-1])
        assert not flags[-1] or len(chain) == design.budgets[arm]
        assert len(chain) <= design.budgets[arm]
        assert chain["emitted"].tolist() == [False] * (len(chain) - 1) + [True]


def test_majority_emits_the_earliest_of_the_plurality(run: Run) -> None:
    """A1 makes k parallel draws and emits the first draw of the most frequent output, ties to the earliest."""
    _, design, table = run
    votes = made(table).loc[lambda t: t["arm"] == "A1"].sort_values([*CHAIN, "attempt"])
    for _, chain in votes.groupby(CHAIN):
        outputs = chain["output_sha256"].tolist()
        assert len(outputs) == design.budgets["A1"]
        winner = Counter(outputs).most_common()[0][0]
        assert chain["emitted"].tolist() == [i == outputs.index(winner) for i in range(len(outputs))]
    assert (votes["prompt_kind"] == "initial").all()
    assert votes["parent"].isna().all()


def test_redraws_answer_the_flagged_draw_before_them(run: Run) -> None:
    """A parent is the chain's draw before, it was flagged, and a feedback prompt reports its class."""
    table = run[2]
    by_id = table.set_index("draw_id")
    later = table[table["parent"].notna()]
    parents = by_id.loc[later["parent"]].reset_index()
    own = later.reset_index(drop=True)
    for key in CHAIN:
        assert (parents[key] == own[key]).all()
    assert (parents["attempt"] == own["attempt"] - 1).all()
    assert (own["started_at"] >= parents["ended_at"]).all()
    scored = parents["error_kind"] != "timeout"
    assert scored.all()
    assert parents["flagged"].all()
    feedback = own["prompt_kind"] == "feedback"
    assert (own["answered_class"].notna() == feedback).all()
    assert (own["answered_class"] == parents["error_class"])[feedback].all()
    assert set(own["prompt_kind"][~feedback]) <= {"blind"}
    assert (table["prompt_kind"][table["parent"].isna()] == "initial").all()


def test_copies_repeat_a_greedy_first_draw_that_was_made(run: Run) -> None:
    """A copy equals its source in everything but id, arm and emission, and A2's redraws are never copies."""
    _, design, table = run
    copies = table[table["copy_of"].notna()]
    sources = table.set_index("draw_id").loc[copies["copy_of"]].reset_index()
    assert sources["copy_of"].isna().all()
    assert (copies["attempt"] == 1).all()
    assert (copies["temperature"] == 0).all()
    same = [name for name in DRAW_COLUMNS if name not in ("draw_id", "arm", "copy_of", "emitted", "log")]
    pd.testing.assert_frame_equal(copies[same].reset_index(drop=True), sources[same])
    assert set(copies["arm"]) <= {"A2", "A3"}
    firsts = made(table).loc[lambda t: (t["attempt"] == 1) & (t["temperature"] == 0) & (t["tier"] == "small")]
    own = firsts[firsts["copy_of"].isna()]
    assert not own.duplicated(["condition", "task_id", "replicate"]).any()
    if {"A0", "A2"} <= set(design.budgets):
        assert len(copies) > 0


def test_prices_are_those_of_the_tier(run: Run) -> None:
    """A draw bills 1 or the teacher's price, copies too, and a failed request bills nothing."""
    world, _, table = run
    failed = table["error_kind"] == "timeout"
    price = np.where(failed, 0.0, np.where(table["tier"] == "teacher", world.rho, 1.0))
    assert (table["billed"] == price).all()
    assert set(table["arm"][table["tier"] == "teacher"]) <= {"A4", "A5"}


def test_the_clock_runs_forward(run: Run) -> None:
    """Draws stand in the order they started in, and end after they start."""
    table = run[2]
    assert table["started_at"].is_monotonic_increasing
    assert (table["ended_at"] > table["started_at"]).all()


def test_a_verdict_belongs_to_the_output(run: Run) -> None:
    """Equal outputs of a task get equal ground truth, flag, class and oracle verdict: checks are deterministic."""
    table = run[2]
    scored = table[table["error_kind"].isna()]
    verdicts = scored.groupby(["task_id", "output_sha256"])[
        ["correct", "flagged", "error_class", "oracle_flagged"]
    ]
    assert (verdicts.nunique(dropna=False) == 1).all().all()
    assert (scored["error_class"].notna() == scored["flagged"]).all()
    assert (scored["oracle_flagged"].notna() == ~scored["correct"]).all()
    assert scored["oracle_flagged"][scored["flagged"] & ~scored["correct"]].all()


def test_missing_outcomes_are_missing(run: Run) -> None:
    """A failure carries no outcome and stands before its draw; an unscored draw keeps its flag."""
    world, _, table = run
    failed = table[table["error_kind"] == "timeout"]
    assert failed[["correct", "flagged", "oracle_flagged", "tokens_out", "output_sha256"]].isna().all().all()
    assert not failed["emitted"].any()
    real = table.set_index("draw_id").loc[failed["draw_id"].str.removesuffix(".e1").tolist()].reset_index()
    assert (real["started_at"].to_numpy() >= failed["ended_at"].to_numpy()).all()
    unscored = table[table["error_kind"] == "unscored"]
    assert unscored["correct"].isna().all()
    assert unscored["flagged"].notna().all()
    for kind, rate in (("timeout", world.losses.errors), ("unscored", world.losses.unscored)):
        assert bool((table["error_kind"] == kind).any()) == (rate > 0)


def test_greedy_prompts_give_one_output_without_flip_noise() -> None:
    """At temperature 0 and without noise, one prompt gives one output, over arms, seeds and attempts."""
    world = replace(named_world("plausible"), greedy=Greedy())
    table = simulate(world, Design(tasks=200, seeds=(1, 2, 3, 4)), seed=3)
    greedy = made(table).loc[lambda t: t["temperature"] == 0]
    prompts = greedy.groupby(["tier", "condition", "prompt_sha256"])["output_sha256"]
    assert (prompts.nunique() == 1).all()
    assert (prompts.size() > 1).any()
    noisy = simulate(named_world("plausible"), Design(tasks=200, seeds=(1, 2, 3, 4)), seed=3)
    greedy = made(noisy).loc[lambda t: t["temperature"] == 0]
    assert (greedy.groupby(["tier", "condition", "prompt_sha256"])["output_sha256"].nunique() > 1).any()


def test_a_condition_without_effect_repeats_the_primary_outputs() -> None:
    """Load alone leaves greedy outputs alone; another precision without any coupling does not."""
    world = replace(named_world("null"), greedy=Greedy())
    table = simulate(world, Design(tasks=300, conditions=conditions), seed=5)
    a3 = made(table).loc[lambda t: t["arm"] == "A3"]
    key = ["task_id", "replicate", "attempt"]
    outputs = {name: rows.set_index(key)["output_sha256"] for name, rows in a3.groupby("condition")}
    heavy, nvfp4, primary = (outputs[name] for name in ("heavy-load", "nvfp4", "primary"))
    pd.testing.assert_series_equal(heavy.sort_index(), primary.sort_index())
    shared = nvfp4.index.intersection(primary.index)
    assert 0.0 < (nvfp4[shared] != primary[shared]).mean() < 0.2
    flight = table.groupby("condition")["in_flight"].mean()
    assert flight["heavy-load"] / flight["primary"] == pytest.approx(4.0, rel=0.05)


def _equal(a: pd.DataFrame, b: pd.DataFrame, names: list[str]) -> bool:
    return a[names].equals(b[names])


def test_a_seed_fixes_the_run() -> None:
    """Equal seeds give equal tables, other seeds other outcomes."""
    world, design = RUNS["lossy, three conditions"]
    one, same, other = (simulate(world, design, seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, same)
    assert one["correct"].tolist() != other["correct"].tolist()


def test_load_does_not_touch_outcomes() -> None:
    """Clock, load and losses have a stream of their own: changing them leaves every outcome where it was."""
    world = World.worked()
    burst = replace(world, load=replace(world.load, h=0.5, noise_sd=0.0, in_flight_max=64))
    design = Design(tasks=100)
    a, b = simulate(world, design, 8), simulate(burst, design, 8)
    names = ["draw_id", "correct", "flagged", "error_class", "output_sha256", "emitted"]
    assert _equal(a, b, names)
    assert not _equal(a, b, ["device_seconds"])


def test_digests_are_the_only_thing_left_out() -> None:
    """Without digests the table is the same but for the two digest columns."""
    design = Design(tasks=50)
    full, bare = (simulate(World.worked(), design, 2, digests=digests) for digests in (True, False))
    rest = [name for name in DRAW_COLUMNS if not name.endswith("sha256")]
    assert _equal(full, bare, rest)
    assert bare[["output_sha256", "prompt_sha256"]].isna().all().all()


def test_a_negative_seed_is_refused() -> None:
    """A seed below zero is an error, not another seed."""
    with pytest.raises(ValueError, match="seed must be at least 0"):
        simulate(World.worked(), Design(tasks=2), -1)


def test_two_thousand_tasks_are_quick() -> None:
    """A run of 2,000 tasks takes well under 1.5 s, so that hundreds of runs can be studied."""
    import time

    world = named_world("null").with_rates(q=0.4)
    seconds: list[float] = []
    rows: Any = 0
    for seed in range(3):
        start = time.perf_counter()
        rows = len(simulate(world, Design(tasks=2000), seed))
        seconds.append(time.perf_counter() - start)
    assert rows > 80_000
    assert min(seconds) < 1.5
