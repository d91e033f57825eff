"""Draws dealt to buckets of whole tasks, on disk: a log of any length is held and counted a bucket at a time."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from verdiv.estimators.observations import IntArray
from verdiv.runlog.flat import FLAT_SCHEMA, LABELS, chunk_batch
from verdiv.runlog.flatlog import ParquetSpan
from verdiv.runlog.names import NameHashes
from verdiv.runlog.spans import Frame, JsonlSpan, Uneven

__all__ = [
    "BUCKET_ROWS",
    "Bench",
    "Dealer",
    "Hand",
    "Part",
    "Seen",
    "Stretch",
    "bucket_count",
    "counted_together",
    "deal_groups",
    "deal_lines",
    "linked",
    "read_parts",
]

DEALT_AT_ONCE = 131_072
"""Draws that wait before they are dealt."""

FEWEST, MOST = 64, 256
"""Buckets that draws are dealt to; several small ones are counted together, and each is an open file."""

BUCKET_ROWS = 250_000
"""Draws in one bucket, about: what is held and counted at once."""

BYTES_A_DRAW = {".jsonl": 400, ".gz": 30, ".zst": 30}
"""What a draw takes in a log, at least; its length tells how many buckets will do."""

STORE_SCHEMA: Any = pa.schema(
    [
        pa.field(
            one.name, pa.int32() if one.name in LABELS else pa.string() if one.name == "task_id" else one.type
        )
        for one in FLAT_SCHEMA
    ]
    + [pa.field("log", pa.int64())]
)
"""Columns of a bucket; labels are places in the names of who dealt it, -1 for none."""


@dataclass
class Seen:
    """What a first look at the draws tells."""

    families: dict[str, set[str]] = field(default_factory=dict)
    """Family to its tasks."""
    attempts: dict[str, int] = field(default_factory=dict)
    """Arm to its largest attempt."""
    tasks: dict[int, set[str]] = field(default_factory=dict)
    """Tasks by log."""

    def take(self, other: Seen) -> None:
        """Take in what was seen of other draws."""
        for family, tasks in other.families.items():
            self.families.setdefault(family, set()).update(tasks)
        for arm, attempt in other.attempts.items():
            self.attempts[arm] = max(self.attempts.get(arm, 1), attempt)
        for log, tasks in other.tasks.items():
            self.tasks.setdefault(log, set()).update(tasks)


@dataclass(frozen=True)
class Part:
    """One bucket as one dealer left it."""

    path: Path
    rows: int
    labels: Mapping[str, tuple[str, ...]]
    """Column to the names behind its numbers."""
    before: int = 0
    """Draws of the log that stand before the first whose ``row`` is 0."""


@dataclass(frozen=True)
class Hand:
    """All that one dealer dealt."""

    parts: tuple[Part, ...]
    """One a bucket."""
    seen: Seen

    @property
    def rows(self) -> int:
        """Draws in all buckets."""
        return sum(part.rows for part in self.parts)

    def behind(self, rows: int) -> Hand:
        """Return the same draws, with so many others of their log before them."""
        return Hand(tuple(replace(part, before=rows) for part in self.parts), self.seen)


@dataclass(frozen=True)
class Bench:
    """Where draws are dealt."""

    folder: Path
    buckets: int


def counted_together(rows: Sequence[int], most: int) -> list[int]:
    """Tell which buckets are counted together: the group of each, buckets in order.

    Parameters
    ----------
    rows
        Draws in each bucket.
    most
        Draws in one group, unless a single bucket has more.

    Examples
    --------
    >>> counted_together([200, 40, 0, 20], 250)
    [0, 0, 0, 1]
    """
    groups, group, held = [], 0, 0
    for bucket in rows:
        if held and held + bucket > most:
            group, held = group + 1, 0
        held += bucket
        groups.append(group)
    return groups


def bucket_count(paths: Sequence[str]) -> int:
    """Buckets that logs want, by their length; the fewest where it cannot be told."""
    draws = 0
    for path in paths:
        if not Path(path).is_file():
            continue
        try:
            draws += pq.read_metadata(path).num_rows
        except (OSError, pa.ArrowException):  # no Parquet: JSONL, or what the reader will refuse
            draws += Path(path).stat().st_size // BYTES_A_DRAW.get(Path(path).suffix, 400)
    return int(np.clip(-(-draws // BUCKET_ROWS), FEWEST, MOST))


class Dealer:
    """Deals draws to buckets by task, each a file of its own.

    Parameters
    ----------
    bench
        Where, and to how many buckets.
    name
        What the names of its files begin with.
    """

    def __init__(self, bench: Bench, name: str) -> None:
        self.paths = [bench.folder / f"{name}-{i}.arrow" for i in range(bench.buckets)]
        self.rows = [0] * bench.buckets
        self.seen = Seen()
        self._names: dict[str, dict[str, int]] = {name: {} for name in LABELS}
        self._place: dict[str, int] = {}
        self._waiting: list[Any] = []
        self._buckets: list[IntArray] = []
        """Bucket of each draw that waits."""
        self._held = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Open the files."""
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._files = [
            self._stack.enter_context(pa.ipc.new_file(str(path), STORE_SCHEMA, options=options))
            for path in self.paths
        ]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what waits, and close the files."""
        with self._stack:
            if kind is None:
                self._flush()

    def add(self, batch: Any, log: int) -> None:
        """Take the next draws of a log, a batch of the flat schema."""
        columns = [self._stored(one.name, batch.column(one.name)) for one in FLAT_SCHEMA]
        columns.append(pa.array(np.full(batch.num_rows, log, dtype=np.int64)))
        task = batch.column("task_id")
        tasks = task.dictionary.to_pylist()
        self._look(batch, log, tasks)
        places = [self._place.setdefault(n, zlib.crc32(n.encode()) % len(self.paths)) for n in tasks]
        self._buckets.append(np.array(places, dtype=np.int64)[task.indices.to_numpy()])
        self._waiting.append(pa.RecordBatch.from_arrays(columns, schema=STORE_SCHEMA))
        self._held += batch.num_rows
        if self._held >= DEALT_AT_ONCE:
            self._flush()

    def hand(self) -> Hand:
        """Return what was dealt, once the files are closed."""
        labels = {name: tuple(places) for name, places in self._names.items()}
        parts = [Part(path, rows, labels) for path, rows in zip(self.paths, self.rows, strict=True)]
        return Hand(tuple(parts), self.seen)

    def _stored(self, name: str, column: Any) -> Any:
        if name not in LABELS:
            return column.cast(pa.string()) if name == "task_id" else column
        places = self._names[name]
        known = [places.setdefault(text, len(places)) for text in column.dictionary.to_pylist()]
        table = np.array([*known, -1], dtype=np.int32)
        return pa.array(table[pc.fill_null(column.indices, len(known)).to_numpy()])

    def _look(self, batch: Any, log: int, tasks: Sequence[str]) -> None:
        arm, attempt = batch.column("arm"), batch.column("attempt").to_numpy()
        most = np.zeros(len(arm.dictionary), dtype=np.int64)
        np.maximum.at(most, arm.indices.to_numpy(), attempt)
        for name, reached in zip(arm.dictionary.to_pylist(), most.tolist(), strict=True):
            if reached:
                self.seen.attempts[name] = max(self.seen.attempts.get(name, 1), reached)
        task, family = batch.column("task_id"), batch.column("family")
        families = family.dictionary.to_pylist()
        pairs = np.unique(
            task.indices.to_numpy().astype(np.int64) * len(families) + family.indices.to_numpy()
        )
        mine = self.seen.tasks.setdefault(log, set())
        for at in pairs.tolist():
            name = tasks[at // len(families)]
            mine.add(name)
            self.seen.families.setdefault(families[at % len(families)], set()).add(name)

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting).combine_chunks()
        bucket = np.concatenate(self._buckets)
        self._waiting, self._buckets, self._held = [], [], 0
        dealt = table.take(pa.array(np.argsort(bucket, kind="stable")))
        ends = [0, *np.cumsum(np.bincount(bucket, minlength=len(self.paths))).tolist()]
        for i, file in enumerate(self._files):
            if ends[i + 1] > ends[i]:
                file.write_table(dealt.slice(ends[i], ends[i + 1] - ends[i]))
                self.rows[i] += ends[i + 1] - ends[i]


@dataclass(frozen=True)
class Stretch:
    """A stretch of a log that was read and dealt by itself."""

    hand: Hand
    names: NameHashes
    first: str | None = None
    """Link of its first line to what stands before it, where the log is JSONL."""
    head: str | None = None
    """Digest of its last line."""


def deal_groups(path: str, log: int, bench: Bench, groups: tuple[int, int], name: str) -> Stretch:
    """Deal some row groups of a Parquet log; what several processes do at once.

    Raises
    ------
    InputRefused
        Draws that break the format.
    """
    span = ParquetSpan(path, path, groups)
    with Dealer(bench, name) as dealer:
        for batch in span.batches():
            dealer.add(batch, log)
    span.faults.refuse()
    return Stretch(dealer.hand(), span.names)


def deal_lines(path: str, log: int, bench: Bench, lines: tuple[int, int], name: str) -> Stretch | None:
    """Deal some lines of a JSONL log; None where anything is out of order with them."""
    span, names = JsonlSpan(path, lines), NameHashes()
    try:
        with Dealer(bench, name) as dealer:
            for chunk in span.chunks():
                batch = chunk_batch(chunk, span.rows - len(chunk))
                names.add(batch)
                dealer.add(batch, log)
    except Uneven:
        return None
    return Stretch(dealer.hand(), names, span.first, span.head)


def linked(stretches: Sequence[Stretch | None], frame: Frame) -> list[Stretch] | None:
    """Put the stretches of a JSONL log together; None unless every link and name holds, from header to footer."""
    head, rows, names = frame.header, 0, NameHashes()
    out = []
    for stretch in stretches:
        if stretch is None or stretch.first != head or stretch.head is None:
            return None
        out.append(replace(stretch, hand=stretch.hand.behind(rows)))
        head, rows = stretch.head, rows + stretch.hand.rows
        names.take(stretch.names)
    footer = frame.footer
    whole = footer.prev == footer.head == head and footer.draws == rows and names.hold()
    return out if whole else None


def read_parts(parts: Sequence[Part], columns: Sequence[str] | None = None) -> Any:
    """Read buckets as one flat table with ``log``, in the order in which they are given.

    Parameters
    ----------
    parts
        Parts of buckets; those of one bucket in the order of the log, which is all that counting asks for.
    columns
        Columns to read; all if None.
    """
    names: dict[str, dict[str, int]] = {name: {} for name in LABELS}
    tables = []
    for part in parts:
        if part.rows == 0:
            continue
        wanted = None if columns is None else [STORE_SCHEMA.get_field_index(name) for name in columns]
        with pa.memory_map(str(part.path)) as stored:
            options = pa.ipc.IpcReadOptions(included_fields=wanted)
            table = pa.ipc.open_file(stored, options=options).read_all()
        if part.before and "row" in table.column_names:
            rows = pa.array(table["row"].to_numpy() + part.before)
            table = table.set_column(table.column_names.index("row"), "row", rows)
        for name in LABELS:
            if name in table.column_names:
                own = [names[name].setdefault(text, len(names[name])) for text in part.labels[name]]
                codes = np.array([*own, -1], dtype=np.int32)[table[name].to_numpy()]
                table = table.set_column(table.column_names.index(name), name, pa.array(codes))
        tables.append(table)
    table = pa.concat_tables(tables).combine_chunks()
    for name in LABELS:
        if name in table.column_names:
            texts = pa.array([*names[name]], pa.string())
            table = table.set_column(table.column_names.index(name), name, _labelled(table[name], texts))
    return table


def _labelled(codes: Any, names: Any) -> Any:
    places: IntArray = codes.to_numpy()
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int32(), mask=places < 0), names)
