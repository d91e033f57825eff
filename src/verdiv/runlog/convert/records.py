"""Records of a file, the draws within a record, and the rows of a second table that belong to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from verdiv.runlog.convert.paths import (
    ABSENT,
    Mismatch,
    Scope,
    Step,
    parse_record_path,
    parse_reference,
    walk,
)
from verdiv.runlog.convert.predicates import is_missing, lookup_name
from verdiv.runlog.convert.readers import Bad, Document
from verdiv.runlog.convert.schema import Expansion, Lookup
from verdiv.runlog.convert.values import RowRefused, canonical, compile_value, to_int

__all__ = ["Expander", "LookupTable", "iterate_records"]

MAX_DRAWS_OF_RECORD = 100_000
"""Draws that one record may hold."""

_ELEMENTS = parse_record_path("[]")


def iterate_records(
    documents: Iterable[Document | Bad], paths: Sequence[str] | None
) -> Iterator[tuple[int, Scope | Mismatch | Bad]]:
    """Yield the records of a file with their 1-based numbers.

    The number is that of the line or row; in a whole document, records are counted.

    Parameters
    ----------
    documents
        What the reader gave.
    paths
        Record paths; None means the lines or rows themselves, the elements of a document that is an array,
        or the document.
    """
    compiled = None if paths is None else [parse_record_path(path) for path in paths]
    for document in documents:
        if isinstance(document, Bad):
            yield document.row, document
            continue
        default: tuple[Step, ...] = _ELEMENTS if document.whole and isinstance(document.value, list) else ()
        count = 0
        for steps in [default] if compiled is None else compiled:
            for found in walk(document.value, steps):
                count += 1
                yield (count if document.whole else document.row), found


class Expander:
    """Turns one record into the draws it holds.

    Parameters
    ----------
    expansion
        How a record holds several draws; None where it is one draw.
    """

    def __init__(self, expansion: Expansion | None) -> None:
        self._rule = expansion
        self._arrays: dict[str, Callable[[Scope], list[Any] | None]] = {}
        if expansion is not None and expansion.arrays is not None:
            for name, source in expansion.arrays.items():
                self._arrays[name] = _array(source)
        self._count = None if expansion is None or expansion.count is None else compile_value(expansion.count)

    def expand(self, scope: Scope) -> tuple[list[Scope], str]:
        """Return the draws of a record, and where its arrays differ in length, in which way.

        Raises
        ------
        RowRefused
            An array is no array, or the number of draws is none.
        """
        if self._rule is None:
            return [scope], ""
        if self._count is not None:
            number = to_int(self._count(scope))
            if number is None or not 0 <= number <= MAX_DRAWS_OF_RECORD:
                raise RowRefused("a number of draws was expected", canonical(number))
            return [self._draw(scope, {}, turn, number) for turn in range(number)], ""
        arrays = {name: get(scope) for name, get in self._arrays.items()}
        lengths = {name: len(array) for name, array in arrays.items() if array is not None}
        number = self._length(lengths)
        ragged = "" if len(set(lengths.values())) <= 1 else _spelled(lengths)
        stop = self._rule.until_missing
        if stop is not None:
            decider = arrays[stop] or []
            number = next((i for i, v in enumerate(decider[:number]) if is_missing(v)), number)
        return [self._draw(scope, arrays, turn, number) for turn in range(number)], ragged

    def _length(self, lengths: dict[str, int]) -> int:
        assert self._rule is not None, "only an expansion has a length"
        if not lengths:
            return 0
        match self._rule.length:
            case "shortest":
                number = min(lengths.values())
            case "longest":
                number = max(lengths.values())
            case name:
                number = lengths.get(name, 0)
        if number > MAX_DRAWS_OF_RECORD:
            raise RowRefused(f"more than {MAX_DRAWS_OF_RECORD} draws in one record", str(number))
        return number

    def _draw(self, scope: Scope, arrays: dict[str, list[Any] | None], turn: int, number: int) -> Scope:
        assert self._rule is not None, "only an expansion makes draws"
        names = {**scope.names, "last": turn == number - 1}
        for name, array in arrays.items():
            if array is not None and turn < len(array):
                names[name] = array[turn]
        indices = {**scope.indices, self._rule.index: turn}
        return Scope(scope.record, names, indices, f"{scope.place}[{turn}]")


def _array(source: str | Sequence[str]) -> Callable[[Scope], list[Any] | None]:
    if not isinstance(source, str):
        columns = [parse_reference(text) for text in source]
        return lambda scope: [
            None if (value := column.resolve(scope)) is ABSENT else value for column in columns
        ]
    reference = parse_reference(source)

    def array(scope: Scope) -> list[Any] | None:
        value = reference.resolve(scope)
        if value is None or value is ABSENT:
            return None
        if not isinstance(value, list):
            raise RowRefused(f"{source}: an array was expected", canonical(value)[:60])
        return value

    return array


def _spelled(lengths: dict[str, int]) -> str:
    return "arrays of different lengths: " + ", ".join(f"{name} {size}" for name, size in lengths.items())


class LookupTable:
    """A second table, read whole, that records are looked up in."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.unusable: Counter[str] = Counter()
        """Rows that cannot be looked up, by reason."""
        self._scope = [parse_reference(text) for text in lookup.scope]
        self._key = [compile_value(part) for part in lookup.key]
        self._asked_key = [compile_value(part) for part in lookup.for_key]
        self._rows: dict[tuple[str, ...], dict[tuple[str, ...], Any]] = {}
        self._asked: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()

    @property
    def orphans(self) -> int:
        """Rows that no record has asked for."""
        return sum(len(rows) for rows in self._rows.values()) - len(self._asked)

    def add_file(self, scopes: Iterable[tuple[int, Scope | Mismatch | Bad]], names: dict[str, Any]) -> int:
        """Take in one file; return the number of its rows."""
        here = tuple(canonical(ref.resolve(Scope(None, names))) for ref in self._scope)
        rows = self._rows.setdefault(here, {})
        count = 0
        for position, (_, found) in enumerate(scopes):
            if position < self.lookup.skip:
                continue
            count += 1
            if not isinstance(found, Scope):
                self.unusable["unreadable"] += 1
                continue
            scope = Scope(found.record, {**names, **found.names}, found.indices, found.place)
            try:
                key = tuple(canonical(part(scope)) for part in self._key)
            except RowRefused as error:
                self.unusable[error.reason] += 1
                continue
            if key in rows:
                self.unusable["a key that stands twice"] += 1
            else:
                rows[key] = found.record
        return count

    def bind(self, scope: Scope) -> None:
        """Bind the row that belongs to a record, and whether there is one, in the record's scope."""
        here = tuple(canonical(ref.resolve(scope)) for ref in self._scope)
        rows = self._rows.get(here)
        found: bool | None = None
        if rows is not None:
            key = tuple(canonical(part(scope)) for part in self._asked_key)
            found = key in rows
            if found:
                scope.names[self.lookup.name] = rows[key]
                self._asked.add((here, key))
        scope.names[lookup_name(self.lookup.name)] = found
