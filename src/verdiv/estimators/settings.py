"""How an analysis is computed: engine, draws, cores and seed."""

from __future__ import annotations

from dataclasses import dataclass

from verdiv.errors import UsageRefused

__all__ = ["DEFAULTS", "ENGINES", "Settings"]

ENGINES = ("grid", "nuts")
"""Names of the engines, the default first."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Engine and sizes of one analysis; what it finds may depend on nothing else but the data and the plan.

    Raises
    ------
    UsageRefused
        An unknown engine.

    Examples
    --------
    >>> Settings(draws=500).total
    2000
    """

    engine: str = "grid"
    """``grid`` (quadrature, refined until its error is below .01 posterior sd) or ``nuts`` (PyMC)."""
    check_engine: bool = False
    """Whether the other engine runs beside the grid and their distance is reported; ``nuts`` always does."""
    draws: int = 1000
    """Posterior draws a chain."""
    chains: int = 4
    """Chains of the sampler."""
    cores: int = 2
    """Cores that the sampler may use; no number depends on them."""
    seed: int = 1
    """Seed of every random number, the bootstrap's too."""
    archive: bool = True
    """Whether the grid's draws are kept for fit.nc and leave-one-out is computed; NUTS always does both."""

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise UsageRefused(f"Unknown engine {self.engine!r}; use {' or '.join(ENGINES)}.")

    @property
    def total(self) -> int:
        """Posterior draws of all chains together."""
        return self.draws * self.chains


DEFAULTS = Settings()
"""The settings of a call that states none."""
