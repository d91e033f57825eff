"""Chains as masses: how much of a task's chance is still flagged, already right, and spent, attempt by attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from verdiv.protocol.simulator.law import (
    CORRECT,
    FLAGGED,
    KINDS,
    FloatArray,
    Shift,
    Traits,
    repair_law,
)
from verdiv.protocol.simulator.world import World

__all__ = ["Masses", "fresh_chain", "greedy_chain", "repair_chain"]

RETRIED = np.flatnonzero(FLAGGED)
"""Kinds that are sent to retry."""


@dataclass(slots=True)
class Masses:
    """A gated arm at every budget, per task; arrays of shape ``(tasks,)``."""

    quality: list[FloatArray] = field(default_factory=list)
    """Chance that the answer at budget 1, 2, … is correct."""
    draws: list[FloatArray] = field(default_factory=list)
    """Expected draws at budget 1, 2, …."""
    answered: list[FloatArray] = field(default_factory=list)
    """Chance of each kind of draw being answered by attempt 2, 3, …; shape ``(tasks, 7)``."""
    drawn: list[FloatArray] = field(default_factory=list)
    """Chance of each kind of draw at attempt 1, 2, …; shape ``(tasks, 7)``, summing to the chance of a draw."""

    def add(self, now: FloatArray, done: FloatArray, reached: FloatArray) -> None:
        """Enter one attempt: kinds drawn at it, correct draws that passed before it, chance that it is made."""
        self.drawn.append(now)
        self.draws.append(reached + (self.draws[-1] if self.draws else 0.0))
        self.quality.append(done + now[:, CORRECT].sum(axis=1))


def _passed(now: FloatArray) -> FloatArray:
    return np.asarray(now[:, CORRECT & ~FLAGGED].sum(axis=1), dtype=np.float64)


def repair_chain(world: World, traits: Traits, shift: Shift, budget: int, first: FloatArray) -> Masses:
    """Follow a feedback chain (A3).

    Parameters
    ----------
    world, traits, shift
        As for :func:`verdiv.protocol.simulator.law.repair_law`.
    budget
        Draws at most.
    first
        Chance of each kind of first draw, shape ``(tasks, 7)``.
    """
    everyone = np.arange(len(traits.q))
    masses = Masses()
    now, done = first, np.zeros(len(first))
    masses.add(now, done, np.ones(len(first)))
    for attempt in range(2, budget + 1):
        done = done + _passed(now)
        waiting = now * FLAGGED
        masses.answered.append(waiting)
        now = np.zeros_like(first)
        for kind in RETRIED.tolist():
            law = repair_law(world, traits, everyone, np.full(len(everyone), kind), attempt, shift)
            now = now + waiting[:, [kind]] * law.chances()
        masses.add(now, done, waiting.sum(axis=1))
    return masses


def fresh_chain(first: FloatArray, redraw: Callable[[int], FloatArray], sticky: float, budget: int) -> Masses:
    """Follow a stochastic blind chain (A2s, A5).

    Parameters
    ----------
    first
        Chance of each kind of first draw, shape ``(tasks, 7)``.
    redraw
        From the kind of the first draw to the chances of the kinds of a fresh redraw, shape ``(tasks, 7)``.
    sticky
        Chance that a redraw repeats the first output.
    budget
        Draws at most.
    """
    masses = Masses()
    now, done = first, np.zeros(len(first))
    masses.add(now, done, np.ones(len(first)))
    waiting = {kind: first[:, kind] for kind in RETRIED.tolist()}
    fresh = {kind: redraw(kind) for kind in waiting}
    for _ in range(2, budget + 1):
        done = done + _passed(now)
        masses.answered.append(now * FLAGGED)
        reached = sum(waiting.values(), np.zeros(len(first)))
        now = np.zeros_like(first)
        for kind, mass in waiting.items():
            drawn = (1.0 - sticky) * fresh[kind] * mass[:, None]
            drawn[:, kind] += sticky * mass
            now = now + drawn
            waiting[kind] = drawn[:, FLAGGED].sum(axis=1)
        masses.add(now, done, reached)
    return masses


def greedy_chain(canon: FloatArray, noise_first: float, noise: float, budget: int) -> Masses:
    """Follow a greedy blind chain (A2, A5): every draw shows the canonical output or, rarely, a fresh one.

    Parameters
    ----------
    canon
        Chance of each kind of canonical output, shape ``(tasks, 7)``; fresh draws follow the same chances.
    noise_first, noise
        Chance of a fresh draw, first and later attempts.
    budget
        Draws at most.
    """
    masses = Masses()
    parts = [_known_canon(canon, kind, noise_first, noise, budget) for kind in range(KINDS)]
    for b in range(budget):
        masses.quality.append(_mixed(canon, [part.quality[b] for part in parts]))
        masses.draws.append(_mixed(canon, [part.draws[b] for part in parts]))
        masses.drawn.append(sum((canon[:, [i]] * p.drawn[b] for i, p in enumerate(parts)), 0.0 * canon))
    return masses


def _mixed(canon: FloatArray, values: list[FloatArray]) -> FloatArray:
    return np.asarray((canon * np.stack(values, axis=1)).sum(axis=1), dtype=np.float64)


def _known_canon(canon: FloatArray, kind: int, noise_first: float, noise: float, budget: int) -> Masses:
    masses = Masses()
    known = np.zeros_like(canon)
    known[:, kind] = 1.0
    again = (1.0 - noise) * known + noise * canon
    now, done = (1.0 - noise_first) * known + noise_first * canon, np.zeros(len(canon))
    masses.add(now, done, np.ones(len(canon)))
    for _ in range(2, budget + 1):
        done = done + _passed(now)
        reached = now[:, FLAGGED].sum(axis=1)
        now = reached[:, None] * again
        masses.add(now, done, reached)
    return masses
