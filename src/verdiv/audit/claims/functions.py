"""The functions that a claim may call: the closed forms of the arms, and a little arithmetic.

Arguments that a call leaves out are read by name from the registered parameters, so ``Q_A3(B = 2)`` is the
quality at the registered rates and ``Q_A3(B = 2, sigma = 0.4)`` at one of them changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verdiv.pricing import closed
from verdiv.pricing.breakeven import break_even, first_repair_dividend, log_branch, regime
from verdiv.pricing.measures import loaded_bill, unanimous_wrong, wrong_majority
from verdiv.pricing.parameters import Parameters
from verdiv.pricing.ratecard import ArmBudgets, Ledger, RateCard, ledger

__all__ = ["FUNCTIONS", "Function", "describe_functions"]

MAX_SEARCH = 1000
"""Largest budget that a search for the break-even looks at."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the language."""

    body: Callable[..., Any]
    arguments: tuple[str, ...] = ()
    """Names of its arguments, in order."""
    text: str = ""
    """What it gives, in a line."""
    defaults: Mapping[str, float] = field(default_factory=dict)
    """Arguments that need not be registered."""
    variadic: bool = False
    """Takes any number of arguments by position."""


_RATES = ("q0", "p_d", "sigma", "s1", "s2")
_BUDGETS = ("B_A0", "k", "B_A2", "B_A2s", "B_A3", "B_A4", "B_A5")
_DESIGN = (*_BUDGETS, "shared_first", "q0", "p_d", "sigma", "s1", "s2", "q_T", "p_dT", "rho")


def _whole(value: float) -> int:
    if not float(value).is_integer():
        raise ValueError(f"{value:g} is not a whole number")
    return int(value)


def _ledger(*values: float) -> Ledger:
    """Price a whole design: budgets in the order of the arms, then the rates."""
    named = dict(zip(_DESIGN, values, strict=True))
    arms = {"A1" if name == "k" else name.removeprefix("B_"): _whole(named.pop(name)) for name in _BUDGETS}
    shared = bool(named.pop("shared_first"))
    parameters = Parameters.from_mapping(named)
    return ledger(parameters, ArmBudgets(**arms, shared_first=shared), RateCard(rho=named["rho"]), tasks=1)


def _b_star(
    q0: float, p_d: float, sigma: float, s1: float, s2: float, q_T: float, rho: float, B_max: float
) -> int:
    """Search the break-even budget; 0 where none is found."""
    most = _whole(B_max)
    if not 1 <= most <= MAX_SEARCH:
        raise ValueError(f"B_max from 1 to {MAX_SEARCH}, not {most}")
    price = closed.feedback(np.arange(1.0, most + 1.0), q0, p_d, sigma, s1, s2)
    return int(break_even(price.quality, price.bill, q_T, rho))


def _round(value: float, digits: float) -> float:
    return round(value, _whole(digits))


def _nearest_share(share: float, n: float) -> float:
    """Give the share k/n that lies closest to a share, k whole."""
    count = _whole(n)
    if not 1 <= count <= 10**9:
        raise ValueError("a count from 1")
    return round(share * count) / count


