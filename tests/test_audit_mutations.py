"""The audit's test of itself: a clean run without a finding, and every breakage caught by the check meant for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from verdiv.audit.mutations.clean import CleanRun, make_clean_run
from verdiv.audit.mutations.of_files import LOCK_BREAKAGES, RESULTS_BREAKAGES
from verdiv.audit.mutations.of_logs import LOG_BREAKAGES
from verdiv.audit.mutations.table import audit_run, mutation_table
from verdiv.audit.registry import CHECKS

BREAKAGES = [*LOG_BREAKAGES, *LOCK_BREAKAGES]


@pytest.fixture
def clean(tmp_path: Path) -> CleanRun:
    """A clean run of its own for each test."""
    return make_clean_run(tmp_path)


def test_a_clean_run_has_no_finding(clean: CleanRun) -> None:
    """Nothing but passes, not applicable, and what could not run for want of history and results."""
    report = audit_run(clean)
    assert report.findings() == []
    blocked = {check for check, outcome in report.outcomes().items() if outcome == "could not run"}
    assert blocked == {"lock.replaced"}
    assert report.status == "passed"


def test_the_clean_run_is_the_same_every_time(
    clean: CleanRun, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A breakage is the only difference between two rows of the table."""
    again = make_clean_run(tmp_path_factory.mktemp("again"))
    assert again.log_path.read_bytes() == clean.log_path.read_bytes()
    assert again.lock_path.read_bytes() == clean.lock_path.read_bytes()


@pytest.mark.parametrize(("name", "check", "breaks"), BREAKAGES, ids=[name for name, _, _ in BREAKAGES])
def test_every_breakage_is_caught_by_its_check(
    clean: CleanRun, name: str, check: str, breaks: Callable[[CleanRun], None]
) -> None:
    """The check meant for a breakage finds it; that others notice it too does not count."""
    run = replace(clean, draws=list(clean.draws))
    breaks(run)
    report = audit_run(run)
    assert report.outcomes()[check] == "finding", name


def test_there_are_enough_breakages() -> None:
    """At least thirty, and every section of the audit is tried."""
    assert len(BREAKAGES) >= 30
    tried = {check.split(".")[0] for _, check, _ in (*BREAKAGES, *RESULTS_BREAKAGES)}
    assert tried == {check.id.split(".")[0] for check in CHECKS}


def test_every_check_is_tried() -> None:
    """A check that no breakage is meant for could be dead; those few are named with what tests them instead."""
    elsewhere = {
        "lock.amendments",  # a broken link is a broken digest: test_lock_plan
        "lock.replaced",  # needs a repository: test_lock_plan
    }
    tried = {check for _, check, _ in (*BREAKAGES, *RESULTS_BREAKAGES)}
    assert {check.id for check in CHECKS} - tried == elsewhere


@pytest.mark.slow
def test_the_table_is_complete() -> None:
    """The printed table, results and figures included, has no breakage that went unnoticed."""
    from verdiv.cli.audit_table import analysed

    rows = list(mutation_table(analysed))
    assert [row.breakage for row in rows if not row.caught] == []
    assert len(rows) > len(BREAKAGES) + len(RESULTS_BREAKAGES)
