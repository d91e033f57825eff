"""The main job: run logs and a registration in, a results document out."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import verdiv
from verdiv import __version__
from verdiv.analysis.diagnostics import diagnostics_block
from verdiv.analysis.estimates import estimates_block
from verdiv.analysis.exploratory import exploratory_block, limits_block
from verdiv.analysis.fit import Fit, Progress, fit_model
from verdiv.analysis.frontier import (
    break_even_block,
    flow_block,
    frontier_block,
    ledger_block,
    per_seed_block,
)
from verdiv.analysis.gather import PRIMARY, Gathered, gather
from verdiv.analysis.verdicts import (
    conjunction_block,
    expected_wrong,
    floors_block,
    rules_block,
    sensitivity_block,
)
from verdiv.estimators.archive import FitArchive
from verdiv.estimators.compose import compose
from verdiv.estimators.direct import Direct, estimate_directly
from verdiv.estimators.load import NotEstimable, fit_load_moments
from verdiv.falsification.evidence import Evidence, break_even_draws
from verdiv.falsification.rules import evaluate_rules
from verdiv.falsification.rules.dividend import headroom
from verdiv.preregistration import Preregistration
from verdiv.reports.schema import validate_document
from verdiv.runlog.table import Finding, RunLog

__all__ = ["AnalysisResult", "analyze", "analyze_log"]

BOOTSTRAP_DRAWS = 4000
"""Posterior draws of the direct estimates."""

BUNDLED = Path(verdiv.__file__).resolve().parent

PACKAGES = ("numpy", "scipy", "pandas", "pymc", "arviz", "nutpie", "statsmodels")


@dataclass(frozen=True)
class AnalysisResult:
    """A finished analysis."""

    document: dict[str, Any]
    """What results.json holds."""
    idata: FitArchive | None = field(repr=False)
    """What fit.nc holds: NUTS draws, or the grid's; its ``inference_data()`` is ArviZ's."""


def shown_path(path: str) -> str:
    """Name an input: bundled files by their name alone, so that results do not depend on where verdiv is installed."""
    found = Path(path)
    return f"bundled: {found.name}" if BUNDLED in found.resolve().parents else path


def _versions() -> dict[str, str]:
    found = {"verdiv": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


def _registration_block(gathered: Gathered) -> dict[str, Any]:
    plan = gathered.plan
    if gathered.mode == "exploratory":
        return {
            "digest": None,
            "status": "none",
            "title": None,
            "authors": None,
            "seen_before": None,
            "plan": json.loads(plan.model_dump_json()),
        }
    first = gathered.account.first_start
    return {
        "digest": plan.digest,
        "status": "read",
        "title": plan.title,
        "authors": list(plan.authors),
        "seen_before": plan.seen_before,
        "plan": json.loads(plan.model_dump_json()),
        "locked_at": None,
        "strength": "read from a file; no lock was checked",
        "first_draw_at": None if first is None else datetime.fromtimestamp(first, UTC).isoformat(),
        "order": "not established: the registration carries no lock",
        "verify_command": _verify_command(plan.source),
        "amendments": [],
    }


def _verify_command(source: str | None) -> str | None:
    """A command that recomputes the digest of a registration, a file's or a shipped one's."""
    if source is None or source == "-":
        return None
    if Path(source).is_file():
        return f"sha256sum {shlex.quote(source)}"
    call = f"fixtures.read_bytes('preregistrations', {source!r})"
    code = f"import hashlib; from verdiv import fixtures; print(hashlib.sha256({call}).hexdigest())"
    return f'python -c "{code}"'


def _digest_findings(gathered: Gathered) -> list[Finding]:
    """Compare the digest that each log says it followed with the registration given."""
    if gathered.mode == "exploratory":
        return []
    out = []
    for header, source in zip(gathered.headers, gathered.inputs, strict=True):
        said = header.preregistration_sha256
        if said is None:
            message = (
                f"{source.path} names no registration; that it followed this one rests on the analyst's word."
            )
            out.append(Finding("medium", "lock.no_digest", message))
        elif said != gathered.plan.digest:
            given = str(gathered.plan.digest)[:12]
            message = f"{shown_path(source.path)} followed registration {said[:12]}…, but {given}… was given."
            out.append(Finding("high", "lock.other_digest", message))
    return out


def analyze_log(
    log: RunLog,
    *,
    preregistration: Preregistration | None = None,
    engine: str = "grid",
    check_engine: bool = False,
    draws: int = 1000,
    chains: int = 4,
    cores: int = 2,
    seed: int = 1,
    progress: Progress | None = None,
) -> AnalysisResult:
    """Analyse a run log that is already read.

    Parameters
    ----------
    log
        One log, or several joined.
    preregistration
        The plan; None makes the analysis exploratory.
    engine
        ``grid`` (quadrature, refined until its error is below .01 posterior sd) or ``nuts`` (PyMC).
    check_engine
        Whether to run both and report how far they lie apart.
    draws, chains, cores, seed
        Of the sampler; the bootstrap takes the same seed.
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
    started = time.time()

    def tell(stage: str, done: int | None = None, total: int | None = None) -> None:
        if progress is not None:
            progress(stage, done, total)

    tell("counting draws")
    gathered = gather(log, preregistration)
    plan, tally = gathered.plan, gathered.tally
    fit = fit_model(
        gathered,
        engine=engine,
        draws=draws,
        chains=chains,
        cores=cores,
        seed=seed,
        check_engine=check_engine,
        progress=progress,
    )
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
    void = (
        "the fit failed its diagnostics: " + "; ".join(diagnostics["reasons"])
        if diagnostics["status"] == "failed"
        else None
    )
    results = evaluate_rules(evidence, void=void)
    found = break_even_draws(direct, plan.max_budget)
    head = headroom(evidence)
    dividend = None if isinstance(head, str) else head.dividend
    block, densities = estimates_block(
        gathered, fit, composition, direct, estimates, load, found, dividend, seed
    )
    tell("checking sensitivity")
    findings = [*gathered.findings, *_digest_findings(gathered), *_disagreements(block)]
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
        "preregistration": _registration_block(gathered),
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
        "findings": [
            {"severity": f.severity, "check": f.check, "message": f.message, "rules": list(f.rules)}
            for f in findings
        ],
        "deviations": [],
        "audit": {"status": "not run"},
        "limits": limits_block(gathered),
        "meta": {
            "versions": _versions(),
            "started_at": datetime.fromtimestamp(started, UTC).isoformat(),
            "finished_at": datetime.now(UTC).isoformat(),
            "seconds": round(time.time() - started, 3),
            "command": "verdiv " + " ".join(sys.argv[1:]) if sys.argv and "verdiv" in sys.argv[0] else None,
        },
        "settings": {
            "engine": engine,
            "draws": draws,
            "chains": chains,
            "seed": seed,
            "bootstrap_draws": BOOTSTRAP_DRAWS,
            "counts_sha256": _counts_digest(fit),
        },
    }
    document = _plain(document)
    validate_document(document)
    return AnalysisResult(document, fit.idata)


