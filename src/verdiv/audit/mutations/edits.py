"""Small tools that breakages are made with: pick draws, change them, rewrite lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from verdiv.audit.mutations.clean import CleanRun
from verdiv.runlog.records import Draw

__all__ = ["Pick", "change", "change_every", "drop", "edit_lines", "first", "insert_after", "where"]

Pick = Callable[[Draw], bool]
"""Tells whether a draw is meant."""


def where(**wanted: Any) -> Pick:
    """Return a pick by fields; ``flagged`` looks into the verdict, ``failed`` at the error, ``own`` at copies.

    Examples
    --------
    >>> draw = Draw(draw_id="d", task_id="t", arm="A0", correct=True, billed=1.0)
    >>> where(arm="A0", failed=False)(draw), where(flagged=True)(draw)
    (True, False)
    """

    def pick(draw: Draw) -> bool:
        for name, value in wanted.items():
            if name == "flagged":
                got: Any = None if draw.static is None else draw.static.flagged
            elif name == "failed":
                got = draw.error is not None
            elif name == "own":
                got = draw.copy_of is None
            elif name == "warm":
                got = draw.decoding is not None and bool(draw.decoding.temperature)
            else:
                got = getattr(draw, name)
            if got != value:
                return False
        return True

    return pick


def first(run: CleanRun, pick: Pick, *, nth: int = 0) -> int:
    """Return the place of a draw.

    Raises
    ------
    LookupError
        The clean run has no such draw.
    """
    places = [at for at, draw in enumerate(run.draws) if pick(draw)]
    if nth >= len(places):
        raise LookupError("the clean run has no such draw")
    return places[nth]


def change(run: CleanRun, pick: Pick, nth: int = 0, **changes: Any) -> Draw:
    """Change one draw and rewrite the log with a chain that holds; return the draw as it was."""
    at = first(run, pick, nth=nth)
    before = run.draws[at]
    run.draws[at] = msgspec.structs.replace(before, **changes)
    run.write_log()
    return before


def change_every(run: CleanRun, pick: Pick, edit: Callable[[Draw], Draw]) -> None:
    """Change every draw that is meant, and rewrite the log."""
    run.draws = [edit(draw) if pick(draw) else draw for draw in run.draws]
    run.write_log()


def drop(run: CleanRun, pick: Pick) -> None:
    """Leave out every draw that is meant, and what repeats or answers it; rewrite log and expectation."""
    gone: set[str] = set()
    kept = []
    for draw in run.draws:
        if pick(draw) or draw.parent in gone or draw.copy_of in gone:
            gone.add(draw.draw_id)
        else:
            kept.append(draw)
    run.draws = kept
    expect(run)
    run.write_log()


def expect(run: CleanRun) -> None:
    """Let the header expect the draws that are there."""
    run.header = msgspec.structs.replace(run.header, expected_draws=len(run.draws))


def insert_after(run: CleanRun, at: int, draw: Draw) -> None:
    """Add a draw, and rewrite log and expectation."""
    run.draws.insert(at + 1, draw)
    expect(run)
    run.write_log()


def edit_lines(run: CleanRun, edit: Callable[[list[bytes]], list[bytes]]) -> None:
    """Edit the lines of the log as a text editor would, chain and footer left as they were."""
    lines = run.log_path.read_bytes().splitlines()
    run.log_path.write_bytes(b"".join(line + b"\n" for line in edit(lines)))
