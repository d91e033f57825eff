"""The mapping file: which column of a foreign log is which, validated whole.

Unknown keys are refused and all faults are reported together.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, model_validator

from verdiv.runlog.convert.columns import (
    FileTemplates,
    Format,
    Name,
    OutcomeLike,
    Predicate,
    RecordPath,
    Ref,
    Refs,
    Scalar,
    Table,
    Text,
    TimeLike,
    Value,
    ValueLike,
    exactly_one,
)
from verdiv.runlog.records import Gate

__all__ = [
    "MAPPING_SCHEMA",
    "Answered",
    "DecodingColumns",
    "DrawColumns",
    "ErrorColumns",
    "Exclusion",
    "Expansion",
    "FileRule",
    "HeaderConstants",
    "Lookup",
    "Mapping",
    "ModelConstants",
    "RecordRule",
    "ServingConstants",
    "SharedFirst",
    "StaticColumns",
]

MAPPING_SCHEMA = 1
"""Integer version of the mapping format; a newer one is refused."""


class StaticColumns(Table):
    """Verdict of the static verifier."""

    flagged: ValueLike
    """Missing: no verdict for this draw."""
    error_class: Annotated[ValueLike | None, Field(alias="class")] = None
    """Class of the error; read where flagged."""
    code: ValueLike | None = None
    message: ValueLike | None = None


class DecodingColumns(Table):
    """Sampling settings."""

    temperature: ValueLike | None = None
    top_p: ValueLike | None = None
    seed: ValueLike | None = None
    max_tokens: ValueLike | None = None


class ErrorColumns(Table):
    """Infrastructure failures."""

    kind: ValueLike
    """Missing: no failure."""
    message: ValueLike | None = None


class DrawColumns(Table):
    """Where each field of a draw comes from."""

    task_id: ValueLike
    correct: OutcomeLike
    family: ValueLike = Value(const="all")
    arm: ValueLike = Value(const="A0")
    condition: ValueLike = Value(const="primary")
    tier: ValueLike = Value(const="small")
    model: ValueLike | None = None
    precision: ValueLike | None = None
    replicate: ValueLike = Value(const=0)
    attempt: ValueLike = Value(const=1)
    retry: ValueLike | None = None
    """``blind`` or ``feedback``: what the prompts of attempts 2 and later held."""
    prompt: ValueLike | None = None
    """The prompt's text; only its SHA-256 is kept."""
    output: ValueLike | None = None
    billed: ValueLike = Value(const=1.0)
    tokens_in: ValueLike | None = None
    tokens_out: ValueLike | None = None
    started_at: TimeLike | None = None
    ended_at: TimeLike | None = None
    duration_seconds: ValueLike | None = None
    """Gives the end from the start or the start from the end."""
    in_flight: ValueLike | None = None
    device_seconds: ValueLike | None = None
    emitted: ValueLike | None = None
    decoding: DecodingColumns | None = None
    static: StaticColumns | None = None
    error: ErrorColumns | None = None

    @model_validator(mode="after")
    def _ranks_are_positions(self) -> DrawColumns:
        for name in type(self).model_fields:
            held = getattr(self, name)
            if name not in ("replicate", "attempt") and isinstance(held, Value) and held.rank is not None:
                raise ValueError(f"{name}: rank gives positions, for replicate and attempt only")
        return self


class FileRule(Table):
    """Which files hold records, and what they all have in common."""

    match: FileTemplates
    """Template, or several, for the last components of the path."""
    format: Format = "auto"
    constants: dict[Name, Scalar] = Field(default={}, alias="set", max_length=64)
    """Values that every row of these files can refer to as ``@name``."""
    records: Annotated[tuple[RecordPath, ...], Field(max_length=16)] | None = None
    """Record paths of these files, instead of the mapping's."""


class Expansion(Table):
    """One record that holds several draws."""

    arrays: Annotated[dict[Name, Ref | Refs], Field(min_length=1, max_length=32)] | None = None
    """Parallel arrays, or lists of columns; element t of each is ``@name`` in the row of draw t."""
    count: ValueLike | None = None
    """Number of draws, where no array holds them; ``@last`` tells the last one."""
    index: Name = "turn"
    """``#turn`` is the 0-based number of the draw."""
    length: str = "shortest"
    """For arrays of different lengths: ``shortest``, ``longest``, or the name of the array that decides."""
    until_missing: Name | None = None
    """The record ends at the first missing element of this array."""

    @model_validator(mode="after")
    def _known_names(self) -> Expansion:
        exactly_one(self, ("arrays", "count"))
        known = () if self.arrays is None else tuple(self.arrays)
        if self.length not in ("shortest", "longest", *known):
            raise ValueError("length is 'shortest', 'longest' or the name of an array")
        if self.until_missing is not None and self.until_missing not in known:
            raise ValueError("until_missing names one of the arrays")
        return self


