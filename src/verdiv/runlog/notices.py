"""What is odd about a log that can be read: noticed, named, and left to the reader's judgement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from verdiv.runlog.records import Header
from verdiv.runlog.table import Finding, Severity

__all__ = ["ODDITIES", "RETRYING", "SHOWN", "notices", "oddity"]

ODDITIES: Mapping[str, tuple[Severity, str]] = {
    "log.ended_before_started": ("high", "ended before they started"),
    "log.parent_of_other_task": ("high", "answer a draw of another task"),
    "log.copy_disagrees": ("high", "differ from the draw they repeat"),
    "log.retry_prompt": ("medium", "are retries of a gated arm with an initial prompt"),
    "log.unscored": ("info", "have no outcome and no error"),
}
"""Check to how much it weighs and what it says of the draws."""

RETRYING = ("A2", "A2s", "A3")
"""Arms of one tier whose second attempt has another prompt than the first."""

SHOWN = 3
"""Draws that a finding names."""


def notices(draws: pd.DataFrame, header: Header, path: str) -> list[Finding]:
    """Return the findings about one log's draws.

    Parameters
    ----------
    draws
        Its draws table.
    header
        Its header.
    path
        What the findings call it.

    Returns
    -------
    list of Finding
        Empty for a log without oddities; a log without draws is one.
    """
    return list(_notices(draws, header, path))


def _notices(draws: pd.DataFrame, header: Header, path: str) -> Iterator[Finding]:
    if draws.empty:
        yield Finding("medium", "log.no_draws", f"{path} holds no draw")
        return
    if header.expected_draws is not None and header.expected_draws != len(draws):
        message = f"{path}: the design calls for {header.expected_draws} draws, {len(draws)} were read"
        yield Finding("medium", "log.expected_draws", message)
    backwards = (draws["ended_at"] < draws["started_at"]).to_numpy(dtype=bool)
    yield from _rows("log.ended_before_started", backwards, draws, path)
    tasks = _of_named(draws, "parent", "task_id")
    elsewhere = _known(tasks) & (tasks != draws["task_id"].to_numpy())
    yield from _rows("log.parent_of_other_task", elsewhere, draws, path)
    yield from _rows("log.copy_disagrees", _differing(draws), draws, path)
    retry = draws["arm"].isin(RETRYING) & (draws["attempt"] > 1) & (draws["prompt_kind"] == "initial")
    yield from _rows("log.retry_prompt", retry.to_numpy(dtype=bool), draws, path)
    unscored = (draws["correct"].isna() & draws["error_kind"].isna()).to_numpy(dtype=bool)
    yield from _rows("log.unscored", unscored, draws, path)


def oddity(check: str, count: int, first: Sequence[str], draws: int, path: str) -> Finding:
    """Return the finding that some draws share.

    Parameters
    ----------
    check
        One of :data:`ODDITIES`.
    count, first
        How many draws, and the ids of the first :data:`SHOWN` of them.
    draws, path
        All draws of the log, and its name.
    """
    severity, what = ODDITIES[check]
    names = ", ".join(repr(name)[:80] for name in first)
    more = f" and {count - SHOWN} more" if count > SHOWN else ""
    return Finding(severity, check, f"{path}: {count} of {draws} draws {what}: {names}{more}")


def _rows(check: str, mask: NDArray[np.bool_], draws: pd.DataFrame, path: str) -> Iterator[Finding]:
    """Yield the finding that some draws share, if there are any."""
    count = int(mask.sum())
    if count:
        yield oddity(check, count, draws["draw_id"].to_numpy()[mask][:SHOWN].tolist(), len(draws), path)


def _of_named(draws: pd.DataFrame, field: str, column: str) -> NDArray[np.object_]:
    """Return a column's value at the draw that each draw names; None where it names none."""
    found = np.full(len(draws), None, dtype=object)
    named = np.flatnonzero(draws[field].notna().to_numpy())
    if len(named):
        places = pd.Index(draws["draw_id"], dtype=object).get_indexer(
            pd.Index(draws[field].to_numpy()[named], dtype=object)
        )
        there = places >= 0
        found[named[there]] = draws[column].astype(object).to_numpy()[places[there]]
    return found


def _known(values: NDArray[np.object_]) -> NDArray[np.bool_]:
    return np.asarray(pd.notna(values), dtype=np.bool_)


def _differing(draws: pd.DataFrame) -> NDArray[np.bool_]:
    """Return which copies are of another task or tier, or have another outcome, flag or output.

    An arm that does not ask the verifier may leave a copy's flag out, and a log may leave outputs out.
    """
    differs = np.zeros(len(draws), dtype=np.bool_)
    if draws["copy_of"].isna().all():
        return differs
    copies = draws["copy_of"].notna().to_numpy()
    for column in ("task_id", "tier", "correct", "flagged", "output_sha256"):
        original = _of_named(draws, "copy_of", column)
        own = draws[column].astype(object).to_numpy()
        both = _known(original) & _known(own)
        differs[both] |= original[both] != own[both]
        if column not in ("flagged", "output_sha256"):
            differs |= copies & (_known(original) != _known(own))
    return differs
