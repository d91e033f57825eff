"""Paths into nested records: where the records lie, and which value a column takes.

A *record path* says where the records of a document lie and binds what it passes on the way::

    results.{model}.{scenario}.runs[run].attempts[attempt]

``{model}`` goes through every key of an object and captures the key, ``*`` does so without a name; ``key[]``
and ``key[run]`` go through every element of an array, the latter remembering element and index.

A *reference* names one value, from the record or from what was bound::

    summary.score        a field of the record
    "pass@1"             a field whose name holds other characters
    errors[0].code       an element of an array, -1 being the last
    @model               a capture, a constant of the file, an element of a parallel array
    @run.runNumber       a field of an element passed on the way
    #run                 the 0-based index of that element
    @root.x.{sample}     from the whole document, a captured value used as the key
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["ABSENT", "Mismatch", "Reference", "Scope", "Step", "parse_record_path", "parse_reference", "walk"]

MAX_PATH = 512
"""Characters of a path."""

MAX_STEPS = 32
"""Steps of a path."""

_PLAIN_STOP = '.[]{}"'


class _Absent:
    """The value of a field that is not there at all, as opposed to null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""Stands for a field that is not there."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path."""

    kind: str
    """``key``, ``capture`` (every key, or the key captured before), ``any``, ``each`` or ``index``."""
    name: str = ""
    """Key, or name of the capture or of the element."""
    index: int = 0
    """Position in the array, for ``index``."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed reference to one value."""

    text: str
    root: str
    """Name the reference starts from; empty for the record itself."""
    is_index: bool
    """The reference asks for the index of an element."""
    steps: tuple[Step, ...]

    def resolve(self, scope: Scope) -> Any:
        """Return the value, or :data:`ABSENT` where there is none.

        Examples
        --------
        >>> scope = Scope(record={"errors": [{"code": "x"}]}, names={"model": "m"}, indices={"run": 2})
        >>> [parse_reference(text).resolve(scope) for text in ("errors[-1].code", "@model", "#run", "no")]
        ['x', 'm', 2, ABSENT]
        """
        if self.is_index:
            return scope.indices.get(self.root, ABSENT)
        value: Any = scope.names.get(self.root, ABSENT) if self.root else scope.record
        for step in self.steps:
            if step.kind == "index":
                if not isinstance(value, list) or not -len(value) <= step.index < len(value):
                    return ABSENT
                value = value[step.index]
                continue
            if not isinstance(value, dict):
                return ABSENT
            key = step.name if step.kind == "key" else str(scope.names.get(step.name, ""))
            value = value.get(key, ABSENT)
        return value


@dataclass(slots=True)
class Scope:
    """What the columns of one row can refer to."""

    record: Any
    """The record."""
    names: dict[str, Any] = field(default_factory=dict)
    """Captures, constants, passed elements, looked-up rows."""
    indices: dict[str, int] = field(default_factory=dict)
    """0-based indices of the passed elements."""
    place: str = ""
    """Where the record lies in its document."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The document has another shape than the record path says."""

    place: str
    expected: str
    got: str


def parse_reference(text: str) -> Reference:
    """Parse a reference.

    Raises
    ------
    ValueError
        The text is no reference.
    """
    if not text or len(text) > MAX_PATH:
        raise ValueError(f"a reference of 1 to {MAX_PATH} characters is required")
    sigil = text[0] if text[0] in "@#" else ""
    if not sigil:
        steps = _parse_steps(text)
        root = ""
    else:
        end = min((i for i in (text.find(ch) for ch in ".[") if i >= 0), default=len(text))
        root = text[1:end]
        if not root.isidentifier():
            raise ValueError(f"{sigil!r} is followed by a name")
        rest = text[end:].removeprefix(".")
        steps = _parse_steps(rest) if rest else ()
    if sigil == "#" and steps:
        raise ValueError("an index (#name) has no fields")
    if any(step.kind in ("any", "each") for step in steps):
        raise ValueError("a reference names one value: no '*', no '[]'")
    return Reference(text, root, sigil == "#", steps)


