"""The draw_ids of a long log held together in few bytes each: whether one stands twice, or names none that is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pandas.util import hash_array

__all__ = ["NameHashes"]


def _hashes(names: Any) -> NDArray[np.uint64]:
    """Return 64 bits of each name of an Arrow column, without those that are null."""
    texts = names.drop_null().to_numpy(zero_copy_only=False)
    return hash_array(texts, categorize=False)


@dataclass(frozen=True)
class NameHashes:
    """64-bit hashes of names, which two of ten million names share once in 400,000 logs.

    What :meth:`hold` denies is looked up name by name before it is believed.
    """

    own: list[NDArray[np.uint64]] = field(default_factory=list)
    """Of draws."""
    named: list[NDArray[np.uint64]] = field(default_factory=list)
    """Of what draws answer or repeat."""

    def add(self, batch: Any) -> None:
        """Take the draws of a flat batch."""
        self.own.append(_hashes(batch.column("draw_id")))
        for link in ("parent", "copy_of"):
            if batch.column(link).null_count < batch.num_rows:
                self.named.append(_hashes(batch.column(link)))

    def take(self, other: NameHashes) -> None:
        """Take other draws of the same log."""
        self.own.extend(other.own)
        self.named.extend(other.named)

    def hold(self) -> bool:
        """Whether each draw has a name of its own, and every name told is that of a draw."""
        if not self.own:
            return True
        known = np.sort(np.concatenate(self.own))
        if (known[1:] == known[:-1]).any():
            return False
        if not self.named:
            return True
        named = np.concatenate(self.named)
        places = np.minimum(np.searchsorted(known, named), len(known) - 1)
        return bool((known[places] == named).all())
