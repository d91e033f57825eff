"""The conversion itself: a mapping and some files in, a header, draws and a ledger out."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from verdiv.errors import Fault, InputRefused, UsageRefused
from verdiv.runlog.convert.chains import Linker, place_ranks
from verdiv.runlog.convert.ledger import Books, Example, FileEntry, Ledger
from verdiv.runlog.convert.mappings import load_mapping, parse_mapping
from verdiv.runlog.convert.paths import Mismatch, Scope
from verdiv.runlog.convert.readers import Bad, file_digest, read_documents
from verdiv.runlog.convert.records import Expander, LookupTable, iterate_records
from verdiv.runlog.convert.rows import Excluder, Row, RowMaker
from verdiv.runlog.convert.schema import FileRule, Lookup, Mapping
from verdiv.runlog.convert.sources import (
    STANDARD_INPUT,
    SourceFile,
    collect,
    standard_input,
    unpacked_name,
)
from verdiv.runlog.convert.templates import Template, parse_template
from verdiv.runlog.convert.values import RowRefused
from verdiv.runlog.records import RUNLOG_SCHEMA, Draw, Header, ModelCard, Serving

__all__ = ["Conversion", "Progress", "convert"]

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with the stage, the number of files done, and the number of files."""

MAX_NOTE = 4096
"""Characters of the header's note."""

MAX_LEGEND = 24
"""Positions that the note spells out."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A foreign log as a run log."""

    header: Header
    draws: Sequence[Draw]
    """Chain by chain, each draw after the one it answers or repeats."""
    ledger: Ledger
    mapping: Mapping


@dataclass(frozen=True, slots=True)
class _Plan:
    """One file and what is read from it."""

    source: SourceFile
    rule: FileRule | Lookup
    template: str
    captures: MappingType[str, str | int]


@dataclass(slots=True)
class _Run:
    """State of one conversion."""

    mapping: Mapping
    maker: RowMaker
    expander: Expander
    excluder: Excluder
    lookups: list[LookupTable]
    books: Books = field(default_factory=Books)
    rows: list[Row] = field(default_factory=list)


def convert(
    mapping: Mapping | MappingType[str, Any] | str | Path,
    sources: Sequence[Path | str],
    *,
    stdin_name: str | None = None,
    progress: Progress | None = None,
) -> Conversion:
    r"""Turn files of any shape into the records of a run log, as a mapping says.

    Parameters
    ----------
    mapping
        A mapping, a table that holds one, the name of a shipped one, or the path of a file.
    sources
        Files and folders; folders are searched; ``-`` is standard input. Files that no template matches are
        listed in the ledger.
    stdin_name
        Path under which templates see standard input; if absent, one that fits the first template that captures
        nothing.
    progress
        Called before each file and after the last one.

    Returns
    -------
    Conversion
        Header, draws and ledger. Rows that cannot be used are counted there with their reasons and are no
        error; the same inputs give the same records.

    Raises
    ------
    InputRefused
        The mapping or a file as a whole cannot be read, no file matches, the column of the outcome is in no
        row, or no draw is left.

    Examples
    --------
    >>> import tempfile
    >>> table = {
    ...     "schema": 1, "name": "example", "gate": "none", "header": {"harness": "example"},
    ...     "files": [{"match": "*.csv"}], "draw": {"task_id": "task", "correct": "reward"},
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "log.csv").write_text("task,reward\na,1\nb,0.67\nc,\n", encoding="utf-8")
    ...     conversion = convert(table, [Path(folder)])
    >>> [draw.correct for draw in conversion.draws], conversion.ledger.closes
    ([True, False, None], True)
    """
    table = _as_mapping(mapping)
    with contextlib.ExitStack() as opened:
        files = [Path(source) for source in sources if str(source) != STANDARD_INPUT]
        found = list(collect(files))
        if len(files) < len(sources):
            name = _stream_name(table) if stdin_name is None else stdin_name
            found.append(opened.enter_context(standard_input(name)))
        return _converted(table, found, progress)


def _stream_name(mapping: Mapping) -> str:
    """Return a name for standard input that the mapping reads."""
    texts = [text for rule in mapping.files for text in rule.match]
    plain = next((text for text in texts if not parse_template(text).names), None)
    if plain is None:
        expected = "a name that one of these matches: " + ", ".join(texts)
        fault = Fault(STANDARD_INPUT, expected, "none", "give it with --stdin-name")
        raise UsageRefused("Standard input needs a name.", [fault])
    return plain.replace("*", "stdin")


