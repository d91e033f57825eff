"""Why an estimand cannot be estimated: the missing arm, column or event, in words."""

from __future__ import annotations

from verdiv.estimators.tally import Tally

__all__ = ["reason_not_estimable"]


def _flags(tally: Tally) -> bool:
    return tally.has_flags


def _classes(tally: Tally) -> bool:
    return tally.has_classes


def _arm(tally: Tally, arm: str) -> str | None:
    return None if arm in tally.arms else f"no draws of arm {arm}"


def reason_not_estimable(name: str, tally: Tally) -> str:
    """Name what a run lacks for an estimand.

    Parameters
    ----------
    name
        Estimate id.
    tally
        Counts of the run.

    Returns
    -------
    str
        A clause that ends the sentence "not estimable: …".
    """
    flags, classes = _flags(tally), _classes(tally)
    no_flags = "no verifier flags in the log (column static)"
    no_classes = "no error classes in the log (column static.class or answered_class)"
    no_feedback = _arm(tally, "A3") or "no feedback draw at attempt 2 of arm A3"
    no_blind = _arm(tally, "A2s") or "no blind redraw at attempt 2 of arm A2s"
    no_teacher = "no initial draws of the teacher (arms A4, A5)"
    exchangeable = "icc of q is not estimable (needs 10 tasks with 2 or more parallel draws)"
    if flags and tally.gate != "truth":
        exchangeable = (
            "no task has two parallel stochastic initial draws with one of them wrong and sent to retry, and "
            + exchangeable
        )
    repair = no_feedback if not tally.has("s2") and not tally.has("s1") else None
    reasons: dict[str, str] = {
        "q0": "no initial draws of the small tier with stochastic or unknown decoding",
        "q0_greedy": "no initial draws of the small tier at temperature 0",
        "q_t": no_teacher,
        "delta": no_flags if not flags else "no wrong initial draw that a verifier saw",
        "p_d": no_flags,
        "p_s": no_flags,
        "sigma": no_flags
        if not flags
        else (no_classes if not classes else "no wrong, flagged and classified draw"),
        "eta_ox": "no oracle column, or no silent error that it saw",
        "s1": repair
        or (
            no_classes if tally.unclassified or not classes else "no first repair answers a structural error"
        ),
        "s2": repair or "no first repair answers a semantic error",
        "lambda1": repair
        or (no_flags if not flags else "no wrong first repair of a structural error that a verifier saw"),
        "lambda2": repair
        or (no_flags if not flags else "no wrong first repair of a semantic error that a verifier saw"),
        "phi": repair or "s2 or q0 is not estimable",
        "phi_matched": repair
        or (no_blind if not tally.has("s_blind") else "no task has both a repair and a blind redraw"),
        "s_blind": no_blind,
        "sticky_ratio": no_blind
        if not tally.has("s_blind")
        else "q0 of stochastic decoding is not estimable",
        "s_blind_pairs": "no task has two parallel stochastic initial draws with one of them wrong",
        "s_blind_exchangeable": exchangeable,
        "sticky_ratio_model": exchangeable,
        "fpr": no_flags if not flags else "no correct draw that a verifier saw",
        "fpr_initial": no_flags if not flags else "no correct initial draw that a verifier saw",
        "delta_t": no_teacher
        if not tally.has("q_T")
        else (no_flags if not flags else "no wrong teacher draw was seen"),
        "D_c": repair
        or (no_flags if not flags and tally.gate != "truth" else "s1, s2 or sigma is not estimable"),
        "break_even": "; ".join(r for r in (_arm(tally, "A3"), _arm(tally, "A4")) if r)
        or "A3 or A4 has no scored answer",
    }
    return reasons.get(name, "no draws reach it")
