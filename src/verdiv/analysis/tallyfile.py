"""Tallies on disk: one Parquet file, one row a task, its facts and the names of its columns in the metadata.

A column's name is the JSON list of what it counts. Columns that are 0 throughout, or equal another one, are not stored
but named. Nothing in the file is trusted: version, shapes and types are checked before a number is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from verdiv.analysis.counting import Counts
from verdiv.errors import Fault, InputRefused
from verdiv.estimators.assemble import CELL_COLUMNS, TaskList
from verdiv.estimators.chains import ArmAtBudget
from verdiv.estimators.events import Events
from verdiv.estimators.load import MOMENT_COLUMNS, LoadMoments
from verdiv.estimators.observations import FloatArray
from verdiv.estimators.shard import Facts, Shard
from verdiv.runlog.records import Header
from verdiv.runlog.storage import atomic_file
from verdiv.runlog.table import Finding, InputFile

__all__ = ["TALLY_SCHEMA", "is_tally", "read_tally", "write_tally"]

TALLY_SCHEMA = 2
"""Integer version of the tally format; a newer one is refused. Version 1 stored all counts as floats."""

READABLE = (1, TALLY_SCHEMA)
"""Versions that are read."""

NARROW = (np.uint8, np.uint16, np.int32)
"""Types that whole numbers are stored as, the first that holds a column."""

VERSION, CONTENT = b"verdiv.tally.version", b"verdiv.tally"
"""Names in the file's metadata."""

MAX_META = 1 << 28
"""Most bytes of metadata that are read."""

PARTS = ("n", "k", "base")
LOAD_KINDS = ("device seconds", "latency")

Number = float | int
FactRow = tuple[list[str | int], Number | None]


class _Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sums: list[FactRow]
    most: list[FactRow]
    least: list[FactRow]


