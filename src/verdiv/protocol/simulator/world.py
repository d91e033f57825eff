"""The world a simulated run is drawn from: families, task scatter, and every way a claim can be broken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from verdiv.errors import Fault, UsageRefused
from verdiv.protocol.simulator.behaviour import (
    Blind,
    ConditionEffect,
    Drift,
    Greedy,
    Load,
    Losses,
    Repairs,
)
from verdiv.protocol.simulator.rates import Ease, Icc, Rates, between, whole

if TYPE_CHECKING:
    from verdiv.protocol.simulator.design import Design
    from verdiv.protocol.simulator.truth import TrueValues

__all__ = ["MAX_FAMILIES", "Family", "World"]

MAX_FAMILIES = 1000
"""Families of one world at most."""

FAMILIES = (("arithmetic", 14.0), ("date", 13.0), ("filter", 13.0))
"""The suite of "The Verifier's Dividend": 14 arithmetic, 13 date and 13 filtering tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One task family."""

    name: str
    weight: float
    """Share of the suite, in any unit; weights are normalised."""
    rates: Rates = field(default_factory=Rates)


PARTS = ("icc", "ease", "blind", "drift", "repairs", "greedy", "load", "losses")
"""Groups of a world's values that check themselves."""


def _paper_families() -> tuple[Family, ...]:
    return tuple(Family(name=name, weight=weight) for name, weight in FAMILIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything that decides what draws of a protocol run come out as.

    Raises
    ------
    UsageRefused
        If any value is out of range; all faults are reported together.
    """

    name: str = "worked"
    families: tuple[Family, ...] = field(default_factory=_paper_families)
    icc: Icc = field(default_factory=Icc)
    """Within-task correlation of each stage."""
    ease: Ease = field(default_factory=Ease)
    """Dependence of the stages of a task on its ease."""
    blind: Blind = field(default_factory=Blind)
    """What blind redraws do beyond an exchangeable draw (rule P1)."""
    drift: Drift = field(default_factory=Drift)
    """What detection does beyond the first attempt and the first half of the run (rule P4)."""
    repairs: Repairs = field(default_factory=Repairs)
    """What repairs do beyond the first one (rule P5)."""
    greedy: Greedy = field(default_factory=Greedy)
    """Deterministic decoding: its noise and its level."""
    seed_logits: tuple[float, ...] = ()
    """Logit shifts of first draws and repairs of stochastic small-tier draws, one a replicate, taken in turn
    (break rule R1)."""
    conditions: tuple[ConditionEffect, ...] = ()
    """Effects of further experimental conditions (rules R3 and R4)."""
    load: Load = field(default_factory=Load)
    """Device time and load (rule P6)."""
    losses: Losses = field(default_factory=Losses)
    """Infrastructure errors and outcomes that were not scored."""
    rho: float = 2.5
    """Price of a teacher draw, in units of one small draw."""
    wrong_outputs: int = 4
    """Distinct, equally likely wrong outputs of each kind of error on a task; few make wrong pluralities."""

    def __post_init__(self) -> None:
        """Refuse values out of range, all at once."""
        found = self.faults(f"world {self.name!r}")
        if found:
            raise UsageRefused("world refused", found)

    def faults(self, where: str) -> list[Fault]:
        """List what is wrong with the world."""
        found = _family_faults(where, self.families)
        for name in PARTS:
            found += getattr(self, name).faults(f"{where}: {name}")
        for effect in self.conditions:
            found += effect.faults(f"{where}: condition {effect.name!r}")
        if len({effect.name for effect in self.conditions}) != len(self.conditions):
            found.append(
                Fault(where, "one effect a condition", "a name twice", "merge them", field="conditions")
            )
        for index, shift in enumerate(self.seed_logits):
            found += between(where, f"seed_logits[{index}]", shift, -20.0, 20.0)
        found += between(where, "rho", self.rho, 0.0, 1e6)
        found += whole(where, "wrong_outputs", self.wrong_outputs, 1, 1000)
        return found

    @classmethod
    def worked(cls) -> Self:
        """Return the paper's own world: its worked parameters, no scatter, no noise.

        Examples
        --------
        >>> world = World.worked()
        >>> [f.name for f in world.families], world.families[0].rates.s2
        (['arithmetic', 'date', 'filter'], 0.85)
        """
        return cls()

    def true_values(self, design: Design, *, condition: str = "primary", nodes: int = 1 << 14) -> TrueValues:
        """Return the true draw-weighted estimands and the frontier under a design.

        See :func:`verdiv.protocol.simulator.truth.true_values`.

        Examples
        --------
        >>> from verdiv.protocol.simulator.design import Design
        >>> round(World.worked().true_values(Design()).quality("A3", 2), 5)
        0.96812
        """
        from verdiv.protocol.simulator.truth import true_values

        return true_values(self, design, condition=condition, nodes=nodes)

    @property
    def weights(self) -> dict[str, float]:
        """Family to its weight; the weights sum to 1."""
        total = sum(family.weight for family in self.families)
        return {family.name: family.weight / total for family in self.families}

    def effect(self, condition: str) -> ConditionEffect:
        """Return the effect of a condition; one without an entry has none."""
        for effect in self.conditions:
            if effect.name == condition:
                return effect
        return ConditionEffect(name=condition)

    def spread(self, **offsets: Sequence[float]) -> Self:
        """Return the world with rates moved apart between families.

        Parameters
        ----------
        **offsets
            Rate name to one logit offset a family, in the order of the families.

        Examples
        --------
        >>> world = World.worked().spread(q=(1.0, 0.0, -1.0))
        >>> [round(family.rates.q, 3) for family in world.families]
        [0.916, 0.8, 0.595]
        """
        families = []
        for index, family in enumerate(self.families):
            own = {name: values[index] for name, values in offsets.items()}
            families.append(replace(family, rates=family.rates.shifted(**own)))
        return replace(self, families=tuple(families))

    def with_rates(self, family: str | None = None, **changes: Any) -> Self:
        """Return the world with some rates replaced, in one family or (None) in all."""
        if family is not None and family not in {f.name for f in self.families}:
            known = ", ".join(f.name for f in self.families)
            fault = Fault(f"world {self.name!r}", f"one of {known}", family, "name a family of the world")
            raise UsageRefused("family unknown", [fault])
        return replace(
            self,
            families=tuple(
                replace(f, rates=replace(f.rates, **changes)) if family in (None, f.name) else f
                for f in self.families
            ),
        )

    def task_counts(self, tasks: int) -> dict[str, int]:
        """Split a number of tasks over the families by largest remainder, ties to the earlier family.

        Examples
        --------
        >>> World.worked().task_counts(40)
        {'arithmetic': 14, 'date': 13, 'filter': 13}
        """
        return _apportion(self.weights, tasks)


def _apportion(weights: Mapping[str, float], total: int) -> dict[str, int]:
    """Split ``total`` by ``weights`` (summing to 1) by largest remainder."""
    exact = {name: weight * total for name, weight in weights.items()}
    counts = {name: int(value + 1e-9) for name, value in exact.items()}
    rest = total - sum(counts.values())
    order = sorted(weights, key=lambda name: counts[name] - exact[name])
    for name in order[:rest]:
        counts[name] += 1
    return counts


def _family_faults(where: str, families: Iterable[Family]) -> list[Fault]:
    families = tuple(families)
    found: list[Fault] = []
    if not 1 <= len(families) <= MAX_FAMILIES:
        found.append(
            Fault(
                where,
                f"1 to {MAX_FAMILIES} families",
                str(len(families)),
                "change their number",
                field="families",
            )
        )
    names = [family.name for family in families]
    if len(set(names)) != len(names):
        found.append(Fault(where, "distinct family names", "a name twice", "rename one", field="families"))
    for family in families:
        place = f"{where}: family {family.name!r}"
        if not family.name or len(family.name) > 200 or not family.name.isprintable():
            found.append(
                Fault(place, "a printable name of 1 to 200 characters", repr(family.name), "rename it")
            )
        found += between(place, "weight", family.weight, 1e-12, 1e12)
        found += family.rates.faults(place)
    return found
