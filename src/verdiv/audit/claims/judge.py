"""From a claims file to outcomes: every figure worked out, compared at its printed precision, explained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from verdiv.audit.claims.claimsfile import Alternative, Claim, ClaimsFile
from verdiv.audit.claims.evaluate import Budget, Scope, Value, evaluate, names_of
from verdiv.audit.claims.figures import Printed
from verdiv.audit.claims.functions import FUNCTIONS
from verdiv.audit.claims.language import ExpressionRefused, parse, refuse
from verdiv.audit.claims.outcomes import ClaimOutcome, ClaimResult, Rescue
from verdiv.errors import InputRefused

__all__ = ["judge_claims"]

MC_SD = 3.0
"""Standard errors within which a simulated figure counts as reproduced."""


def _short(value: Decimal) -> float:
    """Return a value without the noise of floating-point work."""
    return float(f"{value:.12g}")


class _Open(Exception):
    """A claim leans on one that has no form."""

    def __init__(self, root: str) -> None:
        self.root = root


class _Judge:
    """Works the claims of one file out; each claim once per set of parameters."""

    def __init__(self, file: ClaimsFile, places: Mapping[str, Value], budget: Budget) -> None:
        self.file = file
        self.claims = {claim.id: claim for claim in file.claims}
        values: dict[str, Value] = {**places, **{name: float(v) for name, v in file.parameters.items()}}
        definitions = {name: parse(text) for name, text in file.definitions.items()}
        self.scope = Scope(values, definitions, budget)
        self.done: dict[str, ClaimResult] = {}
        self.under: dict[str, dict[str, bool]] = {}
        self.needs: dict[str, frozenset[str]] = {}

    def work(self, claim: Claim, scope: Scope, trail: tuple[str, ...] = ()) -> Value:
        """Work a claim's own expression out, the claims it uses first."""
        if claim.id in trail:
            refuse(claim.id, "claims that lead to parameters", "a circle of claims", "break the circle")
        if claim.of is not None and not claim.statement and claim.expression is None:
            share = Printed.of(claim.value, claim.unit, claim.id).natural
            return round(share * claim.of) / claim.of
        if claim.expression is None:
            raise _Open(claim.id)
        bound = {
            name: self.work(self.claims[other], scope, (*trail, claim.id))
            for name, other in claim.uses.items()
        }
        return evaluate(parse(claim.expression), scope.with_values(bound))

    def agrees(self, claim: Claim, value: Value) -> ClaimOutcome:
        """Compare a value with the print."""
        if claim.statement:
            if not isinstance(value, bool):
                refuse(claim.id, "a condition, since true or false is printed", "a number", "compare")
            same = value is (claim.value == "true")
            return ClaimOutcome.REPRODUCED if same else ClaimOutcome.CONFLICT
        if isinstance(value, bool):
            refuse(claim.id, "a number, since a figure is printed", "a condition", "compute the figure")
        if not math.isfinite(value):
            return ClaimOutcome.CONFLICT
        printed = Printed.of(claim.value, claim.unit, claim.id)
        if printed.reproduces(value):
            return ClaimOutcome.REPRODUCED
        if claim.mc_error is not None:
            error = evaluate(parse(claim.mc_error), self.scope)
            if isinstance(error, bool) or error < 0:
                refuse(claim.id, "a standard error from 0", str(error), "correct mc_error")
            if abs(value - printed.natural) <= printed.half_unit + MC_SD * error:
                return ClaimOutcome.REPRODUCED
        counted = claim.of is not None and claim.expression is None
        return ClaimOutcome.ROUNDED if not counted and printed.coarsely(value) else ClaimOutcome.CONFLICT

    def result(self, claim: Claim) -> ClaimResult:
        """Judge one claim, those it uses first."""
        if claim.id not in self.done:
            for other in claim.uses.values():
                if other not in self.done and claim.id not in self._below(other):
                    self.result(self.claims[other])
            self.done[claim.id] = self._judged(claim)
        return self.done[claim.id]

    def _below(self, start: str) -> set[str]:
        """Return a claim and all it leans on, directly or not."""
        found: set[str] = set()
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.claims[name].uses.values()
        return found

    def _judged(self, claim: Claim) -> ClaimResult:
        try:
            value = self.work(claim, self.scope)
            own = self.agrees(claim, value)
        except _Open as open_:
            return self._underdetermined(claim, open_.root)
        except InputRefused as error:
            reason = str(error.faults[0]) if error.faults else error.message
            return self._made(claim, ClaimOutcome.ERROR, None, f"it could not be worked out: {reason}")
        broken = tuple(
            other
            for other in claim.uses.values()
            if other in self.done and self.done[other].outcome is ClaimOutcome.CONFLICT
        )
        outcome = own
        if broken and own is not ClaimOutcome.REPRODUCED:
            outcome = ClaimOutcome.CONFLICT
        reason = self._reason(claim, outcome, value, broken)
        rescues = () if outcome is ClaimOutcome.REPRODUCED else self._rescues(claim)
        flips = self._flips(claim, value)
        inherited = broken if outcome is ClaimOutcome.CONFLICT else ()
        return self._made(claim, outcome, value, reason, inherited, rescues, flips=flips)

    def _made(
        self,
        claim: Claim,
        outcome: ClaimOutcome,
        value: Value | None,
        reason: str,
        inherited: tuple[str, ...] = (),
        rescues: tuple[Rescue, ...] = (),
        *,
        readings: tuple[str, ...] = (),
        flips: bool = False,
    ) -> ClaimResult:
        shown: float | bool | None = value
        right = None
        if isinstance(value, bool):
            right = str(value).lower()
        elif value is not None and math.isfinite(value) and not claim.statement:
            printed = Printed.of(claim.value, claim.unit, claim.id)
            shown, right = _short(printed.in_print(value)), printed.shown(value)
        elif value is not None and not math.isfinite(value):
            shown, right = None, "no finite value"
        return ClaimResult(
            claim.id, outcome, claim.value, claim.unit, shown, right, reason, inherited, rescues, readings, flips,
            claim.expect,
        )  # fmt: skip

    def _reason(self, claim: Claim, outcome: ClaimOutcome, value: Value, broken: tuple[str, ...]) -> str:
        if isinstance(value, bool):
            if outcome is ClaimOutcome.REPRODUCED:
                return f"the statement is {str(value).lower()}, as printed"
            return f"the statement is {str(value).lower()}, not {claim.value}"
        if not math.isfinite(value):
            return "the expression has no finite value"
        printed = Printed.of(claim.value, claim.unit, claim.id)
        unit = f" {claim.unit}" if claim.unit else ""
        got = f"{float(printed.in_print(value)):.6g}{unit}"
        if outcome is ClaimOutcome.REPRODUCED:
            if not printed.reproduces(value):
                return f"{got} lies within {MC_SD:g} Monte-Carlo standard errors of {claim.value}"
            if claim.of is not None and claim.expression is None:
                return f"{round(value * claim.of)} of {claim.of} cases print as {claim.value}{unit}"
            return f"{got} prints as {claim.value}"
        if claim.direction is not None and printed.reproduces(-value):
            return f"the size is right, the direction is not: {claim.direction!r} is the other way round"
        if outcome is ClaimOutcome.ROUNDED:
            return (
                f"{got} prints as {printed.shown(value)}; it equals {claim.value} only with one digit fewer"
            )
        if claim.of is not None and claim.expression is None:
            return f"no count of {claim.of} cases prints as {claim.value}{unit}"
        tail = f"; it is built on {', '.join(broken)}, which is in conflict" if broken else ""
        return f"{got} prints as {printed.shown(value)}, not {claim.value}{tail}"

    def _underdetermined(self, claim: Claim, root: str) -> ClaimResult:
        said: list[str] = []
        own = root == claim.id
        options: list[Alternative] = []
        if not own and claim.expression is not None:
            options += [
                Alternative(text=f"{root} as {reading.text}", expression=claim.expression)
                for reading in self.claims[root].readings
            ]
        options += claim.readings
        best: float | bool | None = None
        for reading in options:
            try:
                value = evaluate(parse(reading.expression), self._supposing(claim, reading))
                match = self.agrees(claim, value) is ClaimOutcome.REPRODUCED
            except (InputRefused, _Open):
                continue
            best = value if best is None else best
            shown = (
                str(value).lower()
                if isinstance(value, bool)
                else f"{float(Printed.of(claim.value, claim.unit, claim.id).in_print(value)):.6g}"
            )
            said.append(
                f"{reading.text}: {shown}, {'prints' if match else 'does not print'} as {claim.value}"
            )
        reason = (
            "the source gives no form for it"
            if own
            else f"it is built on {root}, for which the source gives no form"
        )
        inherited = () if own else (root,)
        return self._made(claim, ClaimOutcome.UNDERDETERMINED, best, reason, inherited, readings=tuple(said))

    def _supposing(self, claim: Claim, reading: Alternative) -> Scope:
        """Bind the names of used claims, an open one by its own first matching reading or by its print."""
        bound: dict[str, Value] = {}
        for name, other in claim.uses.items():
            used = self.claims[other]
            try:
                bound[name] = self.work(used, self.scope)
            except _Open:
                chosen = next(
                    (r for r in used.readings if reading.text.endswith(f" as {r.text}")), None
                ) or next(iter(used.readings), None)
                bound[name] = (
                    evaluate(parse(chosen.expression), self.scope)
                    if chosen is not None
                    else Printed.of(used.value, used.unit, other).natural
                )
            if not used.statement:
                bound[f"{name}_printed"] = Printed.of(used.value, used.unit, other).natural
        return self.scope.with_values(bound)

    def _rescues(self, claim: Claim) -> tuple[Rescue, ...]:
        """Find the assumptions, of the claim and of the file, under which the print would be right."""
        found: list[Rescue] = []
        for alternative in claim.alternatives:
            try:
                value = evaluate(parse(alternative.expression), self._bound(claim))
                if self.agrees(claim, value) is ClaimOutcome.REPRODUCED:
                    found.append(Rescue(alternative.text, self._in_print(claim, value)))
            except (InputRefused, _Open):
                continue
        for assumption in self.file.assumptions:
            changed = self.scope.with_values({name: float(v) for name, v in assumption.set.items()})
            try:
                value = self.work(claim, changed)
                if self.agrees(claim, value) is not ClaimOutcome.REPRODUCED:
                    continue
            except (InputRefused, _Open):
                continue
            standing = self._standing_once("", self.scope)
            holds = self._standing_once(assumption.id, changed)
            breaks = tuple(name for name, well in standing.items() if well and not holds[name])
            found.append(Rescue(assumption.text, self._in_print(claim, value), breaks))
        return tuple(found)

    def _bound(self, claim: Claim) -> Scope:
        values = {name: self.work(self.claims[other], self.scope) for name, other in claim.uses.items()}
        return self.scope.with_values(values)

    def _in_print(self, claim: Claim, value: Value) -> float | bool:
        if isinstance(value, bool):
            return value
        return _short(Printed.of(claim.value, claim.unit, claim.id).in_print(value))

    def reads(self, start: str) -> frozenset[str]:
        """Return every name that a claim's value can depend on, arguments that calls leave out included."""
        if start not in self.needs:
            waiting: list[str] = []
            for name in self._below(start):
                expression = self.claims[name].expression
                if expression is not None:
                    waiting += names_of(parse(expression))
            found: set[str] = set()
            while waiting:
                name = waiting.pop()
                if name in found:
                    continue
                found.add(name)
                if name in FUNCTIONS:
                    waiting += FUNCTIONS[name].arguments
                if name in self.scope.definitions:
                    waiting += names_of(self.scope.definitions[name])
            self.needs[start] = frozenset(found)
        return self.needs[start]

    def _standing_once(self, key: str, scope: Scope) -> dict[str, bool]:
        if key not in self.under:
            self.under[key] = self._standing(scope)
        return self.under[key]

    def _standing(self, scope: Scope) -> dict[str, bool]:
        """Tell for every claim whether it is reproduced under some parameters."""
        standing: dict[str, bool] = {}
        plain = self.under.get("", {})
        moved = {name for name, value in scope.values.items() if self.scope.values.get(name) != value}
        for claim in self.file.claims:
            if claim.id in plain and moved.isdisjoint(self.reads(claim.id)):
                standing[claim.id] = plain[claim.id]
                continue
            try:
                standing[claim.id] = self.agrees(claim, self.work(claim, scope)) is ClaimOutcome.REPRODUCED
            except (InputRefused, _Open):
                standing[claim.id] = False
        return standing

    def _flips(self, claim: Claim, value: Value) -> bool:
        """Tell whether the decision that rests on the figure is another one with the recomputed value."""
        if claim.statement:
            return isinstance(value, bool) and claim.decides is not None and str(value).lower() != claim.value
        if claim.decides is None or isinstance(value, bool):
            return False
        printed = Printed.of(claim.value, claim.unit, claim.id)
        node = parse(claim.decides)
        try:
            said = evaluate(node, self.scope.with_values({"value": printed.natural}))
            true = evaluate(node, self.scope.with_values({"value": value}))
        except ExpressionRefused:
            return False
        return said is not true


def judge_claims(
    file: ClaimsFile, places: Mapping[str, Value] | None = None, *, budget: Budget | None = None
) -> tuple[ClaimResult, ...]:
    """Work out every claim of a file.

    Parameters
    ----------
    file
        The claims.
    places
        Dotted places of results and log, e.g. ``results.estimates.q0.mean``.
    budget
        Bound on the work; a generous one if absent.

    Returns
    -------
    tuple of ClaimResult
        One a claim, in the order of the file. Outcomes are computed; ``expect`` plays no part in them.

    Examples
    --------
    >>> from verdiv.audit.claims.claimsfile import read_claims
    >>> results = {result.id: result for result in judge_claims(read_claims("paper"))}
    >>> results["worst-case-per-task"].outcome.value, results["worst-case-per-task"].right
    ('conflict', '28.5')
    """
    judge = _Judge(file, places or {}, budget or Budget())
    return tuple(judge.result(claim) for claim in file.claims)
