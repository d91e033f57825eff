r"""One family given the suite: its logit conditional on (mu, tau), integrated and sampled.

With effective counts k of n, the family's logit is :math:`x = \mu + \tau u` and

.. math::
    h(u) = k x - n \log(1 + e^x) - u^2 / 2

is strictly concave for every n >= 0 and tau >= 0, and at tau = 0 it is a standard normal. Two consequences
carry this module: a trapezoid between the points where h has fallen by a fixed drop integrates it to many
digits with few nodes, and tangents of h bound it from above everywhere, so rejection sampling under them is
exact.

Every search here stops for each element on its own, so that no result depends on what else is in the array.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from verdiv.errors import Fault, FitFailed

__all__ = ["Conditional", "integrate", "mode", "sample", "softplus_and_rate"]

Floats = npt.NDArray[np.float64]

DROP = 24.0
"""Nats that the integrand falls between its mode and the ends of the trapezoid; what lies outside is about
exp(-24) of the whole."""

MAX_ROUNDS = 2000
"""Rounds of rejection before a draw is given up; about one candidate in four or better is kept."""


@dataclass(frozen=True, slots=True)
class Conditional:
    """Mass and moments of families conditional on (mu, tau); all of the shape of the counts."""

    log_mass: Floats
    """Log of the integral of likelihood times standard normal over u."""
    mean: Floats
    """Mean of the rate minus its reference."""
    square: Floats
    """Mean of the squared distance of the rate from its reference."""
    score: Floats
    """Derivative of the log mass with respect to mu: mean of k - n m."""
    curvature: Floats
    """Second derivative of the log mass with respect to mu, never positive."""


def softplus_and_rate(x: Floats) -> tuple[Floats, Floats]:
    """Return log(1 + exp(x)) and 1/(1 + exp(-x)) from one exponential, without overflow."""
    small = np.exp(-np.abs(x))
    rate = np.where(x >= 0, 1.0, small) / (1.0 + small)
    return np.maximum(x, 0.0) + np.log1p(small), rate


def mode(mu: Floats, tau: Floats, k: Floats, n: Floats, *, tolerance: float = 1e-4) -> tuple[Floats, Floats]:
    r"""Find the mode of h and its curvature there.

    The root of :math:`h'(u) = \tau (k - n m) - u` lies between 0 and :math:`h'(0)`, since the slope of h' is
    at most -1; Newton steps that leave the shrinking bracket, or do not halve, are replaced by its middle.

    Parameters
    ----------
    mu, tau, k, n
        Arrays that broadcast to one shape.
    tolerance
        Largest last Newton step, in units of the local standard deviation.

    Returns
    -------
    tuple of ndarray
        Mode u and precision -h''(u) (at least 1), of the broadcast shape.
    """
    pooled = (k + 0.5) / (n + 1.0)
    precision = n * pooled * (1.0 - pooled) * tau
    start = precision * (np.log(pooled / (1.0 - pooled)) - mu) / (1.0 + precision * tau)
    bound = tau * (k - n * softplus_and_rate(np.asarray(mu + 0.0 * start))[1])
    low, high = np.minimum(bound, 0.0), np.maximum(bound, 0.0)
    u = np.clip(start, low, high)
    last, done = high - low, np.zeros(low.shape, dtype=np.bool_)
    for _ in range(60):
        rate = softplus_and_rate(mu + tau * u)[1]
        slope = tau * (k - n * rate) - u
        sharp = 1.0 + tau * tau * n * rate * (1.0 - rate)
        low, high = np.where(slope > 0, u, low), np.where(slope > 0, high, u)
        newton = slope / sharp
        arrived = np.abs(newton) * np.sqrt(sharp) < tolerance
        safe = (np.abs(newton) <= 0.5 * last) & (u + newton > low) & (u + newton < high)
        step = np.where(done, 0.0, np.where(arrived | safe, newton, 0.5 * (low + high) - u))
        last, u, done = np.abs(step), u + step, done | arrived
        if done.all():
            break
    rate = softplus_and_rate(mu + tau * u)[1]
    return u, 1.0 + tau * tau * n * rate * (1.0 - rate)


def _height(u: Floats, mu: Floats, tau: Floats, k: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return h(u) and h'(u)."""
    x = mu + tau * u
    softplus, rate = softplus_and_rate(x)
    return k * x - n * softplus - 0.5 * u * u, tau * (k - n * rate) - u


