"""Priors of the hierarchical model; registered, and changeable only by an amendment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, UsageRefused

__all__ = ["FALSE_POSITIVE_STAGES", "LocationPrior", "Priors"]

FALSE_POSITIVE_STAGES = frozenset({"fpr", "fpr_initial"})
"""Stages whose suite mean has the prior of a rare event."""


@dataclass(frozen=True, slots=True)
class LocationPrior:
    """Normal prior of a stage's suite mean on the logit scale."""

    mean: float
    """Mean, in logits."""
    sd: float
    """Standard deviation, in logits."""


@dataclass(frozen=True, slots=True)
class Priors:
    r"""Priors of all stages and blocks.

    .. math::
        \mu_s \sim N(0, 2.5^2), \quad \mu_{fpr} \sim N(-4, 3^2), \quad \tau_s \sim \mathrm{HalfNormal}(0.7),
        \quad \mathrm{icc} = 1/(1 + \kappa) \sim \mathrm{Beta}(1, 1.5)

    The first is nearly flat on the rate between .01 and .99; the second centres the false positives of a
    deterministic checker at .018 without forbidding 0 or .9; the third lets families differ by a factor of
    a few in odds; the last favours weak correlation but reaches 1, where a task is always right or wrong.
    """

    mu_mean: float = 0.0
    """Mean of a stage's suite mean, in logits."""
    mu_sd: float = 2.5
    """Standard deviation of a stage's suite mean, in logits."""
    fpr_mu_mean: float = -4.0
    """Mean for the stages of false positives, in logits."""
    fpr_mu_sd: float = 3.0
    """Standard deviation for the stages of false positives, in logits."""
    tau_sd: float = 0.7
    """Scale of the half-normal prior of the spread between families, in logits."""
    icc_a: float = 1.0
    """First parameter of the Beta prior of a block's within-task correlation."""
    icc_b: float = 1.5
    """Second parameter of the Beta prior of a block's within-task correlation."""
    uniform: bool = False
    """Replace every location prior by a standard logistic one, under which the suite mean rate is uniform."""

    def __post_init__(self) -> None:
        """Refuse priors that are no distributions."""
        positive = ("mu_sd", "fpr_mu_sd", "tau_sd", "icc_a", "icc_b")
        faults = [
            Fault("priors", "a finite positive number", str(getattr(self, name)), "change it", field=name)
            for name in positive
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0)
        ]
        faults += [
            Fault("priors", "a finite number", str(getattr(self, name)), "change it", field=name)
            for name in ("mu_mean", "fpr_mu_mean")
            if not math.isfinite(getattr(self, name))
        ]
        if faults:
            raise UsageRefused("The priors cannot be used.", faults)

    def mu(self, stage: str) -> LocationPrior:
        """Return the prior of one stage's suite mean.

        Examples
        --------
        >>> Priors().mu("q"), Priors().mu("fpr_initial").mean
        (LocationPrior(mean=0.0, sd=2.5), -4.0)
        """
        if stage in FALSE_POSITIVE_STAGES:
            return LocationPrior(self.fpr_mu_mean, self.fpr_mu_sd)
        return LocationPrior(self.mu_mean, self.mu_sd)

    def locations(self, stages: Sequence[str]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return means and standard deviations of several stages, two vectors of shape (S,)."""
        pairs = [self.mu(stage) for stage in stages]
        return np.array([p.mean for p in pairs]), np.array([p.sd for p in pairs])

    @property
    def icc_sd(self) -> float:
        r"""Prior standard deviation of icc, :math:`\sqrt{ab/(a+b)^2/(a+b+1)}`.

        Examples
        --------
        >>> round(Priors().icc_sd, 4)
        0.2619
        """
        total = self.icc_a + self.icc_b
        return math.sqrt(self.icc_a * self.icc_b / (total * total * (total + 1)))

    def scaled(self, *, mu: float = 1.0, tau: float = 1.0) -> Priors:
        """Return the same priors with wider (> 1) or narrower (< 1) scales, for prior sensitivity."""
        return replace(self, mu_sd=self.mu_sd * mu, fpr_mu_sd=self.fpr_mu_sd * mu, tau_sd=self.tau_sd * tau)
