"""Departures from the paper's assumptions that a world may have; each default is "none"."""

from __future__ import annotations

from dataclasses import dataclass

from verdiv.errors import Fault
from verdiv.protocol.simulator.rates import between, whole

__all__ = ["Blind", "ConditionEffect", "Drift", "Greedy", "Load", "Losses", "Repairs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """Blind redraws beyond an exchangeable one (breaks rule P1)."""

    stickiness: float = 0.0
    """In (0, 1]: chance that a stochastic redraw repeats the chain's first output. In [-1, 0): a redraw of a
    wrong draw is correct with chance ``q + |stickiness| (1 - q)``, negatively correlated draws."""
    greedy_flip: float = 0.0
    """Chance that a greedy blind redraw is a fresh draw, beside the noise of all greedy reruns."""

    def faults(self, where: str) -> list[Fault]:
        """List what is wrong with the values."""
        return [
            *between(where, "stickiness", self.stickiness, -1.0, 1.0),
            *between(where, "greedy_flip", self.greedy_flip, 0.0, 1.0),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Factors on the chance that a wrong draw is flagged, cut at 1 (break rule P4)."""

    blind: float = 1.0
    """Blind redraws (attempts from 2)."""
    feedback: float = 1.0
    """Feedback redraws (attempts from 2)."""
    second_half: float = 1.0
    """Fresh small-tier draws in the second half of the primary run; a greedy output that is made again keeps
    its verdict."""

    def faults(self, where: str) -> list[Fault]:
        """List what is wrong with the values."""
        return [
            *between(where, "blind", self.blind, 0.0, 100.0),
            *between(where, "feedback", self.feedback, 0.0, 100.0),
            *between(where, "second_half", self.second_half, 0.0, 100.0),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """Repairs after the first one (break rule P5)."""

    collapse_structural: float = 1.0
    """Factor on the success of repairs of structural errors at attempts from 3, cut at 1."""
    collapse_semantic: float = 1.0
    """The same for semantic errors."""
    persistence: float = 1.0
    """Chance that a failed repair keeps its error class; else the class is drawn afresh. 1 is the paper's
    class stability (A3), 0 its fresh re-partitioning."""

    def faults(self, where: str) -> list[Fault]:
        """List what is wrong with the values."""
        return [
            *between(where, "collapse_structural", self.collapse_structural, 0.0, 100.0),
            *between(where, "collapse_semantic", self.collapse_semantic, 0.0, 100.0),
            *between(where, "persistence", self.persistence, 0.0, 1.0),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Greedy:
    """Deterministic decoding: every prompt has one canonical output, a draw of the task's distribution."""

    flip: float = 0.0
    """Chance that one execution of a greedy prompt gives a fresh draw instead of the canonical output."""
    logit: float = 0.0
    """Logit shift of the chance that a greedy first draw is correct, small tier."""

    def faults(self, where: str) -> list[Fault]:
        """List what is wrong with the values."""
        return [
            *between(where, "flip", self.flip, 0.0, 1.0),
            *between(where, "logit", self.logit, -20.0, 20.0),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionEffect:
    """What another experimental condition changes, small tier."""

    name: str
    precision: str | None = None
    """Numeric format of the weights; None keeps the primary one."""
    q_logit: float = 0.0
    """Logit shift of first draws."""
    delta_logit: float = 0.0
    """Logit shift of detection."""
    repair_logit: float = 0.0
    """Logit shift of repairs."""
    agreement: float = 1.0
    """Chance that a greedy prompt's canonical output is coupled to the primary one: without shifts it is then
    the same output."""
    load_factor: float = 1.0
    """Factor on the requests in flight."""

    def faults(self, where: str) -> list[Fault]:
        """List what is wrong with the values."""
        found = [
            *between(where, "q_logit", self.q_logit, -20.0, 20.0),
            *between(where, "delta_logit", self.delta_logit, -20.0, 20.0),
            *between(where, "repair_logit", self.repair_logit, -20.0, 20.0),
            *between(where, "agreement", self.agreement, 0.0, 1.0),
            *between(where, "load_factor", self.load_factor, 1e-3, 1e3),
        ]
        if not self.name or len(self.name) > 200 or not self.name.isprintable():
            found.append(
                Fault(where, "a printable name of 1 to 200 characters", repr(self.name), "rename it")
            )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Device time of a draw.

    ``log(device seconds) = log(seconds) + a_task + h log(in flight) + slope log(tokens out / 40) + noise``,
    with ``a_task ~ N(0, task_sd)`` and ``noise ~ N(0, noise_sd)``; a teacher draw takes ``rho`` times as long.
    """

    h: float = 0.02
    """Burst price H: elasticity of device seconds to the requests in flight (rule P6)."""
    slope: float = 0.9
    """Elasticity to the tokens written."""
    seconds: float = 0.4
    """Device seconds of a draw of 40 tokens, alone on the device."""
    task_sd: float = 0.25
    """Spread between tasks, log scale."""
    noise_sd: float = 0.10
    """Spread between draws of one task, log scale."""
    in_flight_min: int = 1
    """Fewest requests in flight; equal to the most, the load is constant and H cannot be estimated."""
    in_flight_max: int = 8
    """Most requests in flight, itself included."""

    def faults(self, where: str) -> list[Fault]:
        """List what is wrong with the values."""
        found = [
            *between(where, "h", self.h, -10.0, 10.0),
            *between(where, "slope", self.slope, -10.0, 10.0),
            *between(where, "seconds", self.seconds, 1e-3, 1e3),
            *between(where, "task_sd", self.task_sd, 0.0, 3.0),
            *between(where, "noise_sd", self.noise_sd, 0.0, 3.0),
            *whole(where, "in_flight_min", self.in_flight_min, 1, 10_000),
            *whole(where, "in_flight_max", self.in_flight_max, 1, 10_000),
        ]
        if not found and self.in_flight_min > self.in_flight_max:
            got = f"{self.in_flight_min} > {self.in_flight_max}"
            found.append(
                Fault(where, "in_flight_min up to in_flight_max", got, "swap them", field="in_flight_min")
            )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What goes missing, independently of every outcome."""

    errors: float = 0.0
    """Chance that a draw is preceded by an infrastructure failure, logged as a record of its own."""
    unscored: float = 0.0
    """Chance that a draw's ground truth is missing."""

    def faults(self, where: str) -> list[Fault]:
        """List what is wrong with the values."""
        return [
            *between(where, "errors", self.errors, 0.0, 1.0),
            *between(where, "unscored", self.unscored, 0.0, 1.0),
        ]
