"""The draws of a run as compact arrays, gathered frame by frame so that a long log stays in bounded memory.

A text column becomes codes; a digest becomes its first 64 bits, enough to tell texts of one run apart; parents and
copies become row numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

__all__ = ["CODED", "MISSING_TIME", "DrawCollector", "Draws", "IntArray"]

IntArray = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.int8]
BoolArray = npt.NDArray[np.bool_]

CODED = (
    "task_id", "family", "arm", "condition", "tier", "model", "precision", "prompt_kind", "error_class",
    "answered_class", "error_kind",
)  # fmt: skip
"""Text columns kept as codes; −1 is missing."""

TRI = ("correct", "flagged", "oracle_flagged", "emitted")
NUMBERS = ("temperature", "top_p", "billed", "device_seconds")
MASKED = ("seed", "max_tokens", "in_flight")
DIGESTS = ("prompt_sha256", "output_sha256")
TIMES = ("started_at", "ended_at")

MISSING_TIME = np.iinfo(np.int64).min
"""No time, in nanoseconds since 1970."""

MISSING_INT = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Draws:
    """All draws of a run."""

    ids: npt.NDArray[Any]
    """draw_id, object."""
    codes: Mapping[str, Codes]
    names: Mapping[str, Sequence[str]]
    """Column to the text of each code."""
    tri: Mapping[str, Flags]
    """1, 0, and −1 for missing."""
    numbers: Mapping[str, npt.NDArray[np.float64]]
    masked: Mapping[str, IntArray]
    """Integers; the smallest integer stands for missing."""
    digests: Mapping[str, npt.NDArray[np.uint64]]
    """0 for missing."""
    times: Mapping[str, IntArray]
    replicate: IntArray
    attempt: IntArray
    log: IntArray
    parent: IntArray
    """Row of the draw this one answers; −1 for none."""
    copy_of: IntArray
    """Row of the draw this one repeats; −1 for none."""

    def __len__(self) -> int:
        """Count the draws."""
        return len(self.ids)

    def code(self, column: str, text: str) -> int:
        """Return the code of a text; −2, which no draw has, for one that does not occur."""
        names = self.names[column]
        return names.index(text) if text in names else -2

    def text(self, column: str, row: int) -> str | None:
        """Return a draw's text."""
        code = int(self.codes[column][row])
        return None if code < 0 else self.names[column][code]

    @cached_property
    def failed(self) -> BoolArray:
        """Draws that ended in an error: no measurements."""
        return np.asarray(self.codes["error_kind"] >= 0)

    @cached_property
    def chain(self) -> IntArray:
        """Number of each draw's chain: condition, arm, task and replicate."""
        parts = [self.codes[name].astype(np.int64) for name in ("condition", "arm", "task_id")]
        parts.append(np.minimum(self.replicate, 2**20 - 1))
        sizes = [len(self.names[name]) + 1 for name in ("condition", "arm", "task_id")] + [2**20]
        key = np.zeros(len(self), dtype=np.int64)
        for part, size in zip(parts, sizes, strict=True):
            key = key * size + part
        return np.unique(key, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def measured(self) -> IntArray:
        """Rows of draws that are measurements, by chain and attempt."""
        rows = np.flatnonzero(~self.failed)
        return rows[np.lexsort((self.attempt[rows], self.chain[rows]))]

    @cached_property
    def chain_starts(self) -> IntArray:
        """Places in `measured` at which a chain begins."""
        chain = self.chain[self.measured]
        return np.flatnonzero(np.diff(chain, prepend=-1) != 0).astype(np.int64)

    def name(self, row: int) -> str:
        """Return a draw's name for a message."""
        return repr(self.ids[row])[:80]

    def some(self, rows: IntArray, most: int = 3) -> str:
        """Name the first few of some draws."""
        shown = ", ".join(self.name(int(row)) for row in rows[:most])
        return shown + (f" and {len(rows) - most} more" if len(rows) > most else "")


@dataclass
class DrawCollector:
    """Gathers frames of draws; see :data:`verdiv.runlog.table.DRAW_COLUMNS`."""

    _parts: dict[str, list[Any]] = field(default_factory=dict)
    _names: dict[str, dict[str, int]] = field(default_factory=lambda: {name: {} for name in CODED})
    _rows: dict[str, int] = field(default_factory=dict)
    _named: list[tuple[str, int, str]] = field(default_factory=list)
    _count: int = 0
    _log: int = 0

    def start_log(self, log: int) -> None:
        """Begin the next log, whose draw ids are its own."""
        self._resolve()
        self._rows = {}
        self._log = log

    def _put(self, name: str, values: Any) -> None:
        self._parts.setdefault(name, []).append(values)

    def add(self, frame: pd.DataFrame) -> None:
        """Add the next draws of the current log."""
        for name in CODED:
            codes, uniques = pd.factorize(frame[name].to_numpy(dtype=object))
            known = self._names[name]
            table = np.array([known.setdefault(text, len(known)) for text in uniques], dtype=np.int32)
            self._put(name, np.where(codes >= 0, table[codes] if len(table) else -1, -1).astype(np.int32))
        for name in TRI:
            self._put(name, np.asarray(frame[name].array.to_numpy(dtype=np.int8, na_value=-1)))
        for name in NUMBERS:
            self._put(name, frame[name].to_numpy(dtype=np.float64))
        for name in MASKED:
            self._put(name, frame[name].to_numpy(dtype=np.int64, na_value=MISSING_INT))
        for name in DIGESTS:
            self._put(name, _prefixes(frame[name].to_numpy(dtype=object)))
        for name in TIMES:
            self._put(name, frame[name].to_numpy(dtype="datetime64[ns]").view(np.int64))
        self._put("replicate", frame["replicate"].to_numpy(dtype=np.int64))
        self._put("attempt", frame["attempt"].to_numpy(dtype=np.int64))
        self._put("log", np.full(len(frame), self._log, dtype=np.int64))
        ids = frame["draw_id"].to_numpy(dtype=object)
        self._put("ids", ids)
        self._rows.update(zip(ids, range(self._count, self._count + len(ids)), strict=True))
        for name in ("parent", "copy_of"):
            values = frame[name].to_numpy(dtype=object)
            place = np.full(len(values), -1, dtype=np.int64)
            for at in np.flatnonzero(frame[name].notna().to_numpy()):
                row = self._rows.get(values[at])
                if row is None:
                    self._named.append((name, self._count + int(at), values[at]))
                else:
                    place[at] = row
            self._put(name, place)
        self._count += len(frame)

    def _resolve(self) -> None:
        """Find the draws that were named before they came."""
        if not self._named:
            return
        for name in ("parent", "copy_of"):
            self._parts[name] = [np.concatenate(self._parts[name])]
        for name, row, wanted in self._named:
            self._parts[name][0][row] = self._rows.get(wanted, -1)
        self._named = []

    def finish(self) -> Draws:
        """Return all draws."""
        self._resolve()
        self._rows = {}

        def whole(name: str, dtype: Any) -> Any:
            parts = self._parts.pop(name, [])
            return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)

        return Draws(
            ids=whole("ids", object),
            codes={name: whole(name, np.int32) for name in CODED},
            names={name: tuple(known) for name, known in self._names.items()},
            tri={name: whole(name, np.int8) for name in TRI},
            numbers={name: whole(name, np.float64) for name in NUMBERS},
            masked={name: whole(name, np.int64) for name in MASKED},
            digests={name: whole(name, np.uint64) for name in DIGESTS},
            times={name: whole(name, np.int64) for name in TIMES},
            replicate=whole("replicate", np.int64),
            attempt=whole("attempt", np.int64),
            log=whole("log", np.int64),
            parent=whole("parent", np.int64),
            copy_of=whole("copy_of", np.int64),
        )


def _prefix(text: str | None) -> int:
    if text is None:
        return 0
    try:
        return int.from_bytes(bytes.fromhex(text[:16])) or 1
    except ValueError:
        return 1


def _prefixes(digests: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return the first 64 bits of hex digests, 0 for missing; a digest that begins with 64 zeros reads as 1.

    What is no digest reads as 1 too: its log is refused at its end, and nothing of it is looked at.
    """
    return np.fromiter(map(_prefix, digests), dtype=np.uint64, count=len(digests))
