"""A small tier and a teacher with known rates, and scripted models, for tests of the deployment rule."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from verdiv.policy import Ask, InfrastructureRetries, Verdict
from verdiv.runlog.reader import iter_draws, read_run_log
from verdiv.runlog.records import Draw, ErrorClass

__all__ = ["NO_WAIT", "World", "draws_of", "scripted", "truth", "verify"]

NO_WAIT = InfrastructureRetries(first_wait=0.0)


class World:
    """A small tier and a teacher with known rates; outputs C correct, S and M flagged, W silent."""

    def __init__(self, seed: int, **rates: float) -> None:
        worked = {"q0": 0.8, "p_d": 0.18, "sigma": 0.6, "s1": 0.99, "s2": 0.85, "q_T": 0.9, "p_dT": 0.08}
        self.rates = worked | rates
        self._random = random.Random(seed)

    def small(self, ask: Ask) -> str:
        """Draw on the small tier: a repair keeps the class of the error that it answers."""
        r = self.rates
        if ask.refused:
            told = ask.refused[-1]
            rate = r["s1"] if told.verdict.error_class is ErrorClass.STRUCTURAL else r["s2"]
            return "C" if self._random.random() < rate else told.output
        u = self._random.random()
        if u < r["q0"]:
            return "C"
        if u < r["q0"] + r["p_d"]:
            return "S" if self._random.random() < r["sigma"] else "M"
        return "W"

    def teacher(self, ask: Ask) -> str:
        """Draw on the teacher, afresh each time."""
        u = self._random.random()
        return "C" if u < self.rates["q_T"] else "M" if u < self.rates["q_T"] + self.rates["p_dT"] else "W"


def verify(output: str, ask: Ask) -> Verdict | None:
    """Flag S and M, each with its class."""
    if output not in ("S", "M"):
        return None
    kind = ErrorClass.STRUCTURAL if output == "S" else ErrorClass.SEMANTIC
    return Verdict(True, f"{output} is wrong, write C.", kind, output)


def truth(output: str, ask: Ask) -> bool:
    """Only C is correct."""
    return output == "C"


def scripted(*outputs: Any) -> Callable[[Ask], Any]:
    """Return a model that says, or raises, one thing after the other."""
    left = iter(outputs)

    def model(ask: Ask) -> Any:
        said = next(left)
        if isinstance(said, BaseException):
            raise said
        return said

    return model


def draws_of(path: Path) -> list[Draw]:
    """Read all draws of a log that holds to its format."""
    read_run_log(path)
    return list(iter_draws(path))