def _ends(
    u: Floats, sharp: Floats, mu: Floats, tau: Floats, k: Floats, n: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the height at the mode and points on both sides where h has fallen by DROP or a little more.

    A tangent of a concave function lies above it, so each Newton step from outside stays outside. The curvature
    is at least 1 everywhere, so the drop is never farther from the mode than sqrt(2 DROP).
    """
    top = _height(u, mu, tau, k, n)[0]
    reach, farthest = np.sqrt(2.0 * DROP / sharp), np.sqrt(2.0 * DROP)
    found = []
    for side in (-1.0, 1.0):
        end = u + side * reach
        for _ in range(25):
            height, slope = _height(end, mu, tau, k, n)
            fallen = top - height
            done = (fallen > 0.95 * DROP) & (fallen < 1.25 * DROP)
            if done.all():
                break
            nearer = np.clip(end - (DROP - fallen) / slope, u - farthest, u + farthest)
            end = np.where(done, end, nearer)
        found.append(end)
    return top, found[0], found[1]


def integrate(
    mu: Floats, tau: Floats, k: Floats, n: Floats, reference: Floats, *, points: int
) -> tuple[Conditional, Conditional]:
    """Integrate families out, at full resolution and at half of it.

    Parameters
    ----------
    mu, tau
        Suite mean and spread, shape (...,).
    k, n
        Effective counts, shape (..., F), broadcasting against the former.
    reference
        A rate near which the family's rate lies, shape (..., F): moments are taken about it, which keeps the
        digits of a standard deviation of .0001.
    points
        Odd number of trapezoid nodes.

    Returns
    -------
    tuple of Conditional
        With all nodes and with every second one; their difference bounds the error of the latter, and by far
        that of the former, because the trapezoid of a smooth peak converges exponentially.

    Examples
    --------
    One draw, right, with mu = 0: by symmetry the mass is 1/2 whatever tau.

    >>> full, half = integrate(np.zeros(1), np.full(1, 2.0), np.ones((1, 1)), np.ones((1, 1)),
    ...                        np.full((1, 1), 0.5), points=33)
    >>> round(float(np.exp(full.log_mass[0, 0])), 9), bool(abs(full.log_mass - half.log_mass)[0, 0] < 1e-4)
    (0.5, True)
    """
    mu, tau = mu[..., None], tau[..., None]
    u, sharp = mode(mu, tau, k, n)
    top, left, right = _ends(u, sharp, mu, tau, k, n)
    step = (right - left) / (points - 1)
    nodes = left[..., None] + step[..., None] * np.arange(points)
    x = mu[..., None] + tau[..., None] * nodes
    softplus, rate = softplus_and_rate(x)
    weight = np.exp(k[..., None] * x - n[..., None] * softplus - 0.5 * nodes * nodes - top[..., None])
    full = _moments(weight, nodes, rate, step, top, tau, k, n, reference)
    thin = slice(None, None, 2)
    half = _moments(weight[..., thin], nodes[..., thin], rate[..., thin], 2 * step, top, tau, k, n, reference)
    return full, half


def _moments(
    weight: Floats,
    nodes: Floats,
    rate: Floats,
    step: Floats,
    top: Floats,
    tau: Floats,
    k: Floats,
    n: Floats,
    reference: Floats,
) -> Conditional:
    total = weight.sum(axis=-1)
    weight = weight / total[..., None]
    away = rate - reference[..., None]
    mean = np.sum(weight * away, axis=-1)
    square = np.sum(weight * away * away, axis=-1)
    centre = np.sum(weight * nodes, axis=-1)
    spread = np.sum(weight * (nodes - centre[..., None]) ** 2, axis=-1)
    variance = np.maximum(square - mean * mean, 0.0)
    level = reference + mean
    # Two forms of one derivative: the first loses its digits as tau -> 0, the second as n grows.
    safe = np.where(tau > 0, tau, 1.0)
    by_spread = (spread - 1.0) / (safe * safe)
    by_rate = n * n * variance - n * (level * (1.0 - level) - variance)
    use_spread = tau * tau * n * level * (1.0 - level) > 1.0
    curvature = np.where(use_spread, by_spread, by_rate)
    return Conditional(
        top + np.log(total * step) - 0.5 * np.log(2 * np.pi),
        mean,
        square,
        k - n * level,
        np.minimum(curvature, 0.0),
    )


def sample(mu: Floats, tau: Floats, k: Floats, n: Floats, rng: np.random.Generator) -> Floats:
    """Draw each family's logit given (mu, tau), exactly.

    The hat is flat at the mode and exponential along two tangents; candidates under it are kept with
    probability exp(h - hat).

    Parameters
    ----------
    mu, tau
        One pair a draw, shape (D,).
    k, n
        Effective counts, shape (F,).
    rng
        Source of randomness.

    Returns
    -------
    ndarray
        Logits, shape (D, F).

    Raises
    ------
    FitFailed
        If a draw cannot be had, which a concave h rules out.
    """
    shape = (mu.size, k.size)
    place, spread = (np.broadcast_to(v[:, None], shape).ravel() for v in (mu, tau))
    events, total = (np.broadcast_to(v[None, :], shape).ravel() for v in (k, n))
    out = np.empty(place.size)
    centre, sharp = mode(place, spread, events, total, tolerance=1e-3)
    reach = 1.3 / np.sqrt(sharp)
    height, slope = _height(centre, place, spread, events, total)
    left_h, left_s = _height(centre - reach, place, spread, events, total)
    right_h, right_s = _height(centre + reach, place, spread, events, total)
    top = height + 4.0 * reach * np.abs(slope)
    near = centre - reach + (top - left_h) / left_s
    far = centre + reach + (top - right_h) / right_s
    mass = np.stack([1.0 / left_s, far - near, -1.0 / right_s])
    edge = np.cumsum(mass, axis=0) / mass.sum(axis=0)
    todo = np.arange(place.size)
    for _ in range(MAX_ROUNDS):
        if not todo.size:
            break
        part = rng.random(todo.size)
        tail = rng.standard_exponential(todo.size)
        across = rng.random(todo.size)
        first, second = edge[0, todo], edge[1, todo]
        below, above = near[todo] - tail / left_s[todo], far[todo] - tail / right_s[todo]
        inside = near[todo] + across * (far[todo] - near[todo])
        u = np.where(part < first, below, np.where(part < second, inside, above))
        hat = top[todo] - np.where((part < first) | (part >= second), tail, 0.0)
        got = _height(u, place[todo], spread[todo], events[todo], total[todo])[0]
        kept = rng.standard_exponential(todo.size) > hat - got
        out[todo[kept]] = u[kept]
        todo = todo[~kept]
    if todo.size:
        row = int(todo[0])
        text = f"none for mu {place[row]:.3g}, tau {spread[row]:.3g}, {events[row]:.3g} of {total[row]:.3g}"
        fault = Fault("quadrature", f"a draw in {MAX_ROUNDS} rounds", text, "check the counts and the priors")
        raise FitFailed("A family's rate cannot be drawn.", [fault])
    return (place + spread * out).reshape(shape)
