"""Worlds, designs and world files refuse what they cannot mean, all faults at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from verdiv.errors import InputRefused, UsageRefused
from verdiv.protocol.simulator.behaviour import ConditionEffect, Load
from verdiv.protocol.simulator.design import ConditionDesign, Design
from verdiv.protocol.simulator.rates import Icc, Rates
from verdiv.protocol.simulator.scenarios import BASES, BREAKS, named_world
from verdiv.protocol.simulator.world import Family, World
from verdiv.protocol.simulator.worldfile import MAX_BYTES, load_world, parse_world


def fields(error: InputRefused | UsageRefused) -> list[str | None]:
    """Return the fields that an error names."""
    return [fault.field for fault in error.faults]


def test_all_faults_of_a_world_come_at_once() -> None:
    """A world with several bad values names each of them."""
    with pytest.raises(UsageRefused) as caught:
        World(
            families=(
                Family(name="a", weight=0.0, rates=Rates(q=1.2, s1=float("nan"))),
                Family(name="a", weight=1.0, rates=Rates(lambda1=None)),
            ),
            icc=Icc(q=1.0),
            rho=float("inf"),
            wrong_outputs=0,
            seed_logits=(0.0, 99.0),
            load=Load(in_flight_min=5, in_flight_max=2),
            conditions=(ConditionEffect(name="x"), ConditionEffect(name="x", agreement=2.0)),
        )
    expected = {
        "families", "weight", "q", "s1", "rho", "wrong_outputs", "seed_logits[1]", "in_flight_min", "conditions",
        "agreement",
    }  # fmt: skip
    assert set(fields(caught.value)) == expected


@pytest.mark.parametrize("value", [True, "0.5", None, -0.1, float("nan")])
def test_a_rate_is_a_probability(value: object) -> None:
    """Booleans, texts, None and numbers outside 0 to 1 are no rates."""
    with pytest.raises(UsageRefused) as caught:
        World.worked().with_rates(q=value)
    assert fields(caught.value) == ["q", "q", "q"]


def test_a_world_without_families_is_refused() -> None:
    """There is nothing to draw without a family, and no family of another name can be changed."""
    with pytest.raises(UsageRefused):
        World(families=())
    with pytest.raises(UsageRefused):
        World.worked().with_rates("geometry", q=0.5)


@pytest.mark.parametrize("tasks", [1, 2, 3, 39, 40, 41, 200, 2000])
def test_tasks_are_split_by_weight(tasks: int) -> None:
    """Counts sum to the number of tasks, each within one of its exact share; 40 gives 14, 13, 13."""
    world = World.worked()
    counts = world.task_counts(tasks)
    assert sum(counts.values()) == tasks
    assert all(abs(counts[name] - tasks * weight) < 1 for name, weight in world.weights.items())
    assert list(world.task_counts(40).values()) == [14, 13, 13]


def test_all_faults_of_a_design_come_at_once() -> None:
    """A design with several bad values names each of them."""
    with pytest.raises(UsageRefused) as caught:
        Design(
            tasks=0,
            seeds=(1, 1),
            budgets={"A0": 2, "A9": 1, "A3": 0},
            temperature=0.0,
            conditions=(ConditionDesign(name="primary"), ConditionDesign(name="c", arms=("A5",))),
        )
    expected = {"tasks", "seeds", "temperature", "budgets['A0']", "budgets", "budgets['A3']", "conditions"}
    assert set(fields(caught.value)) == expected


def test_a_run_too_large_to_hold_is_refused() -> None:
    """The worst case of a design is bounded before anything is drawn."""
    with pytest.raises(UsageRefused, match="draws"):
        Design(tasks=10_000_000)


@pytest.mark.parametrize("name", [*BASES, *(f"null+{one}" for one in BREAKS), "worked+collapse+burst"])
def test_named_worlds_are_worlds(name: str) -> None:
    """Every base, every break and their sums can be made, and bear their name."""
    assert named_world(name).name == name


@pytest.mark.parametrize("name", ["", "nowhere", "null+", "null+unknown", "../worked", "collapse"])
def test_unknown_names_are_refused(name: str) -> None:
    """A name that is no world says which there are."""
    with pytest.raises(UsageRefused, match="among"):
        load_world(name)


WHOLE = b"""
schema = 1
name = "mine"
base = "null"
rho = 3
wrong_outputs = 2
seed_logits = [0.5, 0, -0.5]
[rates]
s1 = 0.9
lambda2 = "as-first"
lambda1 = 0.25
[icc]
q = 0.6
[ease]
delta = -0.2
[blind]
stickiness = 0.3
[drift]
feedback = 0.9
[repairs]
persistence = 0.5
[greedy]
flip = 0.01
[load]
h = 0.1
in_flight_max = 4
[losses]
errors = 0.02
[[families]]
name = "one"
weight = 3
rates = { q = 0.5 }
[[families]]
name = "two"
weight = 1
[[conditions]]
name = "nvfp4"
precision = "NVFP4"
q_logit = -0.5
"""


def test_a_world_file_sets_what_it_says(tmp_path: Path) -> None:
    """Every table of a world file arrives, the rest is the base's."""
    path = tmp_path / "mine.toml"
    path.write_bytes(WHOLE)
    world = load_world(path)
    assert (world.name, world.rho, world.wrong_outputs, world.seed_logits) == ("mine", 3, 2, (0.5, 0, -0.5))
    assert world.weights == {"one": 0.75, "two": 0.25}
    one, two = (family.rates for family in world.families)
    assert (one.q, two.q, one.s1, two.s1) == (0.5, named_world("null").families[0].rates.q, 0.9, 0.9)
    assert (one.lambda1, one.lambda2) == (0.25, None)
    assert world.icc == replace(named_world("null").icc, q=0.6)
    assert (world.ease.delta, world.blind.stickiness, world.drift.feedback) == (-0.2, 0.3, 0.9)
    assert (world.repairs.persistence, world.greedy.flip, world.load.h, world.losses.errors) == (
        0.5,
        0.01,
        0.1,
        0.02,
    )
    assert world.load.in_flight_max == 4
    assert [effect.name for effect in world.conditions] == ["nvfp4"]


