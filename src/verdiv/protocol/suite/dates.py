"""Family F2: dates asked in words, answered by a strict ISO 8601 calendar date."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from verdiv.protocol.calls.verdict import Refusal
from verdiv.protocol.suite.json_call import JsonCallFamily
from verdiv.protocol.suite.task import PublicTask, Task

__all__ = ["Dates"]

TOOL = "schedule"
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"date": {"type": "string"}},
    "required": ["date"],
}
WINDOW = 366
"""Days before or after the request's date in which the tool takes bookings."""

FIRST = datetime.date(2000, 1, 1)
SPAN = 14_600
"""Days from FIRST in which the dates of requests lie: 40 years, ten leap days."""

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
)  # fmt: skip

_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LOOSE = re.compile(r"(?<![0-9])([0-9]{4})[-/. ]([0-9]{1,2})[-/. ]([0-9]{1,2})(?![0-9])")
_NAMED = re.compile(r"\b([A-Za-z]{3,9})\.? ([0-9]{1,2})(?:st|nd|rd|th)?,? ([0-9]{4})\b")
_DAY_FIRST = re.compile(r"\b([0-9]{1,2})(?:st|nd|rd|th)? (?:of )?([A-Za-z]{3,9}),? ([0-9]{4})\b")
_QUOTED = re.compile(r'"date"\s*:\s*"?([^"}]*)')


def _parsed(text: str) -> datetime.date | None:
    """Read a strict ISO date that exists."""
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None


def _month(name: str) -> int | None:
    """Number of a month named in full or by at least three letters."""
    found = [number for number, month in enumerate(MONTHS, 1) if month.lower().startswith(name.lower())]
    return found[0] if len(found) == 1 else None


def _ordinal(number: int) -> str:
    """Spell a day of the month: 1st, 2nd, 3rd, 4th."""
    last = 0 if 10 < number < 14 else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"


def _workday(start: datetime.date, count: int) -> datetime.date:
    """Count Monday-to-Friday days after a date."""
    day = start
    while count:
        day += datetime.timedelta(days=1)
        count -= day.weekday() < 5
    return day


