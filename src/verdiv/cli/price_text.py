"""Price documents as text for the terminal and as CSV."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from verdiv import rounding
from verdiv.pricing.document import ROW_FIELDS

__all__ = [
    "design_text",
    "figures_text",
    "forms_text",
    "price_csv",
    "price_text",
    "sweep_csv",
    "sweep_text",
    "turns_text",
]

Document = Mapping[str, Any]

WIDTH = 100
"""Columns of running text."""

SAME = 1e-9
"""Intervals narrower than this are a set value and its floating-point noise."""

MAX_LINES = 400
"""Grid points that a sweep prints in the terminal; the rest is in --json and --csv."""


def cell(value: Any) -> str:
    """Write one figure: a set value in full, an estimate with its interval.

    Examples
    --------
    >>> cell(0.96812), cell({"mean": 0.81, "low": 0.69, "high": 0.92}), cell(None), cell("inf")
    ('0.96812', '0.81 [0.69, 0.92]', 'n/a', '∞')
    """
    if isinstance(value, Mapping):
        if value.get("mean") is None:
            ends = [cell(value.get(end)) for end in ("median", "low", "high")]
            return f"median {ends[0]} [{ends[1]}, {ends[2]}]"
        if value["high"] - value["low"] < SAME:
            return rounding.exact(round(value["mean"], 9))
        return rounding.estimate(value["mean"], value["low"], value["high"])
    if value in ("inf", "-inf"):
        return "∞" if value == "inf" else "−∞"
    return rounding.exact(value)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a table, first column to the left, the others to the right."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            word.ljust(size) if i == 0 else word.rjust(size)
            for i, (word, size) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _paragraph(words: str) -> str:
    return textwrap.fill(words, WIDTH)


def _odds(value: Any) -> str:
    """Write B* or regime: a value, or the probabilities that are not negligible."""
    if not isinstance(value, Mapping):
        return "none" if value is None else str(value)
    likely = {name: p for name, p in value.items() if p >= 0.0005}
    return ", ".join(f"{name}: {rounding.probability(p)}" for name, p in likely.items()) or "none"


def price_text(document: Document, stored: Sequence[Document] = (), ledger: Document | None = None) -> str:
    """Write a price document for the terminal."""
    parts = [_paragraph(f"Form of A3: {document['form']['name']}, {document['form']['title']}.")]
    parts += [_paragraph(note) for note in document["notes"]]
    parts.append(_parameters(document))
    parts.append(_rows(document, stored))
    parts.append(_summary(document))
    crossings = document["crossovers"]
    if crossings:
        rows = [
            [
                f"k = {c['k']}",
                *(cell(c[n]) for n in ("Q_majority", "p_d_feedback", "p_d_blind", "unanimous_wrong")),
            ]
            for c in crossings
        ]
        head = ["majority of", "Q_k", "p_d, feedback", "p_d, blind", "all k wrong"]
        parts.append("Crossovers: retries beat the vote from this detectable mass on\n" + table(head, rows))
    if ledger is not None:
        parts.append(_ledger(ledger))
    return "\n\n".join(parts)


def _parameters(document: Document) -> str:
    """Write the parameters, those at zero that change nothing left out."""
    silent = {"lambda1", "lambda2", "fpr", "icc_q", "icc_s1", "icc_s2", "H"}
    named = [
        f"{name} {cell(value)}"
        for name, value in document["parameters"].items()
        if not (value == 0 and name in silent) and not (name == "s_false" and value == 1)
    ]
    return _paragraph("Parameters: " + ", ".join(named))


def _rows(document: Document, stored: Sequence[Document]) -> str:
    """Write the arms."""
    loaded = document["parameters"]["H"] != 0
    direct = {(row["arm"], row["budget"]): row.get("direct") for row in stored}
    drawn = document["draws"] > 0
    fields = ["quality", "bill"] + (["loaded_bill"] if loaded else [])
    fields += [] if drawn else ["residual", "known_wrong", "silent_wrong"]
    fields += ["accuracy_per_unit", "usd"]
    words = {"loaded_bill": "under load", "accuracy_per_unit": "gain/unit", "usd": "USD"}
    head = ["arm", "draws", *(words.get(f, f.replace("_", " ")) for f in fields)]
    head += ["measured quality", "measured bill"] if direct else []
    rows = []
    for row in document["rows"]:
        line = [row["arm"], "∞" if row["budget"] == "inf" else str(row["budget"])]
        line += [cell(row[f]) for f in fields]
        if direct:
            band = direct.get((row["arm"], row["budget"]))
            line += [cell(band["quality"]), cell(band["bill"])] if band else ["", ""]
        rows.append(line)
    text = table(head, rows)
    return text + "\nbills in small draws a task; gain/unit = (quality − q0)/bill"


def _summary(document: Document) -> str:
    """Write the figures of the whole frontier."""
    s, b = document["summary"], document["break_even"]
    rows = [
        ("D, edge of the teacher", cell(s["D"])),
        ("D_c, first repair dividend", f"{cell(s['D_c'])} (with s1: {cell(s['D_c_s1'])})"),
        ("p_d σ, structural mass", cell(s["structural_mass"])),
        ("B_q, teacher's quality reached", _odds(b["B_q"])),
        (f"B*, break-even (up to {b['B_max']})", _odds(b["B_star"])),
        ("  by the log branch", cell(s["log_branch"])),
        ("regime", _odds(b["regime"])),
        ("budget that passes the gate", _odds(s["gate_budget"])),
        ("static ceiling 1 − p_s", cell(s["ceiling_static"])),
        ("  of this form", cell(s["ceiling_form"])),
        ("blind ceiling 1 − p_s/(1 − p_d)", cell(s["ceiling_blind"])),
        ("ceiling with the oracle tier", cell(s["ceiling_oracle"])),
    ]
    wide = max(len(name) for name, _ in rows)
    lines = [f"{name.ljust(wide)}  {value}" for name, value in rows]
    return "\n".join(lines) + "\n" + _paragraph(b["sentence"])


def _ledger(bill: Document) -> str:
    """Write the protocol's bill."""
    rows = [
        [row["arm"], str(row["budget"]), cell(round(row["expected"], 6)), cell(row["worst"])]
        for row in bill["rows"]
    ]
    rows.append(["all", "", cell(round(bill["expected"], 6)), cell(bill["worst"])])
    tasks = bill["tasks"]
    return (
        "Protocol, units of one small draw a task\n"
        + table(["arm", "draws", "expected", "worst case"], rows)
        + f"\n{bill['small_draws']} small and {bill['teacher_draws']} teacher draws a task at most; "
        + f"{tasks} tasks: {rounding.usd(bill['expected_usd'])} expected, "
        + f"{rounding.usd(bill['worst_usd'])} at most"
    )


