"""The deployment gate: a policy serves only where its quality reaches g with the probability asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, UsageRefused

__all__ = ["GATE", "Certificate", "certify_counts", "certify_draws"]

GATE = 0.85
"""The deployment gate g of *The Verifier's Dividend*."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """Whether a policy passes the deployment gate, and on what ground."""

    gate: float
    """Quality g to be reached."""
    assurance: float
    """Probability of reaching it that was asked for."""
    probability: float
    """P(quality ≥ g)."""
    mean: float
    """Mean of the quality."""
    ground: str
    """What the probability rests on."""

    @property
    def passed(self) -> bool:
        """Whether the policy may serve."""
        return self.probability >= self.assurance

    def require(self) -> None:
        """Refuse a policy that does not pass.

        Raises
        ------
        UsageRefused
            With what is missing.
        """
        if not self.passed:
            fault = Fault(
                "policy",
                f"P(quality ≥ {self.gate:g}) of at least {self.assurance:g}",
                f"{self.probability:.3g} ({self.ground})",
                "raise the budget, escalate, or measure more",
                field="gate",
            )
            raise UsageRefused("this policy does not pass its deployment gate", [fault])


def _check(gate: float, assurance: float) -> None:
    """Refuse gates and assurances that are no probabilities."""
    faults = [
        Fault("deployment gate", "a number from 0 to 1", repr(value), "give a share", field=name)
        for name, value in (("gate", gate), ("assurance", assurance))
        if not 0 <= value <= 1
    ]
    if faults:
        raise UsageRefused("there is no such gate", faults)


def certify_counts(correct: int, scored: int, *, gate: float = GATE, assurance: float = 0.95) -> Certificate:
    r"""Judge a policy by answers whose truth is known, one a task.

    .. math:: P(Q \ge g) = 1 - I_g(k + 1/2,\ n - k + 1/2)

    the Beta posterior of k correct answers among n independent tasks under Jeffreys' prior. Repeated answers to
    one task are not independent: give each task once.

    Parameters
    ----------
    correct, scored
        k and n; n = 0 leaves the prior and passes no gate that matters.
    gate, assurance
        g, and the probability asked for.

    Raises
    ------
    UsageRefused
        Counts that are none, or bounds outside [0, 1].

    Examples
    --------
    >>> round(certify_counts(95, 100).probability, 4), certify_counts(9, 10).passed
    (0.9992, False)
    """
    _check(gate, assurance)
    if not 0 <= correct <= scored:
        fault = Fault("counts", "0 ≤ correct ≤ scored", f"{correct} of {scored}", "count again")
        raise UsageRefused("there are no such counts", [fault])
    from scipy.special import betaincc

    a, b = correct + 0.5, scored - correct + 0.5
    return Certificate(
        gate,
        assurance,
        float(betaincc(a, b, gate)),
        a / (a + b),
        f"{correct} of {scored} scored answers correct",
    )


def certify_draws(
    quality: npt.ArrayLike, *, gate: float = GATE, assurance: float = 0.95, ground: str = "posterior draws"
) -> Certificate:
    """Judge a policy by posterior draws of its quality: the share of them that reaches g (ties within 1e-12).

    Parameters
    ----------
    quality
        Draws, any shape; one number is a certainty.
    gate, assurance
        g, and the probability asked for.
    ground
        What the draws are.

    Raises
    ------
    UsageRefused
        No draws, draws that are no numbers, or bounds outside [0, 1].

    Examples
    --------
    >>> certify_draws([0.84, 0.86, 0.9, 0.97]).probability
    0.75
    """
    _check(gate, assurance)
    draws = np.ravel(np.asarray(quality, dtype=np.float64))
    if not len(draws) or not math.isfinite(float(draws.sum())):
        fault = Fault(
            "quality", "one or more finite numbers", f"{len(draws)} draws", "price the policy first"
        )
        raise UsageRefused("there is no quality to judge", [fault])
    return Certificate(gate, assurance, float(np.mean(draws >= gate - 1e-12)), float(draws.mean()), ground)
