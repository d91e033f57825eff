"""Every verdict with and without the draws that an audit's findings touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from verdiv.errors import VerdivError

if TYPE_CHECKING:
    from verdiv.audit.run import AuditReport

__all__ = ["verdicts_of"]


def verdicts_of(report: AuditReport, logs: Sequence[str]) -> dict[str, Any]:
    """Judge all rules twice, on the whole log and on what is left without every affected chain.

    Parameters
    ----------
    report
        The audit of these logs.
    logs
        Their paths; standard input cannot be read a second time.

    Returns
    -------
    dict
        ``text`` (what was left out) and ``rules`` (rule to ``with`` and ``without``; empty where the log is
        refused).
    """
    from verdiv.runlog.reader import read_run_logs

    if report.evidence.logs.draws is None or "-" in logs:
        return {"text": "the log cannot be analysed", "rules": {}}
    spared = report.spared()
    gone = int((~spared).sum())
    log = read_run_logs(list(logs))
    whole = _verdicts(report, log)
    if not gone:
        rules = {rule: {"with": verdict, "without": verdict} for rule, verdict in whole.items()}
        return {"text": "no draw is affected", "rules": rules}
    text = f"{gone} of {len(spared)} draws, their whole chains, are left out"
    if not spared.any():
        left = dict.fromkeys(whole, "no draw is left")
    else:
        left = _verdicts(report, replace(log, draws=log.draws[spared].reset_index(drop=True)))
    return {
        "text": text,
        "rules": {
            rule: {"with": verdict, "without": left.get(rule, "none")} for rule, verdict in whole.items()
        },
    }


def _verdicts(report: AuditReport, log: Any) -> dict[str, str]:
    """Judge the rules by the grid, which needs no sampler; why not, in every rule's place, where that fails."""
    from verdiv.analysis.run import analyze_log
    from verdiv.preregistration import RULE_IDS

    try:
        document = analyze_log(log, preregistration=report.evidence.plan).document
    except VerdivError as error:
        return dict.fromkeys(RULE_IDS, f"not analysed: {error.message}")
    return {rule: str(record["verdict"]) for rule, record in document["rules"].items()}
