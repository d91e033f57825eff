"""A second counter of run logs: group-by, joins and windows on any engine that narwhals speaks to.

Written from the definitions alone; it calls nothing of the counter that it is compared with. A log's draws come in as a
lazy frame of its Parquet form with a column ``row``, and go out as one column a count, one row a task and condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import narwhals as nw

__all__ = [
    "BASES",
    "CHAIN",
    "TASK",
    "Frame",
    "drift_counts",
    "event_counts",
    "flat",
    "flow_counts",
    "ledger_sums",
    "weighed",
    "whole_if",
]

Frame: TypeAlias = nw.LazyFrame[Any]

TASK = ("condition", "task_id")
CHAIN = (*TASK, "arm", "replicate")
DRAW = (
    "draw_id",
    "task_id",
    "arm",
    "condition",
    "copy_of",
    "tier",
    "model",
    "precision",
    "replicate",
    "attempt",
)
CLASSES = ("structural", "semantic")
PARENT = ("correct", "flagged", "cls")


def whole_if(condition: nw.Expr) -> nw.Expr:
    """Turn a condition into 1 and 0; unknown is 0."""
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))


def _three(flag: nw.Expr) -> nw.Expr:
    """Turn a flag that may be missing into 1, 0 and -1."""
    return nw.when(flag.is_null()).then(nw.lit(-1)).otherwise(whole_if(flag))


def flat(draws: Frame) -> Frame:
    """Return the plain columns of a log that counting needs, one row a draw.

    ``source`` is the draw that holds the observation: the one a copy names, or the draw itself; what a greedy prompt is
    known by is the source's.
    """
    col = nw.col
    plain = draws.select(
        *(col(name) for name in (*DRAW, "row", "parent", "billed")),
        col("prompt_kind").alias("kind"),
        col("prompt_sha256").alias("prompt"),
        col("output_sha256").alias("output"),
        _three(col("correct")).alias("correct"),
        _three(col("static").struct.field("flagged")).alias("flagged"),
        _three(col("oracle").struct.field("flagged")).alias("oracle"),
        col("static").struct.field("class").alias("cls"),
        col("answered_class").alias("answered"),
        whole_if(col("emitted")).alias("emitted"),
        whole_if(~col("error").struct.field("kind").is_null()).alias("errored"),
        whole_if(col("decoding").struct.field("temperature") == 0).alias("greedy"),
        col("decoding").struct.field("temperature").alias("temperature"),
    )
    plain = plain.with_columns(
        whole_if((col("correct") >= 0) & (col("errored") == 0)).alias("measured"),
        whole_if(col("copy_of").is_null()).alias("own"),
    )
    again = plain.select(nw.col("draw_id").alias("copy_of"), nw.col("copy_of").alias("first"))
    plain = plain.join(again, on="copy_of", how="left").with_columns(
        nw.coalesce(col("first"), col("copy_of")).alias("copy_of")
    )
    sources = plain.select(
        col("draw_id").alias("copy_of"),
        *(
            col(name).alias(f"s_{name}")
            for name in ("greedy", "prompt", "kind", "attempt", "tier", "model", "precision")
        ),
    )
    joined = plain.join(sources, on="copy_of", how="left")
    keyed = joined.with_columns(
        *(
            nw.when(col("own") == 1).then(col(name)).otherwise(col(f"s_{name}")).alias(f"k_{name}")
            for name in ("greedy", "prompt", "kind", "attempt", "tier", "model", "precision")
        ),
        nw.coalesce(col("copy_of"), col("draw_id")).alias("source"),
    )
    greedy, hashed = col("k_greedy") == 1, ~col("k_prompt").is_null()
    return keyed.with_columns(
        nw.when(greedy).then(nw.lit("")).otherwise(col("source")).alias("k_source"),
        nw.when(greedy & ~hashed & (col("k_kind") != "initial"))
        .then(col("k_attempt"))
        .otherwise(nw.lit(0))
        .alias("k_attempt"),
        *(
            nw.when(greedy).then(col(name)).otherwise(nw.lit("")).alias(name)
            for name in ("k_prompt", "k_kind", "k_tier", "k_model", "k_precision")
        ),
    )


OBSERVATION = (
    *TASK,
    *("k_greedy", "k_source", "k_prompt", "k_kind", "k_attempt", "k_tier", "k_model", "k_precision"),
)


def weighed(pool: Frame) -> Frame:
    """Weigh the records of each observation by 1/r."""
    return pool.with_columns((1.0 / nw.len().over(*OBSERVATION)).alias("w"))


def _answering(draws: Frame, flat_draws: Frame) -> Frame:
    """Join to each draw what is known of the one it answers."""
    answered = flat_draws.select(
        nw.col("draw_id").alias("parent"),
        *(nw.col(name).alias(f"p_{name}") for name in (*PARENT, "source")),
    )
    return draws.join(answered, on="parent", how="left").with_columns(
        nw.col("p_correct").fill_null(-1), nw.col("p_flagged").fill_null(-1)
    )


Stage = tuple[str, nw.Expr, nw.Expr]
"""Name, who reaches it, where the event happens."""


def _summed(pool: Frame, stages: Sequence[Stage]) -> Frame:
    """Add up weights by condition and task."""
    w = nw.col("w")
    columns = {}
    for name, reach, event in stages:
        columns[f"{name}|n"] = w * whole_if(reach)
        columns[f"{name}|k"] = w * whole_if(reach & event)
    named = [column.alias(name) for name, column in columns.items()]
    return pool.select(*TASK, *named).group_by(*TASK).agg(*(nw.col(name).sum() for name in columns))


def _initial_stages() -> list[Stage]:
    col = nw.col
    right, wrong, seen = col("correct") == 1, col("correct") == 0, col("flagged") >= 0
    hit, passed = col("flagged") == 1, col("flagged") == 0
    return [
        ("small", right | ~right, right),
        ("delta", wrong & seen, hit),
        ("fpr_initial", right & seen, hit),
        ("sigma", wrong & hit & col("cls").is_in(CLASSES), col("cls") == "structural"),
        ("eta_ox", wrong & passed & (col("oracle") >= 0), col("oracle") == 1),
    ]


def _roots(draws: Frame, depth: int) -> Frame:
    """Return each draw's id and that of the draw its chain starts from, parents followed up to ``2**depth`` times."""
    at = draws.select("draw_id", nw.coalesce(nw.col("parent"), nw.col("draw_id")).alias("root"))
    for _ in range(depth):
        up = at.select(nw.col("draw_id").alias("root"), nw.col("root").alias("above"))
        at = at.join(up, on="root", how="left").select(
            "draw_id", nw.coalesce(nw.col("above"), nw.col("root")).alias("root")
        )
    return at