FUNCTIONS: Mapping[str, Function] = {
    "Q_A0": Function(lambda q0: q0, ("q0",), "quality of one small draw"),
    "Q_A1": Function(lambda k, q: closed.majority(k, q).quality, ("k", "q0"), "majority of odd k"),
    "Q_A2": Function(
        lambda B, q, d: closed.blind_greedy(B, q, d).quality, ("B", "q0", "p_d"), "greedy blind retry"
    ),
    "Q_A2s": Function(
        lambda B, q, d: closed.blind(B, q, d).quality, ("B", "q0", "p_d"), "sampled blind retry"
    ),
    "Q_A3": Function(lambda *a: closed.feedback(*a).quality, ("B", *_RATES), "feedback, classes stable"),
    "Q_A3_fresh": Function(
        lambda *a: closed.feedback_fresh(*a).quality, ("B", *_RATES), "feedback, classes drawn anew"
    ),
    "Q_A4": Function(lambda q: q, ("q_T",), "quality of one teacher draw"),
    "Q_A5": Function(
        lambda *a: closed.teacher_gated(*a).quality, ("B", "q_T", "p_dT", "rho"), "gated teacher"
    ),
    "Q_blended": Function(
        lambda *a: closed.blended(*a).quality, ("B", *_RATES, "q_T", "rho"), "feedback, then the teacher"
    ),
    "bill_A0": Function(lambda: 1.0, (), "1, the unit"),
    "bill_A1": Function(lambda k: closed.majority(k, 0.5).bill, ("k",), "k"),
    "bill_A2": Function(
        lambda B, q, d: closed.blind_greedy(B, q, d).bill, ("B", "q0", "p_d"), "1 + (B-1) p_d"
    ),
    "bill_A2s": Function(
        lambda B, q, d: closed.blind(B, q, d).bill, ("B", "q0", "p_d"), "sampled blind retry"
    ),
    "bill_A3": Function(lambda *a: closed.feedback(*a).bill, ("B", *_RATES), "E_B of the feedback arm"),
    "bill_A3_fresh": Function(
        lambda *a: closed.feedback_fresh(*a).bill, ("B", *_RATES), "E_B, classes drawn anew"
    ),
    "bill_A4": Function(lambda rho: rho, ("rho",), "rho"),
    "bill_A5": Function(
        lambda *a: closed.teacher_gated(*a).bill, ("B", "q_T", "p_dT", "rho"), "gated teacher"
    ),
    "bill_blended": Function(
        lambda *a: closed.blended(*a).bill, ("B", *_RATES, "q_T", "rho"), "feedback, then the teacher"
    ),
    "residual_A3": Function(
        lambda *a: closed.feedback(*a).residual, ("B", *_RATES), "m_B, flagged to the end"
    ),
    "recovery": Function(closed.recovery, ("n", "sigma", "s1", "s2"), "R_n"),
    "recovery_fresh": Function(closed.recovery_fresh, ("n", "sigma", "s1", "s2"), "R_n, classes drawn anew"),
    "ceiling_static": Function(closed.ceiling_static, ("q0", "p_d"), "1 - p_s"),
    "ceiling_blind": Function(closed.ceiling_blind, ("q0", "p_d"), "1 - p_s/(1 - p_d)"),
    "ceiling_oracle": Function(closed.ceiling_oracle, ("q0", "p_d", "eta_ox"), "1 - (1 - eta_ox) p_s"),
    "crossover_feedback": Function(
        closed.crossover_feedback, ("k", "q0", "sigma", "s1", "s2"), "p_d from which feedback beats a vote"
    ),
    "crossover_blind": Function(
        closed.crossover_blind, ("k", "q0"), "p_d from which blind retry beats a vote"
    ),
    "D_c": Function(
        first_repair_dividend, ("p_d", "sigma", "phi"), "first repair dividend as printed, s1 = 1"
    ),
    "b_star": Function(
        _b_star, (*_RATES, "q_T", "rho", "B_max"), "break-even budget by search, 0 for none", {"B_max": 50.0}
    ),
    "log_branch": Function(log_branch, ("p_d", "sigma", "s2", "D"), "break-even by the logarithm"),
    "regime": Function(regime, (*_RATES, "q_T"), "0, 1, 2, 3 for the regimes 0, i, ii, iii"),
    "wrong_majority": Function(wrong_majority, ("k", "q0"), "1 - Q_k, wrong answers all agreeing"),
    "unanimous_wrong": Function(unanimous_wrong, ("k", "q0"), "(1 - q0)^k"),
    "loaded_bill": Function(loaded_bill, ("bill", "H"), "E(1 + H(E - 1))"),
    "expected_bill": Function(
        lambda *a: _ledger(*a).expected, _DESIGN, "expected units a task", {"shared_first": 0.0}
    ),
    "worst_bill": Function(
        lambda *a: _ledger(*a).worst, _DESIGN, "units a task, all budgets spent", {"shared_first": 0.0}
    ),
    "small_draws": Function(
        lambda *a: _ledger(*a).small_draws, _DESIGN, "small draws a task, all spent", {"shared_first": 0.0}
    ),
    "teacher_draws": Function(
        lambda *a: _ledger(*a).teacher_draws,
        _DESIGN,
        "teacher draws a task, all spent",
        {"shared_first": 0.0},
    ),
    "nearest_share": Function(_nearest_share, ("share", "n"), "the k/n closest to a share"),
    "abs": Function(abs, ("x",), "absolute value"),
    "sqrt": Function(math.sqrt, ("x",), "square root"),
    "exp": Function(math.exp, ("x",), "exponential"),
    "log": Function(math.log, ("x",), "natural logarithm"),
    "floor": Function(math.floor, ("x",), "largest whole number below"),
    "ceil": Function(math.ceil, ("x",), "smallest whole number above"),
    "round": Function(_round, ("x", "digits"), "rounded to digits", {"digits": 0.0}),
    "min": Function(min, variadic=True, text="smallest of its arguments"),
    "max": Function(max, variadic=True, text="largest of its arguments"),
}
"""Name to function."""


def describe_functions() -> tuple[str, ...]:
    """List the functions, one a line: call and meaning."""
    return tuple(
        f"{name}({'…' if function.variadic else ', '.join(function.arguments)}): {function.text}"
        for name, function in FUNCTIONS.items()
    )
