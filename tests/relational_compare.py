"""Two counts of one log side by side: what ``verdiv tally`` counted, and what the relational form counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from relational_chains import CELL, MARKS, OUTPUTS, answer_counts, parallel_counts, plurality_counts
from relational_counts import BASES, TASK, Frame, drift_counts, event_counts, flat, flow_counts, ledger_sums
from verdiv.analysis.counting import Counts

__all__ = ["Columns", "differences", "on_duckdb", "on_polars", "on_spark", "relational", "tallied"]

Columns: TypeAlias = Mapping[tuple[str | int, ...], NDArray[np.float64]]
"""What is counted to its values, one a task; of flows and ledgers a single one."""

EXACT = ("cell", "flow")
"""Counts of records and chains, whole whatever the weights: they may not differ at all."""

TOLERANCE = 1e-12
"""Relative difference of sums of weights 1/r and of bills, which engines add up in orders of their own."""


def on_duckdb(path: Path | str, base: Any = None) -> Frame:
    """Return the draws of a Parquet log on DuckDB, in a database of its own on one thread if none is given."""
    import duckdb

    base = duckdb.connect(config={"threads": 1}) if base is None else base
    log = str(path).replace("'", "''")
    plain = f"SELECT * RENAME (file_row_number AS row) FROM read_parquet('{log}', file_row_number = true)"
    frame: Frame = nw.from_native(base.sql(plain))
    return frame


def on_polars(path: Path | str) -> Frame:
    """Return the draws of a Parquet log on Polars."""
    import polars

    return nw.from_native(polars.scan_parquet(path, row_index_name="row"))


def on_spark(path: Path | str, session: Any) -> Frame:
    """Return the draws of a Parquet log on Spark."""
    draws = session.read.parquet(str(path))
    frame: Frame = nw.from_native(draws.selectExpr("*", "_metadata.row_index AS row"))
    return frame


def relational(
    draws: Frame, held: Callable[[Frame], Frame] | None = None, *, counts: Counts
) -> dict[tuple[str | int, ...], NDArray[np.float64]]:
    """Count a log's draws by group-by and joins, for the tasks, conditions and budgets of a tally.

    ``held`` keeps the plain draws, which many expressions start from; without it each starts from the log.
    """
    place = {task: i for i, task in enumerate(counts.tasks.tasks)}
    plain = flat(draws) if held is None else held(flat(draws))
    found: dict[tuple[str | int, ...], NDArray[np.float64]] = {}

    def take(frame: Frame, *keys: str) -> None:
        """Lay the columns of a frame out by task; their names end the key."""
        table = frame.collect("pyarrow").to_native()
        rows = np.array([place[name] for name in table["task_id"].to_pylist()], dtype=np.int64)
        where = [np.array(table[key].to_pylist(), dtype=object) for key in ("condition", *keys)]
        for group in sorted({*zip(*where, strict=True)}):
            here = np.logical_and.reduce([np.asarray(w == g) for w, g in zip(where, group, strict=True)])
            for name in table.column_names:
                if name not in (*TASK, *keys):
                    values = np.zeros(len(place))
                    values[rows[here]] = table[name].to_numpy()[here]
                    found[*group, *name.split("|")] = values

    for frame in (
        *event_counts(plain, gate=counts.gate, b_max=counts.b_max).values(),
        *drift_counts(plain).values(),
        parallel_counts(plain, gate=counts.gate),
    ):
        take(frame)
    budgets = sorted({int(b) for s in counts.shards.values() for arm, b, _ in s.cells if arm != "A1"})
    votes = sorted({int(b) for s in counts.shards.values() for arm, b, _ in s.cells if arm == "A1"})
    if budgets:
        take(answer_counts(plain, gate=counts.gate, budgets=budgets), "arm")
    out: dict[tuple[str | int, ...], NDArray[np.float64]] = {}
    nothing = np.zeros(len(place))
    for condition, shard in counts.shards.items():
        for stage in shard.events:
            base = BASES.get(stage)
            if base is not None:
                out[condition, "event", stage, "n"] = found.get((condition, stage, "n"), nothing)
                out[condition, "event", stage, "k"] = found.get((condition, stage, "k"), nothing)
                out[condition, "event", stage, "base"] = found.get((condition, base, "n"), nothing)
        for arm, budget, way in shard.cells:
            if arm != "A1":
                for part in CELL:
                    out[condition, "cell", arm, budget, way, part] = found.get(
                        (condition, arm, str(budget), part), nothing
                    )
        for name in "Ncd":
            out[condition, "parallel", name] = found.get((condition, name), nothing)
    for k in votes:
        found = {}
        take(plurality_counts(plain, k))
        for condition, shard in counts.shards.items():
            for way in (OUTPUTS, MARKS):
                if ("A1", k, way) in shard.cells:
                    unknown = found.get((condition, way, "unknown"), nothing)
                    out[condition, "unknown", k, way] = np.array([unknown.sum()])
                    for part in CELL:
                        out[condition, "cell", "A1", k, way, part] = found.get(
                            (condition, way, part), nothing
                        )
    for row in flow_counts(plain).collect("pyarrow").to_native().to_pylist():
        for name in row.keys() - {"condition", "arm"}:
            out["flow", row["condition"], row["arm"], name] = np.array([float(row[name])])
    for row in ledger_sums(plain).collect("pyarrow").to_native().to_pylist():
        for name in row.keys() - {"arm"}:
            out["ledger", row["arm"], name] = np.array([float(row[name])])
    return out


def tallied(counts: Counts) -> dict[tuple[str | int, ...], NDArray[np.float64]]:
    """Return what a tally holds of the same kinds.

    Pluralities that some chain leaves open are not compared but for how many do: they count for nothing.
    """
    out: dict[tuple[str | int, ...], NDArray[np.float64]] = {}
    for condition, shard in counts.shards.items():
        for stage, events in shard.events.items():
            if stage in BASES:
                for part in ("n", "k", "base"):
                    out[condition, "event", stage, part] = getattr(events, part)
        for key, cell in shard.cells.items():
            if key[0] == "A1":
                unknown = shard.facts.sums["unknown", *key]
                out[condition, "unknown", *key[1:]] = np.array([unknown])
                if unknown:
                    continue
            for part in CELL:
                out[condition, "cell", *key, part] = getattr(cell, part)
        for i, name in enumerate("Ncd"):
            out[condition, "parallel", name] = shard.parallel[:, i]
    for fact, value in counts.account.sums.items():
        if fact[0] in ("flow", "ledger"):
            out[fact] = np.array([value])
    return out


def differences(first: Columns, second: Columns) -> list[str]:
    """Say where the second count differs from the first, which names what is compared."""
    said = []
    for key, one in first.items():
        if key not in second:
            said.append(f"{key}: not counted")
            continue
        other = second[key]
        exact = (key[1] in EXACT and key[-1] != "bill") or key[0] in EXACT or key[-1] == "draws"
        slack = 0.0 if exact else TOLERANCE * np.maximum(np.abs(one), 1.0)
        far = np.abs(one - other) > slack
        if far.any():
            at = int(np.argmax(far))
            said.append(f"{key}: {one[at]!r} and {other[at]!r} at {at}, {int(far.sum())} differ")
    return said
