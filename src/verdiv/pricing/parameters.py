"""One point of the parameter space, checked: the worked set of the paper, or one's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace

from verdiv.errors import Fault, InputRefused

__all__ = ["ALIASES", "Parameters"]

SUM_SLACK = 1e-9
"""How far q0 + p_d + p_s may lie from 1 by rounding of decimal input."""

MAX_RHO = 1e9
"""Largest price ratio that is believed."""

ALIASES = {
    "s2": "s2 = q0 + phi",
    "p_s": "p_s = 1 - q0 - p_d",
    "delta": "delta = p_d / (1 - q0)",
    "D": "D = q_T - q0",
}
"""Names that stand for another parameter, and the equation that binds them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The rates and prices that every closed form needs.

    The defaults are the worked parameterization of *The Verifier's Dividend*. Silent mass p_s, repair success
    s2 and the edge D follow from the fields, so that they cannot contradict them.
    """

    q0: float = 0.80
    """P(an initial small-tier draw is correct)."""
    p_d: float = 0.18
    """P(an initial draw is wrong and flagged)."""
    sigma: float = 0.60
    """Structural share of flagged wrong draws."""
    s1: float = 0.99
    """P(repair of a structural error is correct)."""
    phi: float = 0.05
    """Feedback headroom s2 − q0; may be negative."""
    rho: float = 2.5
    """Price of a teacher draw in small-tier draws."""
    q_T: float = 0.90
    """P(a teacher draw is correct)."""
    p_dT: float = 0.08
    """P(a teacher draw is wrong and flagged)."""
    eta_ox: float = 0.90
    """P(the oracle flags | silent error)."""
    gate: float = 0.85
    """Quality that a deployed policy must reach."""
    lambda1: float = 0.0
    """P(silent | structural repair wrong)."""
    lambda2: float = 0.0
    """P(silent | semantic repair wrong)."""
    fpr: float = 0.0
    """P(flagged | correct)."""
    s_false: float = 1.0
    """P(repair of a flagged correct draw stays correct)."""
    icc_q: float = 0.0
    """Within-task correlation of correct initial draws."""
    icc_s1: float = 0.0
    """Within-task correlation of structural repairs."""
    icc_s2: float = 0.0
    """Within-task correlation of semantic repairs."""
    H: float = 0.0
    """Headroom price of load: share by which a bill grows per extra draw."""

    def __post_init__(self) -> None:
        """Refuse what is no probability, no price, or contradicts itself, all faults at once."""
        faults = list(_faults(asdict(self), "parameters"))
        if faults:
            raise InputRefused("the parameters describe no protocol", faults)

    @classmethod
    def worked(cls) -> Parameters:
        """Give the worked parameterization of *The Verifier's Dividend*.

        Examples
        --------
        >>> round(Parameters.worked().s2, 2)
        0.85
        """
        return cls()

    @classmethod
    def from_mapping(
        cls, values: Mapping[str, object], *, where: str = "parameters", base: Parameters | None = None
    ) -> Parameters:
        """Read parameters by name, the rest from `base` (the worked set if absent).

        Parameters
        ----------
        values
            Field names or the aliases s2, p_s, delta, D; each mass may be given one way only. Values are
            numbers; anything else is a fault.
        where
            What the errors call the source.
        base
            Parameters that fill the gaps.

        Raises
        ------
        InputRefused
            With one fault per unknown, doubled, non-numeric or impossible value.

        Examples
        --------
        >>> round(Parameters.from_mapping({"delta": 0.5}).p_d, 3)
        0.1
        """
        faults: list[Fault] = []
        numbers: dict[str, float] = {}
        known = {f.name for f in fields(cls)} | set(ALIASES)
        for name, value in values.items():
            if name not in known:
                faults.append(
                    _fault(where, name, "a known parameter", "an unknown name", "check the spelling")
                )
            elif isinstance(value, bool) or not isinstance(value, int | float):
                kind = type(value).__name__
                faults.append(_fault(where, name, "a number", kind, "give a number"))
            else:
                numbers[name] = float(value) if abs(value) < 1e300 else math.inf
        for left, right in (("s2", "phi"), ("p_s", "p_d"), ("delta", "p_d"), ("delta", "p_s"), ("D", "q_T")):
            if left in numbers and right in numbers and not _agree(numbers, left, right):
                remedy = f"give one of them; {ALIASES[left]}"
                faults.append(_fault(where, left, f"{left} or {right}", "both, and they differ", remedy))
        if faults:
            raise InputRefused(f"cannot read the parameters of {where}", faults)
        start = asdict(base if base is not None else cls())
        full = start | {name: value for name, value in numbers.items() if name not in ALIASES}
        _resolve(full, numbers)
        faults = list(_faults(full, where))
        if faults:
            raise InputRefused(f"the parameters of {where} describe no protocol", faults)
        return cls(**full)

    def with_(self, **changes: float) -> Parameters:
        """Copy with some fields or aliases changed, checked like the first."""
        plain = {name: value for name, value in changes.items() if name not in ALIASES}
        if len(plain) == len(changes):
            return replace(self, **plain)
        return Parameters.from_mapping(changes, base=self)

    @property
    def p_s(self) -> float:
        """P(an initial draw is wrong and silent)."""
        return max(0.0, 1.0 - self.q0 - self.p_d)

    @property
    def s2(self) -> float:
        """P(repair of a semantic error is correct), q0 + φ."""
        return min(1.0, max(0.0, self.q0 + self.phi))

    @property
    def delta(self) -> float:
        """Static detection rate p_d/(1 − q0); NaN where no draw is wrong."""
        return self.p_d / (1.0 - self.q0) if self.q0 < 1.0 else math.nan

    @property
    def edge(self) -> float:
        """Quality edge of the teacher, D = q_T − q0."""
        return self.q_T - self.q0


def _agree(numbers: Mapping[str, float], left: str, right: str) -> bool:
    """Tell whether two names for one mass were given with consistent values (q0 stated too)."""
    if "q0" not in numbers:
        return False
    q0 = numbers["q0"]
    given: dict[tuple[str, str], Callable[[], float]] = {
        ("s2", "phi"): lambda: numbers["s2"] - q0 - numbers["phi"],
        ("p_s", "p_d"): lambda: numbers["p_s"] + q0 + numbers["p_d"] - 1.0,
        ("delta", "p_d"): lambda: numbers["delta"] * (1.0 - q0) - numbers["p_d"],
        ("delta", "p_s"): lambda: (1.0 - numbers["delta"]) * (1.0 - q0) - numbers["p_s"],
        ("D", "q_T"): lambda: numbers["D"] + q0 - numbers["q_T"],
    }
    return abs(given[left, right]()) <= SUM_SLACK


def _resolve(full: dict[str, float], numbers: Mapping[str, float]) -> None:
    """Write the fields that aliases stand for."""
    q0 = full["q0"]
    if "s2" in numbers and "phi" not in numbers:
        full["phi"] = numbers["s2"] - q0
    if "p_s" in numbers and "p_d" not in numbers:
        full["p_d"] = 1.0 - q0 - numbers["p_s"]
    elif "delta" in numbers and "p_d" not in numbers:
        full["p_d"] = numbers["delta"] * (1.0 - q0)
    if "D" in numbers and "q_T" not in numbers:
        full["q_T"] = q0 + numbers["D"]


def _fault(where: str, name: str, expected: str, got: str, remedy: str) -> Fault:
    """Make the fault of one named value."""
    return Fault(where=where, field=name, expected=expected, got=got, remedy=remedy)


_PRICES = {"rho": (0.0, MAX_RHO, False), "phi": (-1.0, 1.0, True), "H": (-1.0, MAX_RHO, True)}
"""Bounds of what is no probability: low, high, whether low itself is allowed."""


def _faults(values: Mapping[str, float], where: str) -> list[Fault]:
    """List everything that is wrong with a full set of values."""
    found = []
    for name, value in values.items():
        low, high, closed = _PRICES.get(name, (0.0, 1.0, True))
        if isinstance(value, bool) or not isinstance(value, int | float):
            found.append(_fault(where, name, "a number", type(value).__name__, "give a number"))
            continue
        if not (low <= value <= high) or (value == low and not closed):
            opening = "[" if closed else "("
            expected = f"a number in {opening}{low:g}, {high:g}]"
            found.append(_fault(where, name, expected, f"{value!r}", f"give {name} in that range"))
    if found:
        return found
    sums = (
        ("p_d", "q0 + p_d ≤ 1", values["q0"] + values["p_d"], 1.0, "lower q0 or p_d"),
        ("p_dT", "q_T + p_dT ≤ 1", values["q_T"] + values["p_dT"], 1.0, "lower q_T or p_dT"),
        ("phi", "s2 = q0 + phi ≤ 1", values["q0"] + values["phi"], 1.0, "lower phi, or give s2"),
        ("phi", "s2 = q0 + phi ≥ 0", -values["q0"] - values["phi"], 0.0, "raise phi, or give s2"),
    )
    return [
        _fault(where, name, expected, f"{total!r}" if top else f"{-total!r}", remedy)
        for name, expected, total, top, remedy in sums
        if total > top + SUM_SLACK
    ]
