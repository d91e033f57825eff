"""How much the answer depends on the form: break-even and frontier in every form that the rates allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from verdiv.pricing.closed import Price
from verdiv.pricing.forms import FORMS, NEUTRAL, BreakEven, Form, Hazards, feedback_prices, solve
from verdiv.pricing.rates import Rates
from verdiv.pricing.series import as_array

__all__ = ["FormResult", "compare_forms"]


@dataclass(frozen=True, slots=True)
class FormResult:
    """One form's answer."""

    form: Form
    neglected: Mapping[str, float]
    """Parameters that the form has no place for, set to these neutral values."""
    price: Price
    """A3 at budgets 1 … B_max on the last axis."""
    break_even: BreakEven


def compare_forms(r: Rates, *, b_max: int = 5, hazards: Hazards | None = None) -> tuple[FormResult, ...]:
    """Price A3 in every form, each with the parameters it heeds and the others neutral.

    Parameters
    ----------
    r
        One point or posterior draws.
    b_max
        Largest budget.
    hazards
        Measured hazards; the hazards form is left out without them.

    Examples
    --------
    >>> from verdiv.pricing.parameters import Parameters
    >>> [f.form.name for f in compare_forms(Rates.of(Parameters.worked()))]
    ['class-stable', 'fresh', 'correlated']
    """
    found = []
    for form in FORMS.values():
        if form.name == "hazards" and hazards is None:
            continue
        neglected = {
            name: neutral
            for name, neutral in NEUTRAL.items()
            if name not in form.heeds and np.any(getattr(r, name) != neutral)
        }
        own = replace(r, **{name: as_array(neutral) for name, neutral in neglected.items()})
        used = hazards if form.name == "hazards" else None
        found.append(
            FormResult(
                form, neglected, feedback_prices(form, own, b_max, used), solve(form, own, b_max, used)
            )
        )
    return tuple(found)
