"""The list of checks: what each is called, what it looks at, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from verdiv.audit.checks import (
    arms,
    bill,
    drift,
    grid,
    lock,
    log,
    rescoring,
    results,
    rulebook,
    selection,
    time,
)
from verdiv.audit.evidence import Evidence
from verdiv.audit.outcome import CheckResult

__all__ = ["CHECKS", "SECTIONS", "Check"]

SECTIONS = {
    "lock": "Lock",
    "time": "Time",
    "log": "Log",
    "grid": "Grid",
    "drift": "Drift",
    "arms": "Arms",
    "selection": "Selection",
    "scoring": "Scoring",
    "bill": "Bill",
    "results": "Results",
    "rules": "Rules",
}
"""Prefix of a check's name to the section it is listed in."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    id: str
    title: str
    """What it asks, in a few words."""
    look: Callable[[Evidence], CheckResult]
    needs_draws: bool = True
    """Whether it looks at the draws of logs that could be read."""

    @property
    def section(self) -> str:
        """Section it is listed in."""
        return SECTIONS[self.id.split(".")[0]]


def _lock(name: str, title: str) -> Check:
    return Check(name, title, partial(lock.lock_part, name=name), needs_draws=False)


def _log(part: str, title: str) -> Check:
    return Check(f"log.{part}", title, partial(log.integrity, part=part), needs_draws=False)


CHECKS: tuple[Check, ...] = (
    _lock("lock.digest", "the lock's digests recompute, in canonical form"),
    _lock("lock.amendments", "amendments are linked"),
    _lock("lock.registration", "the registration is the locked one"),
    _lock("lock.files", "covered files are unchanged"),
    _lock("lock.outlook", "draws and bills follow from the locked plan"),
    _lock("lock.severity", "the simulated severity holds together"),
    _lock("lock.replaced", "no other lock stood in its place"),
    Check("lock.followed", "the log followed this registration", lock.followed, needs_draws=False),
    Check("lock.amended_after_data", "amendments came before data", lock.amended_after_data),
    Check("time.after_lock", "the first draw came after the lock", time.after_lock),
    Check("time.starts_before_ends", "draws start before they end", time.starts_before_ends),
    Check("time.chains", "draws follow what they answer", time.chains_monotone),
    Check("time.header", "draws follow the start of their log", time.header_first),
    _log("chain", "the hash chain holds, head included"),
    _log("count", "the footer's count is right"),
    _log("ids", "ids are unique and lead somewhere"),
    _log("times", "every time has an offset"),
    _log("format", "every field is known and of its type"),
    Check("log.complete", "every log has its footer", log.complete),
    Check("log.expected", "as many draws as the header expects", log.expected_count),
    Check("log.copies", "copies equal what they repeat", log.copies),
    Check("log.seed_forwarded", "sampled outputs differ", log.seed_forwarded),
    Check("grid.tasks", "the registered tasks", grid.tasks),
    Check("grid.missing", "no cell is missing", grid.chains),
    Check("grid.unplanned", "no cell is extra", grid.unplanned),
    Check("grid.duplicates", "no cell is measured twice", grid.duplicates),
    Check("grid.attempts", "attempts answer each other in order", grid.attempts),
    Check("grid.budgets", "no chain exceeds its budget", grid.budgets),
    Check("grid.retried_after_pass", "no retry of what the gate let pass", grid.retried_after_pass),
    Check("grid.stopped_early", "no chain stopped before its end", grid.stopped_early),
    Check("grid.votes", "every vote has k draws", grid.votes),
    Check("drift.models", "the registered models", drift.models),
    Check("drift.precision", "the registered precision", drift.precision),
    Check("drift.decoding", "the registered decoding", drift.decoding),
    Check("drift.seeds", "the registered seeds", drift.seeds),
    Check("drift.prompts", "one first prompt a task", drift.prompts),
    Check("drift.suite", "one suite", drift.suite_digest, needs_draws=False),
    Check("drift.gate", "the registered gate", drift.gate),
    Check("arms.prompt_kinds", "retries are shown what the plan says", arms.prompt_kinds),
    Check("arms.blind_prompts", "blind prompts repeat the first", arms.blind_prompts),
    Check("arms.feedback_prompts", "feedback prompts hold a message", arms.feedback_prompts),
    Check("arms.answered_class", "answers match the error's class", arms.answered_class),
    Check("arms.emission", "one answer a chain", arms.emission),
    Check("arms.failures", "failures are no measurements", arms.failures),
    Check("arms.sharing", "first draws are shared as planned", arms.sharing),
    Check("selection.exclusions", "exclusions follow the registered rules", selection.exclusions),
    Check("selection.infrastructure", "failures follow the registered policy", selection.infrastructure),
    Check("selection.retry_luck", "failures bring no luck", selection.retry_luck),
    Check("selection.stopping", "the run ended as planned", selection.stopping),
    Check("scoring.correct", "outcomes score the same again", rescoring.correct),
    Check("scoring.flags", "flags verify the same again", rescoring.flags),
    Check("scoring.classes", "error classes verify the same again", rescoring.classes),
    Check("scoring.messages", "messages are the verifier's", rescoring.messages),
    Check("scoring.outputs", "output digests recompute", rescoring.outputs),
    Check("scoring.prompts", "prompts rebuild to their digests", rescoring.prompts),
    Check("scoring.votes", "votes count the same again", rescoring.votes),
    Check("bill.prices", "prices of the rate card", bill.prices),
    Check("bill.bound", "the declared bound is kept", bill.bound),
    Check("results.inputs", "the results are of these logs", results.inputs, needs_draws=False),
    Check("results.plan", "the results were judged by this plan", results.plan, needs_draws=False),
    Check("results.rules", "every rule is reported, consistently", results.rules, needs_draws=False),
    Check("results.flow", "the flow counts what the log holds", results.flow),
    Check("results.ledger", "the bill adds up again", results.ledger),
    Check("results.counts", "counts and intervals are possible", results.counts, needs_draws=False),
    Check("rules.regions", "every posterior has one verdict", rulebook.regions, needs_draws=False),
)
"""Every check, in the order of the report."""
