"""What a draw's fields must be to each other, and what draws must be to each other.

The rules of one draw stand twice: :func:`draw_faults` says what is wrong with one record, and
:func:`suspects` finds, column by column and at a small part of the cost, the records to ask it about. A test
holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verdiv.errors import Fault
from verdiv.runlog.columns import MISSING, Chunk
from verdiv.runlog.records import SHA256_PATTERN, Draw, PromptKind
from verdiv.runlog.stamps import is_time, no_times, time_fault

__all__ = ["Links", "draw_faults", "is_digest", "suspects"]

HEX = b"0123456789abcdef"

is_digest = re.compile(SHA256_PATTERN.removesuffix("$") + r"\Z").match


def draw_faults(draw: Draw, where: str, line: int) -> list[Fault]:
    """Return what contradicts itself in a draw whose fields hold to their types.

    Parameters
    ----------
    draw
        The record.
    where, line
        File and line that the faults name.

    Returns
    -------
    list of Fault
        A digest that is none; a time that no calendar has; an outcome on a failed draw; an initial attempt
        with another prompt; an answered class or an error class where there is no error to class; a draw
        that answers or repeats itself.
    """
    faults = [
        Fault(
            where, "64 lower-case hex digits", repr(text), "write the SHA-256 in hex", line=line, field=field
        )
        for field, text in (("prompt_sha256", draw.prompt_sha256), ("output_sha256", draw.output_sha256))
        if text is not None and not is_digest(text)
    ]
    faults += [
        time_fault(where, text, line, field)
        for field, text in (("started_at", draw.started_at), ("ended_at", draw.ended_at))
        if text is not None and not is_time(text)
    ]
    faults += [
        Fault(where, expected, got, remedy, line=line, field=field)
        for field, expected, got, remedy in _contradictions(draw)
    ]
    return faults


def _contradictions(draw: Draw) -> Iterator[tuple[str, str, str, str]]:
    """Yield field, expected, got and remedy of each contradiction."""
    if draw.error is not None and draw.correct is not None:
        yield (
            "correct",
            "null on a draw with an error",
            str(draw.correct).lower(),
            "a failed request is not a measurement: drop the error, or the outcome",
        )
    if draw.attempt == 1 and draw.prompt_kind is not PromptKind.INITIAL:
        yield (
            "prompt_kind",
            "initial on attempt 1",
            draw.prompt_kind.value,
            "number attempts from 1, the initial draw",
        )
    if draw.answered_class is not None and draw.prompt_kind is not PromptKind.FEEDBACK:
        yield (
            "answered_class",
            f"null on a draw with {draw.prompt_kind.value} prompt",
            draw.answered_class.value,
            "only a feedback prompt reports an error",
        )
    if draw.static is not None and draw.static.error_class is not None and not draw.static.flagged:
        yield (
            "static.class",
            "null on an unflagged draw",
            draw.static.error_class.value,
            "only a flagged draw has an error to class",
        )
    for field, name in (("parent", draw.parent), ("copy_of", draw.copy_of)):
        if name == draw.draw_id:
            yield field, "another draw", repr(name), "name the draw it answers or repeats"


def suspects(chunk: Chunk) -> NDArray[np.bool_]:
    """Return which draws of a chunk contradict themselves.

    Parameters
    ----------
    chunk
        Draws whose fields hold to their types.

    Returns
    -------
    ndarray of bool
        One a draw; True exactly where :func:`draw_faults` has something to say.
    """
    column = chunk.array
    kind, ids = column("prompt_kind"), column("draw_id")
    found: NDArray[np.bool_] = _present(column("error_kind")) & (column("correct") != MISSING)
    found |= (column("attempt") == 1) & (kind != "initial")
    found |= _present(column("answered_class")) & (kind != "feedback")
    found |= _present(column("error_class")) & (column("flagged") == 0)
    found |= (column("parent") == ids) | (column("copy_of") == ids)
    for name in ("prompt_sha256", "output_sha256"):
        found |= _no_digest(column(name))
    for name, stamps in chunk.stamps.items():
        found |= no_times(stamps, column(name))
    return found


def _present(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where an object column holds something."""
    return np.asarray(column != np.array(None, dtype=object), dtype=np.bool_)


def _no_digest(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where text is not 64 hex digits; one pass over all the text at once where all is well."""
    said = [text for text in column if text is not None]
    whole = "".join(said)
    if len(whole) == 64 * len(said) and whole.isascii() and not whole.encode().translate(None, HEX):
        return np.zeros(len(column), dtype=np.bool_)
    return np.array([text is not None and not is_digest(text) for text in column], dtype=np.bool_)


class Links:
    """Holds a log's draw_ids together: each once, and none named that is not there.

    Parameters
    ----------
    where
        File that the faults name.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._lines: dict[str, int] = {}
        self._wanted: list[tuple[int, str, str]] = []
        self._lost: set[str | None] = set()

    def add(self, chunk: Chunk) -> Iterator[Fault]:
        """Take the next draws and yield the faults of ids that stand twice."""
        ids = chunk.array("draw_id")
        new = dict(zip(ids, chunk.lines, strict=True))
        if len(new) == len(ids) and self._lines.keys().isdisjoint(new):
            self._lines.update(new)
        else:
            for name, line in zip(ids, chunk.lines, strict=True):
                first = self._lines.setdefault(name, line)
                if first != line:
                    yield Fault(
                        self.where,
                        "a draw_id that no other draw has",
                        f"{name!r}, which stands at line {first} too",
                        "give each draw its own id, or remove the repeated record",
                        line=line,
                        field="draw_id",
                    )
        for field in ("parent", "copy_of"):
            names = chunk.array(field)
            for row in np.flatnonzero(_present(names)):
                if names[row] not in self._lines:
                    self._wanted.append((chunk.lines[int(row)], field, names[row]))

    def excuse(self, names: Iterable[str | None]) -> None:
        """Take note of draws that are there but faulty; None stands for one that cannot even be named."""
        self._lost.update(names)

    def dangling(self) -> Iterator[Fault]:
        """Yield, at the end of the log, the faults of named draws that never came."""
        if None in self._lost:
            return
        for line, field, name in self._wanted:
            if name not in self._lines and name not in self._lost:
                yield Fault(
                    self.where,
                    "the draw_id of a draw in this log",
                    repr(name),
                    "keep a draw and what it answers or repeats in one log",
                    line=line,
                    field=field,
                )
