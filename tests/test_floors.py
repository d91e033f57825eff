"""Item-flip floors: the golden values beside their derivation, and floors that grow with noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from verdiv.estimators.chains import chains_of
from verdiv.estimators.observations import draw_columns
from verdiv.falsification.floors import FlipRate, flip_rate, noise_draws, noise_floor
from verdiv.runlog.records import Decoding, Draw
from verdiv.runlog.table import draws_frame


def posterior(flips: float, pairs: int) -> FlipRate:
    """Exact posterior of a flip rate from independent pairs, one a task."""
    grid = (np.arange(4000) + 0.5) / 4000
    return FlipRate(
        "A3", 2, stats.beta.ppf(grid, flips + 0.5, pairs - flips + 0.5), pairs, round(flips), pairs
    )


@pytest.mark.parametrize(("pairs", "printed"), [(3, 0.075), (10, 0.042), (40, 0.025)])
def test_no_flip_in_few_pairs_leaves_a_wide_floor(pairs: int, printed: float) -> None:
    """0 flips in 3, 10, 40 pairs give .075, .042, .025 at 40 tasks and three replicates, and not the next step."""
    p = posterior(0, pairs)
    floor = noise_floor(p, p, tasks=40, replicates=3)
    assert round(floor.value, 3) == printed
    assert round(floor.value + 1 / 120, 3) != printed


def test_floor_is_exact_for_a_known_rate() -> None:
    """With a known flip rate the floor equals the one found by direct enumeration of the convolution."""
    p = 0.2
    known = FlipRate("A3", 2, np.full(10, p), 1, 0, 1)
    floor = noise_floor(known, known, tasks=7, replicates=1)
    step = p / 2
    pmf = np.array([1.0])
    for _ in range(7):
        pmf = np.convolve(pmf, [step, 1 - 2 * step, step])
    sums = np.abs(np.arange(-7, 8))
    tail = [pmf[sums > s].sum() for s in range(8)]
    smallest = next(s for s, t in enumerate(tail) if t <= 0.05)
    assert floor.value == pytest.approx(smallest / 7)


def test_floor_grows_with_flips() -> None:
    """Noisier replicates make a higher floor, never a lower one."""
    values = [
        noise_floor(posterior(f, 40), posterior(f, 40), tasks=40, replicates=3).value for f in (0, 4, 12)
    ]
    assert values == sorted(values)
    assert values[0] < values[-1]


def test_noise_has_the_spread_that_flips_imply() -> None:
    """Var of the mean difference is (p_A + p_B)/(2 n r)."""
    known = FlipRate("A3", 2, np.full(200_000, 0.3), 1, 0, 1)
    noise = noise_draws(known, known, tasks=50, replicates=2, rng=np.random.default_rng(0))
    assert noise.var() == pytest.approx((0.3 + 0.3) / 2 / 100, rel=0.02)


def records(outcomes: list[list[bool]], **kwargs: object) -> list[Draw]:
    """A3 replicates of some tasks."""
    return [
        Draw(
            draw_id=f"{t}.{r}", task_id=str(t), arm="A3", replicate=r, correct=ok, billed=1.0,
            decoding=Decoding(temperature=0.7, seed=r + 1), prompt_sha256="a" * 64, **kwargs,  # type: ignore[arg-type]
        )
        for t, row in enumerate(outcomes)
        for r, ok in enumerate(row)
    ]  # fmt: skip


def test_flips_are_counted_between_replicates() -> None:
    """2c(r − c)/(r(r − 1)) per task: one task of three replicates with one right has 2 of 3 pairs flipped."""
    columns = draw_columns(draws_frame(records([[True, False, False], [True, True, True]])))
    chains = chains_of(columns, "A3", gate="verifier")
    assert chains is not None
    found = flip_rate(columns, chains, 2, draws=2000, seed=1)
    assert found is not None
    assert (found.flips, found.pairs, found.tasks) == (2, 6, 2)


def test_replicates_that_share_seed_and_prompt_are_no_pairs() -> None:
    """The same seed twice measures determinism, not noise."""
    same = [
        Draw(
            draw_id=f"{t}.{r}", task_id=str(t), arm="A3", replicate=r, correct=True, billed=1.0,
            decoding=Decoding(temperature=0.7, seed=1), prompt_sha256="a" * 64,
        )
        for t in range(5)
        for r in range(3)
    ]  # fmt: skip
    columns = draw_columns(draws_frame(same))
    chains = chains_of(columns, "A3", gate="verifier")
    assert chains is not None
    assert flip_rate(columns, chains, 1, draws=100, seed=1) is None


def test_copies_are_no_pairs() -> None:
    """A replicate whose only draw copies another one was not executed again."""
    first, second = records([[True, True]])
    import msgspec

    copied = msgspec.structs.replace(second, copy_of=first.draw_id)
    columns = draw_columns(draws_frame([first, copied]))
    chains = chains_of(columns, "A3", gate="verifier")
    assert chains is not None
    assert flip_rate(columns, chains, 1, draws=100, seed=1) is None


def test_greedy_reruns_recorded_under_another_arm_are_pairs() -> None:
    """A3's replicates copy A0's draw and its rerun: two executions of one prompt, passed or not, are a pair."""
    a0 = [
        Draw(
            draw_id=f"a{r}",
            task_id="t",
            arm="A0",
            replicate=r,
            correct=True,
            billed=1.0,
            decoding=Decoding(temperature=0.0),
        )
        for r in range(2)
    ]
    a3 = [
        Draw(
            draw_id=f"c{r}", task_id="t", arm="A3", replicate=r, correct=True, billed=1.0, copy_of=f"a{min(r, 1)}",
            decoding=Decoding(temperature=0.0),
        )
        for r in range(3)
    ]  # fmt: skip
    columns = draw_columns(draws_frame([*a0, *a3]))
    chains = chains_of(columns, "A3", gate="verifier")
    assert chains is not None
    found = flip_rate(columns, chains, 1, draws=100, seed=1)
    assert found is not None
    assert (found.pairs, found.flips) == (1, 0)
