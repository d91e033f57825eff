"""Registered numbers of the ten rules: margins, tolerances, and the alternatives that severity is judged at.

The smallest effect of interest (a margin, a fraction or a tolerance, whichever the rule speaks in) has no
default here: it is a decision of the person who registers, taken before the data. The alternatives, which
only say where the design's power is evaluated, have defaults.

References
----------
The Verifier's Dividend, "Preregistered Protocol": falsification rules P1 to P6, robustness checks R1 to R4.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from verdiv.preregistration.parts import Name, Plan

__all__ = [
    "RULE_IDS",
    "P1Plan",
    "P2Plan",
    "P3Plan",
    "P4Plan",
    "P5Plan",
    "P6Plan",
    "R1Plan",
    "R2Plan",
    "R3Plan",
    "R4Plan",
    "RuleId",
    "RulesPlan",
]

RuleId = str
"""Name of a rule: one of :data:`RULE_IDS`."""

RULE_IDS: tuple[RuleId, ...] = ("P1", "P2", "P3", "P4", "P5", "P6", "R1", "R2", "R3", "R4")
"""The ten rules in the order in which they are registered and reported."""

Margin = Annotated[float, Field(gt=0, le=1)]
Difference = Annotated[float, Field(ge=-1, le=1)]


class P1Plan(Plan):
    """P1, blind flatness: greedy redraws change nothing, stochastic ones follow the exchangeable form."""

    flips_allowed: Annotated[int, Field(ge=0)] = 0
    """Flips of ``correct`` among greedy blind redraws of A2 that still count as flat; a count."""
    fraction: Margin
    """Largest share of the predicted gain by which A2s may miss its exchangeable form, either way."""
    alternative: Annotated[float, Field(gt=0)] = 0.5
    """Miss, as a share of the predicted gain, at which severity is judged."""


class P2Plan(Plan):
    """P2, feedback headroom: repair beats redrawing, and the feedback arm keeps up with the majority vote."""

    headroom_margin: Margin
    """D_c must exceed this; quality, 0 to 1."""
    quality_margin: Margin
    """A3 at budget k may lie below A1 by less than this; quality, 0 to 1."""
    k: Annotated[int, Field(ge=1, le=1001)] = 5
    """Votes of A1 and budget of A3 in the comparison; draws."""
    headroom_alternative: Difference = 0.0
    """D_c at which severity is judged."""
    quality_alternative: Difference = -0.10
    """Difference A3 - A1 at which severity is judged."""
    crossover_probability: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The second part is testable where P(p_d at or above the crossover) reaches this."""


class P3Plan(Plan):
    """P3, spend parity: at the break-even budget A3 has the teacher's quality at no higher bill."""

    quality_margin: Margin
    """A3 may lie below A4 by less than this; quality, 0 to 1."""
    alternative: Difference = -0.10
    """Difference A3 - A4 at which severity is judged."""


class P4Plan(Plan):
    """P4, detection-rate drift: retries are detected as often as initial draws of the same task."""

    margin: Margin
    """Largest drift of the detection rate, either way; probability."""
    alternative: Difference = 0.20
    """Drift at which severity is judged."""


class P5Plan(Plan):
    """P5, feedback accumulation collapse: late repairs keep a share of the first repair's success."""

    fraction: Margin
    """Least ratio of late to first repair success that still counts as no collapse."""
    alternative: Annotated[float, Field(ge=0)] = 0.25
    """Ratio at which severity is judged."""


class P6Plan(Plan):
    """P6, burst penalty: retries load the device little, and the loaded bill stays below the teacher's."""

    tolerance: Margin
    """Largest H (E_B - 1), relative surcharge on the bill."""
    alternative: Annotated[float, Field(gt=0)] = 0.10
    """Surcharge at which severity is judged."""


class R1Plan(Plan):
    """R1, seeds: quality at the break-even budget hardly differs between the fixed seeds."""

    margin: Margin
    """Largest difference, either way; quality, 0 to 1."""
    alternative: Difference = 0.10
    """Difference at which severity is judged."""


class R2Plan(Plan):
    """R2, family composition: spend parity holds without any one family and with equal weights."""

    margin: Margin
    """Quality margin of the leave-one-out comparisons; quality, 0 to 1."""
    alternative: Difference = -0.10
    """Difference A3 - A4 at which severity is judged."""


class R3Plan(Plan):
    """R3, quantization: the small tier's quality hardly depends on its numeric format."""

    margin: Margin
    """Largest difference, either way; quality, 0 to 1."""
    alternative: Difference = 0.10
    """Difference at which severity is judged."""
    condition: Name = "nvfp4"
    """Condition that is compared with ``primary``."""


class R4Plan(Plan):
    """R4, serving load: the small tier's quality hardly depends on the load, and P6 holds at heavy load."""

    margin: Margin
    """Largest difference, either way; quality, 0 to 1."""
    alternative: Difference = 0.10
    """Difference at which severity is judged."""
    condition: Name = "heavy-load"
    """Condition that is compared with ``primary``."""


class RulesPlan(Plan):
    """Registered numbers of all ten rules; a registration states each of them."""

    P1: P1Plan
    P2: P2Plan
    P3: P3Plan
    P4: P4Plan
    P5: P5Plan
    P6: P6Plan
    R1: R1Plan
    R2: R2Plan
    R3: R3Plan
    R4: R4Plan
