"""Logs of any length to counts: draws are dealt to buckets of whole tasks, and each bucket is counted by itself."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verdiv.analysis.counting import Counts, Piece, combine, count_columns
from verdiv.analysis.flatcolumns import flat_draws
from verdiv.analysis.gather import common_gate, default_plan, exclusion_rules, gate_and_coverage
from verdiv.analysis.oddities import Odd, log_findings, oddities
from verdiv.errors import Fault, InputRefused
from verdiv.estimators.observations import IntArray
from verdiv.preregistration import Preregistration
from verdiv.runlog.flat import FLAT_SCHEMA, FlatLog
from verdiv.runlog.joins import header_findings
from verdiv.runlog.lines import Source
from verdiv.runlog.records import Header
from verdiv.runlog.table import Finding, InputFile

__all__ = [
    "BUCKET_ROWS",
    "Bucket",
    "chosen_budget",
    "combine_buckets",
    "count_bucket",
    "count_table",
    "tally_logs",
]

BUCKET_ROWS = 250_000
"""Draws in one bucket, about: what is held and counted at once."""

DEALT_AT_ONCE = 131_072
"""Draws that wait before they are dealt."""

BUCKETS = 64
"""Buckets that draws are dealt to; several small ones are counted together."""

STORE_SCHEMA: Any = FLAT_SCHEMA.append(pa.field("log", pa.int64()))

Progress = Callable[[str], None]


@dataclass
class _Seen:
    """What a first look at the draws tells."""

    families: dict[str, set[str]] = field(default_factory=dict)
    """Family to its tasks."""
    attempts: dict[str, int] = field(default_factory=dict)
    """Arm to its largest attempt."""
    tasks: list[set[str]] = field(default_factory=list)
    """Tasks by log."""


class _Deal:
    """Deals draws to buckets by task, each a file of its own."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.paths = [folder / f"{i}.arrow" for i in range(BUCKETS)]
        self.rows = np.zeros(BUCKETS, dtype=np.int64)
        self.seen = _Seen()
        self._files = [
            stack.enter_context(
                pa.ipc.new_file(str(p), STORE_SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4"))
            )
            for p in self.paths
        ]
        self._place: dict[str, int] = {}
        self._waiting: list[Any] = []
        self._held = 0

    def add(self, batch: Any, log: int) -> None:
        """Take the next draws of a log."""
        column = pa.array(np.full(batch.num_rows, log, dtype=np.int64))
        self._waiting.append(pa.RecordBatch.from_arrays([*batch.columns, column], schema=STORE_SCHEMA))
        self._held += batch.num_rows
        if self._held >= DEALT_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting).combine_chunks()
        self._waiting, self._held = [], 0
        self._look(table)
        coded = table["task_id"].combine_chunks().dictionary_encode()
        names = coded.dictionary.to_pylist()
        places = [self._place.setdefault(n, zlib.crc32(n.encode()) % BUCKETS) for n in names]
        bucket = np.array(places, dtype=np.int64)[coded.indices.to_numpy()]
        order = np.argsort(bucket, kind="stable")
        dealt = table.take(pa.array(order))
        ends = np.searchsorted(bucket[order], np.arange(BUCKETS + 1))
        for i in range(BUCKETS):
            if ends[i + 1] > ends[i]:
                self._files[i].write_table(dealt.slice(ends[i], ends[i + 1] - ends[i]))
                self.rows[i] += ends[i + 1] - ends[i]

    def _look(self, table: Any) -> None:
        seen = self.seen
        for said in (
            table.select(["arm", "attempt"]).group_by("arm").aggregate([("attempt", "max")]).to_pylist()
        ):
            seen.attempts[said["arm"]] = max(seen.attempts.get(said["arm"], 1), said["attempt_max"])
        for said in (
            table.select(["family", "task_id", "log"])
            .group_by(["family", "task_id", "log"])
            .aggregate([])
            .to_pylist()
        ):
            seen.families.setdefault(said["family"], set()).add(said["task_id"])
            while len(seen.tasks) <= said["log"]:
                seen.tasks.append(set())
            seen.tasks[said["log"]].add(said["task_id"])


