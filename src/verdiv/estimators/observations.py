"""Which draws are measurements, and which of them are one and the same observation.

A draw counts as a measurement when it carries no infrastructure error and was scored. Copies by construction
(``copy_of``) and deterministic redraws of one prompt (temperature 0) are one observation: each of ``r`` such
records gets weight ``1/r``, so that copies that agree count once and copies that disagree count as their mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = [
    "BoolArray",
    "DrawColumns",
    "FloatArray",
    "IntArray",
    "Labels",
    "draw_columns",
    "inherit_classes",
    "observation_groups",
    "observation_weights",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

KINDS = {"initial": 0, "blind": 1, "feedback": 2}
CLASSES = {"structural": 1, "semantic": 2, "unclassified": 3}
STRUCTURAL, SEMANTIC, UNCLASSIFIED = 1, 2, 3
MISSING = -1
_NS = 1_000_000_000


@dataclass(frozen=True)
class Labels:
    """Names that repeat over draws, kept as codes."""

    codes: IntArray
    """Place of each draw's name in ``names``, -1 where it has none, shape ``(draws,)``."""
    names: tuple[str, ...]
    """Each name once; some may belong to no draw."""

    def equals(self, name: str) -> BoolArray:
        """Where a draw has a name, shape ``(draws,)``."""
        code = self.names.index(name) if name in self.names else -2
        found: BoolArray = self.codes == code
        return found

    def present(self, where: BoolArray | None = None) -> list[str]:
        """Names that draws have, or those of some draws, in alphabetical order."""
        codes = self.codes if where is None else self.codes[where]
        seen = np.bincount(codes[codes >= 0], minlength=len(self.names))
        return sorted(name for name, n in zip(self.names, seen.tolist(), strict=True) if n)

    def ranked(self, rows: IntArray | slice = slice(None)) -> tuple[list[str], IntArray]:
        """Return the names of some draws in alphabetical order, and each draw's place among them.

        Raises
        ------
        ValueError
            One of them has no name.
        """
        codes = self.codes[rows]
        if (codes < 0).any():
            raise ValueError("a draw without a name")
        names = Labels(codes, self.names).present()
        rank = np.array([names.index(n) if n in names else MISSING for n in self.names], dtype=np.int64)
        return names, rank[codes]


@dataclass(frozen=True)
class DrawColumns:
    """The draws table as plain arrays, one entry a draw (shape ``(draws,)``)."""

    tasks: tuple[str, ...]
    """Task ids; ``task`` indexes them."""
    families: tuple[str, ...]
    """Family names; ``family`` indexes them."""
    task: IntArray
    family: IntArray
    arm: Labels
    condition: Labels
    tier: Labels
    kind: IntArray
    """0 initial, 1 blind, 2 feedback."""
    replicate: IntArray
    attempt: IntArray
    correct: IntArray
    """1, 0, or -1 for not scored."""
    flagged: IntArray
    """1, 0, or -1 for no verifier."""
    oracle: IntArray
    """1, 0, or -1 for no oracle."""
    error_class: IntArray
    """1 structural, 2 semantic, 0 none or unknown."""
    answered: IntArray
    """Class of the answered error: 1 structural, 2 semantic, 3 unclassified, 0 not a feedback draw."""
    source: IntArray
    """Row of the draw this one copies, or its own row."""
    parent: IntArray
    """Row of the draw this one answers, or -1."""
    temperature: FloatArray
    """NaN where unknown."""
    seed: FloatArray
    """NaN where unknown."""
    prompt: IntArray
    """Code of the prompt hash, -1 where unknown."""
    output: IntArray
    """Code of the output hash, -1 where unknown."""
    billed: FloatArray
    emitted: IntArray
    errored: BoolArray
    started: FloatArray
    """Seconds since the epoch, NaN where unknown."""
    seconds: FloatArray
    """Wall-clock seconds from start to end, NaN where unknown."""
    in_flight: FloatArray
    tokens_out: FloatArray
    device_seconds: FloatArray
    model: IntArray
    """Code of (tier, model, precision)."""

    @property
    def measured(self) -> BoolArray:
        """Draws that are measurements: scored, and no infrastructure error."""
        return ~self.errored & (self.correct >= 0)

    @cached_property
    def observation(self) -> IntArray:
        """Number of the distinct observation that each draw is a record of, see :func:`observation_groups`."""
        root = self.source[self.source]
        out = root.copy()
        rows = np.flatnonzero(self.temperature[root] == 0.0)
        if len(rows) == 0:
            return out
        origin = root[rows]
        prompt = self.prompt[origin]
        chain = np.where(self.kind[origin] == KINDS["initial"], 0, self.attempt[origin])
        key = np.stack(
            [
                self.task[origin],
                prompt,
                self.kind[origin],
                np.where(prompt < 0, chain, 0),
                self.model[origin],
                self.condition.codes[rows],
            ]
        )
        order = np.lexsort(key)
        new = np.ones(len(rows), dtype=bool)
        new[1:] = (key[:, order[1:]] != key[:, order[:-1]]).any(axis=0)
        first = np.flatnonzero(new)[np.cumsum(new) - 1]
        out[rows[order]] = rows[order[first]]
        return out

    def __len__(self) -> int:
        """Count the draws."""
        return len(self.task)


def _tri(column: pd.Series) -> IntArray:
    return np.asarray(column.astype("Int64").fillna(MISSING), dtype=np.int64)


def _codes(column: pd.Series) -> IntArray:
    return np.asarray(pd.factorize(column)[0], dtype=np.int64)