def _converted(table: Mapping, found: Sequence[SourceFile], progress: Progress | None) -> Conversion:
    plans, unmatched, idle = _plan(table, found)
    run = _Run(
        table,
        RowMaker(table),
        Expander(table.records.expand),
        Excluder(table.exclude),
        [LookupTable(lookup) for lookup in table.lookups],
    )
    plans = sorted(plans, key=lambda plan: not isinstance(plan.rule, Lookup))
    digests = _digests(plans)
    counts: list[int] = []
    faults: list[Fault] = []
    for number, plan in enumerate(plans):
        if progress is not None:
            progress("reading files", number, len(plans))
        try:
            counts.append(_read(run, plan, number))
        except InputRefused as error:
            faults += error.faults
            counts.append(0)
    if progress is not None:
        progress("reading files", len(plans), len(plans))
    if faults:
        raise InputRefused("Some sources cannot be read.", faults)
    _check_columns(run, plans)
    legend = place_ranks(run.rows, table)
    linker = Linker(table, [plan.source.label for plan in plans], run.books)
    draws = linker.link(run.rows)
    _close_lookups(run)
    run.books.nonbinary = run.maker.nonbinary
    if draws and run.books.missing == len(draws) and not table.draw.correct.unscored:
        run.books.notes.append("no draw has an outcome")
    files = tuple(
        FileEntry(plan.source.label, plan.template, digest, count, linker.draws_of_file[number])
        for number, (plan, digest, count) in enumerate(zip(plans, digests, counts, strict=True))
    )
    ledger = run.books.close(files, unmatched, idle)
    if not draws:
        raise InputRefused("No draw is left of the sources.", _no_draws(ledger))
    return Conversion(_header(table, ledger, legend), draws, ledger, table)


def _as_mapping(mapping: Mapping | MappingType[str, Any] | str | Path) -> Mapping:
    if isinstance(mapping, Mapping):
        return mapping
    return load_mapping(mapping) if isinstance(mapping, str | Path) else parse_mapping(mapping)


def _plan(
    mapping: Mapping, found: Sequence[SourceFile]
) -> tuple[list[_Plan], tuple[str, ...], tuple[str, ...]]:
    """Give each file the first rule whose template matches it."""
    tables: list[FileRule | Lookup] = [*mapping.files, *mapping.lookups]
    rules = [(rule, parse_template(text)) for rule in tables for text in rule.match]
    plans: list[_Plan] = []
    unmatched: list[str] = []
    for source in found:
        plan = None if source.skipped else _first_match(rules, source)
        if plan is None:
            unmatched.append(f"{source.label} ({source.skipped})" if source.skipped else source.label)
        else:
            plans.append(plan)
    used = {id(plan.rule) for plan in plans}
    idle = tuple(text for rule in tables if id(rule) not in used for text in rule.match)
    if not any(isinstance(plan.rule, FileRule) for plan in plans):
        expected = "a file like " + " or ".join(text for rule in mapping.files for text in rule.match)
        got = f"{len(found)} files, none of them" if found else "no file"
        faults = [Fault("sources", expected, got, "name the folder or file the mapping is for")]
        expected = "a name that a template matches"
        faults += [Fault(label, expected, "another name", "check the name") for label in unmatched]
        raise InputRefused(f"No source fits the mapping {mapping.name!r}.", faults)
    return plans, tuple(unmatched), idle


def _first_match(rules: Sequence[tuple[FileRule | Lookup, Template]], source: SourceFile) -> _Plan | None:
    for rule, template in rules:
        captures = template.match(source.components)
        if captures is not None:
            return _Plan(source, rule, template.text, captures)
    return None


def _digests(plans: Sequence[_Plan]) -> list[str]:
    faults: list[Fault] = []
    digests: list[str] = []
    for plan in plans:
        try:
            digests.append(file_digest(plan.source.path))
        except OSError as error:
            got = error.strerror or str(error)
            faults.append(Fault(plan.source.label, "a readable file", got, "check its permissions"))
    if faults:
        raise InputRefused("Some sources cannot be read.", faults)
    return digests


def _read(run: _Run, plan: _Plan, number: int) -> int:
    """Read one file into rows or into its lookup; return how many records it held."""
    source, rule = plan.source, plan.rule
    stem = unpacked_name(source.name).rpartition(".")
    folder = source.components[-2] if len(source.components) > 1 else ""
    names: dict[str, Any] = dict(plan.captures)
    names["file"] = {
        "name": source.name,
        "stem": stem[0] or stem[2],
        "folder": folder,
        "path": source.label,
    }
    documents = read_documents(source, rule.format)
    if isinstance(rule, Lookup):
        table = next(table for table in run.lookups if table.lookup is rule)
        paths = None if rule.records is None else (rule.records,)
        return table.add_file(iterate_records(documents, paths), names)
    names |= rule.constants
    before = run.books.records.read
    for row_number, found in iterate_records(documents, rule.records or run.mapping.records.paths):
        _take(run, found, names, number, source.label, row_number)
    return run.books.records.read - before


