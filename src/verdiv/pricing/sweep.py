"""Break-even, regimes and crossovers over a grid of one or two parameters, for a point or posterior draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, UsageRefused
from verdiv.pricing.breakeven import REGIMES
from verdiv.pricing.closed import crossover_feedback
from verdiv.pricing.forms import NEUTRAL, BreakEven, Form, Hazards, solve
from verdiv.pricing.parameters import Parameters
from verdiv.pricing.rates import RATE_NAMES, SYNONYMS, Rates
from verdiv.pricing.series import Array, as_array

__all__ = ["MAX_POINTS", "Axis", "Sweep", "sweep"]

MAX_POINTS = 20_000_000
"""Most parameter points (times posterior draws) of one sweep."""

CHUNK = 1_000_000
"""Points solved at a time, so that memory stays small."""

MAX_AXIS = 100_000
"""Most values of one axis."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One swept parameter and its values."""

    name: str
    """A field or alias of `Parameters`: sigma, phi, delta, rho, D, p_s, H, …"""
    values: Array
    """One-dimensional, finite."""

    def __post_init__(self) -> None:
        """Refuse unknown names and values that are no list of numbers."""
        expected = ""
        if self.name not in RATE_NAMES or self.name == "gate":
            expected, got = f"one of {', '.join(n for n in RATE_NAMES if n != 'gate')}", self.name
        elif self.values.ndim != 1 or not 1 <= self.values.size <= MAX_AXIS:
            expected, got = f"1 to {MAX_AXIS} values", str(self.values.size)
        elif not np.all(np.isfinite(self.values)):
            expected, got = "finite values", "NaN or infinity"
        if expected:
            fault = Fault(
                "sweep", expected, got, "write NAME=LOW:HIGH:COUNT or NAME=V1,V2,…", field=self.name
            )
            raise UsageRefused("cannot sweep this parameter", [fault])

    @classmethod
    def parse(cls, text: str) -> Axis:
        """Read NAME=LOW:HIGH:COUNT (evenly spaced) or NAME=V1,V2,….

        Examples
        --------
        >>> Axis.parse("sigma=0:1:5").values.tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        """
        name, _, rest = text.partition("=")
        parts = rest.split(":")
        try:
            if len(parts) == 3 and 2 <= int(parts[2]) <= MAX_AXIS:
                values = np.linspace(float(parts[0]), float(parts[1]), int(parts[2]))
            elif len(parts) == 1 and rest.count(",") < MAX_AXIS:
                values = np.asarray([float(part) for part in rest.split(",")], dtype=np.float64)
            else:
                raise ValueError
        except ValueError:
            remedy = f"COUNT lies from 2 to {MAX_AXIS}, for example sigma=0:1:21"
            fault = Fault("sweep", "NAME=LOW:HIGH:COUNT or NAME=V1,V2,…", text, remedy)
            raise UsageRefused("cannot read this sweep", [fault]) from None
        return cls(name.strip(), values)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Results over the grid; grid axes in the order given."""

    axes: tuple[Axis, ...]
    b_max: int
    b_star: npt.NDArray[np.int64]
    """Break-even budget of the point, or the most probable one over draws; 0 none, −1 impossible."""
    b_quality: npt.NDArray[np.int64]
    """Budget that reaches the teacher's quality whatever it costs; coded likewise."""
    regime: npt.NDArray[np.int8]
    """Index into `REGIMES` (the most probable one over draws), −1 impossible."""
    quality: Array
    """A3's quality at B* (mean over the draws that have one), NaN where there is none."""
    bill: Array
    """A3's bill under load at B*, likewise."""
    b_share: Mapping[int, Array]
    """B* → share of the possible draws, over the grid; 0 stands for none. Empty without draws."""
    crossover: Mapping[int, Array]
    """k → p_d^fb(k) of the class-stable form over the grid (mean over draws)."""
    draws: int
    """Posterior draws behind each point; 0 for a single point."""


