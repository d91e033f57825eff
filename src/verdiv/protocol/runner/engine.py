"""The run itself: chains in bounded concurrency, every draw written ahead, billed and appended at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from verdiv.protocol.prompts import Refused, feedback_messages, initial_messages, prompt_digest
from verdiv.protocol.runner.client import ChatClient, Endpoint, Failure, Reply, now
from verdiv.protocol.runner.design import Chain, RunDesign, draw_seed
from verdiv.protocol.runner.journal import Intent, Journal
from verdiv.protocol.runner.ledger import Ledger
from verdiv.protocol.runner.records import (
    as_copy,
    emit,
    failed_draw,
    plurality,
    scored_draw,
    shared_failure,
)
from verdiv.protocol.runner.schedule import Schedule
from verdiv.protocol.suite.suitefile import Suite
from verdiv.protocol.suite.task import Family
from verdiv.runlog.records import Draw
from verdiv.runlog.writer import RunLogWriter

__all__ = ["Engine", "Served", "Tally"]


@dataclass(frozen=True, slots=True)
class Served:
    """Who serves a tier under a condition."""

    endpoint: Endpoint
    """Where."""
    model: str
    """Model as the registration names it."""
    precision: str | None
    """Numeric format of the weights."""


@dataclass
class Tally:
    """How far the run is."""

    chains: int
    """Chains of the design."""
    chains_done: int = 0
    draws: int = 0
    """Draws in the log, copies included."""
    made: int = 0
    """Draws asked for in this sitting."""
    errors: int = 0
    """Draws in the log that were not served."""
    retries: int = 0
    """Infrastructure retries, over all sittings."""


@dataclass
class Engine:
    """Everything one sitting of a run needs."""

    design: RunDesign
    suite: Suite
    families: Mapping[str, Family]
    served: Callable[[str, str], Served]
    """Condition and tier to who serves them."""
    client: ChatClient
    writer: RunLogWriter
    journal: Journal
    ledger: Ledger
    known: dict[str, Draw]
    """Draws that the log holds already."""
    progress: Callable[[Tally, Ledger], None]
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to make no further draw; those in flight are still logged."""
    _in_flight: int = 0

    def __post_init__(self) -> None:
        """Count what is known already."""
        self.tally = Tally(len(self.design.chains), draws=len(self.known), retries=self.journal.retries)
        self.ledger.lost += sum(intent.price for intent in self.journal.lost)
        prices = {(c.condition, c.arm): c.price for c in self.design.chains}
        for draw in self.known.values():
            self.tally.errors += draw.error is not None
            if draw.error is None:
                self.ledger.list_in(draw.arm, prices.get((draw.condition, draw.arm), draw.billed))
                if draw.copy_of is None:
                    self.ledger.spent += draw.billed

    def stop(self) -> None:
        """Make no further draw; those in flight are still awaited and logged."""
        self.stopping.set()

    async def run(self) -> bool:
        """Run all chains.

        Returns
        -------
        bool
            True where every chain came to its end, False where the run was stopped.

        Raises
        ------
        BoundReached, UsageRefused, WriteFailed
            The first of them; draws in flight are awaited and logged before it is raised.
        """
        for condition, width in self.design.concurrency.items():
            chains = [chain for chain in self.design.chains if chain.condition == condition]
            schedule = Schedule(chains, self.known.__contains__)
            failures: list[Exception] = []
            watch = asyncio.create_task(self._end_when_stopped(schedule))
            await asyncio.gather(*(self._work(schedule, failures) for _ in range(width)))
            watch.cancel()
            if failures:
                raise failures[0]
            if self.stopping.is_set():
                return False
        return True

    async def _end_when_stopped(self, schedule: Schedule) -> None:
        """Wake those who wait for a chain when the run stops."""
        await self.stopping.wait()
        await schedule.end()

    async def _work(self, schedule: Schedule, failures: list[Exception]) -> None:
        """Take one chain after the other until there is none left, or the run stops."""
        while (chain := await schedule.next()) is not None and not self.stopping.is_set():
            try:
                finished = await self._chain(chain, schedule)
            except Exception as error:
                failures.append(error)
                self.stop()
                return
            self.tally.chains_done += finished
            self.progress(self.tally, self.ledger)

    async def _chain(self, chain: Chain, schedule: Schedule) -> bool:
        """Run one chain to its end; False where the run stopped first."""
        if chain.redraw == "initial":
            return await self._vote(chain)
        refused: list[Draw] = []
        for attempt in range(1, chain.budget + 1):
            draw = await self._attempt(chain, attempt, refused)
            if draw is None:
                return False
            if attempt == 1:
                await schedule.made(draw.draw_id)
            flagged = draw.static is not None and draw.static.flagged
            if draw.error is not None or not flagged:
                return True
            refused.append(draw)
        return True

    async def _attempt(self, chain: Chain, attempt: int, refused: Sequence[Draw]) -> Draw | None:
        """Find, copy or make one draw of a gated chain, and log it; None where the run stops."""
        draw = self.known.get(chain.draw_id(attempt))
        if draw is not None:
            return draw
        intent: Intent | None = None
        if attempt == 1 and chain.copies is not None:
            source = self.known[chain.copies]
            draw = shared_failure(chain, source) if source.error is not None else as_copy(chain, source)
        else:
            made = await self._made(chain, attempt, refused)
            if made is None:
                return None
            draw, intent = made
        if draw.error is None:
            passed = draw.static is not None and not draw.static.flagged
            draw = emit(draw, passed or attempt == chain.budget)
        self._log(draw)
        if intent is not None:
            self.journal.settle(intent)
        return draw

    async def _vote(self, chain: Chain) -> bool:
        """Make all draws of a vote, then log them with its winner marked."""
        names = [chain.draw_id(attempt) for attempt in range(1, chain.budget + 1)]
        draws: list[Draw] = []
        intents: list[Intent] = []
        for attempt, name in enumerate(names, 1):
            kept = self.known.get(name)
            if kept is None:
                made = await self._made(chain, attempt, ())
                if made is None:
                    return False
                kept, intent = made
                if intent is not None:
                    intents.append(intent)
                    self.journal.answered(msgspec.to_builtins(kept))
            draws.append(kept)
        if all(name in self.known for name in names):
            return True
        task = self.suite.by_id[chain.task_id]
        votes = [at for at, draw in enumerate(draws) if draw.error is None]
        winner = None
        if votes:
            spell = self.families[task.family].canonical
            winner = votes[plurality([spell(draws[at].output or "", task.public) for at in votes])]
        for at, draw in enumerate(draws):
            if draw.draw_id not in self.known:
                self._log(emit(draw, at == winner))
        for intent in intents:
            self.journal.settle(intent)
        return True

    async def _made(
        self, chain: Chain, attempt: int, refused: Sequence[Draw]
    ) -> tuple[Draw, Intent | None] | None:
        """Ask for one draw, or take the answer that the journal kept; None where the run stops."""
        name = chain.draw_id(attempt)
        task = self.suite.by_id[chain.task_id]
        who = self.served(chain.condition, chain.tier)
        if name in self.journal.answers:
            kept = msgspec.convert(self.journal.answers[name], Draw)
            self.ledger.spent += kept.billed
            return kept, None
        if self.stopping.is_set():
            return None
        prompt = self.suite.prompts[chain.tier]
        feedback = chain.redraw == "feedback" and attempt > 1
        if feedback:
            said = [Refused(one.output or "", _message(one)) for one in refused]
            messages = feedback_messages(task.public, prompt, said)
        else:
            messages = initial_messages(task.public, prompt)
        self.ledger.reserve(chain.price)
        self._in_flight += 1
        in_flight = self._in_flight
        reply: Reply | Failure | None = None
        try:
            intent = self.journal.intend(name, chain.price, in_flight, now())
            reply = await self.client.ask(
                who.endpoint,
                messages,
                temperature=chain.temperature,
                top_p=chain.top_p,
                max_tokens=chain.max_tokens,
                seed=draw_seed(chain.seed, chain.arm, chain.task_id, attempt),
                json_reply=prompt.reply == "json",
                on_retry=lambda kind, wait: self._retried(name, kind, wait),
            )
        finally:
            self._in_flight -= 1
            self.ledger.settle(chain.price, billed=isinstance(reply, Reply))
        self.tally.made += 1
        if isinstance(reply, Failure):
            failed = failed_draw(
                chain, attempt, task, reply,
                model=who.model, precision=who.precision, in_flight=in_flight,
            )  # fmt: skip
            return failed, intent
        draw = scored_draw(
            chain,
            attempt,
            task,
            self.families[task.family],
            reply,
            model=who.model,
            precision=who.precision,
            prompt_sha256=prompt_digest(messages),
            in_flight=in_flight,
            answers=refused[-1] if feedback else None,
        )
        return draw, intent

    def _retried(self, name: str, kind: str, wait: float) -> None:
        """Count an infrastructure retry."""
        self.tally.retries += 1
        self.journal.retried(name, kind, wait)

    def _log(self, draw: Draw) -> None:
        """Append a draw to the chained log."""
        self.writer.append(draw)
        self.known[draw.draw_id] = draw
        self.tally.draws += 1
        self.tally.errors += draw.error is not None
        if draw.error is None:
            self.ledger.list_in(draw.arm, draw.billed)
        self.progress(self.tally, self.ledger)


def _message(draw: Draw) -> str:
    """Return what the verifier said of a refused draw."""
    return (draw.static.message or "") if draw.static is not None else ""
