"""Rows become draws of chains: positions, duplicates, gaps, cumulative flags, parents, shared first attempts.

A chain is what one arm does with one task in one replicate: attempts 1, 2, … without a gap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from verdiv.runlog.convert.ledger import Books, Example
from verdiv.runlog.convert.rows import MISSING_KIND, Row
from verdiv.runlog.convert.schema import Mapping
from verdiv.runlog.convert.sources import natural_key
from verdiv.runlog.records import AnsweredClass, Draw, DrawError, PromptKind

__all__ = ["Linker", "place_ranks"]

ChainKey: TypeAlias = tuple[str, str, str, str, int]
"""Condition, arm, tier, task, replicate."""

SOLVED = "already solved at an earlier attempt (cumulative flag)"
"""Rule that leaves out the rows of a solved task, which no draw stands behind."""


def place_ranks(rows: Sequence[Row], mapping: Mapping) -> dict[str, list[tuple[str, ...]]]:
    """Give every ranked field its position among the combinations that occur.

    Returns
    -------
    dict
        For each ranked field without groups, the combinations in order.
    """
    legend: dict[str, list[tuple[str, ...]]] = {}
    for name in ("replicate", "attempt"):
        value = getattr(mapping.draw, name)
        if value.rank is None:
            continue
        groups: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for row in rows:
            group, combination = row.ranks[name]
            groups.setdefault(group, set()).add(combination)
        ordered = {group: sorted(found, key=_combination_key) for group, found in groups.items()}
        positions = {group: {c: i for i, c in enumerate(found)} for group, found in ordered.items()}
        first = value.add or 0
        for row in rows:
            group, combination = row.ranks[name]
            row.draw = msgspec.structs.replace(row.draw, **{name: positions[group][combination] + first})
        if value.within is None and ordered:
            legend[name] = ordered[()]
    return legend


def _combination_key(combination: tuple[str, ...]) -> Any:
    return tuple(natural_key(part) for part in combination)


class Linker:
    """Links the rows of a conversion and keeps the draws' book."""

    def __init__(self, mapping: Mapping, labels: Sequence[str], books: Books) -> None:
        self._mapping = mapping
        self._labels = labels
        self._books = books
        self._seen_families: dict[str, str] = {}
        self.draws_of_file: Counter[int] = Counter()
        """Draws kept, by file."""

    def link(self, rows: Sequence[Row]) -> list[Draw]:
        """Return the draws, chain by chain, each after the one it answers or repeats."""
        chains: dict[ChainKey, dict[int, Row]] = {}
        for row in rows:
            reason = self._admit(row, chains)
            if reason:
                self._reject(row, reason)
        order = list(chains)
        shared = self._mapping.shared_first
        if shared is not None:
            order.sort(key=lambda key: key[1] != shared.source)
        draws: list[Draw] = []
        firsts: dict[tuple[str, str, str, int], Draw] = {}
        for key in order:
            linked = self._chain(key, [chains[key][attempt] for attempt in sorted(chains[key])])
            if shared is not None and linked and linked[0].attempt == 1:
                place = (key[0], key[2], key[3], key[4])
                if key[1] == shared.source:
                    firsts[place] = linked[0]
                elif key[1] in shared.to:
                    linked[0] = self._copy(linked[0], firsts.get(place))
            draws += linked
        self._note_models(draws)
        return draws

    def _admit(self, row: Row, chains: dict[ChainKey, dict[int, Row]]) -> str:
        draw = row.draw
        family = self._seen_families.setdefault(draw.task_id, draw.family)
        if family != draw.family:
            return "a task that belongs to another family already; put the family into task_id"
        if draw.attempt < 1:
            return "attempt: numbers begin at 1; the mapping can add 1"
        chain = chains.setdefault((draw.condition, draw.arm, draw.tier, draw.task_id, draw.replicate), {})
        if draw.attempt in chain:
            return "the same task, arm, replicate and attempt as an earlier row"
        if draw.attempt > 1 and row.retry not in (PromptKind.BLIND, PromptKind.FEEDBACK):
            return "retry: blind or feedback is required for attempts after the first"
        chain[draw.attempt] = row
        return ""

    def _reject(self, row: Row, reason: str) -> None:
        example = Example(self._labels[row.file], row.number, row.place, reason)
        self._books.reject(self._books.draws, reason, example)

    def _chain(self, key: ChainKey, rows: Sequence[Row]) -> list[Draw]:
        """Link one chain whose attempts ascend."""
        if self._mapping.draw.correct.cumulative:
            rows = self._differences(rows)
        linked: list[Draw] = []
        for position, row in enumerate(rows):
            if row.draw.attempt != position + 1:
                for late in rows[position:]:
                    self._reject(late, "an attempt whose predecessor is not in the log")
                break
            changes: dict[str, Any] = {"draw_id": _draw_id(key, row.draw.attempt)}
            if position > 0:
                kind = PromptKind(str(row.retry))
                changes |= {"parent": linked[-1].draw_id, "prompt_kind": kind}
                if kind is PromptKind.FEEDBACK:
                    changes["answered_class"] = AnsweredClass(rows[position - 1].answered)
            linked.append(msgspec.structs.replace(row.draw, **changes))
            self._books.draws.kept += 1
            self._books.missing += linked[-1].correct is None
            self.draws_of_file[row.file] += 1
        return linked

    def _differences(self, rows: Sequence[Row]) -> Sequence[Row]:
        """From "solved by attempt t" to the outcome of attempt t: the change between attempts.

        After the attempt that solved a task nothing was drawn, so later rows are left out. Where a flag is
        missing, success at the next attempt may have come a step earlier: then it is missing too.
        """
        kept: list[Row] = []
        solved, unknown = False, False
        for row in rows:
            flag = row.draw.correct
            if solved and flag is not False:
                self._books.draws.excluded[SOLVED] += 1
                continue
            if solved:
                self._reject(row, "a cumulative success flag that falls back")
                continue
            if flag and unknown:
                error = DrawError(kind=MISSING_KIND, message="an earlier cumulative flag is missing")
                row.draw = msgspec.structs.replace(row.draw, correct=None, error=error)
            solved, unknown = bool(flag), flag is None
            kept.append(row)
        return kept

    def _copy(self, draw: Draw, source: Draw | None) -> Draw:
        if source is None:
            self._note("first attempts that should be shared stand without the draw they repeat")
            return draw
        self._books.copies += 1
        if (draw.correct, draw.static, draw.output) != (source.correct, source.static, source.output):
            self._books.copy_clashes += 1
        return msgspec.structs.replace(draw, copy_of=source.draw_id)

    def _note(self, text: str) -> None:
        if text not in self._books.notes:
            self._books.notes.append(text)

    def _note_models(self, draws: Sequence[Draw]) -> None:
        models: dict[tuple[str, str, str, str], str] = {}
        for draw in draws:
            if draw.model is None:
                continue
            place = (draw.condition, draw.arm, draw.tier, draw.task_id)
            if models.setdefault(place, draw.model) != draw.model:
                self._note("several models answer the same tasks in one arm and tier: convert them apart")
                return


def _draw_id(key: ChainKey, attempt: int) -> str:
    """Name of a draw; escaping the separator keeps different draws apart."""
    condition, arm, tier, task, replicate = key
    parts = [arm]
    parts += [f"@{condition}"] if condition != "primary" else []
    parts += [f"~{tier}"] if tier != "small" else []
    head = [part.replace("%", "%25").replace("/", "%2F") for part in parts]
    return "/".join([*head, f"r{replicate}", f"a{attempt}", task])
