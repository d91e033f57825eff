"""A simulated run as the draws table of a run log: order, clock, load, identities and all else but outcomes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from verdiv.protocol.simulator.chains import Drawn, draw_run
from verdiv.protocol.simulator.design import ARM_ORDER, Design
from verdiv.protocol.simulator.law import CORRECT, FLAGGED, KINDS, STRUCTURAL, BoolArray, FloatArray, IntArray
from verdiv.protocol.simulator.world import World
from verdiv.runlog.table import DRAW_COLUMNS

__all__ = ["SMALL_MODEL", "START_MS", "TEACHER_MODEL", "simulate"]

ObjectArray = npt.NDArray[np.object_]

SMALL_MODEL, TEACHER_MODEL = "simulated-small", "simulated-teacher"
PRECISION, TEACHER_PRECISION = "BF16", "NVFP4"
BLOCK = 8
"""Tasks that a run works on at the same time; an attempt waits for the block's attempts before it."""
START_MS = 1_772_438_400_000
"""First draw's time: 2026-03-02T08:00:00Z, in milliseconds since the epoch."""
TIMEOUT_MS = 30_000
MAX_TOKENS = 256
STREAM = 0x5EED
"""Spawn key that keeps the clock and load apart from the outcomes."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """Draws in the order of the log, failures included; arrays of shape ``(rows,)``."""

    drawn: Drawn
    failed: BoolArray
    """The record is an infrastructure failure that comes before its draw."""
    source: IntArray
    """Row whose execution this record shows; its own unless it is a copy."""
    parent: IntArray
    """Row that this draw answers, or -1."""
    wave: IntArray
    """Number of the wave, in order; waves follow each other in time."""


def simulate(world: World, design: Design, seed: int, *, digests: bool = True) -> pd.DataFrame:
    """Simulate a run of the protocol.

    Outcomes follow the laws of :mod:`verdiv.protocol.simulator.law`. A gated chain ends with its first draw
    that is not flagged or with its budget, and its last draw is emitted; A1 emits the plurality of its outputs,
    ties to the earliest. Every record bears the price of a draw, copies too: readers count a copy once.

    Parameters
    ----------
    world
        What draws come out as.
    design
        What is drawn.
    seed
        Seed, at least 0; equal arguments give equal tables.
    digests
        Fill ``output_sha256`` and ``prompt_sha256``; without them A1's votes are known only by ``emitted``.

    Returns
    -------
    pandas.DataFrame
        The draws table (columns and dtypes of ``DRAW_COLUMNS``), in the order of time.

    Raises
    ------
    ValueError
        If the seed is negative.

    Examples
    --------
    >>> table = simulate(World.worked(), Design(tasks=40), seed=1)
    >>> table["arm"].head(3).tolist(), table["copy_of"].notna().head(3).tolist()
    (['A0', 'A2', 'A3'], [False, True, True])
    >>> int(table.loc[table["arm"] == "A1", "emitted"].sum())
    120
    """
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed}")
    outcomes = np.random.default_rng(np.random.SeedSequence(seed))
    around = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAM,)))
    family = np.repeat(np.arange(len(world.families)), list(world.task_counts(design.tasks).values()))
    replicates = max(arm.replicates for arm in design.arms())
    slots = np.tile(np.arange(design.tasks), (1 + len(design.conditions), replicates, 1))
    position = outcomes.permuted(slots, axis=2)
    drawn = draw_run(world, design, family, position, outcomes)
    frame = _ordered(drawn, position, world.losses.errors, around)
    return _table(world, design, frame, family, around, digests)


def _ordered(drawn: Drawn, position: IntArray, errors: float, rng: np.random.Generator) -> _Frame:
    """Order draws in time, put failures before their draws, and find sources and parents."""
    place = position[drawn.condition, drawn.replicate, drawn.task]
    vote = drawn.arm == ARM_ORDER.index("A1")
    round_ = np.where(vote, 1, drawn.attempt)
    order = np.lexsort(
        (drawn.attempt, drawn.arm, place, round_, place // BLOCK, drawn.replicate, drawn.condition)
    )
    drawn = Drawn(*(getattr(drawn, name)[order] for name in Drawn.__slots__))
    place, round_, vote = place[order], round_[order], vote[order]

    change = np.zeros(len(place), dtype=np.bool_)
    for key in (drawn.condition, drawn.replicate, place // BLOCK, round_):
        change[1:] |= key[1:] != key[:-1]
    wave = np.cumsum(change, dtype=np.int64)

    row = np.arange(len(place))
    source = np.maximum.accumulate(np.where(drawn.copied, 0, row))
    parent = np.full(len(place), -1)
    chained = np.lexsort((drawn.attempt, drawn.task, drawn.replicate, drawn.arm, drawn.condition))
    parent[chained[1:]] = chained[:-1]
    parent[(drawn.attempt == 1) | vote] = -1

    failing = (rng.random(len(place)) < errors) & ~drawn.copied
    rows = np.repeat(row, 1 + failing)
    real = np.cumsum(1 + failing) - 1
    failed = np.zeros(len(rows), dtype=np.bool_)
    failed[real[failing] - 1] = True
    source, parent = real[source][rows], np.where(parent < 0, -1, real[parent])[rows]
    source = np.where(failed, np.arange(len(rows)), source)
    drawn = Drawn(*(getattr(drawn, name)[rows] for name in Drawn.__slots__))
    return _Frame(drawn, failed, source, parent, wave[rows])


def _table(
    world: World, design: Design, frame: _Frame, family: IntArray, rng: np.random.Generator, digests: bool
) -> pd.DataFrame:
    d, failed, source = frame.drawn, frame.failed, frame.source
    teacher = d.arm >= ARM_ORDER.index("A4")
    feedback = (d.arm == ARM_ORDER.index("A3")) & (d.attempt > 1)
    blind = (d.attempt > 1) & ~feedback & (d.arm != ARM_ORDER.index("A1"))
    unscored = (rng.random(len(d.task)) < world.losses.unscored)[source] & ~failed
    correct, flagged = CORRECT[d.kind], FLAGGED[d.kind]
    load = _load(world, design, frame, teacher, rng)
    classes = np.where(STRUCTURAL[d.kind], "structural", "semantic").astype(object)
    conditions = ["primary", *(condition.name for condition in design.conditions)]
    precisions = [world.effect(name).precision or PRECISION for name in conditions]
    stochastic = np.zeros(len(ARM_ORDER), dtype=np.bool_)
    for arm in design.arms():
        stochastic[ARM_ORDER.index(arm.name)] = arm.stochastic
    warm = stochastic[d.arm]
    seeds = np.zeros(int(d.replicate.max()) + 1, dtype=np.int64)
    known = min(len(seeds), len(design.seeds))
    seeds[:known] = design.seeds[:known]
    task_ids = _texts([f"t{index:03d}" for index in range(1, design.tasks + 1)])
    draw_id = _draw_ids(frame, task_ids, conditions)
    blank: dict[str, Any] = {}
    blank["output_sha256"] = blank["prompt_sha256"] = np.full(len(d.task), None, dtype=object)
    if digests:
        blank = _digests(d, frame.parent, feedback, failed, task_ids)
    columns: dict[str, Any] = {
        "draw_id": draw_id,
        "task_id": task_ids[d.task],
        "family": _texts([one.name for one in world.families])[family[d.task]],
        "arm": _texts(ARM_ORDER)[d.arm],
        "condition": _texts(conditions)[d.condition],
        "copy_of": _only(d.copied & ~failed, draw_id[source]),
        "tier": _pick(teacher, "teacher", "small"),
        "model": _pick(teacher, TEACHER_MODEL, SMALL_MODEL),
        "precision": np.where(teacher, TEACHER_PRECISION, _texts(precisions)[d.condition]).astype(object),
        "temperature": np.where(warm, design.temperature, 0.0),
        "top_p": np.ones(len(d.task)),
        "seed": _masked(seeds[d.replicate], d.replicate >= len(design.seeds)),
        "max_tokens": _masked(np.full(len(d.task), MAX_TOKENS), np.zeros(len(d.task), dtype=np.bool_)),
        "replicate": d.replicate,
        "attempt": d.attempt,
        "prompt_kind": np.where(feedback, "feedback", np.where(blind, "blind", "initial")).astype(object),
        "parent": _only(frame.parent >= 0, draw_id[frame.parent]),
        "correct": _tri(correct, failed | unscored),
        "flagged": _tri(flagged, failed),
        "error_class": _only(flagged & ~failed, classes),
        "code": _only(flagged & ~failed, _pick(STRUCTURAL[d.kind], "schema", "range")),
        "answered_class": _only(feedback, classes[frame.parent]),
        "oracle_flagged": _tri(d.kind != 6, correct | failed | unscored),
        "billed": np.where(failed, 0.0, np.where(teacher, world.rho, 1.0)),
        "tokens_in": _masked(load.tokens_in, failed),
        "tokens_out": _masked(load.tokens_out, failed),
        "started_at": _instants(load.started),
        "ended_at": _instants(load.ended),
        "in_flight": _masked(load.in_flight, np.zeros(len(d.task), dtype=np.bool_)),
        "device_seconds": np.where(failed, np.nan, load.device_seconds),
        "emitted": _tri(d.emitted & ~failed, np.zeros(len(d.task), dtype=np.bool_)),
        "error_kind": _only(failed | unscored, _pick(failed, "timeout", "unscored")),
        "log": np.zeros(len(d.task), dtype=np.int64),
        **blank,
    }
    return pd.DataFrame({name: pd.Series(columns[name], dtype=dtype) for name, dtype in DRAW_COLUMNS.items()})


@dataclass(frozen=True, slots=True)
class _Loads:
    tokens_in: IntArray
    tokens_out: IntArray
    in_flight: IntArray
    device_seconds: FloatArray
    started: IntArray
    """Milliseconds since the epoch."""
    ended: IntArray


def _load(
    world: World, design: Design, frame: _Frame, teacher: BoolArray, rng: np.random.Generator
) -> _Loads:
    """Give every execution its tokens, load, device time and place on the clock.

    A draw with ``n`` requests in flight takes ``n`` times its device seconds; draws of a wave start one
    device time apart, so that about ``n`` of them overlap. A wave starts when the wave before it has ended.
    """
    d, model, rows = frame.drawn, world.load, len(frame.source)
    copied = frame.source != np.arange(rows)
    factors = np.array([1.0, *(world.effect(condition.name).load_factor for condition in design.conditions)])
    alpha = rng.normal(0.0, model.task_sd, design.tasks) if model.task_sd else np.zeros(design.tasks)
    tokens_out = np.clip(np.rint(np.exp(rng.normal(np.log(40.0), 0.35, rows))), 4, MAX_TOKENS)
    flight = rng.integers(model.in_flight_min, model.in_flight_max + 1, rows) * factors[d.condition]
    flight = np.maximum(1, np.rint(flight))
    logged = np.log(model.seconds) + alpha[d.task] + model.h * np.log(flight)
    logged += model.slope * np.log(tokens_out / 40.0) + model.noise_sd * rng.standard_normal(rows)
    logged += np.where(teacher, np.log(world.rho) if world.rho > 0 else 0.0, 0.0)
    seconds = np.round(np.exp(logged), 4)
    tokens_in = 180 + 10 * (d.task % 7) + 45 * (d.attempt - 1) * (d.arm == ARM_ORDER.index("A3"))
    step = np.where(copied, 0, np.where(frame.failed, TIMEOUT_MS, np.maximum(1, np.rint(1000 * seconds))))
    lasting = np.where(frame.failed, TIMEOUT_MS, np.maximum(1, np.rint(1000 * seconds * flight)))

    offset = np.cumsum(step) - step
    heads = np.flatnonzero(np.diff(frame.wave, prepend=-1))
    offset = offset - offset[heads][frame.wave]
    length = np.maximum.reduceat(np.where(copied, 0, offset + lasting), heads)
    begin = np.cumsum(length) - length
    started = START_MS + (begin[frame.wave] + offset).astype(np.int64)
    s = frame.source
    return _Loads(
        tokens_in=tokens_in[s],
        tokens_out=tokens_out[s].astype(np.int64),
        in_flight=flight[s].astype(np.int64),
        device_seconds=seconds[s],
        started=started[s],
        ended=(started + lasting.astype(np.int64))[s],
    )


def _draw_ids(frame: _Frame, task_ids: ObjectArray, conditions: Sequence[str]) -> ObjectArray:
    """Return readable ids: task, arm, replicate, attempt, then the condition, then ``e1`` for a failure."""
    d = frame.drawn
    keys = np.stack([d.arm, d.replicate, d.attempt, d.condition, frame.failed.astype(np.int64)])
    code = np.ravel_multi_index(tuple(keys), tuple(keys.max(axis=1) + 1))
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    suffixes = []
    for arm, replicate, attempt, condition, failed in keys[:, first].T.tolist():
        text = f".{ARM_ORDER[arm]}.r{replicate}.a{attempt}"
        text += f".{conditions[condition]}" if condition else ""
        suffixes.append(text + (".e1" if failed else ""))
    return np.asarray(task_ids[d.task] + _texts(suffixes)[inverse], dtype=object)


def _digests(
    d: Drawn, parent: IntArray, feedback: BoolArray, failed: BoolArray, task_ids: ObjectArray
) -> dict[str, ObjectArray]:
    """Hash stand-ins of prompts and outputs: equal where the texts would be equal byte for byte.

    A first or blind prompt is the task's; a feedback prompt is known by its task, its attempt and the output
    it answers. Outputs are known by task and canonical form, whichever tier wrote them.
    """
    output = (d.form * KINDS + d.kind) * len(task_ids) + d.task
    asked = np.where(feedback, 1 + d.attempt, 0) * (int(output.max()) + 1) + np.where(
        feedback, output[parent], d.task
    )
    return {
        "output_sha256": _only(~failed, _hashed("output", output)),
        "prompt_sha256": _hashed("prompt", asked),
    }


def _hashed(label: str, codes: IntArray) -> ObjectArray:
    distinct, inverse = np.unique(codes, return_inverse=True)
    texts = [hashlib.sha256(f"simulated {label} {code}".encode()).hexdigest() for code in distinct.tolist()]
    return _texts(texts)[inverse]


def _texts(values: Sequence[str]) -> ObjectArray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _pick(condition: BoolArray, yes: str, no: str) -> ObjectArray:
    return _texts([no, yes])[condition.astype(np.int64)]


def _only(condition: BoolArray, values: ObjectArray) -> ObjectArray:
    out = np.full(len(values), None, dtype=object)
    out[condition] = values[condition]
    return out


def _tri(values: BoolArray, missing: BoolArray) -> Any:
    return pd.arrays.BooleanArray(values & ~missing, missing.copy())


def _masked(values: IntArray, missing: BoolArray) -> Any:
    return pd.arrays.IntegerArray(np.where(missing, 0, values).astype(np.int64), missing.copy())


def _instants(milliseconds: IntArray) -> pd.DatetimeIndex:
    return pd.DatetimeIndex((milliseconds * 1_000_000).astype("datetime64[ns]"), tz="UTC")
