"""A second counter of run logs: answers at budgets, pluralities and parallel draws, by group-by and windows alone."""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw

from relational_counts import CHAIN, TASK, Frame, weighed, whole_if

__all__ = ["CELL", "MARKS", "OUTPUTS", "answer_counts", "parallel_counts", "plurality_counts"]

NEVER = 1_000_000
"""An attempt that no chain reaches."""

GATED = ("A2", "A2s", "A3", "A5")
"""Arms that retry; the others answer with their first draw, whatever a gate would say."""

CELL = ("n", "k", "bill_n", "bill", "residual", "settled")
OUTPUTS, MARKS = "outputs", "marks"


def _retried(gate: str) -> nw.Expr:
    """Return 1 where the gate sends a draw to retry, 0 where it lets it pass, -1 where that is unknown."""
    if gate == "none":
        return nw.lit(0)
    if gate == "truth":
        return nw.when(nw.col("correct") < 0).then(-1).otherwise(1 - nw.col("correct"))
    return nw.col("flagged")


def _cells(draws: Frame) -> Frame:
    """Keep one record a chain and attempt: the first measured one, or the first."""
    late = nw.when(nw.col("measured") == 1).then(0).otherwise(1 << 40)
    ordered = draws.with_columns((nw.col("row").cast(nw.Int64()) + late).alias("turn"))
    return ordered.filter(nw.col("turn") == nw.col("turn").min().over(*CHAIN, "attempt"))


def answer_counts(draws: Frame, *, gate: str, budgets: Sequence[int]) -> Frame:
    """Count chains of every arm but the majority at each budget: one row a condition, task and arm, ``<B>|<what>``.

    A chain answers with the first draw that was not sent to retry, or with its last within the budget. It ends where
    its numbers do: what stands behind a missing attempt is no part of it.
    """
    col = nw.col
    cells = _cells(draws.filter(col("arm") != "A1"))
    cells = cells.with_columns(
        nw.when(col("arm").is_in(GATED)).then(_retried(gate)).otherwise(0).alias("retry"),
        col("attempt").rank("ordinal").over(*CHAIN).alias("place"),
    ).filter(col("place") == col("attempt"))
    cells = cells.with_columns(
        nw.len().over(*CHAIN).alias("length"),
        nw.when(col("retry") != 1).then(col("attempt")).otherwise(NEVER).min().over(*CHAIN).alias("stop"),
    )
    marks, sums = [], []
    for b in budgets:
        end = nw.min_horizontal(col("stop"), col("length"), nw.lit(b))
        here, until = col("attempt") == end, col("attempt") <= end
        marks += [
            whole_if(here & (col("measured") == 1)).alias(f"n{b}"),
            whole_if(here & (col("measured") == 1) & (col("correct") == 1)).alias(f"k{b}"),
            whole_if(here & (col("retry") == 1)).alias(f"still{b}"),
            (whole_if(until) * col("billed")).alias(f"paid{b}"),
        ]
        sums += [*(col(f"{name}{b}").sum() for name in ("n", "k", "still", "paid"))]
    chains = cells.select(*CHAIN, *marks).group_by(*CHAIN).agg(*sums)
    columns, names = [], []
    for b in budgets:
        n, k, still = col(f"n{b}"), col(f"k{b}"), col(f"still{b}")
        values = (n, k, nw.lit(1), col(f"paid{b}"), n * still, k * (1 - still))
        columns += [value.alias(f"{b}|{name}") for name, value in zip(CELL, values, strict=True)]
        names += [f"{b}|{name}" for name in CELL]
    return (
        chains.select(*TASK, "arm", *columns).group_by(*TASK, "arm").agg(*(col(name).sum() for name in names))
    )


def plurality_counts(draws: Frame, votes: int) -> Frame:
    """Count answers of the majority arm over its first votes: one row a condition and task, ``<way>|<what>``.

    By outputs the answer is the text with most votes, ties to the one drawn first; by marks it is the one draw marked
    as emitted, where the votes are all that were drawn. ``<way>|unknown`` are chains in which that does not tell.
    """
    col = nw.col
    cast = draws.filter(col("arm") == "A1", col("kind") == "initial", col("measured") == 1)
    cast = cast.with_columns((col("attempt") * NEVER * NEVER + col("row").cast(nw.Int64())).alias("turn"))
    cast = cast.with_columns(
        col("turn").rank("ordinal").over(*CHAIN).alias("place"), nw.len().over(*CHAIN).alias("drawn")
    ).filter(col("drawn") >= votes, col("place") <= votes)
    cast = cast.with_columns(
        nw.len().over(*CHAIN, "output").alias("same"),
        col("place").min().over(*CHAIN, "output").alias("first"),
    )
    cast = cast.with_columns((col("same") * NEVER - col("first")).alias("score"))
    winner = (col("score") == col("score").max().over(*CHAIN)) & (col("place") == col("first"))
    marked = (col("emitted") == 1) & (col("drawn") == votes)
    right = col("correct") == 1
    chains = (
        cast.select(
            *CHAIN,
            "billed",
            whole_if(col("output").is_null()).alias("blank"),
            whole_if(winner & right).alias(OUTPUTS),
            whole_if(marked).alias("marked"),
            whole_if(marked & right).alias(MARKS),
        )
        .group_by(*CHAIN)
        .agg(*(col(name).sum() for name in ("billed", "blank", OUTPUTS, "marked", MARKS)))
    )
    columns, names = [], []
    for way, known in ((OUTPUTS, whole_if(col("blank") == 0)), (MARKS, whole_if(col("marked") == 1))):
        right_ones = known * col(way)
        values = (known, right_ones, known, known * col("billed"), nw.lit(0), right_ones, 1 - known)
        columns += [v.alias(f"{way}|{name}") for name, v in zip((*CELL, "unknown"), values, strict=True)]
        names += [f"{way}|{name}" for name in (*CELL, "unknown")]
    return chains.select(*TASK, *columns).group_by(*TASK).agg(*(col(name).sum() for name in names))


def parallel_counts(draws: Frame, *, gate: str) -> Frame:
    """Count stochastic initial draws of the small tier: drawn, correct, wrong and sent to retry."""
    col = nw.col
    pool = weighed(
        draws.filter(
            col("measured") == 1, col("kind") == "initial", col("tier") != "teacher", col("greedy") == 0
        )
    )
    sent = (col("correct") == 0) & ((col("flagged") == 1) if gate != "truth" else (col("correct") == 0))
    marks = (
        col("w").alias("N"),
        (col("w") * whole_if(col("correct") == 1)).alias("c"),
        (col("w") * whole_if(sent)).alias("d"),
    )
    return pool.select(*TASK, *marks).group_by(*TASK).agg(*(col(name).sum() for name in "Ncd"))
