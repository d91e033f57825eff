"""Conversations of several tool calls: spend parity solved again for every turn.

*The Verifier's Dividend* prices single-shot tasks and leaves multi-turn calls to a per-turn p_d (Limits, sixth).
Here every turn has its own detectable mass; a turn's rates are conditional on the turns before being right, and
every turn is drawn and billed whether or not they were.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, UsageRefused
from verdiv.pricing.breakeven import TIE
from verdiv.pricing.forms import BreakEven, Form, Hazards, feedback_prices, solve
from verdiv.pricing.measures import loaded_bill
from verdiv.pricing.parameters import Parameters
from verdiv.pricing.rates import Rates
from verdiv.pricing.series import Array, as_array

__all__ = ["Conversation", "price_turns"]

MAX_TURNS = 10_000
"""Most turns of a conversation."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation's turns and its whole."""

    p_d: Array
    """Detectable mass by turn."""
    q0: Array
    """One-shot quality by turn."""
    turns: BreakEven
    """Break-even and regime of each turn."""
    by_budget_quality: Array
    """P(all turns right) with the same budget in every turn, budgets 1 … b_max."""
    by_budget_bill: Array
    """Expected units of the whole conversation, likewise; under load."""
    teacher_quality: float
    """P(all turns right) with one teacher draw a turn."""
    teacher_bill: float
    """Units of the teacher's conversation."""
    uniform: int
    """Smallest budget, the same in every turn, at which the whole meets the teacher; 0 none."""
    own_quality: float
    """P(all turns right) with each turn at its own B*, and the teacher's draw where a turn has none."""
    own_bill: float
    """Units of that policy."""


def price_turns(
    p: Parameters,
    p_d: npt.ArrayLike,
    *,
    form: Form,
    q0: npt.ArrayLike | None = None,
    b_max: int = 8,
    hazards: Hazards | None = None,
) -> Conversation:
    """Solve spend parity turn by turn, and for the conversation as a whole.

    Every turn t meets B*_t = min{B : Q_{B,t} ≥ q_T and E_{B,t} ≤ ρ}. Parity in each turn gives parity of the
    whole, Π Q_t ≥ q_T^T for Σ E_t ≤ Tρ, but is not needed for it; both are reported.

    Parameters
    ----------
    p
        Parameters shared by the turns.
    p_d
        Detectable mass of each turn, one-dimensional.
    form
        How A3 is priced.
    q0
        One-shot quality of each turn; p's own in every turn if absent. Repair success s2 is held at p's own.
    b_max
        Largest budget searched.

    Raises
    ------
    UsageRefused
        If the turns are no list or a turn is no protocol.

    Examples
    --------
    >>> from verdiv.pricing.forms import FORMS
    >>> talk = price_turns(Parameters.worked(), [0.18, 0.12, 0.05], form=FORMS["class-stable"])
    >>> talk.turns.b_star.tolist(), talk.uniform
    ([2, 2, 0], 2)
    """
    detected = as_array(p_d)
    right = (
        np.broadcast_to(as_array(p.q0 if q0 is None else q0), detected.shape) if q0 is None else as_array(q0)
    )
    if detected.ndim != 1 or not 1 <= detected.size <= MAX_TURNS or right.shape != detected.shape:
        fault = Fault(
            "turns", "one p_d (and one q0) per turn", f"{detected.shape}, {right.shape}", "list them"
        )
        raise UsageRefused("cannot read the turns of this conversation", [fault])
    r = Rates.of(p, p_d=detected, q0=right, s2=p.s2)
    if not np.all(r.possible()):
        turn = int(np.argmin(r.possible()))
        got = f"q0 {right[turn]:g}, p_d {detected[turn]:g}"
        fault = Fault(f"turn {turn + 1}", "masses in [0, 1] with q0 + p_d ≤ 1", got, "correct the turn")
        raise UsageRefused("a turn describes no protocol", [fault])
    found = solve(form, r, b_max, hazards)
    price = feedback_prices(form, r, b_max, hazards)
    quality = np.prod(price.quality, axis=0)
    bill = loaded_bill(price.bill, p.H).sum(axis=0)
    turns = detected.size
    target, cap = p.q_T**turns, p.rho * turns
    meets = (quality >= target - TIE) & (bill <= cap + TIE)
    own = found.b_star > 0
    return Conversation(
        p_d=detected,
        q0=np.asarray(right),
        turns=found,
        by_budget_quality=quality,
        by_budget_bill=np.asarray(bill),
        teacher_quality=float(target),
        teacher_bill=float(cap),
        uniform=int(meets.argmax()) + 1 if meets.any() else 0,
        own_quality=float(np.prod(np.where(own, found.quality, p.q_T))),
        own_bill=float(np.where(own, found.bill, p.rho).sum()),
    )