@dataclass(frozen=True)
class Bucket:
    """What counting one bucket gives."""

    piece: Piece | None
    odd: Odd
    """Input and check to the draws that it names: how many, and the first of them by row."""
    excluded: dict[str, int]


def _read(paths: Sequence[Path]) -> Any:
    """Read buckets; the draws of each task stand in the order of their logs, which is all that counting asks for."""
    tables = []
    for path in paths:
        with pa.memory_map(str(path)) as stored:
            tables.append(pa.ipc.open_file(stored).read_all())
    return pa.concat_tables(tables)


def _exclude(table: Any, plan: Preregistration) -> tuple[Any, dict[str, int]]:
    """Replay the registered exclusion rules on a flat table of whole tasks."""
    counts: dict[str, int] = {}
    for rule in plan.exclusions:
        if rule.when == "error":
            hit = pc.is_valid(table["error_kind"])
        elif rule.when == "unscored":
            hit = pc.equal(table["correct"], -1)
        else:
            hit = pc.fill_null(
                pc.is_in(table[rule.when], value_set=pa.array(rule.values, pa.string())), False
            )
        if rule.scope == "task":
            hit = pc.is_in(table["task_id"], value_set=pc.unique(table["task_id"].filter(hit)))
        counts[rule.id] = int(pc.sum(hit).as_py() or 0)
        table = table.filter(pc.invert(hit))
    return table, counts


def count_bucket(paths: Sequence[Path], *, gate: str, b_max: int, plan: Preregistration | None) -> Bucket:
    """Count the draws of some buckets."""
    return count_table(_read(paths), gate=gate, b_max=b_max, plan=plan)


def count_table(table: Any, *, gate: str, b_max: int, plan: Preregistration | None) -> Bucket:
    """Count a flat table of whole tasks, in the order of their logs."""
    flat = flat_draws(table)
    odd = oddities(flat)
    excluded: dict[str, int] = {}
    if plan is not None and plan.exclusions:
        table, excluded = _exclude(table, plan)
        if len(table) == 0:
            return Bucket(None, odd, excluded)
        flat = flat_draws(table)
    rows: IntArray = flat.log * (1 << 40) + flat.row
    return Bucket(count_columns(flat.columns, gate=gate, b_max=b_max, rows=rows), odd, excluded)


def _groups(deal: _Deal) -> list[list[Path]]:
    """Put small buckets together."""
    groups: list[list[Path]] = []
    held = BUCKET_ROWS + 1
    for path, rows in zip(deal.paths, deal.rows.tolist(), strict=True):
        if rows == 0:
            continue
        if held + rows > BUCKET_ROWS:
            groups.append([])
            held = 0
        groups[-1].append(path)
        held += rows
    return groups


def _votes(groups: Sequence[Sequence[Path]]) -> int:
    """Most initial draws of the majority arm in one task and replicate."""
    most = 0
    for paths in groups:
        for path in paths:
            with pa.memory_map(str(path)) as stored:
                table = (
                    pa.ipc.open_file(stored).read_all().select(["task_id", "replicate", "arm", "prompt_kind"])
                )
            table = table.filter(
                pc.and_(pc.equal(table["arm"], "A1"), pc.equal(table["prompt_kind"], "initial"))
            )
            if len(table):
                sizes = table.group_by(["task_id", "replicate"]).aggregate([([], "count_all")])
                most = max(most, int(pc.max(sizes["count_all"]).as_py()))
    return most


