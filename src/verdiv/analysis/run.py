"""The main job: run logs and a registration in, a results document out."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from verdiv.analysis.blocks import (
    counts_digest,
    digest_findings,
    disagreements,
    plain,
    registration_block,
    shown_path,
    versions,
)
from verdiv.analysis.counting import join_counts
from verdiv.analysis.diagnostics import diagnostics_block
from verdiv.analysis.estimates import estimates_block
from verdiv.analysis.exploratory import exploratory_block, limits_block
from verdiv.analysis.fit import Progress, fit_model
from verdiv.analysis.frontier import (
    break_even_block,
    flow_block,
    frontier_block,
    ledger_block,
    per_seed_block,
)
from verdiv.analysis.gather import PRIMARY, Gathered, gather, gather_counts
from verdiv.analysis.verdicts import (
    conjunction_block,
    expected_wrong,
    floors_block,
    rules_block,
    sensitivity_block,
)
from verdiv.errors import Fault, UsageRefused
from verdiv.estimators.archive import FitArchive
from verdiv.estimators.compose import compose
from verdiv.estimators.direct import Direct, estimate_directly
from verdiv.estimators.load import NotEstimable, fit_load_moments
from verdiv.estimators.settings import DEFAULTS, Settings
from verdiv.falsification.evidence import Evidence, break_even_draws
from verdiv.falsification.rules import evaluate_rules
from verdiv.falsification.rules.dividend import headroom
from verdiv.preregistration import Preregistration
from verdiv.reports.schema import validate_document
from verdiv.runlog.table import RunLog

__all__ = ["AnalysisResult", "analyze", "analyze_gathered", "analyze_log"]

BOOTSTRAP_DRAWS = 4000
"""Posterior draws of the direct estimates."""


@dataclass(frozen=True)
class AnalysisResult:
    """A finished analysis."""

    document: dict[str, Any]
    """What results.json holds."""
    idata: FitArchive | None = field(repr=False)
    """What fit.nc holds: NUTS draws, or the grid's; its ``inference_data()`` is ArviZ's."""


def analyze_log(
    log: RunLog,
    *,
    preregistration: Preregistration | None = None,
    lock: Path | None = None,
    settings: Settings = DEFAULTS,
    progress: Progress | None = None,
) -> AnalysisResult:
    """Analyse and audit a run log that is already read.

    Parameters
    ----------
    log
        One log, or several joined.
    preregistration
        The plan; None makes the analysis exploratory.
    lock
        The lock of the plan; the file beside the registration if absent. A broken one voids every verdict.
    settings
        Engine, draws, cores and seed.
    progress
        Called with a stage's name, and done and total where known.

    Returns
    -------
    AnalysisResult
        The results document, schema-checked, and the inference data.

    Raises
    ------
    InputRefused
        The log contradicts the registration or itself.
    """
    from verdiv.audit.run import audit_for_analysis

    gathered = gather(log, preregistration)
    if progress is not None:
        progress("auditing")
    audited = audit_for_analysis(log, preregistration, lock_path=lock)
    return analyze_gathered(gathered, audited=audited, settings=settings, progress=progress)


def analyze_gathered(
    gathered: Gathered,
    *,
    audited: Mapping[str, Any] | None = None,
    settings: Settings = DEFAULTS,
    progress: Progress | None = None,
) -> AnalysisResult:
    """Analyse a run that is already counted; see :func:`analyze_log`."""
    started = time.time()

    def tell(stage: str, done: int | None = None, total: int | None = None) -> None:
        if progress is not None:
            progress(stage, done, total)

    plan, tally = gathered.plan, gathered.tally
    seed = settings.seed
    fit = fit_model(gathered, settings, progress=progress)
    tell("composing estimates")
    k = plan.rules.P2.k
    composition = compose(
        fit.posterior.m,
        tally,
        gathered.weights,
        fit.icc,
        rho=plan.rate_card.rho,
        b_max=plan.max_budget,
        majority_k=k,
    )
    tell("bootstrapping tasks")
    direct = Direct(tally, gathered.weights, draws=BOOTSTRAP_DRAWS, seed=seed)
    estimates = estimate_directly(direct)
    load = fit_load_moments(gathered.load[PRIMARY])
    heavy = plan.rules.R4.condition
    load_heavy = (
        fit_load_moments(gathered.load[heavy])
        if heavy in gathered.conditions
        else NotEstimable(f"no draws under condition {heavy!r}")
    )
    evidence = Evidence(plan, direct, gathered.conditions, load, load_heavy, fit.icc, seed=seed)
    tell("judging rules")
    diagnostics = diagnostics_block(fit)
    void = None if audited is None else audited["void"]
    if void is None and diagnostics["status"] == "failed":
        void = "the fit failed its diagnostics: " + "; ".join(diagnostics["reasons"])
    results = evaluate_rules(evidence, void=void)
    found = break_even_draws(direct, plan.max_budget)
    head = headroom(evidence)
    dividend = None if isinstance(head, str) else head.dividend
    block, densities = estimates_block(
        gathered, fit, composition, direct, estimates, load, found, dividend, seed
    )
    tell("checking sensitivity")
    findings = [*gathered.findings, *digest_findings(gathered), *disagreements(block)]
    document: dict[str, Any] = {
        "schema": 1,
        "title": plan.title if gathered.mode == "registered" else "Exploratory analysis of run logs",
        "mode": gathered.mode,
        "gate": gathered.gate,
        "inputs": [
            {
                "path": shown_path(i.path),
                "sha256": i.sha256,
                "draws": i.draws,
                "tasks": i.tasks,
                "status": i.status,
            }
            for i in gathered.inputs
        ],
        "preregistration": registration_block(gathered)
        | ({} if audited is None else audited["preregistration"]),
        "estimates": block,
        "frontier": frontier_block(gathered, direct, composition),
        "break_even": break_even_block(gathered, found, composition),
        "hazards": [
            {"arm": h.arm, "class": h.error_class, "attempt": h.attempt, "k": h.k, "n": h.n}
            for h in tally.hazards
        ],
        "floors": floors_block(evidence, results),
        "rules": rules_block(results),
        "conjunction": conjunction_block(results),
        "expected_wrong_verdicts": expected_wrong(results),
        "sensitivity": sensitivity_block(evidence, results) if void is None else [],
        "diagnostics": diagnostics,
        "densities": densities,
        "flow": flow_block(gathered),
        "ledger": ledger_block(gathered),
        "per_seed": per_seed_block(gathered),
        "exploratory": exploratory_block(gathered, direct, composition, block),
        "exclusions": [{"rule": rule, "draws": count} for rule, count in gathered.account.excluded.items()],
        "findings": _merged(
            [
                {"severity": f.severity, "check": f.check, "message": f.message, "rules": list(f.rules)}
                for f in findings
            ],
            [] if audited is None else audited["findings"],
        ),
        "deviations": [] if audited is None else audited["deviations"],
        "audit": {"status": "not run"} if audited is None else audited["audit"],
        "limits": limits_block(gathered),
        "meta": {
            "versions": versions(),
            "started_at": datetime.fromtimestamp(started, UTC).isoformat(),
            "finished_at": datetime.now(UTC).isoformat(),
            "seconds": round(time.time() - started, 3),
            "command": "verdiv " + " ".join(sys.argv[1:]) if sys.argv and "verdiv" in sys.argv[0] else None,
        },
        "settings": {
            "engine": settings.engine,
            "draws": settings.draws,
            "chains": settings.chains,
            "seed": seed,
            "bootstrap_draws": BOOTSTRAP_DRAWS,
            "counts_sha256": counts_digest(fit),
        },
    }
    document = plain(document)
    validate_document(document)
    return AnalysisResult(document, fit.idata)


def _merged(noticed: list[dict[str, Any]], audited: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Join what the analysis noticed and what the audit found, each check once."""
    seen = {item["check"] for item in noticed}
    return [*noticed, *(dict(item) for item in audited if item["check"] not in seen)]


