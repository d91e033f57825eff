"""One sitting of a run: from files and addresses to a log that is complete, or can be resumed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from verdiv import __version__
from verdiv.errors import Fault, UsageRefused
from verdiv.preregistration import Preregistration
from verdiv.protocol.runner.client import ChatClient, Endpoint, RetryPolicy, now
from verdiv.protocol.runner.design import RunDesign, design_run
from verdiv.protocol.runner.engine import Engine, Served, Tally
from verdiv.protocol.runner.journal import Intent, Journal, journal_path
from verdiv.protocol.runner.ledger import Ledger
from verdiv.protocol.suite.generate import FAMILIES
from verdiv.protocol.suite.suitefile import Suite
from verdiv.protocol.suite.task import Family
from verdiv.runlog.reader import iter_draws
from verdiv.runlog.records import RUNLOG_SCHEMA, Draw, Header, ModelCard, Serving
from verdiv.runlog.writer import RunLogWriter

__all__ = ["Outcome", "RunRequest", "run_protocol"]


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What is to be run, against what, and where the log goes."""

    plan: Preregistration
    """The registration."""
    suite: Suite
    """The registered suite."""
    log: Path
    """Run log, plain JSONL, that grows draw by draw."""
    endpoints: Mapping[tuple[str, str], Endpoint]
    """Condition and tier to server; the condition ``primary`` stands in for those not named."""
    concurrency: int = 1
    """Requests in flight under conditions that register none."""
    max_tokens: int = 96
    """Most tokens of a reply in arms that register none."""
    timeout: float = 120.0
    """Seconds that a response may take."""
    first_wait: float = 0.5
    """Seconds before the first infrastructure retry."""
    families: Mapping[str, Family] = field(default_factory=lambda: FAMILIES)
    """Families of the suite, one's own included."""
    serving: Serving | None = None
    """The serving stack, where it is known."""
    revisions: Mapping[str, str] = field(default_factory=dict)
    """Tier to the digest of its weights, where it is known."""
    note: str | None = None
    """A sentence for the header."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a sitting left."""

    complete: bool
    """Whether every chain came to its end and the log has its footer."""
    tally: Tally
    """Counts."""
    ledger: Ledger
    """The bill, as run and as registered."""
    lost: tuple[Intent, ...]
    """Draws that kills took, over all sittings; each was asked for again."""
    design: RunDesign
    """The design."""


def run_protocol(
    request: RunRequest,
    *,
    resume: bool = False,
    progress: Callable[[Tally, Ledger], None] = lambda tally, ledger: None,
) -> Outcome:
    """Run a registered protocol, or go on with one that was stopped or killed.

    Parameters
    ----------
    request
        What to run.
    resume
        Go on with the log that stands at the path; without one there, begin it.
    progress
        Called whenever a draw was logged.

    Returns
    -------
    Outcome
        Incomplete where the run was interrupted (SIGINT or SIGTERM); then the draws in flight were awaited.

    Raises
    ------
    UsageRefused
        When suite or registration do not fit, or the log belongs to another run or is complete.
    WriteFailed
        When the log is there already (without ``resume``), or the disk is full.
    BoundReached
        When the next draw could pass the declared bound; what was drawn stands in the log.
    """
    design = design_run(
        request.plan, request.suite, concurrency=request.concurrency, max_tokens=request.max_tokens
    )
    _require_families(request)
    header = _header(request, design)
    known: dict[str, Draw] = {}
    if resume and request.log.exists():
        writer = RunLogWriter.resume(request.log)
        try:
            _same_run(header, writer.header, request.log)
            known = {draw.draw_id: draw for draw in iter_draws(request.log)}
        except BaseException:
            writer.abandon()
            raise
    else:
        writer = RunLogWriter(request.log, header, durable=True)
    try:
        journal = Journal.open(journal_path(request.log), known, resume=resume)
    except BaseException:
        writer.abandon()
        raise
    try:
        outcome = asyncio.run(_sit(request, design, writer, journal, known, progress))
        writer.close(complete=outcome.complete)
        return outcome
    finally:
        writer.abandon()
        journal.close()


