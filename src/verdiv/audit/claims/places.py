"""Dotted places of results and log that a claim's expression may read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from verdiv.audit.claims.evaluate import Value
from verdiv.audit.draws import Draws

__all__ = ["log_places", "results_places"]

MOST = 200_000
"""Places of one results document."""

_OUTSIDE = re.compile(r"[^A-Za-z0-9_]")


def _walk(value: Any, path: str, depth: int) -> Iterator[tuple[str, Value]]:
    if isinstance(value, bool) or (isinstance(value, int | float) and value == value):
        yield path, value if isinstance(value, bool) else float(value)
    elif depth and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(item, f"{path}.{_OUTSIDE.sub('_', str(key))}", depth - 1)
    elif depth and isinstance(value, list):
        for at, item in enumerate(value):
            yield from _walk(item, f"{path}.{at}", depth - 1)


def results_places(document: Mapping[str, Any]) -> dict[str, Value]:
    """Return every number and truth value of a results document by its place.

    Rows of the frontier are reached by arm and budget, ``results.frontier.A3.2.quality``; what else is a list
    by its index.

    Examples
    --------
    >>> results_places({"estimates": {"q0": {"mean": 0.8, "reason": None}}})
    {'results.estimates.q0.mean': 0.8}
    """
    found: dict[str, Value] = {}
    for key, value in document.items():
        if key in ("densities", "findings", "audit", "meta"):
            continue
        if key == "frontier" and isinstance(value, list):
            for row in value:
                budget = row.get("budget")
                label = "inf" if budget is None else f"{budget:g}"
                found.update(_walk(row, f"results.frontier.{row.get('arm')}.{label}", 4))
            continue
        for place, item in _walk(value, f"results.{key}", 6):
            if len(found) >= MOST:
                return found
            found[place] = item
    return found


def log_places(draws: Draws) -> dict[str, Value]:
    """Return counts and sums of a log: draws, tasks, correct, scored, flagged, billed, in all and by arm.

    Copies are left out, as they are of every count of draws; failures are counted as ``failed``.
    """
    own = (draws.copy_of < 0) & ~draws.failed
    found: dict[str, Value] = {"log.records": float(len(draws)), "log.failed": float(draws.failed.sum())}
    groups = {"log": own}
    for code, arm in enumerate(draws.names["arm"]):
        groups[f"log.{_OUTSIDE.sub('_', arm)}"] = own & (draws.codes["arm"] == code)
    for prefix, rows in groups.items():
        found[f"{prefix}.draws"] = float(rows.sum())
        found[f"{prefix}.tasks"] = float(len(np.unique(draws.codes["task_id"][rows])))
        found[f"{prefix}.scored"] = float((draws.tri["correct"][rows] >= 0).sum())
        found[f"{prefix}.correct"] = float((draws.tri["correct"][rows] == 1).sum())
        found[f"{prefix}.flagged"] = float((draws.tri["flagged"][rows] == 1).sum())
        found[f"{prefix}.billed"] = float(draws.numbers["billed"][rows].sum())
    return found
