"""Where ``verdiv price`` takes its parameters from: the worked set, a file, a fit, and words on the command line."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from verdiv.errors import Fault, InputRefused, UsageRefused
from verdiv.pricing.forms import Hazards
from verdiv.pricing.parameters import Parameters
from verdiv.pricing.ratecard import ArmBudgets
from verdiv.pricing.rates import RATE_NAMES, SYNONYMS, Rates
from verdiv.pricing.series import Array

__all__ = ["Asked", "PriceInput", "read_budgets", "read_hazards", "read_input", "read_numbers"]

MAX_BYTES = 1_000_000
"""Largest parameter file that is read."""

MAX_LIST = 10_000
"""Most numbers of one list on the command line."""

CARD_KEYS = ("cost_small_usd", "tasks")
"""Keys of a parameter file that belong to the rate card and the protocol."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line said about parameters."""

    params: Path | None = None
    """TOML or JSON file."""
    assignments: Sequence[str] = ()
    """NAME=VALUE, each replacing what the file or the fit says."""
    fit: Path | None = None
    """Output folder or results.json of ``verdiv analyze``."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class PriceInput:
    """Parameters as asked for, with where they come from."""

    point: Parameters
    """The point; over a fit, its posterior means."""
    draws: Mapping[str, Array] = field(default_factory=dict)
    """Posterior draws by parameter name; empty for a point."""
    sampled: Mapping[str, Array] = field(default_factory=dict)
    """Draws that replace `draws` for the arms drawn at a temperature, where the fit tells them apart."""
    cost_small_usd: float | None = None
    tasks: int | None = None
    stored: Sequence[Mapping[str, Any]] = ()
    """The fit's own frontier: direct and model bands by arm and budget."""
    notes: tuple[str, ...] = ()

    def rates(self, *, sampled: bool = False) -> Rates:
        """Give the rates: of the point, or one per posterior draw."""
        return Rates.of(self.point, **(dict(self.draws) | (dict(self.sampled) if sampled else {})))


def read_input(asked: Asked) -> PriceInput:
    """Read the parameters.

    The worked set is the ground; a file replaces it name by name, a fit replaces what it estimates, and
    assignments replace both.

    Raises
    ------
    InputRefused
        An unreadable file, or values that describe no protocol.
    UsageRefused
        Assignments that cannot be read.
    """
    values: dict[str, object] = {}
    where = "the command line"
    card: dict[str, float] = {}
    if asked.params is not None:
        values, card = _read_file(asked.params)
        where = str(asked.params)
    base = Parameters.from_mapping(values, where=where)
    given = _assignments(asked.assignments)
    card |= {key: given.pop(key) for key in CARD_KEYS if key in given}
    cost, tasks = card.get("cost_small_usd"), card.get("tasks")
    if tasks is not None and (tasks != int(tasks) or tasks < 1):
        fault = Fault("parameters", "a whole number of tasks", f"{tasks:g}", "count them", field="tasks")
        raise UsageRefused("cannot price this protocol", [fault])
    size = None if tasks is None else int(tasks)
    if asked.fit is None:
        point = Parameters.from_mapping(given, where="--set", base=base) if given else base
        return PriceInput(point, cost_small_usd=cost, tasks=size)
    from verdiv.cli.price_fit import read_fit

    fit = read_fit(asked.fit, base, seed=asked.seed)
    bound = set(given).union(*(same for same in SYNONYMS if same & set(given)))
    kept = {name: value for name, value in fit.draws.items() if name not in bound}
    sampled = {name: value for name, value in fit.sampled.items() if name not in bound}
    point = Parameters.from_mapping(given, where="--set", base=fit.point) if given else fit.point
    notes = fit.notes
    if given:
        notes += (
            "Set by hand, without uncertainty: " + ", ".join(f"{n} = {v:g}" for n, v in given.items()) + ".",
        )
    stored = () if given else fit.stored
    return PriceInput(
        point, kept, sampled, cost if cost is not None else fit.cost_small_usd, size, stored, notes
    )


