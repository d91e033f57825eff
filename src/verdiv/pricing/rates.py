"""Parameters as arrays: one point, a grid of points, or posterior draws, all in one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, UsageRefused
from verdiv.pricing.parameters import ALIASES, SUM_SLACK, Parameters
from verdiv.pricing.series import Array, as_array

__all__ = ["RATE_NAMES", "SYNONYMS", "Rates"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates of a :class:`Parameters` as arrays that broadcast; s2 in place of φ."""

    q0: Array
    p_d: Array
    sigma: Array
    s1: Array
    s2: Array
    """P(repair of a semantic error is correct)."""
    rho: Array
    q_T: Array
    p_dT: Array
    eta_ox: Array
    lambda1: Array
    lambda2: Array
    fpr: Array
    s_false: Array
    icc_q: Array
    icc_s1: Array
    icc_s2: Array
    H: Array

    @classmethod
    def of(cls, p: Parameters, **changes: npt.ArrayLike) -> Rates:
        """Take a point and replace some of its fields or aliases by arrays.

        Parameters
        ----------
        p
            The point that fills what is not replaced; its fields (not its aliases) are held fixed.
        changes
            Field names of `Parameters`, or s2, p_s, delta, D, each with an array.

        Raises
        ------
        UsageRefused
            If a name is unknown or two names stand for the same quantity.

        Examples
        --------
        >>> Rates.of(Parameters.worked(), delta=[0.5, 1.0]).p_d.round(3).tolist()
        [0.1, 0.2]
        """
        given = {name: as_array(value) for name, value in changes.items()}
        _check_names(given)
        full: dict[str, Array] = {name: as_array(value) for name, value in asdict(p).items()} | {
            name: value for name, value in given.items() if name not in ALIASES
        }
        q0 = full["q0"]
        s2 = given["s2"] if "s2" in given else np.clip(q0 + full["phi"], -1.0, 2.0)
        if "phi" not in given and "s2" not in given and "q0" not in given:
            s2 = as_array(p.s2)
        if "p_s" in given:
            full["p_d"] = 1.0 - q0 - given["p_s"]
        elif "delta" in given:
            full["p_d"] = given["delta"] * (1.0 - q0)
        if "D" in given:
            full["q_T"] = q0 + given["D"]
        kept = {f.name: full[f.name] for f in fields(cls) if f.name != "s2"}
        return cls(s2=as_array(s2), **kept)

    @property
    def phi(self) -> Array:
        """Feedback headroom s2 − q0."""
        return np.asarray(self.s2 - self.q0)

    @property
    def p_s(self) -> Array:
        """P(an initial draw is wrong and silent)."""
        return np.asarray(np.maximum(1.0 - self.q0 - self.p_d, 0.0))

    @property
    def delta(self) -> Array:
        """Static detection rate; 0 where no draw is wrong."""
        wrong, d = np.broadcast_arrays(1.0 - self.q0, self.p_d)
        return np.asarray(np.where(wrong > 0, np.minimum(d / np.where(wrong > 0, wrong, 1.0), 1.0), 0.0))

    @property
    def edge(self) -> Array:
        """Teacher's edge D = q_T − q0."""
        return np.asarray(self.q_T - self.q0)

    @property
    def shape(self) -> tuple[int, ...]:
        """Broadcast shape of all fields."""
        return np.broadcast_shapes(*(getattr(self, f.name).shape for f in fields(self)))

    def possible(self) -> npt.NDArray[np.bool_]:
        """Tell which points are protocols: probabilities in [0, 1], masses at most 1, ρ > 0, no NaN."""
        ok = np.asarray((self.rho > 0) & (self.q0 + self.p_d <= 1.0 + SUM_SLACK) & (self.H >= -1.0))
        for f in fields(self):
            if f.name not in ("rho", "H"):
                value = getattr(self, f.name)
                ok = ok & (value >= -SUM_SLACK) & (value <= 1.0 + SUM_SLACK)
        return np.broadcast_to(ok, self.shape)

    def expand(self, axes: int) -> Rates:
        """Append `axes` axes of length 1 to every field, so that budgets or a grid can stand there."""
        return Rates(
            **{
                f.name: getattr(self, f.name).reshape(getattr(self, f.name).shape + (1,) * axes)
                for f in fields(self)
            }
        )


RATE_NAMES = tuple(f.name for f in fields(Parameters)) + tuple(ALIASES)
"""Names that `Rates.of` replaces, and that a sweep may run over."""

SYNONYMS = (frozenset({"s2", "phi"}), frozenset({"p_s", "p_d", "delta"}), frozenset({"D", "q_T"}))
"""Names that stand for one quantity."""


def _check_names(given: Mapping[str, Array]) -> None:
    """Refuse unknown names, and two names for one quantity."""
    faults = [
        Fault(
            "parameters", f"one of {', '.join(RATE_NAMES)}", "an unknown name", "check the spelling", field=n
        )
        for n in given
        if n not in RATE_NAMES or n == "gate"
    ]
    faults += [
        Fault("parameters", "one name for one quantity", " and ".join(both), "vary one of them")
        for same in SYNONYMS
        if len(both := sorted(same & set(given))) > 1
    ]
    if faults:
        raise UsageRefused("cannot vary these parameters", faults)
