"""How often the plurality of ``k`` parallel draws is correct, exactly."""

from __future__ import annotations

import math

import numpy as np

from verdiv.protocol.simulator.law import CORRECT, KINDS, FloatArray

__all__ = ["plurality_correct"]


def plurality_correct(chances: FloatArray, k: int, wrong_outputs: int) -> FloatArray:
    r"""Return the chance that the plurality of ``k`` draws of one task is correct, ties to the earliest.

    Every kind of correct draw is one output; every kind of wrong draw is ``wrong_outputs`` equally likely ones.
    With ``p_o`` the chance of output ``o``, the winner ``w`` drawn ``c`` times and no other output more often,

    .. math:: P = \sum_{w\ \mathrm{correct}} \sum_{c=1}^{k} k!\, \frac{p_w^c}{c!}\,
              [x^{k-c}] \prod_{o \ne w} \Big(\sum_{t<c} \frac{(p_o x)^t}{t!} + y \frac{(p_o x)^c}{c!}\Big)
              \Big|_{y^m \to 1/(1+m)}

    since, given the counts, each of ``1 + m`` tied outputs is equally likely to have come first. (Derived here
    from the exponential generating function of multinomial counts.)

    Parameters
    ----------
    chances
        Chance of each kind of draw, shape ``(n, 7)``.
    k
        Votes, at least 1.
    wrong_outputs
        Distinct outputs of each kind of wrong draw.

    Returns
    -------
    numpy.ndarray
        Shape ``(n,)``.

    Examples
    --------
    Two outputs, one of them wrong: the binomial majority.

    >>> law = np.array([[0.8, 0, 0, 0, 0, 0, 0.2]])
    >>> plurality_correct(law, 5, 1).round(5).tolist()
    [0.94208]
    """
    counts = [1 if CORRECT[kind] else wrong_outputs for kind in range(KINDS)]
    live = [kind for kind in range(KINDS) if np.any(chances[:, kind] > 0.0)]
    outputs = [(kind, chances[:, kind] / counts[kind]) for kind in live for _ in range(counts[kind])]
    total = np.zeros(len(chances))
    for index, (kind, p) in enumerate(outputs):
        if not CORRECT[kind]:
            continue
        others = [other for place, (_, other) in enumerate(outputs) if place != index]
        for c in range(1, k + 1):
            share = _no_more_than(others, c, k - c)
            total += math.factorial(k) / math.factorial(c) * p**c * share
    return total


def _no_more_than(others: list[FloatArray], c: int, rest: int) -> FloatArray | float:
    """Coefficient of ``x^rest`` in the product over the other outputs, with ``m`` ties weighted ``1/(1+m)``."""
    if rest == 0:
        return 1.0
    if not others:
        return 0.0
    ties = rest // c
    table = np.zeros((rest + 1, ties + 1, len(others[0])))
    table[0, 0] = 1.0
    for p in others:
        new = table.copy()
        for t in range(1, min(c, rest) + 1):
            weight = p**t / math.factorial(t)
            if t < c:
                new[t:] += table[:-t] * weight
            else:
                new[t:, 1:] += table[:-t, :-1] * weight
        table = new
    shares = 1.0 / (1.0 + np.arange(ties + 1))
    return np.asarray(np.tensordot(shares, table[rest], axes=1), dtype=np.float64)
