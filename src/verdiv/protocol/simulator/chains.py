"""Chains of all arms, drawn attempt by attempt over all tasks and replicates at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verdiv.protocol.simulator.design import ARM_ORDER, ArmDesign, Design
from verdiv.protocol.simulator.law import (
    FLAGGED,
    KINDS,
    BoolArray,
    FloatArray,
    IntArray,
    Law,
    Shift,
    Traits,
    blind_law,
    first_law,
    repair_law,
    teacher_law,
)
from verdiv.protocol.simulator.traits import draw_traits
from verdiv.protocol.simulator.world import World

__all__ = ["Drawn", "draw_run"]

SHARING = ("A0", "A2", "A3")
"""Arms that share their greedy first draw."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Draws of a run before they are ordered; arrays of shape ``(draws,)``."""

    condition: IntArray
    """0 primary, then the design's conditions in order."""
    arm: IntArray
    """Index into the running order of arms."""
    task: IntArray
    replicate: IntArray
    attempt: IntArray
    kind: IntArray
    form: IntArray
    """Which of the equally likely outputs of its kind."""
    emitted: BoolArray
    copied: BoolArray
    """The record repeats, by construction, the first draw of another arm."""

    @classmethod
    def joined(cls, parts: list[Drawn]) -> Drawn:
        """Put several sets of draws one after the other."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


Outcomes = tuple[IntArray, IntArray]
"""Kinds and forms of draws."""

Step = Callable[[IntArray, int, IntArray], Outcomes]
"""From the chains still flagged, the attempt and their last kinds to their next draws."""


class _Scene:
    """One condition of a run: its world, its tasks and the randomness they share."""

    def __init__(
        self,
        world: World,
        design: Design,
        traits: Traits,
        rng: np.random.Generator,
        condition: int,
        position: IntArray,
        uniforms: FloatArray,
    ) -> None:
        self.world, self.design, self.traits, self.rng = world, design, traits, rng
        self.condition = condition
        name = "primary" if condition == 0 else design.conditions[condition - 1].name
        self.effect = world.effect(name)
        self.tasks = np.arange(design.tasks)
        slots = position + np.arange(len(position))[:, None] * design.tasks
        late = (slots >= design.replicates * design.tasks / 2) & (condition == 0)
        self.detection = np.where(late, world.drift.second_half, 1.0)
        """Factor on detection, shape ``(replicates, tasks)``."""
        if condition > 0:
            fresh = rng.random(uniforms.shape)
            coupled = rng.random(uniforms.shape[::2]) < self.effect.agreement
            uniforms = np.where(coupled[:, None, :], uniforms, fresh)
        self.uniforms = uniforms
        """Numbers behind the canonical outputs of greedy prompts, shape ``(2 + repairs, 5, tasks)``: first
        draw, teacher, then attempts 2, 3, … of the feedback chain."""
        self.first = self.canonical(first_law(traits, self.tasks, self.greedy_shift()), 0, self.tasks)
        self.taught = self.canonical(teacher_law(traits, self.tasks), 1, self.tasks)

    def forms(self, kind: IntArray, u: FloatArray) -> IntArray:
        """Give wrong outputs one of their spellings."""
        return np.where(kind >= 3, (u * self.world.wrong_outputs).astype(np.int64), 0)

    def sample(self, law: Law, size: int) -> Outcomes:
        """Draw kinds and forms."""
        u = self.rng.random((5, size))
        kind = law.kinds(u)
        return kind, self.forms(kind, u[4])

    def greedy_shift(self) -> Shift:
        """Return what surrounds greedy draws."""
        effect = self.effect
        return Shift(effect.q_logit + self.world.greedy.logit, effect.delta_logit, effect.repair_logit)

    def shift(self, task: IntArray, replicate: IntArray, stochastic: bool) -> Shift:
        """Return what surrounds fresh small-tier draws."""
        base, seeds = self.greedy_shift(), self.world.seed_logits
        detection = self.detection[replicate, task]
        if not stochastic:
            return Shift(base.q_logit, base.delta_logit, base.repair_logit, detection)
        push = np.resize(seeds, len(self.detection))[replicate] if seeds else np.zeros(len(task))
        return Shift(
            self.effect.q_logit + push, self.effect.delta_logit, self.effect.repair_logit + push, detection
        )

    def canonical(self, law: Law, place: int, task: IntArray) -> Outcomes:
        """Return the canonical outcomes of greedy prompts: equal prompts give equal outputs."""
        u = self.uniforms[place][:, task]
        kind = law.kinds(u)
        return kind, self.forms(kind, u[4])

    def executed(self, canon: Outcomes, law: Law, noise: float) -> Outcomes:
        """Execute greedy prompts: the canonical output, or with chance ``noise`` a fresh draw of ``law``."""
        kind, form = self.sample(law, len(canon[0]))
        fresh = self.rng.random(len(canon[0])) < noise
        return np.where(fresh, kind, canon[0]), np.where(fresh, form, canon[1])


def draw_run(
    world: World, design: Design, family: IntArray, position: IntArray, rng: np.random.Generator
) -> Drawn:
    """Draw every chain of a run.

    Parameters
    ----------
    world, design
        What is run and what comes of it.
    family
        Family index of each task, shape ``(tasks,)``.
    position
        Place of each task in the running order, shape ``(conditions, replicates, tasks)``.
    rng
        Source of all randomness.

    Returns
    -------
    Drawn
        Draws in no particular order.
    """
    traits = draw_traits(world, family, rng)
    longest = max(design.budgets.values())
    uniforms = rng.random((max(2, longest + 1), 5, design.tasks))
    parts: list[Drawn] = []
    for condition in range(1 + len(design.conditions)):
        names = ARM_ORDER if condition == 0 else design.conditions[condition - 1].arms
        scene = _Scene(world, design, traits, rng, condition, position[condition], uniforms)
        parts += _draw_condition(scene, design.arms(names))
    return Drawn.joined(parts)


def _draw_condition(scene: _Scene, arms: tuple[ArmDesign, ...]) -> list[Drawn]:
    sharing = [arm for arm in arms if arm.name in SHARING and not arm.stochastic]
    flip = scene.world.greedy.flip
    shared: Outcomes = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    if sharing:
        replicate, task = _cells(scene, max(arm.replicates for arm in sharing))
        law = first_law(scene.traits, task, scene.shift(task, replicate, stochastic=False))
        shared = scene.executed((scene.first[0][task], scene.first[1][task]), law, flip)
    parts: list[Drawn] = []
    taken = 0
    for arm in arms:
        replicate, task = _cells(scene, arm.replicates)
        copied = np.zeros(len(task), dtype=np.bool_)
        if arm in sharing:
            start = shared[0][: len(task)], shared[1][: len(task)]
            copied = replicate < taken
            taken = max(taken, arm.replicates)
        elif arm.teacher and not arm.stochastic:
            canon = scene.taught[0][task], scene.taught[1][task]
            start = scene.executed(canon, teacher_law(scene.traits, task), flip)
        elif arm.teacher:
            start = scene.sample(teacher_law(scene.traits, task), len(task))
        else:
            shift = scene.shift(task, replicate, stochastic=True)
            start = scene.sample(first_law(scene.traits, task, shift), len(task))
        if arm.name == "A1":
            parts.append(_votes(scene, arm, task, replicate, start))
        else:
            parts.append(_chain(scene, arm, task, replicate, start, copied))
    return parts


def _cells(scene: _Scene, replicates: int) -> tuple[IntArray, IntArray]:
    """Return replicate and task of each chain, replicate by replicate."""
    tasks = len(scene.tasks)
    return np.repeat(np.arange(replicates), tasks), np.tile(scene.tasks, replicates)


def _votes(scene: _Scene, arm: ArmDesign, task: IntArray, replicate: IntArray, first: Outcomes) -> Drawn:
    """Draw the parallel samples of A1; the plurality's earliest draw is emitted."""
    kinds, forms = [first[0]], [first[1]]
    law = first_law(scene.traits, task, scene.shift(task, replicate, stochastic=True))
    for _ in range(arm.budget - 1):
        kind, form = scene.sample(law, len(task))
        kinds.append(kind)
        forms.append(form)
    kind, form = np.stack(kinds, axis=1), np.stack(forms, axis=1)
    output = form * KINDS + kind
    votes = (output[:, :, None] == output[:, None, :]).sum(axis=2)
    chosen = votes.argmax(axis=1)
    attempt = np.broadcast_to(np.arange(1, arm.budget + 1), kind.shape)
    size = kind.size
    return Drawn(
        condition=np.full(size, scene.condition),
        arm=np.full(size, ARM_ORDER.index(arm.name)),
        task=np.repeat(task, arm.budget),
        replicate=np.repeat(replicate, arm.budget),
        attempt=attempt.ravel(),
        kind=kind.ravel(),
        form=form.ravel(),
        emitted=(attempt == chosen[:, None] + 1).ravel(),
        copied=np.zeros(size, dtype=np.bool_),
    )


