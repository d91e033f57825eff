"""Logs of any length to counts: draws are dealt to buckets of whole tasks, and each bucket is counted by itself."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from verdiv.analysis.counting import Counts, Piece, combine, count_columns
from verdiv.analysis.dealing import (
    BUCKET_ROWS,
    Bench,
    Dealer,
    Hand,
    Part,
    Seen,
    Stretch,
    bucket_count,
    counted_together,
    deal_groups,
    deal_lines,
    linked,
    read_parts,
)
from verdiv.analysis.flatcolumns import flat_draws
from verdiv.analysis.gather import common_gate, default_plan, exclusion_rules, gate_and_coverage
from verdiv.analysis.helpers import Helpers
from verdiv.analysis.oddities import Odd, log_findings, oddities
from verdiv.errors import Fault, InputRefused
from verdiv.estimators.observations import IntArray
from verdiv.preregistration import Preregistration
from verdiv.runlog.flatlog import FlatLog
from verdiv.runlog.joins import header_findings
from verdiv.runlog.lines import Source
from verdiv.runlog.names import NameHashes
from verdiv.runlog.records import Header
from verdiv.runlog.spans import framed, line_spans
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

SHARED_ROWS = 500_000
"""Draws from which several processes read one Parquet log."""

SHARED_BYTES = 100_000_000
"""Length from which several processes read one JSONL log that is not packed."""

Progress = Callable[..., None]


@dataclass(frozen=True)
class Bucket:
    """What counting one bucket gives."""

    piece: Piece | None
    odd: Odd
    """Input and check to the draws that it names: how many, and the first of them by row."""
    excluded: dict[str, int]


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


def count_bucket(parts: Sequence[Part], *, gate: str, b_max: int, plan: Preregistration | None) -> Bucket:
    """Count the draws of some buckets."""
    return count_table(read_parts(parts), gate=gate, b_max=b_max, plan=plan)


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


def _groups(hands: Sequence[Hand]) -> list[list[Part]]:
    """Put small buckets together; the parts of one bucket stand in the order of the hands."""
    buckets = [
        [part for part in bucket if part.rows] for bucket in zip(*(hand.parts for hand in hands), strict=True)
    ]
    places = counted_together([sum(part.rows for part in bucket) for bucket in buckets], BUCKET_ROWS)
    groups: list[list[Part]] = [[] for _ in range(places[-1] + 1)]
    for place, bucket in zip(places, buckets, strict=True):
        groups[place] += bucket
    return [group for group in groups if group]


def votes_in(parts: Sequence[Part]) -> int:
    """Most initial draws of the majority arm in one task and replicate of some buckets."""
    table = read_parts(parts, ["task_id", "replicate", "arm", "prompt_kind"])
    table = table.filter(pc.and_(pc.equal(table["arm"], "A1"), pc.equal(table["prompt_kind"], "initial")))
    if len(table) == 0:
        return 0
    sizes = table.group_by(["task_id", "replicate"]).aggregate([([], "count_all")])
    return int(pc.max(sizes["count_all"]).as_py())


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
    say = progress or (lambda *_: None)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="verdiv-tally-")))
        helpers = stack.enter_context(Helpers(workers))
        bench = Bench(folder, bucket_count(paths))
        logs, hands = [], []
        seen = Seen()
        for i, path in enumerate(paths):
            said, dealt = _deal_log(path, i, bench, helpers, say)
            logs.append(said)
            hands += dealt
        for hand in hands:
            seen.take(hand.seen)
        headers = [header for header, _, _ in logs]
        inputs = [_with_tasks(file, len(seen.tasks.get(i, ()))) for i, (_, file, _) in enumerate(logs)]
        clashes = header_findings(headers, inputs) if len(logs) > 1 else []
        gate = common_gate(headers)
        groups = _groups(hands)
        if not groups:
            fault = Fault(str(paths[0]), "at least one draw", "none", "run the protocol first")
            raise InputRefused("The log holds no draws.", [fault])

        def exploratory() -> Preregistration:
            votes = max(helpers.map(votes_in, groups)) if "A1" in seen.attempts else 0
            return default_plan({f: len(t) for f, t in seen.families.items()}, seen.attempts, votes, gate)

        b_max = chosen_budget(seen.families, seen.attempts, gate, preregistration, max_budget, exploratory)
        count = partial(count_bucket, gate=gate, b_max=b_max, plan=preregistration)
        buckets = []
        for bucket in helpers.map(count, groups):
            buckets.append(bucket)
            say("counting draws", len(buckets), len(groups))
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


Said = tuple[Header, InputFile, tuple[Finding, ...]]
"""A log's header, what it is, and what was noticed of it as a whole."""


def _deal_log(
    path: str, index: int, bench: Bench, helpers: Helpers, say: Progress
) -> tuple[Said, list[Hand]]:
    """Deal one log's draws: by itself, or stretches of a long one by several processes."""
    say(f"reading {Path(path).name}")
    with Source(path) as source:
        log = FlatLog(source)
        stretches = _deal_apart(path, index, bench, helpers, log)
        if stretches is None:
            with Dealer(bench, str(index)) as dealer:
                for batch in log.batches():
                    dealer.add(batch, index)
                    say(f"reading {Path(path).name}", source.stored, source.total)
            hands = [dealer.hand()]
        else:
            hands = [stretch.hand for stretch in stretches]
            names = NameHashes()
            for stretch in stretches:
                names.take(stretch.names)
            log.read_apart(sum(hand.rows for hand in hands), names)
        log.finish()
        if log.rows == 0:
            raise InputRefused(
                "The log holds no draws.",
                [Fault(source.path, "at least one draw", "none", "run the protocol first")],
            )
        file = InputFile(source.path, source.digest(), log.rows, 0, log.status, log.header.gate.value)
        return (log.header, file, log.findings), hands


def _deal_apart(path: str, index: int, bench: Bench, helpers: Helpers, log: FlatLog) -> list[Stretch] | None:
    """Deal stretches of a long log by several processes; None where it is short, packed, or not in order."""
    count = helpers.workers
    files = [f"{index}-{i}" for i in range(count)]
    if count < 2:
        return None
    if log.draws is not None:
        groups = log.spans(count) if log.draws >= SHARED_ROWS else ()
        if len(groups) < 2:
            return None
        return list(helpers.map(partial(deal_groups, path, index, bench), groups, files[: len(groups)]))
    source = log.source
    if source.packed or source.total is None or source.total < SHARED_BYTES:
        return None
    frame = framed(path)
    if frame is None:
        return None
    lines = line_spans(path, frame, count)
    return linked(
        list(helpers.map(partial(deal_lines, path, index, bench), lines, files[: len(lines)])), frame
    )
