"""Family F1: arithmetic asked in words, answered by an expression of a whitelisted syntax."""

from __future__ import annotations

import ast
import functools
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from verdiv.protocol.calls.verdict import Refusal
from verdiv.protocol.suite.json_call import JsonCallFamily
from verdiv.protocol.suite.task import PublicTask, Task

__all__ = ["Arithmetic", "evaluate", "parse_expression"]

TOOL = "calculate"
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"expression": {"type": "string"}},
    "required": ["expression"],
}
MAX_EXPRESSION = 160
"""Characters of an expression; a task's own is at most 40 long."""

_ALLOWED = re.compile(r"[0-9+\-*() ]+")
_QUOTED = re.compile(r'"expression"\s*:\s*"([^"]*)')
_RUN = re.compile(r"[0-9(\-][0-9+\-*() ]*")
_SIGNS = str.maketrans({"×": "*", "·": "*", "−": "-", "–": "-", "[": "(", "]": ")"})
_TIMES = re.compile(r"(?<=[0-9)\s])[xX](?=[\s0-9(])")

_OPERATORS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


@functools.lru_cache(maxsize=1024)
def parse_expression(text: str) -> ast.expr | None:
    """Parse an expression and hold it against the whitelist of its syntax tree.

    Parameters
    ----------
    text
        Candidate expression.

    Returns
    -------
    ast.expr or None
        The tree where it holds only integers, ``+``, ``-``, ``*`` and brackets, else None.

    Examples
    --------
    >>> parse_expression("(1 + 2) * 3") is None, parse_expression("2 ** 9") is None
    (False, True)
    """
    if len(text) > MAX_EXPRESSION or _ALLOWED.fullmatch(text) is None:
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return tree if _whitelisted(tree) else None


def _whitelisted(tree: ast.expr) -> bool:
    """Walk the tree: only the nodes named here may stand in it."""
    if isinstance(tree, ast.BinOp):
        return type(tree.op) in _OPERATORS and _whitelisted(tree.left) and _whitelisted(tree.right)
    if isinstance(tree, ast.UnaryOp):
        return isinstance(tree.op, ast.USub) and _whitelisted(tree.operand)
    return isinstance(tree, ast.Constant) and type(tree.value) is int


def evaluate(tree: ast.expr) -> int:
    """Compute a whitelisted tree by walking it; nothing is executed.

    Parameters
    ----------
    tree
        Tree from :func:`parse_expression`.

    Returns
    -------
    int
        Exact value.

    Raises
    ------
    ValueError
        When the tree holds a node outside the whitelist.

    Examples
    --------
    >>> evaluate(parse_expression("(1 + 2) * 3"))
    9
    """
    if isinstance(tree, ast.BinOp):
        left, right = evaluate(tree.left), evaluate(tree.right)
        if isinstance(tree.op, ast.Add):
            return left + right
        if isinstance(tree.op, ast.Sub):
            return left - right
        return left * right
    if isinstance(tree, ast.UnaryOp):
        return -evaluate(tree.operand)
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    raise ValueError("the tree holds a node outside the whitelist")


def _numbers(tree: ast.expr) -> list[int]:
    """List the integers of a tree, sorted."""
    return sorted(node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))  # type: ignore[misc]


def _commuted(tree: ast.expr) -> ast.expr:
    """Swap the operands of every sum and product."""
    if isinstance(tree, ast.BinOp):
        left, right = _commuted(tree.left), _commuted(tree.right)
        if not isinstance(tree.op, ast.Sub):
            left, right = right, left
        return ast.BinOp(left, tree.op, right)
    return tree