def _chain(
    scene: _Scene, arm: ArmDesign, task: IntArray, replicate: IntArray, first: Outcomes, copied: BoolArray
) -> Drawn:
    """Draw gated chains: they end with the first draw that is not flagged, or with the budget."""
    step = _step(scene, arm, task, replicate, first)
    active = np.arange(len(task))
    kind, form = first
    columns: list[tuple[IntArray, int, IntArray, IntArray, BoolArray]] = []
    for attempt in range(1, arm.budget + 1):
        if attempt > 1:
            kind, form = step(active, attempt, kind)
        flagged = FLAGGED[kind]
        columns.append((active, attempt, kind, form, ~flagged | (attempt == arm.budget)))
        active, kind, form = active[flagged], kind[flagged], form[flagged]
        if len(active) == 0:
            break
    chain = np.concatenate([c[0] for c in columns])
    attempts = np.concatenate([np.full(len(c[0]), c[1]) for c in columns])
    return Drawn(
        condition=np.full(len(chain), scene.condition),
        arm=np.full(len(chain), ARM_ORDER.index(arm.name)),
        task=task[chain],
        replicate=replicate[chain],
        attempt=attempts,
        kind=np.concatenate([c[2] for c in columns]),
        form=np.concatenate([c[3] for c in columns]),
        emitted=np.concatenate([c[4] for c in columns]),
        copied=copied[chain] & (attempts == 1),
    )


