"""Columns of counts that are held once, however many names they have: most counts of a run are 0 or repeat another."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from verdiv.estimators.observations import FloatArray, IntArray

__all__ = ["Joiner", "Sharer"]


class Sharer:
    """Gives equal columns one array, which can no longer be written to."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, bytes], FloatArray] = {}

    def __call__(self, column: FloatArray) -> FloatArray:
        """Return the first column with the same bytes."""
        column = np.ascontiguousarray(column, dtype=np.float64)
        key = (column.size, blake2b(column.data, digest_size=32).digest())
        kept = self._kept.setdefault(key, column)
        kept.flags.writeable = False
        return kept


class Joiner:
    """Lays columns of different tasks end to end; the same parts give the same column, made once.

    Parameters
    ----------
    order
        Places of the tasks one after another, shape ``(tasks,)``, in the order wanted.
    """

    def __init__(self, order: IntArray) -> None:
        self.order = order
        self._made: dict[tuple[int, ...], tuple[tuple[FloatArray, ...], FloatArray]] = {}
        self._zeros: dict[int, FloatArray] = {}

    def __call__(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Return the whole column."""
        key = tuple(map(id, parts))
        if key not in self._made:  # the parts are kept, so that no other array takes over their place
            self._made[key] = (tuple(parts), np.concatenate(parts)[self.order])
        return self._made[key][1]

    def zeros(self, tasks: int) -> FloatArray:
        """Return one and the same column of zeros for some tasks."""
        return self._zeros.setdefault(tasks, np.zeros(tasks))