def parse_record_path(text: str) -> tuple[Step, ...]:
    """Parse a record path; the empty path is the whole document (or each line, or each CSV row).

    Raises
    ------
    ValueError
        The text is no path, or binds a name twice.
    """
    if len(text) > MAX_PATH:
        raise ValueError(f"a record path of at most {MAX_PATH} characters is required")
    steps = _parse_steps(text) if text else ()
    bound = [step.name for step in steps if step.kind in ("capture", "each") and step.name]
    if len(set(bound)) != len(bound):
        raise ValueError("a record path binds each name once")
    return steps


def _parse_steps(text: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    position = 0
    while position < len(text):
        if text[position] == "[":
            step, position = _bracket(text, position)
        else:
            if steps and text[position - 1] != ".":
                raise ValueError("'.' separates the steps of a path")
            step, position = _name(text, position)
        steps.append(step)
        if position < len(text) and text[position] == ".":
            position += 1
            if position == len(text) or text[position] in ".[":
                raise ValueError("'.' is followed by a name")
    if len(steps) > MAX_STEPS:
        raise ValueError(f"a path has at most {MAX_STEPS} steps")
    return tuple(steps)


def _bracket(text: str, position: int) -> tuple[Step, int]:
    end = text.find("]", position)
    if end < 0:
        raise ValueError("'[' without ']' in a path")
    inside = text[position + 1 : end]
    if inside == "" or inside.isidentifier():
        return Step("each", inside), end + 1
    digits = inside.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
        raise ValueError("brackets hold nothing, a name or an integer")
    return Step("index", index=int(inside)), end + 1


def _name(text: str, position: int) -> tuple[Step, int]:
    first = text[position]
    if first == '"':
        end = text.find('"', position + 1)
        if end < 0:
            raise ValueError("a quoted name has no closing quote")
        return Step("key", text[position + 1 : end]), end + 1
    if first == "{":
        end = text.find("}", position)
        name = text[position + 1 : end] if end > 0 else ""
        if not name.isidentifier():
            raise ValueError("braces hold the name of a capture")
        return Step("capture", name), end + 1
    end = min((i for i in (text.find(ch, position) for ch in _PLAIN_STOP) if i >= 0), default=len(text))
    name = text[position:end]
    if not name:
        raise ValueError(f"{first!r} begins no step of a path")
    return (Step("any") if name == "*" else Step("key", name)), end


def walk(document: Any, steps: tuple[Step, ...]) -> Iterator[Scope | Mismatch]:
    """Yield a scope for each record that a record path reaches, in the document's order.

    A field that is absent or null ends its branch in silence: alternative paths rely on it. Anything else of
    the wrong shape is yielded as a :class:`Mismatch`.

    Examples
    --------
    >>> path = parse_record_path("runs[run].attempts[]")
    >>> [s.record for s in walk({"runs": [{"attempts": [1, 2]}, {"attempts": None}]}, path)]
    [1, 2]
    """
    root = Scope(record=document, names={"root": document})
    yield from _walk(root, steps, 0)


def _walk(scope: Scope, steps: tuple[Step, ...], depth: int) -> Iterator[Scope | Mismatch]:
    if depth == len(steps):
        yield scope
        return
    step, value = steps[depth], scope.record
    if value is None:
        return
    wants_list = step.kind in ("each", "index")
    if not isinstance(value, list if wants_list else dict):
        yield Mismatch(scope.place or "the document", "an array" if wants_list else "an object", _kind(value))
        return
    for child in _children(scope, step, value):
        yield from _walk(child, steps, depth + 1)


def _children(scope: Scope, step: Step, value: Any) -> Iterator[Scope]:
    match step.kind:
        case "key":
            if step.name in value:
                yield Scope(value[step.name], scope.names, scope.indices, _join(scope.place, step.name))
        case "index":
            if -len(value) <= step.index < len(value):
                yield Scope(value[step.index], scope.names, scope.indices, f"{scope.place}[{step.index}]")
        case "each":
            for number, element in enumerate(value):
                names = {**scope.names, step.name: element} if step.name else scope.names
                indices = {**scope.indices, step.name: number} if step.name else scope.indices
                yield Scope(element, names, indices, f"{scope.place}[{number}]")
        case _:
            for key, element in value.items():
                names = {**scope.names, step.name: key} if step.name else scope.names
                yield Scope(element, names, scope.indices, _join(scope.place, str(key)))


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _kind(value: Any) -> str:
    return {"dict": "an object", "list": "an array", "str": "a string", "bool": "a boolean"}.get(
        type(value).__name__, "a number"
    )
