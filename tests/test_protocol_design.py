"""The chains of a registered run: which arms, how often, who shares, and at what cost at most."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from protocol_runs import registered, small_suite
from verdiv import fixtures
from verdiv.errors import UsageRefused
from verdiv.preregistration import read_preregistration
from verdiv.protocol.prompts import TierPrompt
from verdiv.protocol.runner.design import design_run, draw_seed
from verdiv.protocol.runner.ledger import BoundReached, Ledger
from verdiv.protocol.runner.records import plurality
from verdiv.protocol.suite.generate import FAMILIES, generate_suite
from verdiv.protocol.suite.suitefile import Suite


def shipped_suite() -> Suite:
    """Read the suite of the shipped real run."""
    from importlib import resources

    from verdiv.protocol.suite.suitefile import read_suite

    with resources.as_file(
        resources.files("verdiv.fixtures").joinpath("runs", "smollm2-135m.suite.json")
    ) as path:
        return read_suite(path)


def test_the_shipped_suite_is_the_registered_one() -> None:
    """The suite file of the real run has the digest that was registered before it."""
    assert read_preregistration("smollm2-135m").suite.sha256 == shipped_suite().digest


def test_the_shipped_suite_comes_from_its_seed() -> None:
    """Generating it again, as its registration says, gives the same bytes."""
    shipped = shipped_suite()
    made = generate_suite(
        20261130,
        levels={"arithmetic": [1, 2, 3, 4], "date": [1, 2, 1, 3], "filter": [1, 1, 3, 2]},
        prompts=shipped.prompts,
    )
    assert made.canonical == shipped.canonical


def test_seven_arms_and_the_worst_case() -> None:
    """The protocol's arms cost 28.5 units a task at most; sharing saves the shared first draws."""
    plan, suite = read_preregistration("smollm2-135m"), shipped_suite()
    design = design_run(plan, suite)
    primary = [chain for chain in design.chains if chain.condition == "primary"]
    assert Counter(chain.arm for chain in primary) == {
        "A0": 80, "A1": 120, "A2": 120, "A2s": 120, "A3": 120, "A4": 120, "A5": 120,
    }  # fmt: skip
    assert plan.worst_case_units == 28.5
    whole = sum(chain.price * chain.budget for chain in primary)
    assert whole == 28.5 * 40 * 3 - 40
    assert sum(chain.copies is not None for chain in primary) == 2 * 80 + 40


def test_shared_first_draws_are_made_once_by_an_earlier_chain() -> None:
    """A2 and A3 copy A0; where A0 has no such replicate A2 draws and A3 copies it. Nobody else shares."""
    plan, suite = read_preregistration("smollm2-135m"), shipped_suite()
    seen: set[str] = set()
    for chain in design_run(plan, suite).chains:
        if chain.copies is None:
            seen.add(chain.draw_id(1))
            continue
        assert chain.copies in seen
        owner = chain.copies.split("/")[1]
        rerun_of_a0 = chain.replicate < 2
        assert chain.arm in (("A2", "A3") if rerun_of_a0 else ("A3",))
        assert owner == ("A0" if rerun_of_a0 else "A2")


def test_conditions_run_their_arms_at_their_load() -> None:
    """A condition repeats the arms it registers, with its own number in flight."""
    design = design_run(read_preregistration("smollm2-135m"), shipped_suite(), concurrency=2)
    assert design.concurrency == {"primary": 2, "heavy-load": 8, "kv-q4": 2}
    for name in ("heavy-load", "kv-q4"):
        assert {chain.arm for chain in design.chains if chain.condition == name} == {"A0", "A3"}


def test_seeds_differ_by_seed_arm_task_and_attempt() -> None:
    """No two stochastic draws of a run are sent the same seed, and all are 31-bit."""
    seeds = [
        draw_seed(seed, arm, f"t{task}", attempt)
        for seed in (1, 2, 3)
        for arm in ("A1", "A2s", "A5")
        for task in range(40)
        for attempt in range(1, 6)
    ]
    assert len(set(seeds)) == len(seeds)
    assert all(seed is not None and 0 <= seed < 2**31 for seed in seeds)


def test_another_suite_is_refused(tmp_path: Path) -> None:
    """A suite that is not the registered one, or asks a tier in no way, is refused with every reason."""
    suite = small_suite()
    plan = registered(tmp_path, suite)
    other = generate_suite(10, dict.fromkeys(FAMILIES, 3), prompts={"small": TierPrompt({})})
    with pytest.raises(UsageRefused) as caught:
        design_run(plan, other)
    assert {fault.field for fault in caught.value.faults} == {"sha256", "tasks", "prompts"}


def test_ledger_refuses_before_the_bound_is_passed() -> None:
    """Spent, reserved and lost units count; the draw that could pass the bound is refused, the last one is not."""
    ledger = Ledger(bound=4.0, lost=1.0)
    ledger.reserve(1.0)
    ledger.reserve(1.0)
    ledger.settle(1.0, billed=True)
    with pytest.raises(BoundReached):
        ledger.reserve(2.5)
    ledger.reserve(1.0)
    ledger.settle(1.0, billed=False)
    ledger.settle(1.0, billed=True)
    assert (ledger.spent, ledger.reserved, ledger.committed) == (2.0, 0.0, 3.0)


@pytest.mark.parametrize(
    ("votes", "winner"), [("aab", 0), ("baa", 1), ("abc", 0), ("abcb", 1), ("cabba", 1), ("bbaa", 0)]
)
def test_plurality_ties_go_to_the_earliest(votes: str, winner: int) -> None:
    """The most frequent output wins; of equals, the one that came first."""
    assert plurality(list(votes)) == winner


def test_every_registered_fixture_reads() -> None:
    """Both shipped registrations are sound."""
    for name in fixtures.names("preregistrations"):
        assert read_preregistration(name).arms
