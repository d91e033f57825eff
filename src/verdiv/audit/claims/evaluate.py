"""Working out an expression over named values, with fixed functions and a bound on the work."""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from verdiv.audit.claims.functions import FUNCTIONS, Function
from verdiv.audit.claims.language import (
    Binary,
    Call,
    Compare,
    ExpressionRefused,
    Logic,
    Name,
    Node,
    Number,
    Unary,
    refuse,
)
from verdiv.errors import VerdivError

__all__ = ["Budget", "Scope", "Value", "evaluate", "names_of"]

Value: TypeAlias = float | bool
"""What an expression gives."""

MAX_RANGE = 10_000
"""Values that one quantifier runs over."""

MAX_NESTING = 60
"""Definitions within definitions."""

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

TIE = 1e-12
"""Numbers this close are equal, so that decimal input meets its own boundary."""

QUANTIFIERS = ("every", "some", "first", "peak", "least", "total")
"""Forms that run a variable over whole numbers: ``every(k, 1, 9, condition, step=2)``."""


@dataclass
class Budget:
    """Bounds the work of one claims file."""

    steps: int = 2_000_000
    """Nodes that may still be visited."""
    seconds: float = 60.0
    """Wall time for all claims together."""
    _until: float | None = field(init=False, default=None)

    def spend(self) -> None:
        """Count one step.

        Raises
        ------
        ExpressionRefused
            The steps or the time are used up.
        """
        if self._until is None:  # the clock starts with the work
            self._until = time.monotonic() + self.seconds
        self.steps -= 1
        if self.steps < 0 or (self.steps % 256 == 0 and time.monotonic() > self._until):
            refuse(
                "claims", "an expression of bounded work", "a longer computation", "search a smaller range"
            )


@dataclass(frozen=True)
class Scope:
    """The names an expression may use."""

    values: Mapping[str, Value]
    """Parameters, variables, and dotted places of results and log."""
    definitions: Mapping[str, Node] = field(default_factory=dict)
    """Names that stand for an expression; worked out where they are used, under the overrides there."""
    budget: Budget = field(default_factory=Budget)
    depth: int = 0

    def with_values(self, changes: Mapping[str, Value]) -> Scope:
        """Return the scope with some names bound anew; a definition of that name gives way."""
        if not changes:
            return self
        left = {name: node for name, node in self.definitions.items() if name not in changes}
        return replace(self, values={**self.values, **changes}, definitions=left)

    def knows(self, name: str) -> bool:
        """Tell whether a name means something."""
        return name in self.values or name in self.definitions

    def lookup(self, name: str) -> Value:
        """Return a name's value.

        Raises
        ------
        ExpressionRefused
            No such name, or definitions that lead back to themselves.
        """
        if name in self.values:
            return self.values[name]
        if name in self.definitions:
            if self.depth > MAX_NESTING:
                refuse(name, "a definition that ends", "one that leads back to itself", "break the circle")
            return evaluate(self.definitions[name], replace(self, depth=self.depth + 1))
        root = name.split(".")[0]
        remedy = f"pass {root} to the audit" if root in ("results", "log") else "add it to [parameters]"
        return refuse(name, "a known name", "an unknown one", remedy)


def evaluate(node: Node, scope: Scope) -> Value:
    """Work an expression out.

    Parameters
    ----------
    node
        A parsed expression.
    scope
        Its names.

    Returns
    -------
    float or bool
        Never NaN.

    Raises
    ------
    ExpressionRefused
        An unknown name or function, a wrong number or kind of arguments, a division by zero, an overflow, or
        more work than the budget allows.

    Examples
    --------
    >>> from verdiv.audit.claims.language import parse
    >>> evaluate(parse("every(k, 1, 5, Q_A1(k) >= q0, step=2)"), Scope({"q0": 0.8}))
    True
    """
    scope.budget.spend()
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Name):
        return math.inf if node.text == "inf" else scope.lookup(node.text)
    if isinstance(node, Unary):
        if node.op == "not":
            return not _truth(node.operand, scope)
        value = _number(node.operand, scope)
        return -value if node.op == "-" else value
    if isinstance(node, Binary):
        return _arithmetic(node.op, _number(node.left, scope), _number(node.right, scope))
    if isinstance(node, Compare):
        return _comparison(node, scope)
    if isinstance(node, Logic):
        stop = node.op == "or"
        for item in node.items:
            if _truth(item, scope) is stop:
                return stop
        return not stop
    return _call(node, scope)


def _number(node: Node, scope: Scope) -> float:
    value = evaluate(node, scope)
    if isinstance(value, bool):
        refuse("expression", "a number", "a truth value", "compare or compute, not both")
    return value


def _truth(node: Node, scope: Scope) -> bool:
    value = evaluate(node, scope)
    if not isinstance(value, bool):
        refuse("expression", "a truth value", "a number", "write a comparison")
    return value


def _arithmetic(op: str, left: float, right: float) -> float:
    try:
        if op == "+":
            value = left + right
        elif op == "-":
            value = left - right
        elif op == "*":
            value = left * right
        elif op == "/":
            value = left / right
        else:
            value = math.pow(left, right)
    except (ArithmeticError, ValueError):
        refuse("expression", "a number", f"{left:g} {op} {right:g}", "change the expression")
    if math.isnan(value):
        refuse("expression", "a number", f"{left:g} {op} {right:g}", "change the expression")
    return value