def sweep(
    p: Parameters,
    axes: Sequence[Axis],
    *,
    form: Form,
    b_max: int = 8,
    draws: Mapping[str, npt.ArrayLike] | None = None,
    hazards: Hazards | None = None,
    votes: Sequence[int] = (3, 5),
) -> Sweep:
    """Solve break-even over the grid of one or two parameters.

    At every grid point the swept parameter takes its value and every other *field* of `p` keeps its own, so
    that a sweep over q0 holds p_d and φ, and one over delta holds q0. Points that are no protocol (masses above
    1, a probability outside [0, 1]) are marked −1, not dropped.

    Parameters
    ----------
    p
        The point that the sweep starts from.
    axes
        One or two axes.
    form
        How A3 is priced.
    b_max
        Largest budget searched.
    draws
        Posterior draws by parameter name, one-dimensional and of one length; they replace `p`'s values except
        on the swept axes.
    hazards
        For the hazards form.
    votes
        Vote sizes whose crossover is traced; odd.

    Raises
    ------
    UsageRefused
        If the axes clash or the grid is too large.

    Examples
    --------
    >>> from verdiv.pricing.forms import FORMS
    >>> found = sweep(Parameters.worked(), [Axis.parse("D=0.1,0.17,0.2")], form=FORMS["class-stable"])
    >>> found.b_star.tolist()
    [2, 3, 0]
    """
    shape = tuple(axis.values.size for axis in axes)
    given = _draws(draws)
    count = next(iter(given.values())).size if given else 0
    _check(axes, shape, count)
    _check_heeded(axes, form)
    swept = {axis.name for axis in axes}
    clash = swept.union(*(same for same in SYNONYMS if same & swept)) if swept else swept
    fixed = {name: value for name, value in given.items() if name not in clash}
    total = int(np.prod(shape))
    points = np.unravel_index(np.arange(total), shape)
    columns = [axis.values[index] for axis, index in zip(axes, points, strict=True)]
    step = max(1, CHUNK // max(count, 1))
    parts = []
    for start in range(0, total, step):
        here = {
            axis.name: column[start : start + step, None] for axis, column in zip(axes, columns, strict=True)
        }
        r = Rates.of(p, **{name: value[None, :] for name, value in fixed.items()}, **here)
        found = solve(form, r, b_max, hazards)
        crossings = [
            np.broadcast_to(crossover_feedback(k, r.q0, r.sigma, r.s1, r.s2), r.shape) for k in votes
        ]
        parts.append(_reduce(found, r.possible(), crossings, b_max, with_draws=count > 0))
    joined = {name: np.concatenate([part[name] for part in parts]).reshape(shape) for name in parts[0]}
    return Sweep(
        axes=tuple(axes),
        b_max=b_max,
        b_star=joined["b_star"].astype(np.int64),
        b_quality=joined["b_quality"].astype(np.int64),
        regime=joined["regime"].astype(np.int8),
        quality=joined["quality"],
        bill=joined["bill"],
        b_share={b: joined[f"share{b}"] for b in range(b_max + 1)} if count else {},
        crossover={k: joined[f"cross{i}"] for i, k in enumerate(votes)},
        draws=count,
    )


def _draws(draws: Mapping[str, npt.ArrayLike] | None) -> dict[str, Array]:
    """Read posterior draws, refusing unequal lengths."""
    given = {name: as_array(value) for name, value in (draws or {}).items()}
    sizes = {value.size for value in given.values()}
    if any(value.ndim != 1 for value in given.values()) or len(sizes) > 1 or sizes == {0}:
        fault = Fault(
            "draws", "one-dimensional draws of one length", str(sorted(sizes)), "take one posterior"
        )
        raise UsageRefused("cannot sweep over these posterior draws", [fault])
    return given


def _check(axes: Sequence[Axis], shape: tuple[int, ...], count: int) -> None:
    """Refuse no axes, three axes, axes that bind each other, and grids too large."""
    names = [axis.name for axis in axes]
    faults = []
    if not 1 <= len(axes) <= 2:
        faults.append(Fault("sweep", "one or two parameters", str(len(axes)), "sweep one or two at a time"))
    if len(set(names)) < len(names) or any(len(same & set(names)) > 1 for same in SYNONYMS):
        faults.append(Fault("sweep", "two different quantities", " and ".join(names), "vary one of them"))
    points = int(np.prod(shape, dtype=object)) * max(count, 1)
    if points > MAX_POINTS:
        remedy = "use fewer values or fewer draws"
        faults.append(Fault("sweep", f"at most {MAX_POINTS} points times draws", str(points), remedy))
    if faults:
        raise UsageRefused("cannot sweep this grid", faults)


def _check_heeded(axes: Sequence[Axis], form: Form) -> None:
    """Refuse to sweep a parameter that the form would ignore."""
    faults = [
        Fault("sweep", f"a parameter that the {form.name} form heeds", axis.name, "use another form")
        for axis in axes
        if axis.name in NEUTRAL and axis.name not in form.heeds
    ]
    if faults:
        raise UsageRefused("the form would ignore a swept parameter", faults)


def _reduce(
    found: BreakEven,
    possible: npt.NDArray[np.bool_],
    crossings: Sequence[Array],
    b_max: int,
    *,
    with_draws: bool,
) -> dict[str, Array]:
    """Reduce the draws axis: shares and the most probable value, means where there is something."""
    if not with_draws:
        out = {
            "b_star": found.b_star[:, 0].astype(np.float64),
            "b_quality": found.b_quality[:, 0].astype(np.float64),
            "regime": found.regime[:, 0].astype(np.float64),
            "quality": found.quality[:, 0],
            "bill": found.bill[:, 0],
        }
        return out | {f"cross{i}": c[:, 0] for i, c in enumerate(crossings)}
    alive = possible.sum(axis=1)
    safe = np.maximum(alive, 1)
    shares = np.stack([(found.b_star == b).sum(axis=1) for b in range(b_max + 1)], axis=1) / safe[:, None]
    reach = np.stack([(found.b_quality == b).sum(axis=1) for b in range(b_max + 1)], axis=1)
    codes = np.stack([(found.regime == c).sum(axis=1) for c in range(len(REGIMES))], axis=1)
    none = alive == 0
    out = {
        "b_star": np.where(none, -1.0, shares.argmax(axis=1)),
        "b_quality": np.where(none, -1.0, reach.argmax(axis=1)),
        "regime": np.where(none, -1.0, codes.argmax(axis=1)),
        "quality": _mean(found.quality, found.b_star > 0),
        "bill": _mean(found.bill, found.b_star > 0),
    }
    out |= {f"share{b}": np.where(none, np.nan, shares[:, b]) for b in range(b_max + 1)}
    return out | {f"cross{i}": _mean(c, possible & np.isfinite(c)) for i, c in enumerate(crossings)}


def _mean(values: Array, where: npt.NDArray[np.bool_]) -> Array:
    """Average along the last axis over what is marked; NaN where nothing is."""
    count = where.sum(axis=1)
    total = np.where(where, values, 0.0).sum(axis=1)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))
