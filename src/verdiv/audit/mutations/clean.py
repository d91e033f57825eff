"""A small clean run: suite, registration, lock and log that agree in everything, made up without a model."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from verdiv import fixtures
from verdiv.preregistration import Preregistration, read_preregistration
from verdiv.preregistration.lock import lock_plan
from verdiv.protocol.prompts import Refused, feedback_messages, initial_messages, prompt_digest, tier_prompt
from verdiv.protocol.runner.client import Failure, Reply
from verdiv.protocol.runner.design import Chain, design_run
from verdiv.protocol.runner.records import as_copy, emit, failed_draw, plurality, scored_draw
from verdiv.protocol.suite.generate import FAMILIES, generate_suite
from verdiv.protocol.suite.suitefile import Suite
from verdiv.protocol.suite.task import Task
from verdiv.runlog.records import RUNLOG_SCHEMA, Draw, Gate, Header, ModelCard, Serving
from verdiv.runlog.writer import write_run_log

__all__ = ["LOCKED_AT", "CleanRun", "make_clean_run", "plan_bytes"]

COUNTS = {"arithmetic": 5, "date": 5, "filter": 5}
LOCKED_AT = "2026-03-01T12:00:00Z"
STARTED = datetime(2026, 3, 2, 8, tzinfo=UTC)
SEED = 20260302

_PLAN_EDITS = (
    (b"the fixed-seed suite of three families (14 arithmetic, 13 date, 13 filtering tasks)", b"suite.json"),
    (b"tasks = 40\n", b"tasks = 15\n"),
    (b"{ arithmetic = 14, date = 13, filter = 13 }", b"{ arithmetic = 5, date = 5, filter = 5 }"),
)


@dataclass
class CleanRun:
    """A run on disk and in memory."""

    folder: Path
    suite: Suite
    plan: Preregistration
    header: Header
    draws: list[Draw] = field(default_factory=list)

    @property
    def plan_path(self) -> Path:
        """The registration."""
        return self.folder / "preregistration.toml"

    @property
    def lock_path(self) -> Path:
        """Its lock."""
        return self.folder / "preregistration.lock.json"

    @property
    def suite_path(self) -> Path:
        """The suite."""
        return self.folder / "suite.json"

    @property
    def log_path(self) -> Path:
        """The log."""
        return self.folder / "run.runlog.jsonl"

    @property
    def results_path(self) -> Path:
        """The results of the clean run, where somebody analysed it."""
        return self.folder / "results.json"

    def write_log(self) -> None:
        """Write header and draws as a whole log with a chain of its own."""
        write_run_log(self.log_path, self.header, self.draws, overwrite=True)


class _Actor:
    """Answers in place of a model: right, wrong and silent, wrong and flagged, unreadable."""

    def __init__(self, suite: Suite) -> None:
        self.suite = suite
        self.rng = random.Random(SEED)
        self.clock = STARTED
        self.greedy: dict[str, str] = {}

    def times(self) -> tuple[str, str]:
        """Take the next second of the run."""
        start = self.clock
        self.clock += timedelta(milliseconds=self.rng.randrange(400, 1500))
        return _stamp(start), _stamp(self.clock)

    def text(self, task: Task, chance: float) -> str:
        """Write an answer that is right with a chance."""
        family = FAMILIES[task.family]
        if self.rng.random() < chance:
            return family.spellings(task)[0]
        others = [
            one for one in self.suite.tasks if one.family == task.family and one.task_id != task.task_id
        ]
        wrong = family.spellings(self.rng.choice(others))[0]
        return wrong if self.rng.random() < 0.5 else wrong[: self.rng.randrange(5, len(wrong) - 1)]

    def reply(self, task: Task, chain: Chain, prompt: str, *, feedback: bool) -> Reply:
        """Answer a prompt; a greedy prompt is always answered alike."""
        chance = 0.92 if chain.tier == "teacher" else 0.85 if feedback else 0.6
        key = f"{chain.tier}/{prompt}"
        text = self.greedy.get(key) if chain.temperature == 0 else None
        if text is None:
            text = self.text(task, chance)
            if chain.temperature == 0:
                self.greedy[key] = text
        started, ended = self.times()
        return Reply(text, 100 + len(task.public.prompt) // 4, len(text) // 4, started, ended)


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def _played(chain: Chain, actor: _Actor, plan: Preregistration, made: dict[str, Draw]) -> Iterator[Draw]:
    """Play one chain to its end."""
    suite = actor.suite
    task = suite.by_id[chain.task_id]
    family = FAMILIES[task.family]
    tier = plan.tiers[chain.tier]
    changed = plan.conditions.get(chain.condition)
    precision = tier.precision if changed is None else changed.precision.get(chain.tier, tier.precision)
    prompts = suite.prompts[chain.tier]
    refused: list[Draw] = []
    votes: list[Draw] = []
    for attempt in range(1, chain.budget + 1):
        if attempt == 1 and chain.copies is not None:
            draw = as_copy(chain, made[chain.copies])
        else:
            feedback = chain.redraw == "feedback" and attempt > 1
            messages = initial_messages(task.public, prompts)
            if feedback:
                said = [Refused(one.output or "", _message(one)) for one in refused]
                messages = feedback_messages(task.public, prompts, said)
            digest = prompt_digest(messages)
            draw = scored_draw(
                chain, attempt, task, family, actor.reply(task, chain, digest, feedback=feedback),
                model=tier.model, precision=precision, prompt_sha256=digest, in_flight=1,
                answers=refused[-1] if feedback else None,
            )  # fmt: skip
        if chain.redraw == "initial":
            votes.append(draw)
            continue
        flagged = draw.static is not None and draw.static.flagged
        yield emit(draw, not flagged or attempt == chain.budget)
        if not flagged:
            return
        refused.append(draw)
    if votes:
        winner = plurality([family.canonical(draw.output or "", task.public) for draw in votes])
        yield from (emit(draw, at == winner) for at, draw in enumerate(votes))


def _message(draw: Draw) -> str:
    return (draw.static.message or "") if draw.static is not None else ""


def _draws(suite: Suite, plan: Preregistration) -> list[Draw]:
    """Play the whole design, with a failure now and then that is made good."""
    actor = _Actor(suite)
    made: dict[str, Draw] = {}
    said: list[Draw] = []
    for at, chain in enumerate(design_run(plan, suite).chains):
        if at % 60 == 7 and chain.copies is None:
            started, ended = actor.times()
            task = suite.by_id[chain.task_id]
            failure = Failure("timeout", "no answer", started, ended)
            tier = plan.tiers[chain.tier]
            changed = plan.conditions.get(chain.condition)
            precision = (
                tier.precision if changed is None else changed.precision.get(chain.tier, tier.precision)
            )
            failed = failed_draw(chain, 1, task, failure, model=tier.model, precision=precision, in_flight=1)
            said.append(_renamed(failed, f"{failed.draw_id}/e1"))
        for draw in _played(chain, actor, plan, made):
            made[draw.draw_id] = draw
            said.append(draw)
    return said


def _renamed(draw: Draw, name: str) -> Draw:
    return msgspec.structs.replace(draw, draw_id=name)


def plan_bytes() -> bytes:
    """Return a registration of the shipped protocol on a small suite."""
    data = fixtures.read_bytes("preregistrations", "verifiers-dividend")
    for old, new in _PLAN_EDITS:
        if old not in data:
            raise ValueError(f"the shipped registration no longer says {old!r}")
        data = data.replace(old, new)
    for family in ("arithmetic = 0.35", "date = 0.325", "filter = 0.325"):
        name = family.split(" ", 1)[0]
        share = b"0.34" if name == "arithmetic" else b"0.33"
        data = data.replace(family.encode(), name.encode() + b" = " + share)
    return data


def make_clean_run(folder: Path) -> CleanRun:
    """Make a run whose audit has no finding: 15 tasks, seven arms, three seeds, three conditions.

    Parameters
    ----------
    folder
        Empty folder to fill.

    Returns
    -------
    CleanRun
        The same bytes every time.
    """
    prompts = {tier: tier_prompt(FAMILIES) for tier in ("small", "teacher")}
    suite = generate_suite(SEED, COUNTS, prompts=prompts)
    (folder / "suite.json").write_bytes(suite.canonical)
    data = plan_bytes()
    (folder / "preregistration.toml").write_bytes(data)
    plan = read_preregistration(folder / "preregistration.toml")
    lock_plan(
        data, "preregistration.toml", folder / "preregistration.lock.json",
        registration="preregistration.toml", time=LOCKED_AT,
    )  # fmt: skip
    draws = _draws(suite, plan)
    header = Header(
        schema=RUNLOG_SCHEMA,
        run_id="made-up",
        gate=Gate.VERIFIER,
        harness="verdiv.audit.mutations",
        preregistration_sha256=plan.digest,
        models={
            name: ModelCard(name=tier.model, precision=tier.precision) for name, tier in plan.tiers.items()
        },
        serving=Serving(engine="none"),
        suite_sha256=suite.digest,
        started_at=_stamp(STARTED),
        expected_draws=len(draws),
        note="Made up: no model was asked. The clean run of the audit's test of itself.",
    )
    run = CleanRun(folder, suite, plan, header, draws)
    run.write_log()
    return run
