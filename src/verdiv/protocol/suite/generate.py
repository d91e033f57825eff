"""The seeded generator: a suite of distinct tasks with a digest that any JSON canonicaliser reproduces."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from verdiv.errors import Fault, UsageRefused
from verdiv.protocol.prompts import TierPrompt
from verdiv.protocol.suite.arithmetic import Arithmetic
from verdiv.protocol.suite.dates import Dates
from verdiv.protocol.suite.filters import Filters
from verdiv.protocol.suite.suitefile import Suite
from verdiv.protocol.suite.task import Family, Task

__all__ = ["DEFAULT_COUNTS", "FAMILIES", "generate_suite", "shots"]

MAX_TASKS = 1_000_000
"""Tasks of one suite."""

TRIES = 2_000
"""Draws for one task before its level is called exhausted."""

FAMILIES: Mapping[str, Family] = {family.name: family for family in (Arithmetic(), Dates(), Filters())}
"""The families that ship, by name."""

DEFAULT_COUNTS: Mapping[str, int] = {"arithmetic": 14, "date": 13, "filter": 13}
"""Tasks a family in the protocol's suite of 40."""


def generate_suite(
    seed: int,
    counts: Mapping[str, int] = DEFAULT_COUNTS,
    *,
    families: Mapping[str, Family] = FAMILIES,
    levels: Mapping[str, Sequence[int]] | None = None,
    prompts: Mapping[str, TierPrompt] | None = None,
    exclude: Iterable[str] = (),
) -> Suite:
    """Generate a suite: the same arguments give the same tasks.

    Each family draws from its own generator, seeded by seed and name, and cycles through its levels, so
    that difficulty is graded evenly and a family's tasks do not depend on the others.

    Parameters
    ----------
    seed
        Fixed seed.
    counts
        Tasks a family.
    families
        Families by name.
    levels
        Levels of difficulty by family, the family's own where absent.
    prompts
        How each tier is asked; requests of its worked examples do not come up as tasks.
    exclude
        Further requests that must not come up.

    Returns
    -------
    Suite
        The suite; no two prompts alike.

    Raises
    ------
    UsageRefused
        When a family or level is unknown, the size is out of range, or a level has no more distinct tasks.

    Examples
    --------
    >>> suite = generate_suite(1)
    >>> len(suite), suite.tasks[0].task_id
    (40, 'arithmetic-0001')
    """
    total = sum(counts.values())
    if not 0 < total <= MAX_TASKS or min(counts.values()) < 0:
        fault = Fault("counts", f"1 to {MAX_TASKS} tasks", str(total), "choose another size")
        raise UsageRefused("the suite cannot be generated", [fault])
    seen = set(exclude)
    for prompt in (prompts or {}).values():
        seen.update(request for pairs in prompt.examples.values() for request, _ in pairs)
    tasks: list[Task] = []
    for name, count in counts.items():
        if name not in families:
            fault = Fault("counts", f"one of {', '.join(families)}", name, "name a family that is there")
            raise UsageRefused("the suite cannot be generated", [fault])
        family = families[name]
        chosen = tuple((levels or {}).get(name, family.levels))
        if not chosen or not set(chosen) <= set(family.levels):
            fault = Fault(
                f"levels of {name}", f"some of {list(family.levels)}", str(list(chosen)), "choose others"
            )
            raise UsageRefused("the suite cannot be generated", [fault])
        rng = random.Random(f"{seed}:{name}")
        width = max(4, len(str(count)))
        names = (f"{name}-{at + 1:0{width}d}" for at in range(count))
        tasks += [_fresh(family, rng, chosen[at % len(chosen)], one, seen) for at, one in enumerate(names)]
    return Suite(tuple(tasks), dict(prompts or {}))


def _fresh(family: Family, rng: random.Random, level: int, task_id: str, seen: set[str]) -> Task:
    """Draw until the prompt is a new one."""
    for _ in range(TRIES):
        task = family.generate(rng, level, task_id)
        if task.public.prompt not in seen:
            seen.add(task.public.prompt)
            return task
    fault = Fault(
        f"{family.name}, level {level}",
        "a task not yet in the suite",
        f"none in {TRIES} draws",
        "ask for fewer tasks or more levels",
    )
    raise UsageRefused("the suite cannot be generated", [fault])


def shots(family: Family, count: int, levels: Sequence[int] | None = None) -> list[Task]:
    """Draw the worked examples of a family's few-shot prompt, levels in turn.

    Parameters
    ----------
    family
        The family.
    count
        Number of examples.
    levels
        Levels to take in turn, the family's own where absent.

    Returns
    -------
    list of Task
        The same ones whenever asked.
    """
    rng = random.Random(f"worked examples:{family.name}")
    chosen = tuple(levels or family.levels)
    return [family.generate(rng, chosen[at % len(chosen)], f"example-{at + 1}") for at in range(count)]
