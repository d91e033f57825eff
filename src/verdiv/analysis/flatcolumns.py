"""Draw columns from flat Arrow tables, without a Python object a draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verdiv.errors import Fault, InputRefused
from verdiv.estimators.observations import (
    CLASSES,
    KINDS,
    MISSING,
    BoolArray,
    DrawColumns,
    FloatArray,
    IntArray,
    Labels,
    inherit_classes,
)

__all__ = ["FlatDraws", "flat_draws"]

NS = 1_000_000_000
NO_TIME = np.iinfo(np.int64).min


@dataclass(frozen=True)
class FlatDraws:
    """Draws of some whole tasks as columns, with what only their judgement as a log needs."""

    columns: DrawColumns
    ids: Any
    """Draw ids, an Arrow array."""
    row: IntArray
    """Place of each draw in its log."""
    log: IntArray
    """Input that each draw comes from."""
    named_parent: BoolArray
    """Draws that name a parent, found or not."""
    named_copy: BoolArray
    """Draws that name an original, found or not."""


def _coded(column: Any) -> tuple[IntArray, list[Any]]:
    """Codes, -1 for missing, and the values behind them."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    found = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = pc.fill_null(found.indices, MISSING).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, found.dictionary.to_pylist()


def _labels(column: Any) -> Labels:
    codes, names = _coded(column)
    return Labels(codes, tuple(names))


def _floats(column: Any) -> FloatArray:
    whole = pc.fill_null(column.cast(pa.float64()), float("nan"))
    return np.asarray(whole.to_numpy(), dtype=np.float64)


def _ints(column: Any) -> IntArray:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def _mapped(column: Any, codes: dict[str, int]) -> IntArray:
    coded, values = _coded(column)
    table = np.array([codes.get(v, 0) for v in values] + [0], dtype=np.int64)
    return table[coded]


def _seconds(column: Any) -> FloatArray:
    stamps = _ints(column)
    return np.where(stamps == NO_TIME, np.nan, stamps / NS)


def _families(column: Any) -> tuple[IntArray, tuple[str, ...]]:
    names, codes = _labels(column).ranked()
    return codes, tuple(names)


def _by_appearance(column: Any) -> tuple[IntArray, list[Any]]:
    """Codes in the order in which the values first appear, and the values that do."""
    codes, values = _coded(column)
    first = np.full(len(values), len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    order = np.argsort(first)[: int((first < len(codes)).sum())]
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], [values[i] for i in order.tolist()]


def _rows_of(ids: Any, wanted: Any, default: IntArray) -> tuple[IntArray, BoolArray]:
    """Row of the draw that each draw names, else the default; and which draws name one."""
    named = pc.is_valid(wanted).to_numpy()
    if not named.any():
        return default, named
    found = pc.fill_null(pc.index_in(wanted, value_set=ids), MISSING)
    rows = np.asarray(found.to_numpy(), dtype=np.int64)
    return np.where(named & (rows >= 0), rows, default), named


def flat_draws(table: Any) -> FlatDraws:
    """Turn a flat table of whole tasks into draw columns.

    Parameters
    ----------
    table
        Columns of the flat schema and ``log``, in the order of the logs.

    Raises
    ------
    InputRefused
        A task belongs to two families, or a draw stands twice.
    """
    table = table.unify_dictionaries().combine_chunks()
    log = _ints(table["log"])
    several = bool(len(log)) and int(log.max()) > 0
    ids, parents, copies = table["draw_id"], table["parent"], table["copy_of"]
    if several:  # names hold within one log only
        prefix = pc.binary_join_element_wise(table["log"].cast(pa.string()), "", "\x1f")
        ids, parents, copies = (pc.binary_join_element_wise(prefix, c, "") for c in (ids, parents, copies))
    ids = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    size = len(table)
    if len(pc.unique(ids)) < size:
        fault = Fault("log", "a draw_id that no other draw has", "a draw_id twice", "run verdiv validate")
        raise InputRefused("The log contradicts itself.", [fault])
    task, tasks = _by_appearance(table["task_id"])
    family, families = _families(table["family"])
    first = np.zeros(len(tasks), dtype=np.int64)
    first[task[::-1]] = np.arange(size)[::-1]
    if (family != family[first][task]).any():
        bad = tasks[int(task[np.flatnonzero(family != family[first][task])[0]])]
        fault = Fault("log", "one family a task", f"task {bad!r} in two", "give each task one family")
        raise InputRefused("The log contradicts itself.", [fault])
    parent, named_parent = _rows_of(ids, parents, np.full(size, MISSING, dtype=np.int64))
    source, named_copy = _rows_of(ids, copies, np.arange(size, dtype=np.int64))
    kind = _mapped(table["prompt_kind"], KINDS)
    error_class = _mapped(table["error_class"], CLASSES)
    answered = inherit_classes(_mapped(table["answered_class"], CLASSES), kind, parent, error_class)
    started, ended = _seconds(table["started_at"]), _seconds(table["ended_at"])
    cards = [_coded(table[name]) for name in ("model", "precision")]
    tier = _labels(table["tier"])
    model = tier.codes + 1
    for codes, values in cards:
        model = model * (len(values) + 1) + codes + 1
    columns = DrawColumns(
        tasks=tuple(tasks),
        families=families,
        task=task,
        family=family,
        arm=_labels(table["arm"]),
        condition=_labels(table["condition"]),
        tier=tier,
        kind=kind,
        replicate=_ints(table["replicate"]),
        attempt=_ints(table["attempt"]),
        correct=_ints(table["correct"]),
        flagged=_ints(table["flagged"]),
        oracle=_ints(table["oracle_flagged"]),
        error_class=error_class,
        answered=answered,
        source=source,
        parent=parent,
        temperature=_floats(table["temperature"]),
        seed=_floats(table["seed"]),
        prompt=_coded(table["prompt_sha256"])[0],
        output=_coded(table["output_sha256"])[0],
        billed=_floats(table["billed"]),
        emitted=_ints(table["emitted"]),
        errored=np.asarray(pc.is_valid(table["error_kind"]).to_numpy(), dtype=bool),
        started=started,
        seconds=ended - started,
        in_flight=_floats(table["in_flight"]),
        tokens_out=_floats(table["tokens_out"]),
        device_seconds=_floats(table["device_seconds"]),
        model=model,
    )
    return FlatDraws(columns, table["draw_id"], _ints(table["row"]), log, named_parent, named_copy)
