"""Which chain runs next: the earliest that is ready, so that nobody holds a place while it waits for another's draw."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable

from verdiv.protocol.runner.design import Chain

__all__ = ["Schedule"]


class Schedule:
    """Chains of one condition, handed out in running order as soon as the draws they share are there.

    Parameters
    ----------
    chains
        In running order.
    there
        Tells whether a draw is in the log already.
    """

    def __init__(self, chains: Iterable[Chain], there: Callable[[str], bool]) -> None:
        self._ready: list[tuple[int, Chain]] = []
        self._waiting: dict[str, list[tuple[int, Chain]]] = {}
        self._changed = asyncio.Condition()
        self._ended = False
        for place, chain in enumerate(chains):
            if chain.copies is None or there(chain.copies):
                self._ready.append((place, chain))
            else:
                self._waiting.setdefault(chain.copies, []).append((place, chain))

    async def next(self) -> Chain | None:
        """Wait for a chain that can run.

        Returns
        -------
        Chain or None
            The earliest ready one; None when all were handed out, or the schedule was ended.
        """
        async with self._changed:
            while not self._ready and self._waiting and not self._ended:
                await self._changed.wait()
            if self._ended or not self._ready:
                return None
            return heapq.heappop(self._ready)[1]

    async def made(self, draw_id: str) -> None:
        """Tell that a draw is in the log: the chains that share it are ready.

        Parameters
        ----------
        draw_id
            The draw.
        """
        async with self._changed:
            for entry in self._waiting.pop(draw_id, []):
                heapq.heappush(self._ready, entry)
            self._changed.notify_all()

    async def end(self) -> None:
        """Hand out no further chain."""
        async with self._changed:
            self._ended = True
            self._changed.notify_all()
