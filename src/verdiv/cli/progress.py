"""Progress on standard error: a bar on a terminal, a line now and then where a long job has none."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["ProgressBar"]

QUIET_SECONDS = 10.0
"""Seconds between lines where standard error is no terminal."""


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """A callable ``(stage, done, total)`` that shows how far a job is.

    Parameters
    ----------
    terminal
        Whether to draw bars; by default, whether standard error is a terminal.

    Notes
    -----
    ``done`` and ``total`` are in any one unit; without them a call only names the stage that has begun.
    Without a total the end is unknown.
    """

    def __init__(self, terminal: bool | None = None) -> None:
        self._terminal = sys.stderr.isatty() if terminal is None else terminal
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._spoke = time.monotonic()

    def __enter__(self) -> Self:
        """Start to show progress."""
        if self._terminal:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bars = Progress(
                TextColumn("{task.description:<24}"),
                BarColumn(bar_width=30),
                TextColumn("{task.percentage:>3.0f} %"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clear the bars."""
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, stage: str, done: float | None = None, total: float | None = None) -> None:
        """Show how far a stage is."""
        if self._bars is not None:
            if stage not in self._tasks:
                self._finish_others()
                self._tasks[stage] = self._bars.add_task(stage, total=total)
            self._bars.update(self._tasks[stage], completed=done or 0, total=total)
        elif time.monotonic() - self._spoke >= QUIET_SECONDS:
            self._spoke = time.monotonic()
            share = f" {done / total:.0%}" if total and done else ""
            print(f"verdiv: {stage}{share} …", file=sys.stderr, flush=True)

    def _finish_others(self) -> None:
        assert self._bars is not None
        for task in self._bars.tasks:
            if not task.finished:
                self._bars.update(task.id, total=1.0, completed=1.0)