def price_csv(document: Document) -> str:
    """Write the arms as CSV: one row an arm and budget, three columns a figure over draws."""
    drawn = document["draws"] > 0
    ends = ("", "_low", "_high") if drawn else ("",)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["arm", "budget", *(f + end for f in ROW_FIELDS for end in ends)])
    for row in document["rows"]:
        line = [row["arm"], row["budget"]]
        for f in ROW_FIELDS:
            value = row[f]
            if drawn:
                band = value if isinstance(value, Mapping) else {"mean": value}
                line += [_blank(band.get(key)) for key in ("mean", "low", "high")]
            else:
                line.append(_blank(value))
        writer.writerow(line)
    return out.getvalue()


def _settled(value: Any) -> str:
    """Write a figure without the last digits of floating-point sums."""
    return cell(round(value, 9) if isinstance(value, float) else value)


def _blank(value: Any) -> Any:
    return "" if value is None else value


def _grid(document: Document) -> list[list[Any]]:
    """List a sweep's points: axis values, B*, B_q, regime, quality and bill at B*, crossovers."""
    axes = document["axes"]
    outer = axes[0]["values"]
    inner = axes[1]["values"] if len(axes) == 2 else [None]
    regimes = document["codes"]["regime"]
    rows = []
    for i, first in enumerate(outer):
        for j, second in enumerate(inner):

            def at(grid: Any, i: int = i, j: int = j, two: bool = second is not None) -> Any:
                return grid[i][j] if two else grid[i]

            code, star, reach = (at(document[name]) for name in ("regime", "B_star", "B_q"))
            rows.append(
                [
                    first,
                    *([] if second is None else [second]),
                    "impossible" if star < 0 else star or "none",
                    "impossible" if reach < 0 else reach or "none",
                    "" if code < 0 else regimes[code],
                    at(document["quality"]),
                    at(document["bill"]),
                    *(at(grid) for grid in document["crossover"].values()),
                    *(at(grid) for grid in document["B_share"].values()),
                ]
            )
    return rows