def test_rates_of_a_file_without_families_reach_all_families() -> None:
    """Common rates change every family of the base and leave their spread in the others."""
    world = parse_world(b'schema = 1\nbase = "null"\n[rates]\ns1 = 0.5\n', "w.toml")
    base = named_world("null")
    assert [family.rates for family in world.families] == [replace(f.rates, s1=0.5) for f in base.families]


def test_all_faults_of_a_world_file_come_at_once() -> None:
    """Unknown keys and wrong kinds are all reported, with the file and the field."""
    text = (
        b'schema = 2\nname = 3\nseed_logits = 1\nicc = 4\ncolour = "red"\n'
        b"[rates]\nq0 = 0.5\n[load]\nspeed = 1\n[[families]]\nweight = 1\nsize = 2\n[[conditions]]\nprecision = 4\n"
    )
    with pytest.raises(InputRefused) as caught:
        parse_world(text, "w.toml")
    assert {fault.where for fault in caught.value.faults} == {"w.toml"}
    assert set(fields(caught.value)) == {
        "schema", "name", "seed_logits", "icc", "colour", "rates.q0", "load.speed", "families[0].size",
        "families[0].name", "conditions[0].precision",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"schema = ",
        b"\xff\xfe",
        b"schema = 1\nbase = 4\n",
        b'schema = 1\nbase = "nowhere"\n',
        b'schema = 1\nbase = "null+nothing"\n',
        b"schema = 1\nrho = -1\n",
        b"schema = 1\nwrong_outputs = 1.5\n",
        b"schema = 1\nseed_logits = ['a']\n",
        b"schema = 1\nfamilies = [1]\n",
        b"schema = 1\n[load]\nin_flight_max = 2.5\n",
        b"schema = 1\n[icc]\nq = inf\n",
        b"schema = 1\n[blind]\nstickiness = 'much'\n",
        b"schema = 1\n[[families]]\nname = 'a'\nweight = 'b'\n",
        b"schema = 1\nx = " + b"[" * 5000,
        b"#" * (MAX_BYTES + 1),
    ],
)
def test_bad_world_files_are_refused(text: bytes) -> None:
    """Whatever the bytes, a file that is no world is refused with a fault and never half read."""
    with pytest.raises(InputRefused) as caught:
        parse_world(text, "w.toml")
    assert caught.value.faults


def test_an_unreadable_world_file_is_refused(tmp_path: Path) -> None:
    """A missing file and a folder are said to be so."""
    (tmp_path / "folder.toml").mkdir()
    for name in ("absent.toml", "folder.toml"):
        with pytest.raises(InputRefused, match=name):
            load_world(tmp_path / name)
