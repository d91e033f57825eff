"""Processes that share the work on long logs, and that end with the one that started them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children, get_context
from types import TracebackType
from typing import Any, Self, TypeVar

__all__ = ["Helpers"]

Result = TypeVar("Result")


def _end_on_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Helpers:
    """Processes that do independent pieces of work; none is started where there is one piece, or one worker.

    Parameters
    ----------
    workers
        Most processes at once.

    Notes
    -----
    An interrupt from the keyboard reaches every process of the terminal. A helper ends without a word; while it starts
    up it takes no notice, and is ended with the block.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        """Begin; no process is started yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all helpers, at once where there was an error."""
        if self._pool is None:
            return
        if kind is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for one in active_children():
                one.terminate()
        self._pool.shutdown()

    def map(self, work: Callable[..., Result], *arguments: Sequence[Any]) -> Iterator[Result]:
        """Do some work for each argument, in order."""
        if self.workers < 2 or len(arguments[0]) < 2:
            return map(work, *arguments)
        if self._pool is not None:
            return self._pool.map(work, *arguments)
        self._pool = ProcessPoolExecutor(self.workers, get_context("spawn"), initializer=_end_on_interrupt)
        if threading.current_thread() is not threading.main_thread():
            return self._pool.map(work, *arguments)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return self._pool.map(work, *arguments)
        finally:
            signal.signal(signal.SIGINT, before)