def _grid_head(document: Document) -> list[str]:
    names = [axis["name"] for axis in document["axes"]]
    crossings = [f"p_d_fb_{k}" for k in document["crossover"]]
    shares = [f"P_B_{b}" for b in document["B_share"]]
    return [*names, "B_star", "B_q", "regime", "quality", "bill", *crossings, *shares]


def sweep_csv(document: Document) -> str:
    """Write a sweep as CSV: one row a grid point."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_grid_head(document))
    writer.writerows([_blank(v) for v in row] for row in _grid(document))
    return out.getvalue()


def sweep_text(document: Document) -> str:
    """Write a sweep for the terminal, long ones cut."""
    grid = _grid(document)
    rows = [[v if isinstance(v, str) else cell(v) for v in row] for row in grid[:MAX_LINES]]
    parts = [_paragraph(f"Form of A3: {document['form']['name']}, {document['form']['title']}.")]
    parts += [_paragraph(note) for note in document["notes"]]
    parts.append(table(_grid_head(document), rows))
    if len(grid) > MAX_LINES:
        parts.append(f"… {len(grid) - MAX_LINES:,} more points; --json and --csv hold them all")
    return "\n\n".join(parts)


def design_text(document: Document) -> str:
    """Write what a design search found."""
    rows = [[d["text"], cell(round(d["expected"], 6)), cell(d["worst"])] for d in document["both"]]
    head = f"{document['searched']:,} designs priced; these print {document['expected']} and {document['worst']}:"
    body = table(["budgets", "expected", "worst case"], rows) if rows else "none"
    return "\n\n".join([head, body, *(_paragraph(line) for line in document["reading"])])


def turns_text(document: Document) -> str:
    """Write a conversation."""
    rows = [
        [
            str(t["turn"]),
            cell(t["q0"]),
            cell(t["p_d"]),
            _odds(t["B_star"]),
            t["regime"],
            cell(t["quality"]),
            cell(t["bill"]),
        ]
        for t in document["turns"]
    ]
    head = ["turn", "q0", "p_d", "B*", "regime", "quality at B*", "bill at B*"]
    whole = [
        [str(b["budget"]), cell(b["quality"]), cell(b["bill"])] for b in document["uniform"]["by_budget"]
    ]
    teacher, own = document["teacher"], document["own"]
    closing = (
        f"One budget for every turn meets the teacher at B = {_odds(document['uniform']['B_star'])}. The teacher's "
        f"conversation is all right with probability {cell(teacher['quality'])} for {cell(teacher['bill'])} units; "
        f"each turn at its own B*, the teacher where a turn has none, gives {cell(own['quality'])} for "
        f"{cell(own['bill'])}."
    )
    return "\n\n".join(
        [
            table(head, rows),
            "The whole conversation, one budget for every turn\n" + table(["B", "all right", "bill"], whole),
            _paragraph(closing),
        ]
    )


def forms_text(document: Document) -> str:
    """Write the answers of every form side by side."""
    parts = []
    for form in document["forms"]:
        rows = [
            [str(b["budget"]), cell(b["quality"]), cell(b["bill"]), cell(b["residual"])]
            for b in form["by_budget"]
        ]
        found = form["break_even"]
        left_out = ", ".join(f"{name} (taken as {value:g})" for name, value in form["neglected"].items())
        parts.append(
            _paragraph(f"{form['name']}: {form['title']}" + (f"; neglects {left_out}" if left_out else ""))
            + "\n"
            + table(["B", "quality", "bill", "residual"], rows)
            + f"\nB* {_odds(found['B_star'])}; regime {_odds(found['regime'])}"
        )
    return "\n\n".join(parts)


def figures_text(found: Document) -> str:
    """Write the paper's figures as recomputed."""
    rows = [
        [
            name,
            str(f["value"]).lower() if isinstance(f["value"], bool) else _settled(f["value"]),
            f["unit"],
            f["form"] + (f" ({f['direction']})" if f["direction"] else ""),
        ]
        for name, f in found.items()
    ]
    wide = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join(
        f"{r[0].ljust(wide[0])}  {r[1].rjust(wide[1])} {r[2].ljust(wide[2])}  {r[3]}".rstrip() for r in rows
    )
