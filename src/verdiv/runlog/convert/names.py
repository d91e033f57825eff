"""Names that a mapping binds and names that it refers to: a slip in one is found before any file is read."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingType

from pydantic import BaseModel

from verdiv.runlog.convert.columns import Predicate, Value
from verdiv.runlog.convert.paths import parse_record_path, parse_reference
from verdiv.runlog.convert.schema import Exclusion, Expansion, FileRule, Lookup, Mapping
from verdiv.runlog.convert.templates import parse_template

__all__ = ["unbound_names"]


def unbound_names(mapping: Mapping) -> tuple[tuple[str, str], ...]:
    """Return where the mapping refers to a name that nothing binds, as (place, reference) pairs."""
    captures, elements = {"root", "file"}, set[str]()
    expand = mapping.records.expand
    if expand is not None:
        captures |= {"last", *(expand.arrays or ())}
        elements.add(expand.index)
    paths = list(mapping.records.paths or ())
    tables: list[FileRule | Lookup] = [*mapping.files, *mapping.lookups]
    for rule in tables:
        captures.update(name for text in rule.match for name in parse_template(text).names)
        if isinstance(rule, FileRule):
            captures |= set(rule.constants)
            paths += rule.records or ()
        else:
            captures.add(rule.name)
            paths += [rule.records] if rule.records is not None else []
    for path in paths:
        for step in parse_record_path(path):
            if step.kind == "each" and step.name:
                elements.add(step.name)
            if step.kind in ("each", "capture"):
                captures.add(step.name)
    return tuple(
        (place, text) for place, text in _references(mapping, "") if _unbound(text, captures, elements)
    )


def _unbound(text: str, captures: set[str], elements: set[str]) -> bool:
    reference = parse_reference(text)
    if reference.is_index:
        return reference.root not in elements
    used = {step.name for step in reference.steps if step.kind == "capture"}
    return not used <= captures or (reference.root != "" and reference.root not in captures)


def _references(table: BaseModel, place: str) -> Iterator[tuple[str, str]]:
    for text in _own(table):
        yield place.strip("."), text
    for name, field in type(table).model_fields.items():
        held = getattr(table, name)
        here = f"{place}.{field.alias or name}"
        if isinstance(held, BaseModel):
            yield from _references(held, here)
        elif isinstance(held, tuple):
            for number, item in enumerate(held):
                if isinstance(item, BaseModel):
                    yield from _references(item, f"{here}.{number}")


def _own(table: BaseModel) -> Iterator[str]:
    """References that a table itself holds."""
    match table:
        case Value():
            yield from (text for text in (table.from_, table.length_of) if text is not None)
            for texts in (table.first_of, table.rank, table.within):
                yield from texts or ()
        case Predicate():
            yield from [] if table.field is None else [table.field]
        case Expansion():
            arrays: MappingType[str, str | tuple[str, ...]] = table.arrays or {}
            for source in arrays.values():
                yield from [source] if isinstance(source, str) else source
        case Lookup():
            yield from table.scope
        case Exclusion():
            yield from table.repeat_of or ()