def _comparison(node: Compare, scope: Scope) -> bool:
    left = _number(node.first, scope)
    for op, operand in node.rest:
        right = _number(operand, scope)
        close = math.isclose(left, right, rel_tol=TIE, abs_tol=TIE)
        holds = ("=" in op and op != "!=") if close else _COMPARE[op](left, right)
        if not holds:
            return False
        left = right
    return True


def _call(node: Call, scope: Scope) -> Value:
    if node.function in QUANTIFIERS:
        return _quantified(node, scope)
    if node.function == "if":
        return _choice(node, scope)
    function = FUNCTIONS.get(node.function)
    if function is None:
        refuse(f"{node.function}(…)", "a known function", "an unknown one", "see the list of functions")
    if len(node.positional) > len(function.arguments) and not function.variadic:
        refuse(
            f"{node.function}(…)",
            f"at most {len(function.arguments)} arguments",
            str(len(node.positional)),
            "name the rest",
        )
    given = [_number(argument, scope) for argument in node.positional]
    named = {name: _number(argument, scope) for name, argument in node.named}
    if not function.variadic:
        named |= dict(zip(function.arguments, given, strict=False))
    for name in named:
        if name not in function.arguments and not scope.knows(name):
            refuse(
                f"{node.function}({name} = …)", "a name that it can use", "an unknown one", "check the name"
            )
    return _applied(node.function, function, given, scope.with_values(named))


def _applied(name: str, function: Function, given: list[float], scope: Scope) -> float:
    """Call a function with its arguments, those not given read by name from the scope."""
    if function.variadic:
        arguments = given
    else:
        arguments = []
        for argument in function.arguments:
            if argument in function.defaults and not scope.knows(argument):
                arguments.append(function.defaults[argument])
            else:
                value = scope.lookup(argument)
                if isinstance(value, bool):
                    refuse(f"{name}(…)", f"a number for {argument}", "a truth value", "give a number")
                arguments.append(value)
    try:
        value = float(function.body(*arguments))
    except ExpressionRefused:
        raise
    except VerdivError as error:
        raise ExpressionRefused(f"{name}(…): {error.message}", error.faults, total=error.total) from error
    except (ArithmeticError, ValueError, TypeError) as error:
        refuse(f"{name}(…)", "arguments it is defined for", str(error), "change the arguments")
    if math.isnan(value):
        refuse(f"{name}(…)", "a number", "no number", "change the arguments")
    return value


def _choice(node: Call, scope: Scope) -> Value:
    if len(node.positional) != 3 or node.named:
        refuse("if(…)", "condition, value, other value", f"{len(node.positional)} arguments", "give three")
    condition, one, other = node.positional
    return evaluate(one if _truth(condition, scope) else other, scope)


def _quantified(node: Call, scope: Scope) -> Value:
    """Run a variable over whole numbers, low to high."""
    form = node.function
    step_node = dict(node.named)
    if len(node.positional) != 4 or set(step_node) - {"step"} or not isinstance(node.positional[0], Name):
        refuse(
            f"{form}(…)",
            f"{form}(variable, from, to, expression, step = 1)",
            "other arguments",
            "write it like this",
        )
    variable = node.positional[0].text
    low, high = (_number(bound, scope) for bound in node.positional[1:3])
    step = _number(step_node["step"], scope) if step_node else 1.0
    if not (all(float(x).is_integer() for x in (low, high, step)) and step >= 1):
        refuse(f"{form}(…)", "whole bounds and a step from 1", "others", "use whole numbers")
    runs = range(int(low), int(high) + 1, int(step))
    if not 1 <= len(runs) <= MAX_RANGE:
        refuse(f"{form}(…)", f"1 to {MAX_RANGE} values", str(len(runs)), "change the range")
    body = node.positional[3]
    if form in ("every", "some", "first"):
        for i in runs:
            if _truth(body, scope.with_values({variable: float(i)})) is not (form == "every"):
                return float(i) if form == "first" else form == "some"
        return 0.0 if form == "first" else form == "every"
    values = [_number(body, scope.with_values({variable: float(i)})) for i in runs]
    if form == "total":
        return math.fsum(values)
    return max(values) if form == "peak" else min(values)


def names_of(node: Node) -> frozenset[str]:
    """Return every name an expression reads, its functions and variables included."""
    if isinstance(node, Name):
        return frozenset((node.text,))
    if isinstance(node, Unary):
        return names_of(node.operand)
    if isinstance(node, Binary):
        return names_of(node.left) | names_of(node.right)
    if isinstance(node, Compare):
        return names_of(node.first).union(*(names_of(item) for _, item in node.rest))
    if isinstance(node, Logic):
        return frozenset().union(*map(names_of, node.items))
    if isinstance(node, Call):
        inner = (*node.positional, *(argument for _, argument in node.named))
        return frozenset((node.function,)).union(*map(names_of, inner))
    return frozenset()
