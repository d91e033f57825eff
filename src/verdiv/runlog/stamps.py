"""RFC 3339 times: whether a text is one, and the instants that columns of them stand for."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from verdiv.errors import Fault
from verdiv.runlog.records import STAMP_PATTERN

__all__ = ["instants", "is_time", "no_times", "time_fault"]

_SHAPE = STAMP_PATTERN.removeprefix("^").removesuffix("$")

NOWHERE = np.datetime64("NaT", "ns")

_one = re.compile(rf"{_SHAPE}\Z").match
_all = re.compile(f"(?:{_SHAPE}\n)*+").fullmatch


def is_time(text: str) -> bool:
    """Whether a text is an RFC 3339 time with offset, of the calendar, in the years 1700 to 2199.

    Examples
    --------
    >>> is_time("2024-02-29T12:00:00+01:00"), is_time("2023-02-29T12:00:00+01:00"), is_time("2024-02-29T12:00:00")
    (True, False, False)
    """
    if not _one(text):
        return False
    try:
        datetime.fromisoformat(text.upper())
    except ValueError:
        return False
    return True


def instants(stamps: Sequence[str | None]) -> NDArray[np.datetime64]:
    """Return times as UTC instants, to the nanosecond.

    Parameters
    ----------
    stamps
        Texts, or None.

    Returns
    -------
    ndarray of datetime64[ns]
        ``NaT`` for None and for every text that fails :func:`is_time`.

    Examples
    --------
    >>> instants(["2026-01-31T09:30:00.25+01:00", "noon", None]).tolist()
    [1769848200250000000, None, None]
    """
    said = [stamp for stamp in stamps if stamp is not None]
    if not said:
        return np.full(len(stamps), NOWHERE)
    if _all("\n".join([*said, ""])):
        with contextlib.suppress(ValueError):
            return _parsed(stamps)
    return np.concatenate(
        [_parsed([stamp.upper() if stamp and is_time(stamp) else None]) for stamp in stamps]
    )


def _parsed(stamps: Sequence[str | None]) -> NDArray[np.datetime64]:
    """Return the instants of texts of the right shape; raise ValueError for a day that no month has."""
    locals_: list[str] = []
    shifts: list[int] = []
    for stamp in stamps:
        if stamp is None:
            locals_.append("NaT")
            shifts.append(0)
        elif stamp[-1] in "Zz":
            locals_.append(stamp[:-1])
            shifts.append(0)
        else:
            locals_.append(stamp[:-6])
            shifts.append(_offset(stamp[-6:]))
    local = np.array(locals_, dtype="datetime64[ns]")
    instant: NDArray[np.datetime64] = local - np.array(shifts, dtype="timedelta64[m]")
    return instant


@lru_cache(maxsize=1024)
def _offset(text: str) -> int:
    """Return the minutes of an offset like ``+01:30``."""
    minutes = 60 * int(text[1:3]) + int(text[4:])
    return -minutes if text[0] == "-" else minutes


def no_times(stamps: Sequence[str | None], times: NDArray[np.datetime64]) -> NDArray[np.bool_]:
    """Return where text is there but is not a time.

    Parameters
    ----------
    stamps
        Texts, or None.
    times
        Their :func:`instants`.
    """
    nowhere = np.isnat(times)
    if nowhere.any():
        nowhere &= np.array([stamp is not None for stamp in stamps], dtype=np.bool_)
    return nowhere


def time_fault(where: str, stamp: str, line: int, field: str) -> Fault:
    """Return the fault of a text that is not a time."""
    return Fault(
        where,
        "an RFC 3339 time with offset in the years 1700 to 2199",
        repr(stamp),
        "write it like 2026-01-31T09:30:00.250Z",
        line=line,
        field=field,
    )