def _take(
    run: _Run, found: Scope | Mismatch | Bad, names: dict[str, Any], file: int, label: str, number: int
) -> None:
    """Enter one record into the books and its draws among the rows."""
    book = run.books.records
    book.read += 1
    try:
        if isinstance(found, Bad):
            raise RowRefused(found.reason, found.got)
        if isinstance(found, Mismatch):
            raise RowRefused(f"{found.expected} where the record path leads", f"{found.got} at {found.place}")
        found.names = {**names, **found.names}
        for lookup in run.lookups:
            lookup.bind(found)
        scopes, ragged = run.expander.expand(found)
    except RowRefused as error:
        place = found.place if isinstance(found, Scope) else ""
        run.books.reject(book, error.reason, Example(label, number, place, _worded(error)))
        return
    if ragged:
        run.books.note_ragged(Example(label, number, found.place, ragged))
    if not scopes:
        book.excluded["no draw in the record"] += 1
        return
    book.kept += 1
    for scope in scopes:
        _take_draw(run, scope, file, label, number)


def _take_draw(run: _Run, scope: Scope, file: int, label: str, number: int) -> None:
    book = run.books.draws
    book.read += 1
    rule = run.excluder.rule(scope)
    if rule is not None:
        book.excluded[rule] += 1
        return
    try:
        run.rows.append(run.maker.make(scope, file=file, number=number))
    except RowRefused as error:
        run.books.reject(book, error.reason, Example(label, number, scope.place, _worded(error)))


def _worded(error: RowRefused) -> str:
    return f"{error.reason}, got {error.got}" if error.got else error.reason


def _check_columns(run: _Run, plans: Sequence[_Plan]) -> None:
    """A reference that no row could follow is a slip of the mapping, not a missing outcome."""
    if not run.rows:
        return
    for name, reference in run.maker.never_found():
        if name == "correct" and not run.mapping.draw.correct.unscored:
            label = next(plan.source.label for plan in plans if isinstance(plan.rule, FileRule))
            fault = Fault(label, f"the outcome as {reference!r}", "no row that has it", "correct the mapping")
            raise InputRefused("The outcome is in no row.", [fault])
        if name != "correct":
            run.books.notes.append(f"draw.{name}: no row has {reference!r}")


def _close_lookups(run: _Run) -> None:
    for table in run.lookups:
        name = table.lookup.name
        if table.orphans:
            run.books.orphans[name] = table.orphans
        for reason, count in table.unusable.items():
            run.books.notes.append(f"lookup {name}: {count} rows cannot be looked up: {reason}")


def _no_draws(ledger: Ledger) -> Iterator[Fault]:
    for book in (ledger.records, ledger.draws):
        for text, count in (*book.excluded.items(), *book.rejected.items()):
            yield Fault(
                "sources", "draws", f"{count} left out: {text}", "check the mapping against the files"
            )
    if ledger.records.read == 0:
        yield Fault("sources", "records", "files that hold none", "check the record paths of the mapping")


def _header(mapping: Mapping, ledger: Ledger, legend: dict[str, list[tuple[str, ...]]]) -> Header:
    constants = mapping.header
    inputs = hashlib.sha256()
    for entry in sorted(ledger.files, key=lambda entry: (entry.sha256, entry.path)):
        inputs.update(f"{entry.sha256}\n".encode())
    notes = [f"Converted by the mapping {mapping.name}."]
    notes += [constants.note] if constants.note else []
    for name, combinations in legend.items():
        listed = "; ".join(f"{i} = {' '.join(c)}" for i, c in enumerate(combinations[:MAX_LEGEND]))
        more = " …" if len(combinations) > MAX_LEGEND else ""
        notes.append(f"{name}: {listed}{more}.")
    return Header(
        schema=RUNLOG_SCHEMA,
        run_id=f"{mapping.name}-{inputs.hexdigest()[:12]}",
        gate=mapping.gate,
        harness=constants.harness,
        harness_version=constants.harness_version,
        models={tier: ModelCard(**card.model_dump()) for tier, card in constants.models.items()},
        serving=None if constants.serving is None else Serving(**constants.serving.model_dump()),
        expected_draws=ledger.draws.kept,
        order_meaningful=mapping.order_meaningful,
        note=" ".join(notes)[:MAX_NOTE],
    )
