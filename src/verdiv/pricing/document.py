"""Price tables, sweeps, designs and conversations as plain documents: what ``--json`` prints and tables are made of.

A figure is a number for a point and {"mean", "low", "high"} for posterior draws (equal-tailed 95 %). A limit
is the string "inf", a figure that does not exist null; nothing missing becomes 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from verdiv.pricing.breakeven import REGIMES, explain
from verdiv.pricing.design import Design, DesignSearch, describe
from verdiv.pricing.figures import Figure
from verdiv.pricing.forms import BreakEven, Form
from verdiv.pricing.ratecard import Ledger
from verdiv.pricing.rates import Rates
from verdiv.pricing.sensitivity import FormResult
from verdiv.pricing.series import Array
from verdiv.pricing.sweep import Sweep
from verdiv.pricing.table import PriceRow, PriceTable
from verdiv.pricing.turns import Conversation

__all__ = [
    "PRICE_SCHEMA",
    "ROW_FIELDS",
    "break_even_document",
    "design_document",
    "figures_document",
    "forms_document",
    "ledger_document",
    "shown",
    "sweep_document",
    "table_document",
    "turns_document",
]

PRICE_SCHEMA = 1
"""Integer version of the documents that ``verdiv price --json`` prints."""

LEVELS = (2.5, 97.5)
"""Percentiles of the equal-tailed 95 % interval."""

ROW_FIELDS = (
    "quality",
    "bill",
    "loaded_bill",
    "residual",
    "known_wrong",
    "silent_wrong",
    "accuracy_per_unit",
    "usd",
)
"""Figures of one row, in order."""

Document = dict[str, Any]


def _plain(value: float) -> float | str | None:
    """Write one number: NaN is null, infinity a word."""
    number = float(value)
    if math.isnan(number):
        return None
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return number


def shown(value: Array) -> float | str | Document | None:
    """Write a figure: a number for a point, mean and interval over draws.

    Draws without the figure (NaN) are left out of both; null where none has it.

    Examples
    --------
    >>> shown(np.asarray(0.5)), shown(np.asarray([0.0, 1.0]))["mean"]
    (0.5, 0.5)
    """
    if value.ndim == 0:
        return _plain(float(value))
    flat = value.ravel()
    flat = flat[~np.isnan(flat)]
    if flat.size == 0:
        return None
    if np.any(np.isinf(flat)):
        middle = np.sort(flat)[[int(q / 100 * (flat.size - 1)) for q in (*LEVELS, 50.0)]]
        return {
            "mean": None,
            "median": _plain(middle[2]),
            "low": _plain(middle[0]),
            "high": _plain(middle[1]),
        }
    low, high = np.percentile(flat, LEVELS)
    return {"mean": float(flat.mean()), "low": float(low), "high": float(high)}


def _row(row: PriceRow, cost: float) -> Document:
    """Write one row."""
    values = (
        row.quality,
        row.bill,
        row.loaded,
        row.residual,
        row.known_wrong,
        row.silent_wrong,
        row.per_unit,
        row.loaded * cost,
    )
    budget = "inf" if math.isinf(row.budget) else int(row.budget)
    named = {name: shown(value) for name, value in zip(ROW_FIELDS, values, strict=True)}
    return {"arm": row.arm, "budget": budget} | named


def _shares(codes: npt.NDArray[np.integer[Any]], names: Mapping[int, str]) -> Document:
    """Write the shares of codes over draws; impossible draws (−1) are left out."""
    known = codes[codes >= 0]
    total = max(known.size, 1)
    return {name: float((known == code).sum() / total) for code, name in names.items()}


def break_even_document(found: BreakEven, b_max: int) -> Document:
    """Write break-even and regime: their values for a point, their probabilities over draws."""
    names = {0: "none"} | {b: str(b) for b in range(1, b_max + 1)}
    regimes = {code: regime.value for code, regime in enumerate(REGIMES)}
    if found.b_star.ndim == 0:
        code = int(found.regime)
        return {
            "B_star": int(found.b_star) if found.b_star > 0 else None,
            "B_q": int(found.b_quality) if found.b_quality > 0 else None,
            "B_max": b_max,
            "regime": REGIMES[code].value if code >= 0 else None,
            "sentence": explain(REGIMES[code]) if code >= 0 else "These rates are no protocol.",
            "quality": shown(found.quality),
            "bill": shown(found.bill),
        }
    shares = _shares(found.regime, regimes)
    likely = max(REGIMES, key=lambda regime: shares[regime.value])
    return {
        "B_star": _shares(found.b_star, names),
        "B_q": _shares(found.b_quality, names),
        "B_max": b_max,
        "regime": shares,
        "sentence": explain(likely),
        "quality": shown(found.quality),
        "bill": shown(found.bill),
    }


def ledger_document(bill: Ledger) -> Document:
    """Write a protocol's bill."""
    return asdict(bill)


def figures_document(found: Mapping[str, Figure]) -> Document:
    """Write the paper's figures as recomputed."""
    return {
        name: asdict(figure)
        | {"value": figure.value if isinstance(figure.value, bool) else _plain(figure.value)}
        for name, figure in found.items()
    }


