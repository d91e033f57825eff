"""The language of a claim's expression: arithmetic, comparisons and calls, parsed here and nowhere evaluated.

A claims file is hostile input, so an expression never reaches Python's own evaluator. The grammar, from the
loosest binding to the tightest::

    or  :=  and ("or" and)*                 and  := not ("and" not)*          not := "not" not | cmp
    cmp :=  sum (("<"|"<="|">"|">="|"=="|"!=") sum)*
    sum :=  product (("+"|"-") product)*    product := unary (("*"|"/") unary)*
    unary := ("-"|"+") unary | power        power := atom ("**" unary)?
    atom := NUMBER | NAME | NAME "(" [argument ("," argument)*] ")" | "(" or ")"
    argument := NAME "=" or | or

A name may have dots (``results.estimates.q0.mean``). Length, nodes and depth are bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from verdiv.errors import Fault, InputRefused

__all__ = [
    "Binary",
    "Call",
    "Compare",
    "ExpressionRefused",
    "Logic",
    "Name",
    "Node",
    "Number",
    "Unary",
    "parse",
    "refuse",
]

MAX_LENGTH = 2000
"""Characters of an expression."""

MAX_NODES = 250
"""Nodes of its tree, so that walking it never meets the interpreter's recursion limit."""

MAX_DEPTH = 40
"""Nested parentheses, calls and signs."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?)(?![A-Za-z0-9_.])"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*)"
    r"|(?P<op>\*\*|<=|>=|==|!=|[-+*/()<>,=]))"
)
_COMPARISONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_WORDS = frozenset(("and", "or", "not"))


class ExpressionRefused(InputRefused):
    """An expression that cannot be read or worked out."""


def refuse(expression: str, expected: str, got: str, remedy: str) -> NoReturn:
    """Raise :class:`ExpressionRefused` with one fault."""
    raise ExpressionRefused("the expression cannot be used", [Fault(expression[:80], expected, got, remedy)])


@dataclass(frozen=True, slots=True)
class Number:
    """A literal."""

    value: float


@dataclass(frozen=True, slots=True)
class Name:
    """A parameter, a definition, a variable, or a dotted place in results or log."""

    text: str


@dataclass(frozen=True, slots=True)
class Unary:
    """A sign, or ``not``."""

    op: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic on two numbers."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Compare:
    """A chain of comparisons, ``a <= b < c``."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Logic:
    """``and`` or ``or`` over two or more conditions."""

    op: str
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of the fixed functions."""

    function: str
    positional: tuple[Node, ...]
    named: tuple[tuple[str, Node], ...]


Node: TypeAlias = Number | Name | Unary | Binary | Compare | Logic | Call
"""What an expression is made of."""


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        self.nodes = 0
        self.depth = 0
        if len(text) > MAX_LENGTH:
            refuse(text, f"at most {MAX_LENGTH} characters", str(len(text)), "split the claim")
        place = 0
        stripped = text.rstrip()
        while place < len(stripped):
            match = _TOKEN.match(stripped, place)
            if match is None:
                refuse(text, "numbers, names and operators", repr(stripped[place:][:20]), "see the grammar")
            kind = str(match.lastgroup)
            word = match.group(kind)
            self.tokens.append(("op" if word in _WORDS else kind, word))
            place = match.end()

    def peek(self) -> str:
        """Return the operator that comes next, or nothing."""
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "op":
            return self.tokens[self.at][1]
        return ""

    def take(self) -> tuple[str, str]:
        """Step over the next token."""
        if self.at >= len(self.tokens):
            refuse(self.text, "a value", "the end of the expression", "complete it")
        self.at += 1
        return self.tokens[self.at - 1]

    def need(self, op: str) -> None:
        """Step over an operator that must stand here."""
        if self.peek() != op:
            got = self.tokens[self.at][1] if self.at < len(self.tokens) else "the end"
            refuse(self.text, repr(op), repr(got), "balance the parentheses and separate arguments by commas")
        self.at += 1

    def made(self, node: Node) -> Node:
        """Count a node."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            refuse(self.text, f"at most {MAX_NODES} parts", "more", "split the claim")
        return node

    def down(self) -> None:
        """Go one level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            refuse(self.text, f"at most {MAX_DEPTH} levels", "a deeper expression", "split the claim")

    def either(self) -> Node:
        """Read ``or``."""
        self.down()
        items = [self.both()]
        while self.peek() == "or":
            self.at += 1
            items.append(self.both())
        self.depth -= 1
        return items[0] if len(items) == 1 else self.made(Logic("or", tuple(items)))

    def both(self) -> Node:
        """Read ``and``."""
        items = [self.negation()]
        while self.peek() == "and":
            self.at += 1
            items.append(self.negation())
        return items[0] if len(items) == 1 else self.made(Logic("and", tuple(items)))

    def negation(self) -> Node:
        """Read ``not``."""
        if self.peek() == "not":
            self.at += 1
            self.down()
            node = self.made(Unary("not", self.negation()))
            self.depth -= 1
            return node
        return self.comparison()

    def comparison(self) -> Node:
        """Read a chain of comparisons."""
        first = self.sum()
        rest: list[tuple[str, Node]] = []
        while self.peek() in _COMPARISONS:
            op = self.take()[1]
            rest.append((op, self.sum()))
        return self.made(Compare(first, tuple(rest))) if rest else first

    def sum(self) -> Node:
        """Read sums."""
        node = self.product()
        while self.peek() in ("+", "-"):
            op = self.take()[1]
            node = self.made(Binary(op, node, self.product()))
        return node

    def product(self) -> Node:
        """Read products."""
        node = self.unary()
        while self.peek() in ("*", "/"):
            op = self.take()[1]
            node = self.made(Binary(op, node, self.unary()))
        return node

    def unary(self) -> Node:
        """Read signs."""
        if self.peek() in ("+", "-"):
            op = self.take()[1]
            self.down()
            node = self.made(Unary(op, self.unary()))
            self.depth -= 1
            return node
        base = self.atom()
        if self.peek() == "**":
            self.at += 1
            self.down()
            base = self.made(Binary("**", base, self.unary()))
            self.depth -= 1
        return base

    def atom(self) -> Node:
        """Read a number, a name, a call or a parenthesis."""
        kind, word = self.take()
        if kind == "number":
            return self.made(Number(float(word)))
        if kind == "name":
            return self.call(word) if self.peek() == "(" else self.made(Name(word))
        if word != "(":
            refuse(self.text, "a value", repr(word), "correct the expression")
        node = self.either()
        self.need(")")
        return node

    def call(self, function: str) -> Node:
        """Read the arguments of a call."""
        self.need("(")
        positional: list[Node] = []
        named: list[tuple[str, Node]] = []
        while self.peek() != ")":
            if positional or named:
                self.need(",")
            follows = self.tokens[self.at + 1 : self.at + 2]
            if follows == [("op", "=")] and self.tokens[self.at][0] == "name":
                name = self.take()[1]
                self.need("=")
                if name in dict(named):
                    refuse(self.text, "each argument once", f"{name} twice", "give it once")
                named.append((name, self.either()))
            elif named:
                refuse(self.text, "named arguments last", "one without a name", "name it, or move it forward")
            else:
                positional.append(self.either())
        self.need(")")
        return self.made(Call(function, tuple(positional), tuple(named)))


def parse(text: str) -> Node:
    """Read an expression.

    Raises
    ------
    ExpressionRefused
        It is longer, deeper or of another form than the grammar allows.

    Examples
    --------
    >>> parse("2 * q0")
    Binary(op='*', left=Number(value=2.0), right=Name(text='q0'))
    """
    parser = _Parser(text)
    node = parser.either()
    if parser.at < len(parser.tokens):
        refuse(text, "one expression", f"{parser.tokens[parser.at][1]!r} after its end", "correct it")
    return node
