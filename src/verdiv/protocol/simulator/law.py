"""What one draw comes out as, given the task's traits: the single place where draws get their chances.

The sampler draws from these laws and the true values integrate the same laws, so that neither can drift from
the other; the tests hold both against closed forms of their own.

A draw is first correct or wrong, then flagged or not, then (flagged) structural or semantic, then (silent)
caught or missed by the oracle. Seven kinds of outcome follow, coded 0 to 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verdiv.protocol.simulator.world import World

__all__ = [
    "CORRECT",
    "FLAGGED",
    "KINDS",
    "SILENT",
    "STRUCTURAL",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "Law",
    "Shift",
    "Traits",
    "blind_law",
    "first_law",
    "moved",
    "repair_law",
    "teacher_law",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

KINDS = 7
"""Correct; false positive called structural, or semantic; wrong and flagged structural, or semantic; silent and
seen by the oracle, or missed."""
CORRECT = np.array([True, True, True, False, False, False, False])
"""Kind to ground truth."""
FLAGGED = np.array([False, True, True, True, True, False, False])
"""Kind to the static verifier's flag."""
STRUCTURAL = np.array([False, True, False, True, False, False, False])
"""Kind to "the flag's class is structural"."""
SILENT = np.array([False, False, False, False, False, True, True])
"""Kind to "wrong and not flagged"."""


@dataclass(frozen=True, slots=True)
class Traits:
    """Chances of single tasks; every array has shape ``(tasks,)`` and holds probabilities."""

    q: FloatArray
    delta: FloatArray
    sigma: FloatArray
    s1: FloatArray
    s2: FloatArray
    lambda1: FloatArray
    """NaN: ``1 - delta`` of the task."""
    lambda2: FloatArray
    """NaN: ``1 - delta`` of the task."""
    fpr: FloatArray
    s_false: FloatArray
    eta_ox: FloatArray
    q_t: FloatArray
    delta_t: FloatArray


@dataclass(frozen=True, slots=True)
class Shift:
    """What surrounds a draw moves its chances by; scalars, or arrays of the draws' shape."""

    q_logit: FloatArray | float = 0.0
    delta_logit: FloatArray | float = 0.0
    repair_logit: FloatArray | float = 0.0
    detection: FloatArray | float = 1.0
    """Factor on the chance that a wrong draw is flagged."""


NO_SHIFT = Shift()


@dataclass(frozen=True, slots=True)
class Law:
    """Conditional chances of draws, arrays of one shape."""

    correct: FloatArray
    flag_wrong: FloatArray
    """Flagged given wrong."""
    flag_right: FloatArray
    """Flagged given correct."""
    structural: FloatArray
    """Called structural given flagged."""
    oracle: FloatArray
    """Oracle flags given silent."""

    def kinds(self, u: FloatArray) -> IntArray:
        """Turn uniform numbers, shape ``(4, draws)``, into kinds, shape ``(draws,)``."""
        right = u[0] < self.correct
        flagged = u[1] < np.where(right, self.flag_right, self.flag_wrong)
        named = np.where(u[2] < self.structural, 1, 2)
        silent = np.where(u[3] < self.oracle, 5, 6)
        return np.where(flagged, np.where(right, named, named + 2), np.where(right, 0, silent)).astype(
            np.int64
        )

    def chances(self) -> FloatArray:
        """Return the chance of each kind, shape ``(draws, 7)``; rows sum to 1."""
        c, w = self.correct, 1.0 - self.correct
        fp, seen, unseen = c * self.flag_right, w * self.flag_wrong, w * (1.0 - self.flag_wrong)
        sg, eta = self.structural, self.oracle
        parts = (c - fp, fp * sg, fp * (1 - sg), seen * sg, seen * (1 - sg), unseen * eta, unseen * (1 - eta))
        return np.stack(np.broadcast_arrays(*parts), axis=-1).astype(np.float64)


def moved(chance: FloatArray, logit: FloatArray | float) -> FloatArray:
    """Move chances on the logit scale; 0 and 1 stay.

    Examples
    --------
    >>> moved(np.array([0.0, 0.8, 1.0]), -1.0).round(4).tolist()
    [0.0, 0.5954, 1.0]
    """
    odds = np.exp(logit)
    return np.asarray(chance * odds / (1.0 - chance + chance * odds), dtype=np.float64)


def _cut(chance: FloatArray) -> FloatArray:
    return np.minimum(chance, 1.0)


def first_law(traits: Traits, task: IntArray, shift: Shift = NO_SHIFT) -> Law:
    """Return the law of small-tier first draws of the tasks ``task`` (indices into the traits)."""
    return Law(
        correct=moved(traits.q[task], shift.q_logit),
        flag_wrong=_cut(moved(traits.delta[task], shift.delta_logit) * shift.detection),
        flag_right=traits.fpr[task],
        structural=traits.sigma[task],
        oracle=traits.eta_ox[task],
    )


def teacher_law(traits: Traits, task: IntArray) -> Law:
    """Return the law of the teacher's draws; error classes and oracle are as in the small tier."""
    return Law(
        correct=traits.q_t[task],
        flag_wrong=traits.delta_t[task],
        flag_right=traits.fpr[task],
        structural=traits.sigma[task],
        oracle=traits.eta_ox[task],
    )


def blind_law(world: World, traits: Traits, task: IntArray, first: IntArray, shift: Shift = NO_SHIFT) -> Law:
    """Return the law of fresh stochastic blind redraws.

    Parameters
    ----------
    world
        Gives the drift of detection and, below zero, the stickiness: a redraw of a wrong draw is then correct
        with chance ``q + |stickiness| (1 - q)``.
    traits, task
        The tasks.
    first
        Kind of the chain's first draw.
    shift
        What surrounds the draws.
    """
    law = first_law(
        traits, task, Shift(shift.q_logit, shift.delta_logit, 0.0, shift.detection * world.drift.blind)
    )
    push = np.where(CORRECT[first], 0.0, max(0.0, -world.blind.stickiness))
    return Law(
        law.correct + push * (1.0 - law.correct), law.flag_wrong, law.flag_right, law.structural, law.oracle
    )


def repair_law(
    world: World, traits: Traits, task: IntArray, answered: IntArray, attempt: int, shift: Shift = NO_SHIFT
) -> Law:
    """Return the law of feedback repairs.

    Parameters
    ----------
    world
        Gives collapse, persistence and the drift of detection.
    traits, task
        The tasks.
    answered
        Kind of the flagged draw that the repair answers.
    attempt
        Attempt of the repair, at least 2; from 3 the collapse factors act.
    shift
        What surrounds the draws.
    """
    structural = STRUCTURAL[answered]
    success = np.where(structural, traits.s1[task], traits.s2[task])
    if attempt >= 3:
        repairs = world.repairs
        success = _cut(success * np.where(structural, repairs.collapse_structural, repairs.collapse_semantic))
    success = np.where(CORRECT[answered], traits.s_false[task], success)
    leak = np.where(structural, traits.lambda1[task], traits.lambda2[task])
    seen = np.where(np.isnan(leak), traits.delta[task], 1.0 - leak)
    stay = world.repairs.persistence
    return Law(
        correct=moved(success, shift.repair_logit),
        flag_wrong=_cut(moved(seen, shift.delta_logit) * world.drift.feedback * shift.detection),
        flag_right=traits.fpr[task],
        structural=stay * structural + (1.0 - stay) * traits.sigma[task],
        oracle=traits.eta_ox[task],
    )