class Dates(JsonCallFamily):
    """Scheduling by a date asked in words; the call's date must be the one strict ISO date.

    The static verifier checks the spelling (structural), then that the date exists and lies in the named
    year, or on the asked side of the request's date, within its window and on the weekday where one is
    named (semantic). An off-by-one date passes it silently.
    """

    name = "date"
    levels: Sequence[int] = (1, 2, 3, 4, 5)
    instructions = (
        "You write tool calls. Tool schedule(date): date is a string YYYY-MM-DD. "
        'Reply with one JSON object: {"name": "schedule", "arguments": {"date": "..."}}'
    )
    form = '{"name": "schedule", "arguments": {"date": "..."}}'

    def generate(self, rng: random.Random, difficulty: int, task_id: str) -> Task:
        """Draw one task.

        Parameters
        ----------
        rng
            Source of randomness.
        difficulty
            1: a date spelled month first; 2: day first, with its weekday; 3: a few days later, same month;
            4: the next named weekday; 5: days, weeks or working days across months, either side.
        task_id
            Identifier of the task.

        Returns
        -------
        Task
            The answer's date is not in the prompt.
        """
        start = FIRST + datetime.timedelta(days=rng.randrange(SPAN))
        if difficulty <= 2:
            words, day = self._spelled(difficulty, start), start
            facts: dict[str, Any] = {"year": start.year}
        else:
            if difficulty == 3:
                start = start.replace(day=rng.randrange(1, 20))
            words, day, facts = self._reckoned(rng, difficulty, start)
            facts |= {"from": start.isoformat(), "later": day > start}
        public = PublicTask(task_id, self.name, difficulty, words, TOOL, SCHEMA, facts)
        return Task(public, {"date": day.isoformat()})

    @staticmethod
    def _spelled(difficulty: int, day: datetime.date) -> str:
        """Word a request that names its date in words."""
        month = MONTHS[day.month - 1]
        if difficulty == 1:
            return f"Book a room for {month} {day.day}, {day.year}."
        return f"Book a room for {WEEKDAYS[day.weekday()]}, the {_ordinal(day.day)} of {month} {day.year}."

    @staticmethod
    def _reckoned(
        rng: random.Random, difficulty: int, start: datetime.date
    ) -> tuple[str, datetime.date, dict[str, Any]]:
        """Word a request whose date must be reckoned, with the date and what else can be read off it."""
        one_day = datetime.timedelta(days=1)
        weekday_of_start = WEEKDAYS[start.weekday()]
        if difficulty == 3:
            count = rng.randrange(1, 8)
            unit = "day" if count == 1 else "days"
            return f"Book a room {count} {unit} after {start}.", start + count * one_day, {}
        if difficulty == 4:
            weekday = rng.randrange(7)
            ahead = (weekday - start.weekday() - 1) % 7 + 1
            words = f"Book a room on the first {WEEKDAYS[weekday]} after {start}, a {weekday_of_start}."
            return words, start + ahead * one_day, {"weekday": weekday}
        kind, later = rng.randrange(3), rng.randrange(2)
        side, sign = ("after", 1) if later else ("before", -1)
        if kind == 0:
            count = rng.randrange(10, 60)
            return f"Book a room {count} days {side} {start}.", start + sign * count * one_day, {}
        if kind == 1:
            count = rng.randrange(2, 9)
            return f"Book a room {count} weeks {side} {start}.", start + sign * 7 * count * one_day, {}
        count = rng.randrange(3, 16)
        words = (
            f"Book a room {count} working days after {start}, a {weekday_of_start} "
            "(Saturdays and Sundays do not count)."
        )
        return words, _workday(start, count), {"workday": True}

    def structure(self, arguments: Mapping[str, Any], public: PublicTask) -> Refusal | None:
        """Check the spelling of the date."""
        if _ISO.fullmatch(arguments["date"]) is None:
            return Refusal("date-format", "The date must be spelled YYYY-MM-DD, and nothing else.")
        return None

    def meaning(self, arguments: Mapping[str, Any], public: PublicTask) -> Refusal | None:
        """Check that the date exists, and year or side, window and weekday."""
        facts, day = public.facts, _parsed(arguments["date"])
        if day is None:
            return Refusal("no-such-date", "The calendar has no such date.")
        if "year" in facts:
            year = facts["year"]
            return None if day.year == year else Refusal("year", f"The date does not lie in {year}.")
        start = datetime.date.fromisoformat(facts["from"])
        if day == start or (day > start) != facts["later"]:
            side = "after" if facts["later"] else "before"
            return Refusal("wrong-side", f"The date does not lie {side} {start}.")
        if abs((day - start).days) > WINDOW:
            return Refusal("window", f"The date lies more than {WINDOW} days from {start}.")
        if "weekday" in facts and day.weekday() != facts["weekday"]:
            return Refusal("weekday", f"The date is not a {WEEKDAYS[facts['weekday']]}.")
        if "workday" in facts and day.weekday() > 4:
            return Refusal("weekday", "The date is not a working day.")
        return None

    def save(self, text: str, public: PublicTask) -> Mapping[str, Any] | None:
        """Read the first date spelled year first, month first or day first."""
        quoted = _QUOTED.search(text)
        for body in ([quoted.group(1)] if quoted else []) + [text]:
            loose = _LOOSE.search(body)
            if loose:
                year, month, day = (int(part) for part in loose.groups())
                return {"date": f"{year:04d}-{month:02d}-{day:02d}"}
            for pattern, at in ((_NAMED, (0, 1)), (_DAY_FIRST, (1, 0))):
                named = pattern.search(body)
                number = _month(named.group(at[0] + 1)) if named else None
                if named and number:
                    return {
                        "date": f"{int(named.group(3)):04d}-{number:02d}-{int(named.group(at[1] + 1)):02d}"
                    }
        return None

    def normal(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """A strict date has one spelling."""
        return arguments

    def solved(self, arguments: Mapping[str, Any], task: Task) -> bool:
        """Compare the dates."""
        return bool(arguments["date"] == task.answer["date"])

    def variants(self, task: Task) -> list[Mapping[str, Any]]:
        """A strict date has one spelling."""
        return [task.answer]
