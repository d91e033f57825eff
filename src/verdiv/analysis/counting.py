"""A run as counts: what a log comes down to before anything is estimated, and what a tally file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from verdiv.errors import Fault, InputRefused
from verdiv.estimators.account import PRIMARY, account_facts
from verdiv.estimators.assemble import TaskList, concatenate, halves, shared
from verdiv.estimators.columns import Joiner, Sharer
from verdiv.estimators.load import LoadMoments, join_moments, load_moments, no_moments, shared_moments
from verdiv.estimators.observations import DrawColumns, IntArray, draw_columns
from verdiv.estimators.shard import Facts, Shard, count_shard
from verdiv.preregistration import Preregistration
from verdiv.runlog.records import Header
from verdiv.runlog.table import Finding, InputFile

__all__ = ["Counts", "Piece", "combine", "count_piece", "exclude", "join_counts"]


@dataclass(frozen=True)
class Piece:
    """Counts of some whole tasks of one run."""

    tasks: tuple[str, ...]
    family: tuple[str, ...]
    """Family of each task."""
    order: IntArray
    """Row of each task's first draw in the log, shape ``(tasks,)``."""
    shards: Mapping[str, Shard]
    """By condition; primary is always there."""
    load: Mapping[str, tuple[LoadMoments, LoadMoments]]
    """By condition: device seconds, latency."""
    account: Facts


@dataclass(frozen=True)
class Counts:
    """Counts of a whole run, or of several."""

    gate: str
    b_max: int
    """Largest budget that late repairs were looked at."""
    exclusions: str
    """Exclusion rules that were applied, as canonical JSON."""
    tasks: TaskList
    shards: Mapping[str, Shard]
    load: Mapping[str, tuple[LoadMoments, LoadMoments]]
    account: Facts
    headers: tuple[Header, ...]
    inputs: tuple[InputFile, ...]
    findings: tuple[Finding, ...]


def exclude(table: pd.DataFrame, plan: Preregistration) -> tuple[pd.DataFrame, dict[str, int]]:
    """Replay the registered exclusion rules; each counts what it takes out of what was left."""
    counts: dict[str, int] = {}
    for rule in plan.exclusions:
        if rule.when == "error":
            hit = table["error_kind"].notna()
        elif rule.when == "unscored":
            hit = table["correct"].isna()
        else:
            hit = table[rule.when].isin(rule.values)
        if rule.scope == "task":
            hit = table["task_id"].isin(set(table.loc[hit, "task_id"]))
        counts[rule.id] = int(hit.sum())
        table = table[~hit]
    return table, counts


def count_piece(table: pd.DataFrame, *, gate: str, b_max: int, rows: IntArray | None = None) -> Piece:
    """Count whole tasks.

    Parameters
    ----------
    table
        All draws of these tasks, exclusions taken out.
    gate, b_max
        What sent a draw to retry, and the largest budget looked at.
    rows
        Place of each draw in the log, shape ``(draws,)``; the table's own order if None.

    Raises
    ------
    InputRefused
        A task belongs to two families.
    """
    try:
        draws = draw_columns(table)
    except ValueError as error:
        fault = Fault("log", "one family a task", str(error), "give each task one family", field="family")
        raise InputRefused("The log contradicts itself.", [fault]) from error
    return count_columns(draws, gate=gate, b_max=b_max, rows=rows)


def count_columns(draws: DrawColumns, *, gate: str, b_max: int, rows: IntArray | None = None) -> Piece:
    """Count whole tasks whose draws stand as arrays; see :func:`count_piece`."""
    first = np.zeros(len(draws.tasks), dtype=np.int64)
    first[draws.task[::-1]] = np.arange(len(draws))[::-1]
    once = Sharer()
    conditions = [PRIMARY, *(c for c in draws.condition.present() if c != PRIMARY)]
    return Piece(
        draws.tasks,
        tuple(draws.families[f] for f in draws.family[first].tolist()),
        first if rows is None else rows[first],
        {c: shared(count_shard(draws, gate=gate, b_max=b_max, condition=c), once) for c in conditions},
        {c: shared_moments(load_moments(draws, c), once) for c in conditions},
        account_facts(draws),
    )


def _nothing(tasks: int) -> Shard:
    return Shard({}, {}, {}, np.zeros((tasks, 3)), Facts(), None)