def analyze(
    log_paths: Sequence[str],
    *,
    preregistration: Preregistration | None = None,
    lock: Path | None = None,
    settings: Settings = DEFAULTS,
    progress: Progress | None = None,
) -> AnalysisResult:
    """Read run logs, or tallies of them, and analyse them together.

    Parameters
    ----------
    log_paths
        Paths of run logs, ``-`` for standard input; or of tallies, which give the same numbers.
    preregistration, lock, settings, progress
        As for :func:`analyze_log`.

    Returns
    -------
    AnalysisResult
        The results document and the inference data.
    """
    from verdiv.analysis.tallyfile import is_tally, read_tally

    if progress is not None:
        progress("reading")
    tallies = [path != "-" and is_tally(path) for path in log_paths]
    if log_paths and all(tallies):
        gathered = gather_counts(join_counts([read_tally(path) for path in log_paths]), preregistration)
    elif any(tallies):
        mixed = log_paths[tallies.index(True)]
        fault = Fault(
            mixed, "run logs only, or tallies only", "both", "tally the logs first, with verdiv tally"
        )
        raise UsageRefused("Logs and tallies cannot be analysed together.", [fault])
    else:
        from verdiv.runlog.reader import read_run_logs

        return analyze_log(
            read_run_logs(list(log_paths)),
            preregistration=preregistration,
            lock=lock,
            settings=settings,
            progress=progress,
        )
    return analyze_gathered(gathered, settings=settings, progress=progress)
