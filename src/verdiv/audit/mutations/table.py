"""The mutation table: every breakage, the check meant for it, and what the check said."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verdiv.audit.claims.claimsfile import read_claims
from verdiv.audit.claims.judge import judge_claims
from verdiv.audit.evidence import Evidence, read_logs
from verdiv.audit.mutations.clean import CleanRun, make_clean_run
from verdiv.audit.mutations.of_files import LOCK_BREAKAGES, RESULTS_BREAKAGES, moved_figure
from verdiv.audit.mutations.of_logs import LOG_BREAKAGES
from verdiv.audit.run import AuditReport, audit_evidence
from verdiv.audit.scoring import Rescorer
from verdiv.preregistration.verify import verify_lock

__all__ = ["Caught", "Resulter", "audit_run", "clean_report", "mutation_table"]

Resulter = Callable[[CleanRun], dict[str, Any]]
"""Analyses the clean run, so that its results can be broken too."""


@dataclass(frozen=True, slots=True)
class Caught:
    """One row of the table."""

    breakage: str
    check: str
    """Check that is meant to catch it."""
    caught: bool
    finding: str
    """What that check said."""
    others: tuple[str, ...]
    """Further checks that found something."""


def audit_run(run: CleanRun) -> AuditReport:
    """Audit a run of the table as a user would: log, registration, lock, suite and, where there are, results."""
    logs = read_logs([run.log_path], rescorer=Rescorer(run.suite))
    lock = verify_lock(run.lock_path, registration=run.plan_path, use_git=False)
    results = json.loads(run.results_path.read_text("utf-8")) if run.results_path.exists() else None
    return audit_evidence(Evidence(logs, run.plan, lock, run.suite, results))


def clean_report(results: Resulter | None = None) -> AuditReport:
    """Audit the clean run, unbroken."""
    with tempfile.TemporaryDirectory(prefix="verdiv-audit-") as folder:
        return audit_run(_made(Path(folder), results))


def _made(folder: Path, results: Resulter | None) -> CleanRun:
    run = make_clean_run(folder)
    if results is not None:
        run.results_path.write_text(json.dumps(results(run)), encoding="utf-8")
    return run


def mutation_table(results: Resulter | None = None) -> Iterator[Caught]:
    """Break a clean run in every way, one at a time, and audit each.

    Parameters
    ----------
    results
        Analyses the clean run; without it, breakages of results are left out.

    Yields
    ------
    Caught
        One a breakage.
    """
    with tempfile.TemporaryDirectory(prefix="verdiv-audit-") as folder:
        pristine = Path(folder) / "clean"
        pristine.mkdir()
        clean = _made(pristine, results)
        breakages = [*LOG_BREAKAGES, *LOCK_BREAKAGES, *(RESULTS_BREAKAGES if results is not None else ())]
        for name, check, breaks in breakages:
            broken = Path(folder) / "broken"
            shutil.copytree(pristine, broken)
            run = replace(clean, folder=broken, draws=list(clean.draws))
            if check.startswith(("results.", "selection.exclusions")) or results is None:
                breaks(run)
            else:
                run.results_path.unlink()
                breaks(run)
            row = _row(name, check, audit_run(run))
            yield replace(row, finding=row.finding.replace(f"{broken}/", "").replace(f"{pristine}/", ""))
            shutil.rmtree(broken)
    yield from _figures()


def _row(name: str, check: str, report: AuditReport) -> Caught:
    findings = report.findings()
    said = next((finding.message for where, finding in findings if where == check), "")
    others = tuple(sorted({where for where, _ in findings} - {check}))
    return Caught(name, check, bool(said), said, others)


def _figures() -> Iterator[Caught]:
    """Move the last digit of every reproduced figure of the shipped claims, and judge it again."""
    file = read_claims("paper")
    reproduced = {r.id for r in judge_claims(file) if r.outcome == "reproduced"}
    moved = tuple(
        claim.model_copy(update={"value": moved_figure(claim.value)})
        if claim.id in reproduced and not claim.statement and claim.of is None
        else claim
        for claim in file.claims
    )
    after = {r.id: r for r in judge_claims(file.model_copy(update={"claims": moved}))}
    for old, new in zip(file.claims, moved, strict=True):
        if old is new:
            continue
        result = after[new.id]
        name = f"the printed figure {old.value} of {old.id} as {new.value}"
        yield Caught(name, "claims", result.outcome != "reproduced", result.reason, ())