def table_document(
    table: PriceTable, r: Rates, *, b_max: int, cost_small_usd: float, notes: Iterable[str] = ()
) -> Document:
    """Write a price table.

    Parameters
    ----------
    table, r
        The table and the rates behind it.
    b_max
        Largest budget searched.
    cost_small_usd
        USD of a small draw.
    notes
        Sentences on where the parameters come from.
    """
    s = table.summary
    gate: object = int(s.gate_budget) if s.gate_budget.ndim == 0 else None
    if s.gate_budget.ndim:
        gate = _shares(s.gate_budget, {0: "none"} | {b: str(b) for b in range(1, b_max + 1)})
    summary = {
        "D": shown(s.edge),
        "D_c": shown(s.dividend),
        "D_c_s1": shown(s.dividend_s1),
        "structural_mass": shown(s.structural_mass),
        "ceiling_static": shown(s.ceiling_static),
        "ceiling_blind": shown(s.ceiling_blind),
        "ceiling_oracle": shown(s.ceiling_oracle),
        "ceiling_form": shown(s.ceiling_form),
        "log_branch": shown(s.log_branch),
        "gate_budget": gate or None,
    }
    crossovers = [
        {
            "k": c.k,
            "Q_majority": shown(c.majority),
            "p_d_feedback": shown(c.feedback),
            "p_d_blind": shown(c.blind),
            "unanimous_wrong": shown(c.unanimous_wrong),
        }
        for c in s.crossovers
    ]
    draws = int(np.prod(r.shape)) if r.shape else 0
    interval = {"kind": "eti", "probability": 0.95} if draws else None
    return {
        "schema": PRICE_SCHEMA,
        "kind": "price",
        "form": {"name": table.form.name, "title": table.form.title},
        "parameters": {f.name: shown(getattr(r, f.name)) for f in fields(r)}
        | {"p_s": shown(r.p_s), "phi": shown(r.phi), "delta": shown(r.delta)},
        "draws": draws,
        "interval": interval,
        "cost_small_usd": cost_small_usd,
        "rows": [_row(row, cost_small_usd) for row in table.rows],
        "summary": summary,
        "break_even": break_even_document(s.break_even, max(b_max, 2)),
        "crossovers": crossovers,
        "notes": list(notes),
    }


def _listed(values: Array) -> list[Any]:
    """Write an array as nested lists with null for NaN."""
    if values.ndim == 0:
        raise ValueError("a grid has at least one axis")
    return [_plain(float(v)) for v in values] if values.ndim == 1 else [_listed(v) for v in values]


def sweep_document(found: Sweep, form: Form, notes: Iterable[str] = ()) -> Document:
    """Write a sweep; grids are nested lists in the order of the axes, codes as in `Sweep`."""
    return {
        "schema": PRICE_SCHEMA,
        "kind": "sweep",
        "form": {"name": form.name, "title": form.title},
        "axes": [{"name": axis.name, "values": axis.values.tolist()} for axis in found.axes],
        "B_max": found.b_max,
        "draws": found.draws,
        "codes": {"B_star": "0 none, -1 no protocol", "regime": [regime.value for regime in REGIMES]},
        "B_star": found.b_star.tolist(),
        "B_q": found.b_quality.tolist(),
        "regime": found.regime.tolist(),
        "quality": _listed(found.quality),
        "bill": _listed(found.bill),
        "B_share": {str(b) if b else "none": _listed(x) for b, x in found.b_share.items()},
        "crossover": {str(k): _listed(x) for k, x in found.crossover.items()},
        "notes": list(notes),
    }


def _design(design: Design) -> Document:
    """Write one design."""
    return {
        "budgets": asdict(design.budgets),
        "text": describe(design.budgets),
        "expected": design.expected,
        "worst": design.worst,
    }


def design_document(found: DesignSearch) -> Document:
    """Write what a design search found."""
    return {
        "schema": PRICE_SCHEMA,
        "kind": "design",
        "expected": str(found.expected),
        "worst": str(found.worst),
        "searched": found.searched,
        "both": [_design(d) for d in found.both],
        "expected_only": [_design(d) for d in found.expected_only],
        "worst_only": [_design(d) for d in found.worst_only],
        "reading": list(found.reading),
    }


def forms_document(found: Iterable[FormResult], b_max: int) -> Document:
    """Write the answers of every form."""
    return {
        "schema": PRICE_SCHEMA,
        "kind": "forms",
        "forms": [
            {
                "name": result.form.name,
                "title": result.form.title,
                "neglected": dict(result.neglected),
                "by_budget": [
                    {
                        "budget": b + 1,
                        "quality": shown(result.price.quality[..., b]),
                        "bill": shown(result.price.bill[..., b]),
                        "residual": shown(result.price.residual[..., b]),
                    }
                    for b in range(b_max)
                ],
                "break_even": break_even_document(result.break_even, b_max),
            }
            for result in found
        ],
    }


def turns_document(talk: Conversation, form: Form) -> Document:
    """Write a conversation."""
    b_max = talk.by_budget_quality.size
    turns = [
        {
            "turn": i + 1,
            "q0": float(talk.q0[i]),
            "p_d": float(talk.p_d[i]),
            "B_star": int(talk.turns.b_star[i]) or None,
            "regime": REGIMES[int(talk.turns.regime[i])].value,
            "quality": shown(talk.turns.quality[i]),
            "bill": shown(talk.turns.bill[i]),
        }
        for i in range(talk.p_d.size)
    ]
    whole = [
        {
            "budget": b + 1,
            "quality": shown(talk.by_budget_quality[b]),
            "bill": shown(talk.by_budget_bill[b]),
        }
        for b in range(b_max)
    ]
    return {
        "schema": PRICE_SCHEMA,
        "kind": "turns",
        "form": {"name": form.name, "title": form.title},
        "turns": turns,
        "uniform": {"B_star": talk.uniform or None, "B_max": b_max, "by_budget": whole},
        "teacher": {"quality": talk.teacher_quality, "bill": talk.teacher_bill},
        "own": {"quality": talk.own_quality, "bill": talk.own_bill},
    }