def _read_file(path: Path) -> tuple[dict[str, object], dict[str, float]]:
    """Read a TOML or JSON parameter file: a table ``parameters``, or the names at the top."""
    if path.stat().st_size > MAX_BYTES:
        fault = Fault(
            str(path), f"at most {MAX_BYTES} bytes", str(path.stat().st_size), "give a parameter file"
        )
        raise InputRefused("The parameter file is too large.", [fault])
    try:
        text = path.read_bytes().decode("utf-8")
        found: Any = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        fault = Fault(str(path), "TOML, or JSON in a .json file", str(error), "correct the file")
        raise InputRefused("The parameter file cannot be read.", [fault]) from None
    table = found.get("parameters", found) if isinstance(found, dict) else None
    if not isinstance(table, dict):
        fault = Fault(str(path), "a table of parameters", type(table).__name__, "write q0 = 0.8 and so on")
        raise InputRefused("The parameter file holds no parameters.", [fault])
    card = {}
    for key in CARD_KEYS:
        if key in table:
            value = table[key]
            if isinstance(value, bool) or not isinstance(value, int | float):
                fault = Fault(str(path), "a number", type(value).__name__, "give a number", field=key)
                raise InputRefused("The parameter file is refused.", [fault])
            card[key] = float(value)
    return {name: value for name, value in table.items() if name not in CARD_KEYS}, card


def _assignments(words: Sequence[str]) -> dict[str, float]:
    """Read NAME=VALUE words."""
    given: dict[str, float] = {}
    faults = []
    for word in words:
        name, _, value = word.partition("=")
        name = name.strip()
        try:
            number = float(value)
        except ValueError:
            faults.append(Fault("--set", "NAME=VALUE with a number", word, "for example --set sigma=0.4"))
            continue
        if name not in (*RATE_NAMES, *CARD_KEYS):
            known = ", ".join((*RATE_NAMES, *CARD_KEYS))
            faults.append(Fault("--set", f"one of {known}", name, "check the spelling"))
        given[name] = number
    if faults:
        raise UsageRefused("cannot read the parameters on the command line", faults)
    return given


def read_numbers(text: str, *, where: str) -> Array:
    """Read a comma-separated list of numbers.

    Raises
    ------
    UsageRefused
        Not a list of numbers, or too long a one.
    """
    try:
        parts = text.split(",")
        if len(parts) > MAX_LIST:
            raise ValueError
        return np.asarray([float(part) for part in parts], dtype=np.float64)
    except ValueError:
        fault = Fault(where, f"up to {MAX_LIST} numbers separated by commas", text, "for example 0.18,0.12")
        raise UsageRefused("cannot read this list", [fault]) from None


def read_hazards(structural: str | None, semantic: str | None) -> Hazards | None:
    """Read measured hazards; both classes or neither."""
    if structural is None and semantic is None:
        return None
    if structural is None or semantic is None:
        missing = "--hazard1" if structural is None else "--hazard2"
        fault = Fault(missing, "hazards of both error classes", "one only", f"give {missing} too")
        raise UsageRefused("cannot price with half the hazards", [fault])
    return Hazards(read_numbers(structural, where="--hazard1"), read_numbers(semantic, where="--hazard2"))


def read_budgets(text: str | None) -> ArmBudgets:
    """Read the protocol's budgets, ARM=DRAWS separated by commas; others keep the paper's.

    Examples
    --------
    >>> read_budgets("A3=3,A2s=6").A3
    3
    """
    if not text:
        return ArmBudgets()
    arms: dict[str, int] = {}
    shared = False
    for word in text.split(","):
        name, _, value = word.strip().partition("=")
        if name == "shared_first" and value in ("", "yes", "true"):
            shared = True
        elif name in ("A0", "A1", "A2", "A2s", "A3", "A4", "A5") and value.isdecimal() and len(value) < 7:
            arms[name] = int(value)
        else:
            fault = Fault("--protocol", "ARM=DRAWS, A0 … A5, and shared_first", word, "e.g. A3=5,A2s=4")
            raise UsageRefused("cannot read this protocol", [fault])
    return ArmBudgets(**{"A0": 1, **arms}, shared_first=shared)