def _joined(
    sizes: Sequence[int],
    shards: Sequence[Mapping[str, Shard]],
    load: Sequence[Mapping[str, tuple[LoadMoments, LoadMoments]]],
    order: IntArray,
) -> tuple[dict[str, Shard], dict[str, tuple[LoadMoments, LoadMoments]]]:
    conditions = list(dict.fromkeys(c for part in shards for c in part))
    conditions.sort(key=lambda c: (c != PRIMARY, c))
    joiner = Joiner(order)
    joined = {
        c: concatenate([p.get(c) or _nothing(n) for p, n in zip(shards, sizes, strict=True)], joiner)
        for c in conditions
    }
    moments = {
        c: join_moments(
            [p.get(c) or no_moments(joiner.zeros(n)) for p, n in zip(load, sizes, strict=True)], joiner
        )
        for c in conditions
    }
    return joined, moments


def _task_list(names: Sequence[str], families: Sequence[str], order: IntArray) -> TaskList:
    known = sorted(set(families))
    place = {family: i for i, family in enumerate(known)}
    index = np.array([place[f] for f in families], dtype=np.int64)
    return TaskList(tuple(names[i] for i in order.tolist()), index[order], tuple(known))


def combine(
    pieces: Sequence[Piece],
    *,
    gate: str,
    b_max: int,
    exclusions: str = "[]",
    excluded: Mapping[str, int] | None = None,
    headers: Sequence[Header] = (),
    inputs: Sequence[InputFile] = (),
    findings: Sequence[Finding] = (),
) -> Counts:
    """Put the pieces of one run together; tasks stand in the order of their first draws."""
    order = np.argsort(np.concatenate([p.order for p in pieces]), kind="stable").astype(np.int64)
    conditions = list(dict.fromkeys(c for p in pieces for c in p.shards))
    split: list[dict[str, Shard]] = [{} for _ in pieces]
    for c in conditions:
        holders = [i for i, p in enumerate(pieces) if c in p.shards]
        for i, shard in zip(holders, halves([pieces[i].shards[c] for i in holders]), strict=True):
            split[i][c] = shard
    shards, load = _joined([len(p.tasks) for p in pieces], split, [p.load for p in pieces], order)
    account = Facts()
    for piece in pieces:
        account.take(piece.account)
    for rule, count in (excluded or {}).items():
        account.add(("excluded", rule), count)
    names = [name for p in pieces for name in p.tasks]
    families = [family for p in pieces for family in p.family]
    return Counts(
        gate,
        b_max,
        exclusions,
        _task_list(names, families, order),
        shards,
        load,
        account,
        tuple(headers),
        tuple(inputs),
        tuple(findings),
    )


def join_counts(parts: Sequence[Counts]) -> Counts:
    """Join the counts of several runs over different tasks.

    Raises
    ------
    InputRefused
        A task in two of them, or counts made under different gates, budgets or exclusions: the logs behind them can
        still be counted together.
    """
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    faults = [
        Fault(
            part.inputs[0].path if part.inputs else "tally",
            expected,
            got,
            "tally the logs together",
            field=name,
        )
        for part in parts[1:]
        for name, expected, got in (
            ("gate", first.gate, part.gate),
            ("max_budget", str(first.b_max), str(part.b_max)),
            ("exclusions", first.exclusions, part.exclusions),
        )
        if expected != got
    ]
    seen: dict[str, int] = {}
    for i, part in enumerate(parts):
        twice = next((task for task in part.tasks.tasks if seen.setdefault(task, i) != i), None)
        if twice is not None:
            where = part.inputs[0].path if part.inputs else "tally"
            got = f"task {twice!r}, which an earlier tally counts too"
            faults.append(Fault(where, "tasks of its own", got, "tally the logs together", field="task_id"))
    if faults:
        raise InputRefused("The tallies cannot be joined.", faults)
    sizes = [len(part.tasks.tasks) for part in parts]
    order = np.arange(sum(sizes), dtype=np.int64)
    shards, load = _joined(sizes, [p.shards for p in parts], [p.load for p in parts], order)
    account = Facts()
    for part in parts:
        account.take(part.account)
    names = [name for part in parts for name in part.tasks.tasks]
    families = [part.tasks.families[f] for part in parts for f in part.tasks.family.tolist()]
    return Counts(
        first.gate,
        first.b_max,
        first.exclusions,
        _task_list(names, families, order),
        shards,
        load,
        account,
        tuple(h for part in parts for h in part.headers),
        tuple(i for part in parts for i in part.inputs),
        tuple(f for part in parts for f in part.findings),
    )