class RecordRule(Table):
    """Where the records lie in a document."""

    paths: Annotated[tuple[RecordPath, ...], Field(min_length=1, max_length=16)] | None = None
    """Alternative record paths, all of them read; default: the document, its elements, lines or rows."""
    expand: Expansion | None = None


class Lookup(Table):
    """A second table, joined by key: what is known of some rows only."""

    name: Name
    match: FileTemplates
    format: Format = "auto"
    skip: Annotated[int, Field(ge=0, le=1000)] = 0
    """Leading rows that are no data."""
    records: RecordPath | None = None
    scope: Annotated[tuple[Ref, ...], Field(max_length=16)] = ()
    """References that hold in both tables and name the file a row belongs to."""
    key: Annotated[tuple[ValueLike, ...], Field(min_length=1, max_length=16)]
    """Key of a row of this table."""
    for_key: Annotated[tuple[ValueLike, ...], Field(alias="for", min_length=1, max_length=16)]
    """Key that a record asks with."""

    @model_validator(mode="after")
    def _same_length(self) -> Lookup:
        if len(self.key) != len(self.for_key):
            raise ValueError("key and for have the same number of parts")
        return self


class Exclusion(Table):
    """A rule that leaves rows out, by name."""

    name: Text
    when: Predicate | None = None
    repeat_of: Refs | None = None
    """A later row that has all of these, and all the same as an earlier row, is left out."""

    @model_validator(mode="after")
    def _one_rule(self) -> Exclusion:
        exactly_one(self, ("when", "repeat_of"))
        return self


class Answered(Table):
    """Class of the error that a feedback prompt reported, read from the row of the draw it answers."""

    when: Predicate
    error_class: Annotated[Literal["structural", "semantic", "unclassified"], Field(alias="class")]


class SharedFirst(Table):
    """Arms that repeat the first attempts of another arm by construction."""

    source: Annotated[Text, Field(alias="from")]
    to: Annotated[tuple[Text, ...], Field(min_length=1, max_length=16)]


class ModelConstants(Table):
    """One tier's model."""

    name: Text
    precision: Text | None = None
    revision: Text | None = None
    endpoint_kind: Text | None = None


class ServingConstants(Table):
    """The serving stack."""

    engine: Text
    version: Text | None = None
    max_concurrency: Annotated[int, Field(ge=1)] | None = None


class HeaderConstants(Table):
    """Constants of the run log's header."""

    harness: Text
    harness_version: Text | None = None
    note: Annotated[str, Field(max_length=2048)] | None = None
    models: dict[Text, ModelConstants] = Field(default={}, max_length=16)
    serving: ServingConstants | None = None


def _mapping_version(version: int) -> int:
    if version != MAPPING_SCHEMA:
        raise ValueError(f"this version reads schema {MAPPING_SCHEMA}; a newer one needs a newer verdiv")
    return version


class Mapping(Table):
    """A whole mapping file."""

    schema_: Annotated[
        int,
        Field(alias="schema", json_schema_extra={"const": MAPPING_SCHEMA}),
        AfterValidator(_mapping_version),
    ]
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
    description: Annotated[str, Field(max_length=4096)] = ""
    gate: Gate = Field(strict=False)
    """What sent a draw to retry."""
    order_meaningful: bool = True
    """False: the logged order of parallel draws is not the order they were drawn in."""
    header: HeaderConstants
    files: Annotated[tuple[FileRule, ...], Field(min_length=1, max_length=64)]
    records: RecordRule = RecordRule()
    lookups: Annotated[tuple[Lookup, ...], Field(max_length=8)] = ()
    exclude: Annotated[tuple[Exclusion, ...], Field(max_length=64)] = ()
    draw: DrawColumns
    answered: Annotated[tuple[Answered, ...], Field(max_length=16)] = ()
    """First that is true; default: the class of a flagged draw, else unclassified."""
    shared_first: SharedFirst | None = None

    @model_validator(mode="after")
    def _distinct_names(self) -> Mapping:
        for kind, names in (
            ("lookups", [lookup.name for lookup in self.lookups]),
            ("exclude", [rule.name for rule in self.exclude]),
        ):
            if len(set(names)) != len(names):
                raise ValueError(f"{kind}: each name stands once")
        known = {lookup.name for lookup in self.lookups}
        for name in _found_names(self):
            if name not in known:
                raise ValueError(f"found: no lookup is named {name!r}")
        return self


def _found_names(table: BaseModel) -> list[str]:
    names: list[str] = []
    for field in type(table).model_fields:
        held = getattr(table, field)
        for item in held if isinstance(held, tuple) else (held,):
            if isinstance(item, BaseModel):
                names += _found_names(item)
    if isinstance(table, Predicate) and table.found is not None:
        names.append(table.found)
    return names
