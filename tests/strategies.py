"""Hypothesis strategies that several tests share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
from hypothesis import strategies as st

from verdiv.runlog.records import (
    LARGEST,
    AnsweredClass,
    Decoding,
    Draw,
    DrawError,
    ErrorClass,
    Gate,
    Header,
    ModelCard,
    Oracle,
    PromptKind,
    Serving,
    Static,
)

__all__ = ["bare", "contradictions", "digests", "draw_lists", "headers", "stamps", "texts"]

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
"""Any text that UTF-8 can hold, quotes, line ends and control characters included."""

digests = st.integers(min_value=0, max_value=2**256 - 1).map(lambda number: f"{number:064x}")
"""SHA-256 digests in hex."""

_numbers = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
_counts = st.integers(min_value=0, max_value=LARGEST)
_ordinals = st.integers(min_value=1, max_value=LARGEST)


@st.composite
def stamps(draw: st.DrawFn) -> str:
    """RFC 3339 times: any offset, any number of decimals, either case."""
    minutes = draw(st.integers(min_value=-23 * 60 - 59, max_value=23 * 60 + 59))
    when = draw(
        st.datetimes(min_value=datetime(1700, 1, 3), max_value=datetime(2199, 12, 29), timezones=st.just(UTC))
    ).astimezone(timezone(timedelta(minutes=minutes)))
    text = when.strftime("%Y-%m-%dT%H:%M:%S")
    if digits := draw(st.text("0123456789", max_size=9)):
        text += f".{digits}"
    hours, rest = divmod(abs(minutes), 60)
    offset = f"{'-' if minutes < 0 else '+'}{hours:02d}:{rest:02d}"
    if minutes == 0:
        offset = draw(st.sampled_from(["Z", "z", "+00:00", "-00:00"]))
    text += offset
    return text.replace("T", draw(st.sampled_from("Tt ")))


def _maybe(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | inner


_cards = st.builds(ModelCard, name=texts, precision=_maybe(texts), revision=_maybe(texts))

headers: st.SearchStrategy[Header] = st.builds(
    Header,
    schema=st.just(1),
    run_id=texts,
    gate=st.sampled_from(Gate),
    harness=texts,
    harness_version=_maybe(texts),
    preregistration_sha256=_maybe(digests),
    models=st.dictionaries(texts, _cards, max_size=2),
    serving=_maybe(
        st.builds(Serving, engine=texts, version=_maybe(texts), max_concurrency=_maybe(_ordinals))
    ),
    suite_sha256=_maybe(digests),
    started_at=_maybe(stamps()),
    expected_draws=_maybe(_counts),
    order_meaningful=st.booleans(),
    note=_maybe(st.text(st.characters(exclude_categories=["Cs"]))),
)
"""Headers of the format's version."""

_statics = st.one_of(
    st.builds(Static, flagged=st.just(False), code=_maybe(texts), message=_maybe(texts)),
    st.builds(
        Static,
        flagged=st.just(True),
        error_class=_maybe(st.sampled_from(ErrorClass)),
        code=_maybe(texts),
        message=_maybe(texts),
    ),
)

_decodings = st.builds(
    Decoding,
    temperature=_maybe(_numbers),
    top_p=_maybe(st.floats(min_value=0, max_value=1)),
    seed=_maybe(st.integers(min_value=-LARGEST - 1, max_value=LARGEST)),
    max_tokens=_maybe(_ordinals),
)


@st.composite
def _draws(draw: st.DrawFn, name: str, earlier: list[str]) -> Draw:
    kind = draw(st.sampled_from(PromptKind))
    attempt = draw(st.integers(min_value=1, max_value=6)) if kind is PromptKind.INITIAL else 2
    error = draw(_maybe(st.builds(DrawError, kind=texts, message=_maybe(texts))))
    link: Callable[[], str | None] = lambda: draw(_maybe(st.sampled_from(earlier))) if earlier else None  # noqa: E731
    return Draw(
        draw_id=name,
        task_id=draw(texts),
        family=draw(texts),
        arm=draw(st.sampled_from(["A0", "A2s", "A3", "other"])),
        condition=draw(st.sampled_from(["primary", "heavy-load"])),
        copy_of=link(),
        tier=draw(texts),
        model=draw(_maybe(texts)),
        precision=draw(_maybe(texts)),
        decoding=draw(_maybe(_decodings)),
        replicate=draw(_counts),
        attempt=attempt,
        prompt_kind=kind,
        parent=link(),
        prompt_sha256=draw(_maybe(digests)),
        output=draw(_maybe(st.text(st.characters(exclude_categories=["Cs"])))),
        output_sha256=draw(_maybe(digests)),
        correct=None if error else draw(_maybe(st.booleans())),
        static=draw(_maybe(_statics)),
        answered_class=draw(_maybe(st.sampled_from(AnsweredClass))) if kind is PromptKind.FEEDBACK else None,
        oracle=draw(_maybe(st.builds(Oracle, flagged=st.booleans()))),
        billed=draw(_numbers),
        tokens_in=draw(_maybe(_counts)),
        tokens_out=draw(_maybe(_counts)),
        started_at=draw(_maybe(stamps())),
        ended_at=draw(_maybe(stamps())),
        in_flight=draw(_maybe(_ordinals)),
        device_seconds=draw(_maybe(_numbers)),
        emitted=draw(_maybe(st.booleans())),
        error=error,
    )


@st.composite
def draw_lists(draw: st.DrawFn, *, min_size: int = 0, max_size: int = 4) -> list[Draw]:
    """Draws of one log: ids of their own, named draws among them, nothing that contradicts itself."""
    names = draw(st.lists(texts, min_size=min_size, max_size=max_size, unique=True))
    return [draw(_draws(name, names[:place])) for place, name in enumerate(names)]


def bare(records: list[Draw]) -> list[Draw]:
    """Take the links off draws, to compare draws of different logs."""
    return [msgspec.structs.replace(record, prev=None) for record in records]


contradictions = st.fixed_dictionaries(
    {},
    optional={
        "error": st.just(DrawError(kind="timeout")),
        "correct": st.sampled_from([None, True, False]),
        "attempt": st.integers(min_value=1, max_value=3),
        "prompt_kind": st.sampled_from(PromptKind),
        "answered_class": st.sampled_from([None, *AnsweredClass]),
        "static": st.sampled_from(
            [None, Static(flagged=False), Static(flagged=False, error_class=ErrorClass.SEMANTIC)]
        ),
        "parent": st.sampled_from([None, "a", "b"]),
        "copy_of": st.sampled_from([None, "a", "b"]),
        "prompt_sha256": st.sampled_from([None, "a" * 64, "A" * 64, "g" * 64, "é" * 64, "a" * 63 + "\n"]),
        "output_sha256": st.sampled_from([None, "0" * 64, "0" * 63 + " "]),
        "started_at": st.sampled_from([None, "2026-01-31T09:30:00Z", "2026-02-30T09:30:00Z", "x" * 20]),
        "ended_at": st.sampled_from([None, "2026-01-31t09:30:00+01:00", "2026-01-31T09:30:00", "NaT"]),
    },
)
"""Changes to a plain draw, some of which contradict the rest of it."""
