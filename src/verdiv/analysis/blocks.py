"""Smaller parts of the results document: registration, versions, digests, findings about them."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import verdiv
from verdiv import __version__
from verdiv.analysis.fit import Fit
from verdiv.analysis.gather import Gathered
from verdiv.runlog.table import Finding

__all__ = [
    "counts_digest",
    "digest_findings",
    "disagreements",
    "plain",
    "registration_block",
    "shown_path",
    "versions",
]

BUNDLED = Path(verdiv.__file__).resolve().parent

PACKAGES = ("numpy", "scipy", "pandas", "pymc", "arviz", "nutpie", "statsmodels")


def shown_path(path: str) -> str:
    """Name an input: bundled files by their name alone, so that results do not depend on where verdiv is installed."""
    found = Path(path)
    return f"bundled: {found.name}" if BUNDLED in found.resolve().parents else path


def versions() -> dict[str, str]:
    """Versions of what the numbers were computed with."""
    found = {"verdiv": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


def registration_block(gathered: Gathered) -> dict[str, Any]:
    """What was registered, by whom, and how far it can be trusted."""
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


def digest_findings(gathered: Gathered) -> list[Finding]:
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


def disagreements(block: dict[str, Any]) -> list[Finding]:
    """Estimates whose model and direct values lie apart."""
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


def counts_digest(fit: Fit) -> str:
    """Digest of the numbers the model saw."""
    summary = fit.summary
    said = json.dumps(
        [summary.stages, summary.families, summary.N.tolist(), summary.K.tolist(), summary.deff.tolist()]
    )
    return hashlib.sha256(said.encode()).hexdigest()


def plain(value: Any) -> Any:
    """Turn NumPy scalars into Python's and NaN into null, so that the document is JSON whoever reads it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
