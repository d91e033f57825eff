"""Where in a TOML text a field stands, so that a fault can name its line.

The text has been accepted by the TOML parser before; a field that cannot be found gets the line of the
nearest table around it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ["find_line", "key_lines"]

Path = tuple[str | int, ...]

_PART = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*""")
_MULTI = re.compile(r'"""|\'\'\'')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'')


def _dotted(text: str, start: int) -> tuple[list[str], int]:
    """Read a dotted key from ``start``; return its parts and where it ends."""
    parts: list[str] = []
    while True:
        match = _PART.match(text, start)
        if match is None:
            return parts, start
        parts.append(next(group for group in match.groups() if group is not None))
        start = match.end()
        if start >= len(text) or text[start] != ".":
            return parts, start
        start += 1


class _Scanner:
    """Walks a text line by line and notes the line of each key and table."""

    def __init__(self) -> None:
        self.found: dict[Path, int] = {}
        self.table: Path = ()
        self.counts: dict[Path, int] = {}
        self.closing: str | None = None
        self.depth = 0

    def _resolved(self, parts: Sequence[str]) -> Path:
        """Insert the index of the current entry of each array of tables on the way."""
        path: Path = ()
        for part in parts:
            path = (*path, part)
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
        return path

    def _header(self, line: str, number: int) -> None:
        double = line.startswith("[[")
        parts, _ = _dotted(line, 2 if double else 1)
        if double:
            plain = (*self._resolved(parts[:-1]), parts[-1]) if parts else ()
            self.counts[plain] = self.counts.get(plain, 0) + 1
            self.found.setdefault(plain, number)
        self.table = self._resolved(parts)
        self._note(self.table, number)

    def _note(self, path: Path, number: int) -> None:
        for length in range(1, len(path) + 1):
            self.found.setdefault(path[:length], number)

    def _rest(self, text: str) -> None:
        """Follow brackets and multi-line strings of a value to see whether it ends on this line."""
        while text:
            if self.closing is not None:
                end = text.find(self.closing)
                if end < 0:
                    return
                text, self.closing = text[end + 3 :], None
                continue
            multi = _MULTI.match(text)
            if multi is not None:
                self.closing, text = multi.group(), text[3:]
                continue
            string = _STRING.match(text)
            if string is not None:
                text = text[string.end() :]
                continue
            if text[0] == "#":
                return
            self.depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(text[0], 0)
            text = text[1:]

    def line(self, raw: str, number: int) -> None:
        """Take in one line."""
        if self.closing is not None or self.depth > 0:
            self._rest(raw)
            return
        text = raw.strip()
        if not text or text.startswith("#"):
            return
        if text.startswith("["):
            self._header(text, number)
            return
        parts, end = _dotted(text, 0)
        if not parts or end >= len(text) or text[end] != "=":
            return
        path = self.table
        for part in parts:
            path = (*path, part)
            self.found.setdefault(path, number)
        self._rest(text[end + 1 :])


def key_lines(text: str) -> dict[Path, int]:
    r"""Return the 1-based line of every key and table header of a TOML text.

    Examples
    --------
    >>> key_lines("a = 1\n[b.c]\nd = 2\n")[("b", "c", "d")]
    3
    """
    scanner = _Scanner()
    for number, line in enumerate(text.split("\n"), start=1):
        scanner.line(line.rstrip("\r"), number)
    return scanner.found


def find_line(lines: Mapping[Path, int], path: Path) -> int | None:
    """Return the line of a field, or of the nearest table around it, or None for the whole file."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None