class _Load(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    logged: bool
    least: float | None
    most: float | None


class _Cell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    arm: str
    budget: int
    way: str
    highest: float | None
    least: float | None


class _Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    populations: dict[str, str]
    cells: list[_Cell]
    facts: _Facts
    load: tuple[_Load, _Load]


class _Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gate: str
    max_budget: int
    exclusions: str
    conditions: list[_Condition]
    account: _Facts
    headers: list[Header]
    inputs: list[InputFile]
    findings: list[Finding]
    same: dict[str, str]
    """Column to the stored one that it equals."""
    zero: list[str]
    """Columns that are 0 throughout."""


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _facts(facts: Facts) -> _Facts:
    def rows(table: Mapping[tuple[str | int, ...], float]) -> list[FactRow]:
        made: list[FactRow] = [([*key], _finite(value)) for key, value in table.items()]
        return sorted(made, key=lambda row: msgspec.json.encode(row[0]))

    return _Facts(rows(facts.sums), rows(facts.most), rows(facts.least))


def _name(*key: str | int) -> str:
    return msgspec.json.encode(key).decode()


def _columns(
    condition: str, shard: Shard, load: tuple[LoadMoments, LoadMoments]
) -> Iterator[tuple[str, FloatArray]]:
    for stage in sorted(shard.events):
        for part in PARTS:
            yield _name(condition, "event", stage, part), getattr(shard.events[stage], part)
    for key in sorted(shard.cells):
        for part in CELL_COLUMNS:
            yield _name(condition, "cell", *key, part), getattr(shard.cells[key], part)
        for part, values in zip(("replicates", "flips"), shard.pairs[key], strict=True):
            yield _name(condition, "pairs", *key, part), values
    for i in range(3):
        yield _name(condition, "parallel", i), shard.parallel[:, i]
    for kind, moments in zip(LOAD_KINDS, load, strict=True):
        for part in MOMENT_COLUMNS:
            yield _name(condition, "load", kind, part), getattr(moments, part)


def _narrowed(values: FloatArray) -> Any:
    """Return a column in the narrowest type that holds it exactly."""
    for kind in NARROW:
        limits = np.iinfo(kind)
        if values.min() >= limits.min and values.max() <= limits.max:
            narrow = values.astype(kind)
            return pa.array(narrow if (narrow == values).all() else values)
    return pa.array(values)


def write_tally(path: str | Path, counts: Counts, *, overwrite: bool = False) -> None:
    """Write a tally, whole or not at all; equal counts give equal bytes.

    Raises
    ------
    WriteFailed
        The name is taken and ``overwrite`` is not set, or the system refused to write.
    """
    stored: dict[str, FloatArray] = {}
    by_digest: dict[bytes, str] = {}
    same: dict[str, str] = {}
    zero: list[str] = []
    for condition, shard in counts.shards.items():
        for name, values in _columns(condition, shard, counts.load[condition]):
            values = np.ascontiguousarray(values, dtype=np.float64)
            if not values.any():
                zero.append(name)
                continue
            digest = sha256(values.tobytes()).digest()
            if digest in by_digest:
                same[name] = by_digest[digest]
            else:
                by_digest[digest] = name
                stored[name] = values
    content = _Content(
        counts.gate,
        counts.b_max,
        counts.exclusions,
        [
            _Condition(
                condition,
                {stage: shard.events[stage].population for stage in sorted(shard.events)},
                [
                    _Cell(*key, _finite(shard.cells[key].highest), _finite(shard.cells[key].least))
                    for key in sorted(shard.cells)
                ],
                _facts(shard.facts),
                tuple(  # type: ignore[arg-type]
                    _Load(m.logged, _finite(m.least), _finite(m.most)) for m in counts.load[condition]
                ),
            )
            for condition, shard in counts.shards.items()
        ],
        _facts(counts.account),
        list(counts.headers),
        list(counts.inputs),
        list(counts.findings),
        same,
        zero,
    )
    tasks = counts.tasks
    families = [tasks.families[f] for f in tasks.family.tolist()]
    arrays = [pa.array(tasks.tasks, pa.string()), pa.array(families, pa.string())]
    columns = {name: _narrowed(values) for name, values in stored.items()}
    arrays += columns.values()
    metadata = {VERSION: str(TALLY_SCHEMA).encode(), CONTENT: msgspec.json.encode(content)}
    schema = pa.schema(
        [
            pa.field("task_id", pa.string()),
            pa.field("family", pa.string()),
            *(pa.field(name, column.type) for name, column in columns.items()),
        ],
        metadata=metadata,
    )
    table = pa.Table.from_arrays(arrays, schema=schema)
    with atomic_file(path, overwrite=overwrite) as stream:
        pq.write_table(table, stream, compression="zstd", row_group_size=1 << 20, store_schema=True)


def is_tally(path: str | Path) -> bool:
    """Tell a tally from a run log, by the file's metadata."""
    try:
        with Path(path).open("rb") as stream:
            if stream.read(4) != b"PAR1":
                return False
        metadata = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return False
    return VERSION in (metadata.metadata or {})


def _refused(where: str, expected: str, got: str, remedy: str = "tally the logs again") -> InputRefused:
    return InputRefused(f"{where} refused", [Fault(where, expected, got, remedy)])


class _Reader:
    """Checked access to the columns of one file."""

    def __init__(self, where: str, table: Any, content: _Content) -> None:
        self.where, self.table, self.content = where, table, content
        self.size = table.num_rows
        self.none = np.zeros(self.size)
        self.none.flags.writeable = False
        self.zero = frozenset(content.zero)
        self._read: dict[str, FloatArray] = {}

    def column(self, *key: str | int) -> FloatArray:
        name = _name(*key)
        name = self.content.same.get(name, name)
        if name in self.zero:
            return self.none
        if name not in self._read:
            if name not in self.table.schema.names:
                raise _refused(self.where, f"a column {name}", "none")
            column = self.table[name]
            plain = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
            values = column.to_numpy().astype(np.float64, copy=False) if plain else np.array([np.nan])
            if column.null_count or not np.isfinite(values).all():
                raise _refused(self.where, f"finite numbers in {name}", "others")
            self._read[name] = values
        return self._read[name]

    def facts(self, said: _Facts) -> Facts:
        def table(rows: list[FactRow], missing: float) -> dict[tuple[str | int, ...], float]:
            return {tuple(key): missing if value is None else float(value) for key, value in rows}

        return Facts(table(said.sums, 0.0), table(said.most, -np.inf), table(said.least, np.inf))

    def shard(self, said: _Condition) -> Shard:
        c = said.name
        events = {}
        for stage, words in said.populations.items():
            n, k, base = (self.column(c, "event", stage, part) for part in PARTS)
            events[stage] = Events(stage.partition("!")[0], n, k, base, words)
        cells, pairs = {}, {}
        for cell in said.cells:
            key = (cell.arm, cell.budget, cell.way)
            columns: dict[str, Any] = {p: self.column(c, "cell", *key, p) for p in CELL_COLUMNS}
            cells[key] = ArmAtBudget(
                arm=cell.arm,
                budget=cell.budget,
                highest=-np.inf if cell.highest is None else cell.highest,
                greatest=np.nan,
                least=np.inf if cell.least is None else cell.least,
                **columns,
            )
            pairs[key] = (
                self.column(c, "pairs", *key, "replicates"),
                self.column(c, "pairs", *key, "flips"),
            )
        parallel = np.stack([self.column(c, "parallel", i) for i in range(3)], axis=1)
        return Shard(events, cells, pairs, parallel, self.facts(said.facts), None)

    def load(self, said: _Condition) -> tuple[LoadMoments, LoadMoments]:
        made = []
        for kind, one in zip(LOAD_KINDS, said.load, strict=True):
            columns: dict[str, Any] = {p: self.column(said.name, "load", kind, p) for p in MOMENT_COLUMNS}
            moments = LoadMoments(
                logged=one.logged,
                least=np.inf if one.least is None else one.least,
                most=-np.inf if one.most is None else one.most,
                **columns,
            )
            made.append(moments)
        return made[0], made[1]


def read_tally(path: str | Path) -> Counts:
    """Read a tally.

    Raises
    ------
    InputRefused
        No tally, a newer version, or columns that do not belong together.
    """
    where = str(path)
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise _refused(where, "a whole Parquet file", str(error)) from error
    metadata = table.schema.metadata or {}
    version = metadata.get(VERSION, b"")
    if version not in {str(one).encode() for one in READABLE}:
        got = version[:20].decode("ascii", "replace") or "none"
        raise _refused(
            where, f"tally version {TALLY_SCHEMA} or older", got, "update verdiv, or tally the logs again"
        )
    raw = metadata.get(CONTENT, b"")
    if len(raw) > MAX_META:
        raise _refused(where, f"at most {MAX_META} bytes of metadata", str(len(raw)))
    try:
        content = msgspec.json.decode(raw, type=_Content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _refused(where, "metadata of a tally", str(error)) from error
    reader = _Reader(where, table, content)
    names = [str(name) for name in table["task_id"].to_pylist()]
    families = [str(name) for name in table["family"].to_pylist()]
    if len(set(names)) != len(names):
        raise _refused(where, "each task once", "a task twice")
    known = sorted(set(families))
    place = {family: i for i, family in enumerate(known)}
    tasks = TaskList(tuple(names), np.array([place[f] for f in families], dtype=np.int64), tuple(known))
    try:
        return Counts(
            content.gate,
            content.max_budget,
            content.exclusions,
            tasks,
            {said.name: reader.shard(said) for said in content.conditions},
            {said.name: reader.load(said) for said in content.conditions},
            reader.facts(content.account),
            tuple(content.headers),
            tuple(replace(one) for one in content.inputs),
            tuple(content.findings),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _refused(where, "facts that belong together", str(error)) from error
