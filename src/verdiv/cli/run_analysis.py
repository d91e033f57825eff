"""What demo and analyze share: run the main job, write its outputs, show them, choose the exit code."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verdiv.cli.failures import FINDINGS, keep
from verdiv.cli.options import ExitOnName, Severity, reaches
from verdiv.cli.output import check_folder
from verdiv.cli.progress import ProgressBar
from verdiv.estimators.settings import Settings

__all__ = ["VOID", "Job", "available_cores", "exit_code", "run_job"]

VOID = 3
"""A lock or a chain is broken."""
FIT_FAILED = 4
"""The fit failed its diagnostics."""


@dataclass(frozen=True, slots=True)
class Job:
    """One call of the main job, as the command line states it."""

    logs: Sequence[str]
    """Paths of run logs; ``-`` is standard input."""
    prereg: str | None
    """Registration: a path, ``-``, a shipped name, or None for an exploratory analysis."""
    lock: Path | None
    """Lock of the registration; None looks beside it."""
    out: Path
    force: bool
    settings: Settings
    fail_on: Severity
    exit_on: ExitOnName | None


def available_cores(asked: int | None) -> int:
    """Cores asked for, or all that this process may use."""
    if asked is not None:
        return asked
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else (os.cpu_count() or 1)


def exit_code(document: Mapping[str, Any], fail_on: Severity, exit_on: ExitOnName | None) -> int:
    """Choose the exit code that a results document deserves.

    A broken lock or chain (3) precedes a failed fit (4), which precedes findings and asked-for verdicts (1).
    """
    verdicts = [rule.get("verdict") for rule in document.get("rules", {}).values()]
    if (document.get("preregistration") or {}).get("status") == "broken":
        return VOID
    if (document.get("audit") or {}).get("status") == "broken":
        return VOID
    if (document.get("diagnostics") or {}).get("status") == "failed":
        return FIT_FAILED
    if reaches((item["severity"] for item in document.get("findings") or ()), fail_on):
        return FINDINGS
    if exit_on is not None and exit_on.value in verdicts:
        return FINDINGS
    return 0


def run_job(job: Job) -> int:
    """Run the main job from the command line and return the exit code."""
    check_folder(job.out, force=job.force)
    from verdiv.preregistration import read_preregistration

    plan = None if job.prereg is None else read_preregistration(job.prereg)
    from verdiv.analysis import analyze, write_outputs
    from verdiv.cli.summary import print_summary

    with ProgressBar() as progress:
        result = analyze(
            list(job.logs),
            preregistration=plan,
            lock=job.lock,
            settings=job.settings,
            progress=progress,
        )
        progress("writing")
        write_outputs(result, job.out, force=job.force)
    keep(f"the results are complete in {job.out}")
    print_summary(result.document, job.out)
    return exit_code(result.document, job.fail_on, job.exit_on)