def drift_counts(draws: Frame, *, depth: int = 3) -> dict[str, Frame]:
    """Compare wrong retries with the wrong initial draws of other chains of their task."""
    col = nw.col
    measured = draws.filter(col("measured") == 1, col("tier") != "teacher")
    wrong, retry = (col("correct") == 0) & (col("flagged") >= 0), col("attempt") >= 2
    pool = draws.filter(col("kind") == "initial", col("tier") != "teacher")
    records = col("measured").sum().over(*OBSERVATION)
    share = nw.when(col("measured") == 1).then(1.0 / records).otherwise(0.0)
    pool = pool.with_columns(share.alias("w")).with_columns(
        (col("w") * whole_if(wrong)).alias("there"),
        (col("w") * whole_if(wrong & (col("flagged") == 1))).alias("hits"),
    )
    names = ("there", "hits")
    mine = pool.select("draw_id", *(col(name).sum().over(*OBSERVATION).alias(f"my_{name}") for name in names))
    all_of = pool.group_by(*TASK).agg(*(col(name).sum().alias(f"all_{name}") for name in names))
    frames = {}
    for kind, arm, own in (("blind", "A2s", col("greedy") == 0), ("feedback", "A3", col("greedy") >= 0)):
        one = weighed(measured.filter(col("kind") == kind, col("arm") == arm, retry, own)).filter(wrong)
        one = one.join(_roots(draws, depth), on="draw_id", how="left")
        one = one.join(mine, left_on="root", right_on="draw_id", how="left").join(
            all_of, on=list(TASK), how="left"
        )
        one = one.with_columns(
            *(
                (col(f"all_{n}").fill_null(0.0) - col(f"my_{n}").fill_null(0.0)).alias(f"other_{n}")
                for n in names
            )
        ).filter(col("other_there") > 0.5)
        gap = whole_if(col("flagged") == 1) - col("other_hits") / col("other_there")
        stage = f"drift_{kind}"
        parts = (col("w").alias(f"{stage}|n"), (col("w") * gap).alias(f"{stage}|k"))
        sums = (col(f"{stage}|{part}").sum() for part in "nk")
        frames[stage] = one.select(*TASK, *parts).group_by(*TASK).agg(*sums)
    return frames


BASES = {
    **dict.fromkeys(("delta", "fpr_initial", "sigma", "eta_ox"), "small"),
    **{name: name for name in ("q", "q_greedy", "q_T", "p_d", "p_s", "p_d!greedy", "p_s!greedy")},
    "delta_T": "q_T",
    "fpr": "every",
    **dict.fromkeys(("s1", "s2", "s2!unclassified", "lambda1", "lambda2", "lambda2!unclassified"), "A3"),
    **dict.fromkeys(("answered_structural", "s_false", "late1", "late2", "late2!unclassified"), "A3"),
    **{name: name for name in ("drift_blind", "drift_feedback")},
    **dict.fromkeys(("s_blind", "b1", "b2", "b2!unclassified"), "A2s"),
}
"""Stage to the one whose draws it hangs from."""


