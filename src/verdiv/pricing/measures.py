"""What is read off a price: accuracy per unit, the bill under load, and the ways of being wrong."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from verdiv.pricing.closed import Price, majority
from verdiv.pricing.series import Array, as_array, mass_times, odd_array

__all__ = ["accuracy_per_unit", "known_wrong", "loaded_bill", "unanimous_wrong", "wrong_majority"]


def accuracy_per_unit(price: Price, q0: npt.ArrayLike) -> Array:
    """Give the gain over one-shot per unit billed, (Q − q0)/bill.

    Examples
    --------
    >>> round(float(accuracy_per_unit(majority(3, 0.8), 0.8)), 4)
    0.032
    """
    return np.asarray((price.quality - as_array(q0)) / price.bill)


def loaded_bill(bill: npt.ArrayLike, H: npt.ArrayLike) -> Array:
    """Give the bill under load, E_B(1 + H(E_B − 1)): linear in the headroom price H of the extra draws."""
    e = as_array(bill)
    return np.asarray(e * (1.0 + mass_times(H, e - 1.0)))


def known_wrong(price: Price) -> Array:
    """Give the mass of wrong answers that the policy knows to be flagged when it emits them."""
    return np.asarray(price.residual - price.residual_correct)


def wrong_majority(k: npt.ArrayLike, q0: npt.ArrayLike) -> Array:
    """Give 1 − Q_k: the wrong-consensus mass of A1 if all wrong draws of a task agree (the upper bound)."""
    return np.asarray(1.0 - majority(k, q0).quality)


def unanimous_wrong(k: npt.ArrayLike, q0: npt.ArrayLike) -> Array:
    """Give (1 − q0)^k: the mass where A1 sees no correct draw at all."""
    return np.asarray(np.power(1.0 - as_array(q0), odd_array(k)))