def _disagreements(block: dict[str, Any]) -> list[Finding]:
    out = []
    for name, record in block.items():
        agreement = record.get("agreement")
        if agreement is not None and not agreement["agrees"]:
            message = (
                f"{name}: model {record['model']['mean']:.4g} and direct estimate {record['direct']['mean']:.4g} lie "
                f"{agreement['gap_in_sd']:.1f} posterior sd apart; rules use the direct one."
            )
            out.append(Finding("low", "estimates.disagree", message))
    return out


def _counts_digest(fit: Fit) -> str:
    """Digest of the numbers the model saw."""
    summary = fit.summary
    said = json.dumps(
        [summary.stages, summary.families, summary.N.tolist(), summary.K.tolist(), summary.deff.tolist()]
    )
    return hashlib.sha256(said.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Turn NumPy scalars into Python's and NaN into null, so that the document is JSON whoever reads it."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def analyze(
    log_paths: Sequence[str],
    *,
    preregistration: Preregistration | None = None,
    engine: str = "grid",
    check_engine: bool = False,
    draws: int = 1000,
    chains: int = 4,
    cores: int = 2,
    seed: int = 1,
    progress: Progress | None = None,
) -> AnalysisResult:
    """Read run logs and analyse them together.

    Parameters
    ----------
    log_paths
        Paths of run logs; ``-`` is standard input.
    preregistration, engine, check_engine, draws, chains, cores, seed, progress
        As for :func:`analyze_log`.

    Returns
    -------
    AnalysisResult
        The results document and the inference data.
    """
    from verdiv.runlog.reader import read_run_logs

    if progress is not None:
        progress("reading")
    return analyze_log(
        read_run_logs(list(log_paths)),
        preregistration=preregistration,
        engine=engine,
        check_engine=check_engine,
        draws=draws,
        chains=chains,
        cores=cores,
        seed=seed,
        progress=progress,
    )