async def _sit(
    request: RunRequest,
    design: RunDesign,
    writer: RunLogWriter,
    journal: Journal,
    known: dict[str, Draw],
    progress: Callable[[Tally, Ledger], None],
) -> Outcome:
    """Run the chains until they end or a signal comes."""
    plan = request.plan
    policy = RetryPolicy(
        max_retries=plan.retries.max_per_draw,
        kinds=tuple(plan.retries.kinds),
        timeout=request.timeout,
        first_wait=request.first_wait,
    )
    async with ChatClient(policy) as client:
        engine = Engine(
            design=design,
            suite=request.suite,
            families=request.families,
            served=lambda condition, tier: _served(request, condition, tier),
            client=client,
            writer=writer,
            journal=journal,
            ledger=Ledger(bound=design.bound),
            known=known,
            progress=progress,
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, engine.stop)
            except (NotImplementedError, RuntimeError, ValueError):
                break
        complete = await engine.run()
    return Outcome(complete, engine.tally, engine.ledger, tuple(journal.lost), design)


def _served(request: RunRequest, condition: str, tier: str) -> Served:
    """Find who serves a tier under a condition."""
    endpoint = request.endpoints.get((condition, tier)) or request.endpoints.get(("primary", tier))
    if endpoint is None:
        fault = Fault("endpoints", f"a server of tier {tier}", "none", f"give --{tier} URL")
        raise UsageRefused("the run has no server for a tier", [fault])
    card = request.plan.tiers[tier]
    named = request.plan.conditions.get(condition)
    precision = named.precision.get(tier, card.precision) if named is not None else card.precision
    return Served(endpoint, card.model, precision)


def _require_families(request: RunRequest) -> None:
    """Refuse tasks whose family nobody can verify, and tiers or conditions without a server."""
    unknown = {task.family for task in request.suite.tasks} - set(request.families)
    if unknown:
        fault = Fault(
            "suite", "families that are installed", ", ".join(sorted(unknown)), "register the family"
        )
        raise UsageRefused("the suite cannot be verified", [fault])
    for arm in request.plan.arms.values():
        _served(request, "primary", arm.tier)
    for name, condition in request.plan.conditions.items():
        for tier, precision in condition.precision.items():
            if precision != request.plan.tiers[tier].precision and (name, tier) not in request.endpoints:
                fault = Fault(
                    f"condition {name}", f"a server of tier {tier} in {precision}", "none",
                    f"give --at {name}:{tier}=URL",
                )  # fmt: skip
                raise UsageRefused("a condition has no server of its own", [fault])


def _header(request: RunRequest, design: RunDesign) -> Header:
    """Describe the run."""
    started = now()
    plan = request.plan
    return Header(
        schema=RUNLOG_SCHEMA,
        run_id=f"{(plan.digest or 'unregistered')[:12]}-{request.suite.digest[:12]}-{started}",
        gate=plan.gate,
        harness="verdiv run",
        harness_version=__version__,
        preregistration_sha256=plan.digest,
        models={
            name: ModelCard(
                name=tier.model,
                precision=tier.precision,
                revision=request.revisions.get(name),
                endpoint_kind="openai-compatible",
            )
            for name, tier in plan.tiers.items()
        },
        serving=request.serving,
        suite_sha256=request.suite.digest,
        started_at=started,
        order_meaningful=True,
        note=request.note,
    )


def _same_run(wanted: Header, found: Header, path: Path) -> None:
    """Refuse to go on with the log of another run."""
    remedy = "resume with the files of that run"
    faults = [
        Fault(str(path), f"{name} {ours}", str(theirs), remedy, line=1, field=name)
        for name in ("preregistration_sha256", "suite_sha256", "harness", "gate")
        if (ours := getattr(wanted, name)) != (theirs := getattr(found, name))
    ]
    if faults:
        raise UsageRefused("the log belongs to another run", faults)
