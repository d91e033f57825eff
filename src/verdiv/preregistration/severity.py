"""Severity in a lock: what came out when its design was simulated, and whether the record holds together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from verdiv.preregistration.rules import RULE_IDS

__all__ = ["LETTERS", "severity_faults", "severity_shares"]

LETTERS: Mapping[str, str] = {
    "supported": "s",
    "falsified": "f",
    "inconclusive": "i",
    "untestable": "u",
    "void": "v",
}
"""Verdict to the letter that stands for it in a lock, one a simulated run."""

MAX_RUNS = 1_000_000

SIDES = ("true", "false")
"""The world in which a claim holds, and the one in which it fails."""


def severity_faults(record: object) -> Iterator[str]:
    """Yield what does not hold together in the severity of a lock, in words; nothing where it does.

    Parameters
    ----------
    record
        ``severity`` of a record's body.
    """
    if not isinstance(record, Mapping):
        yield "severity is no table"
        return
    runs = record.get("runs")
    if not isinstance(runs, int) or isinstance(runs, bool) or not 1 <= runs <= MAX_RUNS:
        yield f"{str(runs)[:40]} simulated runs"
        return
    if not isinstance(record.get("seed"), int):
        yield "no seed of the simulated runs"
        return
    rules = record.get("rules")
    if not isinstance(rules, Mapping) or set(rules) != set(RULE_IDS):
        yield "not every rule has its simulated verdicts"
        return
    for rule in RULE_IDS:
        entry = rules[rule]
        if not isinstance(entry, Mapping) or set(entry) != set(SIDES) or entry["true"] is None:
            yield f"{rule} lacks a world in which its claim holds, or one in which it fails"
            continue
        for side in SIDES:
            told = entry[side]
            if told is None:
                continue
            verdicts = told.get("verdicts") if isinstance(told, Mapping) else None
            if (
                not isinstance(verdicts, str)
                or len(verdicts) != runs
                or set(verdicts) - set(LETTERS.values())
            ):
                yield f"{rule}, claim {side}: not one verdict for each of {runs} runs"


def severity_shares(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Count the verdicts of a severity record that holds together.

    Returns
    -------
    dict
        Rule to ``supported_if_true``, ``falsified_if_true``, ``supported_if_false`` and ``falsified_if_false`` (counts;
        None without such a world), ``untestable`` (of the true world), the two worlds and ``runs``.

    Examples
    --------
    >>> told = {"world": "null", "verdicts": "ssi"}
    >>> record = {"runs": 3, "rules": {"P3": {"true": told, "false": {"world": "null+x", "verdicts": "fff"}}}}
    >>> shares = severity_shares(record)["P3"]
    >>> shares["supported_if_true"], shares["falsified_if_true"], shares["falsified_if_false"]
    (2, 0, 3)
    """
    out: dict[str, dict[str, Any]] = {}
    for rule, entry in record["rules"].items():
        row: dict[str, Any] = {"runs": record["runs"], "untestable": entry["true"]["verdicts"].count("u")}
        for side in SIDES:
            told = entry[side]
            row[f"world_if_{side}"] = None if told is None else told["world"]
            for verdict in ("supported", "falsified"):
                count = None if told is None else told["verdicts"].count(LETTERS[verdict])
                row[f"{verdict}_if_{side}"] = count
        out[rule] = row
    return out
