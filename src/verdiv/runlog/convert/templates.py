"""File names as templates: ``env_results_trial_{trial:int}.json`` instead of a regular expression.

A mapping file may come from anywhere, so nothing in it is handed to a regular expression engine. A template
is matched by trying each (piece, position) pair at most once, which bounds the work by pieces × name².
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Template", "parse_template"]

MAX_TEMPLATE = 512
"""Characters of a template."""

MAX_PIECES = 16
"""Pieces (literals, captures, wildcards) of one component of a template."""

MAX_NAME = 255
"""Characters of a file or folder name that is looked at; longer ones match nothing."""

MAX_DIGITS = 18
"""Digits of a number captured from a name."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A literal text, a capture, or a wildcard."""

    literal: str | None = None
    name: str | None = None
    number: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template for the last components of a path."""

    text: str
    """The template as written."""
    components: tuple[tuple[_Piece, ...], ...]
    """One tuple of pieces for each component, first to last."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names the template captures, in order."""
        return tuple(piece.name for part in self.components for piece in part if piece.name is not None)

    def match(self, path: Sequence[str]) -> Mapping[str, str | int] | None:
        """Match the last components of a path.

        Parameters
        ----------
        path
            Components of the path, outermost first.

        Returns
        -------
        Mapping or None
            Captured values (numbers as integers, without leading zeros), or None where it does not match.

        Examples
        --------
        >>> parse_template("{arm}/trial_{trial:int}.json").match(["runs", "base", "trial_10.json"])
        {'arm': 'base', 'trial': 10}
        >>> parse_template("trial_{trial:int}.json").match(["trial_ten.json"]) is None
        True
        """
        if len(path) < len(self.components):
            return None
        found: dict[str, str | int] = {}
        for pieces, component in zip(self.components, path[len(path) - len(self.components) :], strict=True):
            captured = _match_component(pieces, component)
            if captured is None:
                return None
            found.update(captured)
        return found


def parse_template(text: str) -> Template:
    """Compile a template.

    ``{name}`` captures at least one character of one component, ``{name:int}`` a run of digits (ordered as a
    number), ``*`` matches anything within one component; ``/`` separates components. The template is matched
    against the *last* components of a path, so that it holds for a folder and for a file named alone.

    Raises
    ------
    ValueError
        The template is empty, too long, unbalanced, climbs with ``..``, or captures a name twice.
    """
    if not text or len(text) > MAX_TEMPLATE:
        raise ValueError(f"a template of 1 to {MAX_TEMPLATE} characters is required")
    parts = text.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in text:
        raise ValueError("a template names components between single '/', never '', '.', '..' or '\\'")
    template = Template(text, tuple(_parse_component(part) for part in parts))
    if len(set(template.names)) != len(template.names):
        raise ValueError("a template captures each name once")
    return template


def _parse_component(text: str) -> tuple[_Piece, ...]:
    pieces: list[_Piece] = []
    position = 0
    while position < len(text):
        if text[position] == "*":
            piece, position = _Piece(), position + 1
        elif text[position] == "{":
            end = text.find("}", position)
            if end < 0:
                raise ValueError("'{' without '}' in a template")
            piece, position = _capture(text[position + 1 : end]), end + 1
        elif text[position] == "}":
            raise ValueError("'}' without '{' in a template")
        else:
            end = min((i for i in (text.find(ch, position) for ch in "*{}") if i >= 0), default=len(text))
            piece, position = _Piece(literal=text[position:end]), end
        pieces.append(piece)
    if len(pieces) > MAX_PIECES:
        raise ValueError(f"at most {MAX_PIECES} pieces in one component of a template")
    return tuple(pieces)


def _capture(text: str) -> _Piece:
    name, _, kind = text.partition(":")
    if not name.isidentifier() or kind not in ("", "int"):
        raise ValueError("a capture is written {name} or {name:int}")
    return _Piece(name=name, number=kind == "int")


def _match_component(pieces: Sequence[_Piece], text: str) -> dict[str, str | int] | None:
    if len(text) > MAX_NAME:
        return None
    dead: set[tuple[int, int]] = set()

    def walk(piece_index: int, start: int) -> dict[str, str | int] | None:
        if piece_index == len(pieces):
            return {} if start == len(text) else None
        if (piece_index, start) in dead:
            return None
        piece = pieces[piece_index]
        for end in _ends(piece, text, start):
            rest = walk(piece_index + 1, end)
            if rest is not None:
                if piece.name is None:
                    return rest
                value = text[start:end]
                return {piece.name: int(value) if piece.number else value, **rest}
        dead.add((piece_index, start))
        return None

    return walk(0, 0)


def _ends(piece: _Piece, text: str, start: int) -> range:
    """Positions at which a piece that begins at ``start`` may end, the shortest match first."""
    if piece.literal is not None:
        end = start + len(piece.literal)
        return range(end, end + 1) if text.startswith(piece.literal, start) else range(0)
    if piece.number:
        end = start
        while end < len(text) and text[end] in "0123456789" and end - start < MAX_DIGITS:
            end += 1
        return range(end, start, -1)
    return range(start if piece.name is None else start + 1, len(text) + 1)
