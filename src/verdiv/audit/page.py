"""The audit as one HTML page that works offline, and as lines for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["audit_html", "audit_lines"]

STYLE = """
:root { color-scheme: light dark; --line: #8886; --bad: #b3261e; --good: #1b6e3c; --quiet: #777; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #7ddc9c; --quiet: #aaa; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 0 auto; padding: 1rem; }
table { border-collapse: collapse; width: 100%; margin: 0 0 1.5rem; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
th, td { text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); padding: .3rem .6rem .3rem 0;
  overflow-wrap: anywhere; }
.finding { color: var(--bad); font-weight: 600; } .pass { color: var(--good); } .quiet { color: var(--quiet); }
@media print { body { max-width: none; } tr { break-inside: avoid; } }
"""

MARKS = {"pass": "✓", "finding": "✗", "not applicable": "–", "could not run": "?"}


def _clean(text: object) -> str:
    said = "".join(ch if ch.isprintable() or ch == "\n" else "\N{REPLACEMENT CHARACTER}" for ch in str(text))
    return escape(said)


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> str:
    if not rows:
        return f"<h3>{_clean(caption)}</h3><p class='quiet'>{_clean(empty)}</p>"
    cells = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    heads = "".join(f"<th scope='col'>{_clean(name)}</th>" for name in head)
    return f"<table><caption>{_clean(caption)}</caption><thead><tr>{heads}</tr></thead><tbody>{cells}</tbody></table>"


def _cell(text: object, kind: str = "") -> str:
    return f"<td class='{kind}'>{_clean(text)}</td>" if kind else f"<td>{_clean(text)}</td>"


def _deviation_rows(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    names = ("registered", "done", "found", "timing", "rules", "effect")
    return [
        [
            _cell(", ".join(row[name]) if isinstance(row.get(name), list) else row.get(name, ""))
            for name in names
        ]
        for row in rows
    ]


def audit_html(document: Mapping[str, Any], title: str) -> str:
    """Render an audit document; a pure function of it."""
    kinds = {"pass": "pass", "finding": "finding"}
    parts = [f"<h1>{_clean(title)}</h1>", f"<p>Status: <strong>{_clean(document['status'])}</strong>. "]
    counts = ", ".join(f"{count} {name}" for name, count in document.get("counts", {}).items())
    parts.append(f"{_clean(counts)}. A check that could not run never counts as a pass.</p>")
    sections: dict[str, list[list[str]]] = {}
    for check in document.get("checks", ()):
        kind = kinds.get(check["outcome"], "quiet")
        word = f"{MARKS.get(check['outcome'], '')} {check['outcome']}"
        if check.get("severity"):
            word += f", {check['severity']}"
        sections.setdefault(check["section"], []).append(
            [_cell(check["check"]), _cell(word, kind), _cell(check["title"]), _cell(check["message"])]
        )
    for section, rows in sections.items():
        parts.append(_table(section, ("Check", "Outcome", "Asks whether", "Result"), rows, "no check"))
    head = ("Registered", "Done", "Found", "Timing", "Rules", "Effect")
    for name, caption in (
        ("declared", "Deviations, as declared"),
        ("undeclared", "Found by the audit, not declared"),
        ("not_found", "Declared, not found by the audit"),
    ):
        parts.append(_table(caption, head, _deviation_rows(document.get(name, ())), "none"))
    stops = [[_cell(stop["text"])] for stop in document.get("earlier_stops", ())]
    if stops:
        parts.append(_table("What earlier stops would have shown", ("In the order of tasks",), stops, "none"))
    verdicts = document.get("verdicts") or {}
    rows = [
        [
            _cell(rule),
            _cell(row["with"]),
            _cell(row["without"], "" if row["with"] == row["without"] else "finding"),
        ]
        for rule, row in verdicts.get("rules", {}).items()
    ]
    if verdicts:
        caption = f"Verdicts with and without the affected draws: {verdicts['text']}"
        parts.append(_table(caption, ("Rule", "With them", "Without them"), rows, "none could be given"))
    claims = [
        [
            _cell(name),
            _cell(claim["outcome"], "pass" if claim["outcome"] == "reproduced" else "finding"),
            _cell(f"{claim['printed']} {claim['unit'] or ''}"),
            _cell("" if claim["right_value"] is None else claim["right_value"]),
            _cell(claim["reason"] + ("; DECISION ERROR" if claim["decision_error"] else "")),
            _cell("; ".join(item["assumption"] for item in claim["assumptions_that_would_print_it"])),
        ]
        for name, claim in (document.get("claims") or {}).items()
    ]
    if claims:
        columns = ("Claim", "Outcome", "Printed", "Recomputed", "Why", "Would be right if")
        parts.append(_table("Printed figures", columns, claims, "none"))
    body = "\n".join(parts)
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{_clean(title)}</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{STYLE}</style></head><body><main>\n{body}\n</main></body></html>\n"
    )


def audit_lines(document: Mapping[str, Any]) -> list[str]:
    """Write an audit for the terminal: findings in full, what could not run by name, the rest counted."""
    checks = document.get("checks", ())
    lines = []
    for check in checks:
        for finding in check["findings"]:
            rules = f" [{' '.join(finding['rules'])}]" if finding["rules"] else ""
            lines.append(f"{finding['severity'].upper():9} {check['check']}: {finding['message']}{rules}")
    blocked = [check for check in checks if check["outcome"] == "could not run"]
    if blocked:
        lines.append("Could not run:")
        reasons: dict[str, list[str]] = {}
        for check in blocked:
            reasons.setdefault(check["message"], []).append(check["check"])
        lines += [f"  {', '.join(names)}: {reason}" for reason, names in reasons.items()]
    verdicts = document.get("verdicts")
    if verdicts:
        lines.append(f"Verdicts with and without the affected draws: {verdicts['text']}")
        for rule, row in verdicts["rules"].items():
            mark = "" if row["with"] == row["without"] else "  <- depends on them"
            lines.append(f"  {rule}: {row['with']}, {row['without']} without{mark}")
    for name, caption in (("undeclared", "Undeclared deviation"), ("not_found", "Declared, not found")):
        lines += [f"{caption}: {row['registered']} -> {row['done']}" for row in document.get(name, ())]
    counts = ", ".join(f"{count} {name}" for name, count in document.get("counts", {}).items() if count)
    lines.append(f"{document['status'].upper()}: {counts}")
    return ["".join(ch if ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in line) for line in lines]