def event_counts(draws: Frame, *, gate: str, b_max: int) -> dict[str, Frame]:
    """Count the stages of each task.

    Returns
    -------
    dict
        Group of stages to a frame with one row a condition and task and the columns ``<stage>|n`` and ``<stage>|k``.
    """
    col = nw.col
    measured = draws.filter(col("measured") == 1)
    right, wrong, seen = col("correct") == 1, col("correct") == 0, col("flagged") >= 0
    hit, passed = col("flagged") == 1, col("flagged") == 0
    initial = measured.filter(col("kind") == "initial")
    small_one = col("tier") != "teacher"
    small = weighed(initial.filter(small_one))
    teacher = weighed(initial.filter(col("tier") == "teacher"))
    every = weighed(measured)
    class_of = nw.coalesce(col("answered"), col("p_cls"), nw.lit("unclassified"))
    repairs = _answering(measured.filter(col("kind") == "feedback", col("arm") == "A3"), draws)
    repairs = repairs.with_columns(class_of.alias("answers"))
    first = weighed(repairs.filter(col("attempt") == 2))
    late = weighed(repairs.filter((col("attempt") >= 3) & (col("attempt") <= b_max)))
    blind = measured.filter(
        col("kind") == "blind", col("arm") == "A2s", col("attempt") == 2, col("greedy") == 0
    )
    blind = weighed(_answering(blind, draws))
    sent = (col("p_correct") != 1) if gate == "truth" else (col("p_flagged") != 0)
    error = col("p_correct") != 1
    one, two, none = (col("answers") == c for c in (*CLASSES, "unclassified"))
    every_one = right | ~right
    started = {
        "A3": weighed(measured.filter(col("arm") == "A3", col("attempt") == 1)),
        "A2s": weighed(measured.filter(col("arm") == "A2s", col("attempt") == 1, col("greedy") == 0)),
    }
    return {
        **{f"base {arm}": _summed(pool, [(arm, every_one, right)]) for arm, pool in started.items()},
        "initial": _summed(small, _initial_stages()),
        **{
            stage: _summed(
                weighed(initial.filter(small_one, col("greedy") == which)), [(stage, every_one, right)]
            )
            for stage, which in (("q", 0), ("q_greedy", 1))
        },
        **{
            f"masses{mark}": _summed(
                weighed(initial.filter(small_one, col("greedy") == which, seen)),
                [(f"p_d{mark}", every_one, wrong & hit), (f"p_s{mark}", every_one, wrong & passed)],
            )
            for mark, which in (("", 0), ("!greedy", 1))
        },
        "teacher": _summed(teacher, [("q_T", every_one, right), ("delta_T", wrong & seen, hit)]),
        "every": _summed(every, [("every", every_one, right), ("fpr", right & seen, hit)]),
        "first": _summed(
            first,
            [
                ("s1", one & error, right),
                ("s2", two & error, right),
                ("s2!unclassified", none & error, right),
                ("lambda1", one & error & wrong & seen, passed),
                ("lambda2", two & error & wrong & seen, passed),
                ("lambda2!unclassified", none & error & wrong & seen, passed),
                ("answered_structural", (one | two) & error, one),
                ("s_false", col("p_correct") == 1, right),
            ],
        ),
        "late": _summed(
            late,
            [
                ("late1", one & error, right),
                ("late2", two & error, right),
                ("late2!unclassified", none & error, right),
            ],
        ),
        "blind": _summed(
            blind,
            [
                ("s_blind", sent, right),
                ("b1", sent & error & (col("p_cls") == "structural"), right),
                ("b2", sent & error & (col("p_cls") == "semantic"), right),
                ("b2!unclassified", sent & error, right),
            ],
        ),
    }


def flow_counts(draws: Frame) -> Frame:
    """Count records by condition and arm."""
    col = nw.col
    kinds = {
        "initial": col("kind") == "initial",
        "attempted": col("attempt") >= 0,
        "errored": col("errored") == 1,
        "unscored": (col("errored") == 0) & (col("correct") < 0),
        "copies": (col("own") == 0) & (col("measured") == 1),
        "analysed": (col("own") == 1) & (col("measured") == 1),
    }
    marked = draws.select("condition", "arm", *(whole_if(where).alias(name) for name, where in kinds.items()))
    return marked.group_by("condition", "arm").agg(*(col(name).sum() for name in kinds))


def ledger_sums(draws: Frame) -> Frame:
    """Add up draws and prices by arm."""
    col = nw.col
    own, primary = whole_if(col("own") == 1), whole_if(col("condition") == "primary")
    marked = draws.select(
        "arm",
        own.alias("draws"),
        (own * col("billed")).alias("units"),
        (own * primary * col("billed")).alias("primary"),
        (primary * col("billed")).alias("registered"),
    )
    return marked.group_by("arm").agg(*(col(n).sum() for n in ("draws", "units", "primary", "registered")))
