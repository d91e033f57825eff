"""Named worlds: the paper's, plausible ones, and for every rule one that breaks it.

A world's name is a base, then any number of breaks: ``plausible``, ``null+sticky``, ``worked+collapse+seeds``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from verdiv.errors import Fault, UsageRefused
from verdiv.protocol.simulator.behaviour import Blind, ConditionEffect, Greedy, Losses, Repairs
from verdiv.protocol.simulator.rates import Ease, Icc, Rates
from verdiv.protocol.simulator.world import Family, World

__all__ = ["BASES", "BREAKS", "Break", "named_world"]

NVFP4, HEAVY = "nvfp4", "heavy-load"


def _conditions(*, nvfp4: float = 0.0, heavy: float = 0.0) -> tuple[ConditionEffect, ...]:
    return (
        ConditionEffect(name=NVFP4, precision="NVFP4", q_logit=nvfp4, repair_logit=nvfp4, agreement=0.9),
        ConditionEffect(name=HEAVY, q_logit=heavy, repair_logit=heavy, load_factor=4.0),
    )


def _null() -> World:
    """Every claim holds with room to spare, though tasks and families differ and hard tasks are less detected."""
    rates = Rates(q=0.75, delta=0.88, sigma=0.65, s1=0.97, s2=0.85, lambda1=None, lambda2=None, fpr=0.004)
    families = tuple(Family(name=f.name, weight=f.weight, rates=rates) for f in World().families)
    world = World(
        name="null",
        families=families,
        icc=Icc(q=0.35, delta=0.15, sigma=0.2, q_t=0.3, delta_t=0.1),
        ease=Ease(delta=0.5, q_t=0.5),
        greedy=Greedy(flip=0.004),
        conditions=_conditions(),
    )
    return world.spread(q=(0.5, 0.0, -0.4), delta=(0.2, 0.0, -0.2), q_t=(0.4, 0.0, -0.3))


def _plausible() -> World:
    """A world that is not exactly the paper's: what a small model may really be like."""
    rates = Rates(
        q=0.74,
        delta=0.86,
        sigma=0.55,
        s1=0.93,
        s2=0.62,
        lambda1=0.08,
        lambda2=0.22,
        fpr=0.004,
        s_false=0.9,
        eta_ox=0.88,
        q_t=0.89,
        delta_t=0.75,
    )
    families = tuple(Family(name=f.name, weight=f.weight, rates=rates) for f in World().families)
    world = World(
        name="plausible",
        families=families,
        icc=Icc(q=0.4, delta=0.2, sigma=0.25, s1=0.1, s2=0.2, q_t=0.3, delta_t=0.1),
        ease=Ease(delta=0.5, s1=0.3, s2=0.4, q_t=0.5),
        blind=Blind(stickiness=0.1),
        repairs=Repairs(collapse_semantic=0.8),
        greedy=Greedy(flip=0.015, logit=0.15),
        conditions=_conditions(nvfp4=-0.1),
        losses=Losses(errors=0.004, unscored=0.0),
    )
    return world.spread(
        q=(0.6, -0.1, -0.4),
        delta=(0.3, 0.0, -0.3),
        sigma=(0.2, 0.1, -0.3),
        s2=(0.2, 0.0, -0.2),
        q_t=(0.3, 0.0, -0.2),
    )


BASES: Mapping[str, Callable[[], World]] = MappingProxyType(
    {"worked": World.worked, "null": _null, "plausible": _plausible}
)
"""Base worlds by name."""


def _sticky(world: World) -> World:
    return replace(world, blind=replace(world.blind, stickiness=0.6))


def _lucky(world: World) -> World:
    return replace(world, blind=replace(world.blind, stickiness=-0.6))


def _blind_flips(world: World) -> World:
    return replace(world, blind=replace(world.blind, greedy_flip=0.25))


def _no_headroom(world: World) -> World:
    """Repairs succeed as rarely as blind redraws of such tasks."""
    return world.with_rates(s1=0.25, s2=0.25)


def _teacher_ahead(world: World) -> World:
    return replace(world.with_rates(q_t=0.995), icc=replace(world.icc, q_t=0.0)).with_rates(s1=0.5, s2=0.3)


def _blind_retries(world: World) -> World:
    """The verifier misses a third of the wrong retries it would have seen on a first draw."""
    return replace(world, drift=replace(world.drift, blind=0.65, feedback=0.65))


def _tiring(world: World) -> World:
    return replace(world, drift=replace(world.drift, second_half=0.7))


def _collapse(world: World) -> World:
    return replace(world, repairs=replace(world.repairs, collapse_structural=0.1, collapse_semantic=0.1))


def _burst(world: World) -> World:
    return replace(world, load=replace(world.load, h=0.6))


def _seeds(world: World) -> World:
    return replace(world, seed_logits=(1.2, 0.0, -1.2))


def _odd_family(world: World) -> World:
    """The last family is beyond repair and easy for the teacher: parity rests on the others."""
    return world.with_rates(world.families[-1].name, sigma=0.2, s1=0.5, s2=0.2, q_t=0.93)


def _quantized(world: World) -> World:
    return _with_condition(
        world, ConditionEffect(name=NVFP4, precision="NVFP4", q_logit=-1.0, repair_logit=-1.0)
    )


def _overloaded(world: World) -> World:
    return _with_condition(
        world, ConditionEffect(name=HEAVY, q_logit=-1.0, repair_logit=-1.0, load_factor=4.0)
    )


def _with_condition(world: World, effect: ConditionEffect) -> World:
    others = tuple(one for one in world.conditions if one.name != effect.name)
    return replace(world, conditions=(*others, effect))


Break = Callable[[World], World]
"""Turns a world into one in which a claim fails."""

BREAKS: Mapping[str, tuple[str, Break]] = MappingProxyType(
    {
        "sticky": ("P1", _sticky),
        "lucky": ("P1", _lucky),
        "blind-flips": ("P1", _blind_flips),
        "no-headroom": ("P2", _no_headroom),
        "teacher-ahead": ("P3", _teacher_ahead),
        "blind-retries": ("P4", _blind_retries),
        "tiring": ("P4", _tiring),
        "collapse": ("P5", _collapse),
        "burst": ("P6", _burst),
        "seeds": ("R1", _seeds),
        "odd-family": ("R2", _odd_family),
        "quantized": ("R3", _quantized),
        "overloaded": ("R4", _overloaded),
    }
)
"""Break to the rule it breaks and what it does. ``seeds`` acts on stochastic arms only."""


def named_world(name: str) -> World:
    """Return a world by its name.

    Parameters
    ----------
    name
        A base, then breaks, joined by ``+``.

    Raises
    ------
    UsageRefused
        If the base or a break is unknown.

    Examples
    --------
    >>> named_world("worked+collapse").repairs.collapse_semantic
    0.1
    """
    base, *breaks = name.split("+")
    if base not in BASES:
        raise UsageRefused("world unknown", [_unknown(base, BASES, "base world")])
    world = BASES[base]()
    for one in breaks:
        if one not in BREAKS:
            raise UsageRefused("world unknown", [_unknown(one, BREAKS, "break")])
        world = BREAKS[one][1](world)
    return replace(world, name=name)


def _unknown(name: str, known: Mapping[str, object], what: str) -> Fault:
    return Fault(
        "world", f"a {what} among {', '.join(known)}", repr(name), "name one of these, or a TOML file"
    )