def tally_logs(
    paths: Sequence[str],
    *,
    preregistration: Preregistration | None = None,
    max_budget: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Counts:
    """Count run logs of any length.

    Parameters
    ----------
    paths
        Run logs in any form; ``-`` is standard input.
    preregistration
        The plan whose exclusions and largest budget apply; None for an exploratory analysis.
    max_budget
        Largest budget of an exploratory analysis; that of the logs' arms, at least 5, if None.
    workers
        Processes that count buckets.
    progress
        Told about long steps.

    Returns
    -------
    Counts
        What :func:`verdiv.analysis.gather.gather_counts` takes; the same numbers that the logs themselves give.

    Raises
    ------
    InputRefused
        A log that cannot be read, logs that cannot be joined, or no draw at all.
    """
    say = progress or (lambda _: None)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="verdiv-tally-")))
        with ExitStack() as files:
            deal = _Deal(folder, files)
            logs = []
            for i, path in enumerate(paths):
                say(f"reading {Path(path).name}")
                logs.append(_deal_log(path, i, deal))
            deal.flush()
        headers = [header for header, _, _ in logs]
        inputs = [
            _with_tasks(file, len(deal.seen.tasks[i]) if i < len(deal.seen.tasks) else 0)
            for i, (_, file, _) in enumerate(logs)
        ]
        clashes = header_findings(headers, inputs) if len(logs) > 1 else []
        gate = common_gate(headers)
        groups = _groups(deal)
        if not groups:
            fault = Fault(str(paths[0]), "at least one draw", "none", "run the protocol first")
            raise InputRefused("The log holds no draws.", [fault])
        seen = deal.seen

        def exploratory() -> Preregistration:
            votes = _votes(groups) if "A1" in seen.attempts else 0
            return default_plan({f: len(t) for f, t in seen.families.items()}, seen.attempts, votes, gate)

        b_max = chosen_budget(seen.families, seen.attempts, gate, preregistration, max_budget, exploratory)
        say("counting draws")
        count = partial(count_bucket, gate=gate, b_max=b_max, plan=preregistration)
        if workers > 1 and len(groups) > 1:
            with ProcessPoolExecutor(min(workers, len(groups)), get_context("spawn")) as pool:
                buckets = list(pool.map(count, groups))
        else:
            buckets = [count(group) for group in groups]
    return combine_buckets(
        buckets,
        gate=gate,
        b_max=b_max,
        plan=preregistration,
        headers=headers,
        inputs=inputs,
        notes=[own for _, _, own in logs],
        clashes=clashes,
    )


def combine_buckets(
    buckets: Sequence[Bucket],
    *,
    gate: str,
    b_max: int,
    plan: Preregistration | None,
    headers: Sequence[Header],
    inputs: Sequence[InputFile],
    notes: Sequence[tuple[Finding, ...]],
    clashes: Sequence[Finding],
) -> Counts:
    """Put the counts of all buckets of some logs together."""
    excluded: dict[str, int] = {}
    for bucket in buckets:
        for rule, n in bucket.excluded.items():
            excluded[rule] = excluded.get(rule, 0) + n
    pieces = [bucket.piece for bucket in buckets if bucket.piece is not None]
    if not pieces:
        fault = Fault("registration", "exclusion rules that leave draws", "none left", "amend the rules")
        raise InputRefused("No draw is left.", [fault])
    logs = list(zip(headers, inputs, notes, strict=True))
    return combine(
        pieces,
        gate=gate,
        b_max=b_max,
        exclusions="[]" if plan is None else exclusion_rules(plan),
        excluded=excluded,
        headers=headers,
        inputs=inputs,
        findings=[*log_findings([bucket.odd for bucket in buckets], logs), *clashes],
    )


def chosen_budget(
    families: Collection[str],
    attempts: Mapping[str, int],
    gate: str,
    registration: Preregistration | None,
    asked: int | None,
    exploratory: Callable[[], Preregistration],
) -> int:
    """Largest budget to count for: registered, asked for, or that of the exploratory plan."""
    if registration is not None:
        gate_and_coverage(registration, gate, families, attempts)
        return registration.max_budget
    return exploratory().max_budget if asked is None else asked


def _with_tasks(file: InputFile, tasks: int) -> InputFile:
    return InputFile(file.path, file.sha256, file.draws, tasks, file.status, file.gate)


def _deal_log(path: str, index: int, deal: _Deal) -> tuple[Header, InputFile, tuple[Finding, ...]]:
    """Deal one log's draws; returns its header, what it is, and what was noticed of it as a whole."""
    with Source(path) as source:
        log = FlatLog(source)
        for batch in log.batches():
            deal.add(batch, index)
        log.finish()
        if log.rows == 0:
            raise InputRefused(
                "The log holds no draws.",
                [Fault(source.path, "at least one draw", "none", "run the protocol first")],
            )
        file = InputFile(source.path, source.digest(), log.rows, 0, log.status, log.header.gate.value)
        return log.header, file, log.findings