def _labels(column: pd.Series) -> Labels:
    codes, names = pd.factorize(column)
    return Labels(np.asarray(codes, dtype=np.int64), tuple(map(str, names)))


def _floats(column: pd.Series) -> FloatArray:
    return np.asarray(column.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))


def _stamps(column: pd.Series) -> FloatArray:
    stamps = column.to_numpy(dtype="datetime64[ns]")
    seconds = stamps.astype(np.int64) / _NS
    return np.where(np.isnat(stamps), np.nan, seconds)


def _mapped(column: pd.Series, codes: Mapping[str, int]) -> IntArray:
    return np.asarray(column.map(dict(codes)).fillna(0), dtype=np.int64)


def _rows_of(ids: pd.Series, wanted: pd.Series, default: IntArray) -> IntArray:
    present = wanted.notna().to_numpy()
    if not present.any():
        return default
    index = pd.Index(ids)
    found = np.full(len(ids), MISSING, dtype=np.int64)
    found[present] = index.get_indexer(pd.Index(wanted[present]))
    return np.where(found >= 0, found, default)


def inherit_classes(answered: IntArray, kind: IntArray, parent: IntArray, error_class: IntArray) -> IntArray:
    """Class of the answered error where a feedback draw does not say it: its parent's, else unclassified."""
    inherited = np.where(parent >= 0, error_class[parent], 0)
    unanswered = (kind == KINDS["feedback"]) & (answered == 0)
    return np.where(unanswered, np.where(inherited > 0, inherited, UNCLASSIFIED), answered)


def draw_columns(draws: pd.DataFrame) -> DrawColumns:
    """Turn the draws table into arrays.

    Parameters
    ----------
    draws
        Table with the columns of a run log, one row a draw.

    Returns
    -------
    DrawColumns
        Arrays of shape ``(draws,)`` in the table's order.

    Raises
    ------
    ValueError
        If a task belongs to two families.
    """
    table = draws.reset_index(drop=True)
    task, tasks = pd.factorize(table["task_id"])
    family, families = pd.factorize(table["family"], sort=True)
    own = np.arange(len(table), dtype=np.int64)
    first = pd.Series(family).groupby(task).agg(["min", "max"])
    if len(first) and (first["min"] != first["max"]).any():
        bad = tasks[int(np.flatnonzero((first["min"] != first["max"]).to_numpy())[0])]
        raise ValueError(f"task {bad!r} stands in two families")
    answered = _mapped(table["answered_class"], CLASSES)
    error_class = _mapped(table["error_class"], CLASSES)
    kind = _mapped(table["prompt_kind"], KINDS)
    parent = _rows_of(table["draw_id"], table["parent"], np.full(len(table), MISSING, dtype=np.int64))
    answered = inherit_classes(answered, kind, parent, error_class)
    started, ended = _stamps(table["started_at"]), _stamps(table["ended_at"])
    card = table[["tier", "model", "precision"]].astype(object).fillna("")
    return DrawColumns(
        tasks=tuple(map(str, tasks)),
        families=tuple(map(str, families)),
        task=np.asarray(task, dtype=np.int64),
        family=np.asarray(family, dtype=np.int64),
        arm=_labels(table["arm"]),
        condition=_labels(table["condition"]),
        tier=_labels(table["tier"]),
        kind=kind,
        replicate=table["replicate"].to_numpy(dtype=np.int64),
        attempt=table["attempt"].to_numpy(dtype=np.int64),
        correct=_tri(table["correct"]),
        flagged=_tri(table["flagged"]),
        oracle=_tri(table["oracle_flagged"]),
        error_class=error_class,
        answered=answered,
        source=_rows_of(table["draw_id"], table["copy_of"], own),
        parent=parent,
        temperature=_floats(table["temperature"]),
        seed=_floats(table["seed"]),
        prompt=_codes(table["prompt_sha256"]),
        output=_codes(table["output_sha256"]),
        billed=table["billed"].to_numpy(dtype=np.float64),
        emitted=_tri(table["emitted"]),
        errored=table["error_kind"].notna().to_numpy(dtype=bool),
        started=started,
        seconds=ended - started,
        in_flight=_floats(table["in_flight"]),
        tokens_out=_floats(table["tokens_out"]),
        device_seconds=_floats(table["device_seconds"]),
        model=np.asarray(
            pd.factorize(card["tier"] + "\x1f" + card["model"] + "\x1f" + card["precision"])[0],
            dtype=np.int64,
        ),
    )


def observation_groups(draws: DrawColumns, rows: IntArray) -> IntArray:
    """Number the distinct observations among some draws.

    Two draws are one observation when one copies the other, or when both were decoded at temperature 0 from the
    same prompt (its hash; without one, prompt kind and attempt) for the same task, model, precision and
    condition. A seed means nothing at temperature 0.

    Parameters
    ----------
    draws
        All draws.
    rows
        Indices of the draws in question, shape ``(m,)``.

    Returns
    -------
    numpy.ndarray
        Group number of each, shape ``(m,)``; below the number of all draws, not all of them taken.
    """
    return draws.observation[rows]


def observation_weights(draws: DrawColumns, rows: IntArray) -> tuple[FloatArray, IntArray]:
    """Weigh draws so that each distinct observation counts once.

    Returns
    -------
    tuple
        Weights ``1/r`` for the ``r`` records of one observation, shape ``(m,)``, and the group numbers.
    """
    if len(rows) == 0:
        return np.empty(0), np.empty(0, dtype=np.int64)
    groups = observation_groups(draws, rows)
    return 1.0 / np.bincount(groups)[groups], groups