class Arithmetic(JsonCallFamily):
    """Arithmetic in words; the call's expression must use the request's numbers and have its value.

    A call is correct where its expression keeps the whitelist, uses each number of the request exactly
    once and evaluates to the answer. The static verifier checks the syntax (structural), then the numbers
    and the sign of the value (semantic). A wrong operator or order of operations passes it silently.
    """

    name = "arithmetic"
    levels: Sequence[int] = (1, 2, 3, 4, 5)
    instructions = (
        "You write tool calls. Tool calculate(expression): expression is a string of integers, + - * and "
        "brackets. Put the numbers of the request into one expression; do not compute it. "
        'Reply with one JSON object: {"name": "calculate", "arguments": {"expression": "..."}}'
    )
    form = '{"name": "calculate", "arguments": {"expression": "..."}}'

    def generate(self, rng: random.Random, difficulty: int, task_id: str) -> Task:
        """Draw one task.

        Parameters
        ----------
        rng
            Source of randomness.
        difficulty
            1: sum or difference; 2: product; 3: three terms; 4: brackets needed; 5: brackets and four numbers.
        task_id
            Identifier of the task.

        Returns
        -------
        Task
            Its value is positive and none of its numbers.
        """
        while True:
            words, expression = self._draw(rng, difficulty)
            tree = parse_expression(expression)
            if tree is None:
                raise ValueError(f"no expression: {expression}")
            value, numbers = evaluate(tree), _numbers(tree)
            if value > 0 and value not in numbers and str(value) not in words:
                break
        public = PublicTask(task_id, self.name, difficulty, words, TOOL, SCHEMA, {"numbers": numbers})
        return Task(public, {"expression": expression})

    @staticmethod
    def _draw(rng: random.Random, difficulty: int) -> tuple[str, str]:
        """Word a request and its expression, not yet checked."""
        a, b = rng.randrange(2, 100), rng.randrange(2, 100)
        c, d = rng.randrange(2, 13), rng.randrange(2, 50)
        pick = rng.randrange(3)
        if difficulty == 1:
            return (
                (f"Add {a} and {b}.", f"{a} + {b}"),
                (f"Subtract {b} from {a}.", f"{a} - {b}"),
                (f"Find the sum of {a} and {b}.", f"{a} + {b}"),
            )[pick]
        if difficulty == 2:
            big = rng.randrange(2, 1000)
            return (
                (f"Multiply {big} by {c}.", f"{big} * {c}"),
                (f"Find the product of {big} and {d}.", f"{big} * {d}"),
                (f"How much are {c} boxes of {big} pieces?", f"{c} * {big}"),
            )[pick]
        if difficulty == 3:
            return (
                (f"Start with {a}, add {b}, then subtract {d}.", f"{a} + {b} - {d}"),
                (f"Multiply {a} by {c}, then add {d}.", f"{a} * {c} + {d}"),
                (f"Multiply {a} by {c}, then subtract {d}.", f"{a} * {c} - {d}"),
            )[pick]
        if difficulty == 4:
            return (
                (f"Add {a} and {b}, then multiply the result by {c}.", f"({a} + {b}) * {c}"),
                (f"Subtract {b} from {a}, then multiply the result by {c}.", f"({a} - {b}) * {c}"),
                (f"Subtract the sum of {b} and {c} from {a}.", f"{a} - ({b} + {c})"),
            )[pick]
        return (
            (f"Add {a} and {b}, multiply the result by {c}, then subtract {d}.", f"({a} + {b}) * {c} - {d}"),
            (f"Multiply the sum of {a} and {b} by the sum of {c} and {d}.", f"({a} + {b}) * ({c} + {d})"),
            (f"Subtract {b} from {a}, add {d}, then multiply the result by {c}.", f"({a} - {b} + {d}) * {c}"),
        )[pick]

    def structure(self, arguments: Mapping[str, Any], public: PublicTask) -> Refusal | None:
        """Hold the expression against the whitelist."""
        expression = arguments["expression"]
        if parse_expression(expression) is not None:
            return None
        if "=" in expression:
            return Refusal("equals-sign", 'The expression must not hold "=" or a result.')
        if _ALLOWED.fullmatch(expression) is None:
            return Refusal("character", "The expression may hold only integers, + - * and brackets.")
        return Refusal("syntax", "The expression is not a valid one of integers, + - * and brackets.")

    def meaning(self, arguments: Mapping[str, Any], public: PublicTask) -> Refusal | None:
        """Check that the request's numbers are used once each and that the value is positive."""
        tree = parse_expression(arguments["expression"])
        if tree is None or _numbers(tree) != public.facts["numbers"]:
            return Refusal("numbers", "The expression does not use each number of the request exactly once.")
        if evaluate(tree) <= 0:
            return Refusal("not-positive", "The value of the expression is not positive.")
        return None

    def save(self, text: str, public: PublicTask) -> Mapping[str, Any] | None:
        """Read the longest arithmetic run, with foreign signs for times and minus replaced."""
        quoted = _QUOTED.search(text)
        body = (quoted.group(1) if quoted else text).translate(_SIGNS)
        body = _TIMES.sub("*", body).split("=")[0]
        runs = [run.strip() for run in _RUN.findall(body)]
        best = max(runs, key=len, default="")
        tree = parse_expression(best)
        return None if tree is None else {"expression": ast.unparse(tree)}

    def normal(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Spell the expression with single spaces and without spare brackets."""
        tree = parse_expression(arguments["expression"])
        return arguments if tree is None else {"expression": ast.unparse(tree)}

    def solved(self, arguments: Mapping[str, Any], task: Task) -> bool:
        """Compare the values of the two expressions."""
        given = parse_expression(arguments["expression"])
        right = parse_expression(task.answer["expression"])
        return given is not None and right is not None and evaluate(given) == evaluate(right)

    def variants(self, task: Task) -> list[Mapping[str, Any]]:
        """Spell the expression canonically, without spaces, in brackets, and with operands swapped."""
        expression = task.answer["expression"]
        tree = parse_expression(expression)
        swapped = expression if tree is None else ast.unparse(_commuted(tree))
        spelled = (expression, expression.replace(" ", ""), f"({expression})", f" {swapped} ")
        return [{"expression": text} for text in spelled]
