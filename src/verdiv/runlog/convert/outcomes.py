"""The ground truth of a draw, read without guessing: correct, wrong, or missing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from verdiv.runlog.convert.columns import Outcome
from verdiv.runlog.convert.paths import Scope
from verdiv.runlog.convert.predicates import as_number, is_missing
from verdiv.runlog.convert.values import RowRefused, compile_value, shown

__all__ = ["OutcomeReader", "Reading", "compile_outcome"]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a log says of one draw's truth."""

    correct: bool | None
    """None: missing."""
    nonbinary: bool = False
    """The reward is neither 0 nor the success value."""


OutcomeReader: TypeAlias = Callable[[Scope], Reading]

_MISSING = Reading(None)


def compile_outcome(outcome: Outcome) -> OutcomeReader:
    """Turn a mapping's outcome into a function of a row's scope.

    A boolean is itself. A number is correct where it equals ``success`` exactly (1 unless the mapping says
    otherwise), or reaches ``at_least`` where that is given: a reward of .67 is wrong, not two thirds right.
    Absent, null, NaN and empty outcomes are missing, never wrong. Any other text or value refuses the row;
    a ``map`` gives texts their meaning.

    Examples
    --------
    >>> read = compile_outcome(Outcome.model_validate({"from": "reward"}))
    >>> [read(Scope({"reward": reward})).correct for reward in (1, 1.0, 0.67, "0", None, float("nan"))]
    [True, True, False, False, None, None]
    """
    getter = compile_value(outcome)
    success, at_least = outcome.success, outcome.at_least

    def read(scope: Scope) -> Reading:
        value = getter(scope)
        if is_missing(value):
            return _MISSING
        if isinstance(value, bool):
            return Reading(value)
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            return Reading(value.strip().lower() == "true")
        number = as_number(value)
        if number is None or math.isinf(number):
            raise RowRefused("an outcome that is neither true, false nor a number", shown(value))
        if math.isnan(number):
            return _MISSING
        correct = number == success if at_least is None else number >= at_least
        return Reading(correct, nonbinary=number not in (0, success))

    return read