def _step(scene: _Scene, arm: ArmDesign, task: IntArray, replicate: IntArray, first: Outcomes) -> Step:
    """Return how an arm draws again, given the chains' indices, the attempt and the kinds drawn last."""
    world, traits, flip = scene.world, scene.traits, scene.world.greedy.flip

    def blind_stochastic(i: IntArray, attempt: int, kind: IntArray) -> Outcomes:
        shift = scene.shift(task[i], replicate[i], stochastic=True)
        new = scene.sample(blind_law(world, traits, task[i], first[0][i], shift), len(i))
        again = scene.rng.random(len(i)) < world.blind.stickiness
        return np.where(again, first[0][i], new[0]), np.where(again, first[1][i], new[1])

    def blind_greedy(i: IntArray, attempt: int, kind: IntArray) -> Outcomes:
        noise = 1.0 - (1.0 - flip) * (1.0 - world.blind.greedy_flip)
        law = first_law(traits, task[i], scene.shift(task[i], replicate[i], stochastic=False))
        return scene.executed((scene.first[0][task[i]], scene.first[1][task[i]]), law, noise)

    def teacher_stochastic(i: IntArray, attempt: int, kind: IntArray) -> Outcomes:
        return scene.sample(teacher_law(traits, task[i]), len(i))

    def teacher_greedy(i: IntArray, attempt: int, kind: IntArray) -> Outcomes:
        canon = scene.taught[0][task[i]], scene.taught[1][task[i]]
        return scene.executed(canon, teacher_law(traits, task[i]), flip)

    def feedback_stochastic(i: IntArray, attempt: int, kind: IntArray) -> Outcomes:
        shift = scene.shift(task[i], replicate[i], stochastic=True)
        return scene.sample(repair_law(world, traits, task[i], kind, attempt, shift), len(i))

    def feedback_greedy(i: IntArray, attempt: int, kind: IntArray) -> Outcomes:
        canon = repair_law(world, traits, task[i], kind, attempt, scene.greedy_shift())
        fresh = repair_law(
            world, traits, task[i], kind, attempt, scene.shift(task[i], replicate[i], stochastic=False)
        )
        return scene.executed(scene.canonical(canon, attempt, task[i]), fresh, flip)

    greedy: dict[str, Step] = {"A2": blind_greedy, "A3": feedback_greedy, "A5": teacher_greedy}
    sampled: dict[str, Step] = {"A2s": blind_stochastic, "A3": feedback_stochastic, "A5": teacher_stochastic}
    return (sampled if arm.stochastic else greedy).get(arm.name, blind_stochastic)
