r"""Cubic splines through equally spaced nodes, not-a-knot at both ends, as matrices.

With values :math:`y_i` at :math:`i = 0, \dots, n - 1` the slopes solve :math:`s_{i-1} + 4 s_i + s_{i+1} =
3 (y_{i+1} - y_{i-1})` inside and :math:`s_0 + 2 s_1 = \tfrac52 (y_1 - y_0) + \tfrac12 (y_2 - y_1)` at the ends, where
the third derivative is continuous across the second node; between nodes stands the cubic of Hermite.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

__all__ = ["interpolate", "middles", "spline_matrix"]

Floats = npt.NDArray[np.float64]


@cache
def _slopes(count: int) -> Floats:
    """Matrix that carries values on nodes to the spline's slopes there, shape (count, count)."""
    if count < 4:
        raise ValueError(f"a cubic spline without knots at its ends needs 4 nodes, got {count}")
    left, right = np.zeros((count, count)), np.zeros((count, count))
    inner = np.arange(1, count - 1)
    left[inner, inner - 1], left[inner, inner], left[inner, inner + 1] = 1.0, 4.0, 1.0
    right[inner, inner - 1], right[inner, inner + 1] = -3.0, 3.0
    left[0, :2] = left[-1, :-3:-1] = 1.0, 2.0
    right[0, :3] = -2.5, 2.0, 0.5
    right[-1, :-4:-1] = 2.5, -2.0, -0.5
    return np.asarray(np.linalg.solve(left, right), dtype=np.float64)


def _hermite(at: Floats, count: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """Cell of each point, and the weights of both ends' values and slopes, shape (4, points)."""
    cell = np.clip(np.floor(at), 0, count - 2).astype(np.int64)
    t = at - cell
    back = 1.0 - t
    weights = np.stack(
        [(1.0 + 2.0 * t) * back * back, t * t * (3.0 - 2.0 * t), t * back * back, -t * t * back]
    )
    return cell, weights


def interpolate(values: Floats, at: Floats) -> Floats:
    """Evaluate the spline through values on nodes 0, 1, 2, ….

    Parameters
    ----------
    values
        Shape ``(n,)``, n at least 4.
    at
        Positions in nodes, shape ``(points,)``.

    Returns
    -------
    numpy.ndarray
        Shape ``(points,)``; a cubic is met exactly.

    Examples
    --------
    >>> float(interpolate(np.arange(5.0) ** 3, np.array([2.5]))[0])
    15.625
    """
    slopes = _slopes(values.size) @ values
    cell, weights = _hermite(at, values.size)
    found: Floats = (
        weights[0] * values[cell]
        + weights[1] * values[cell + 1]
        + weights[2] * slopes[cell]
        + weights[3] * slopes[cell + 1]
    )
    return found


def middles(count: int, fine: int) -> Floats:
    """Positions, in nodes, of the middles of ``fine`` cells a node, shape ``(fine (count - 1),)``."""
    return (np.arange(fine * (count - 1)) + 0.5) / fine


@cache
def spline_matrix(count: int, fine: int) -> Floats:
    """Matrix that carries values on nodes to the middles of ``fine`` times as many cells.

    Returns
    -------
    numpy.ndarray
        Shape ``(fine (count - 1), count)``; do not write into it.
    """
    cell, weights = _hermite(middles(count, fine), count)
    slopes = _slopes(count)
    out: Floats = weights[2][:, None] * slopes[cell] + weights[3][:, None] * slopes[cell + 1]
    rows = np.arange(len(cell))
    out[rows, cell] += weights[0]
    out[rows, cell + 1] += weights[1]
    return out
