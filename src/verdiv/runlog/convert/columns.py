"""The small tables of a mapping: where one value comes from, and the tests that rows are put to.

Nothing in them is code: references, templates and predicates are parsed by small grammars with bounded work.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from verdiv.runlog.convert.paths import parse_record_path, parse_reference
from verdiv.runlog.convert.templates import parse_template

__all__ = [
    "Case",
    "FileTemplate",
    "FileTemplates",
    "Format",
    "Name",
    "Outcome",
    "OutcomeLike",
    "Predicate",
    "RecordPath",
    "Ref",
    "Refs",
    "Scalar",
    "Table",
    "Text",
    "Time",
    "TimeLike",
    "Value",
    "ValueLike",
    "exactly_one",
]

RESERVED = ("root", "file", "last")
"""Names that are always bound."""

MAX_DEPTH = 8
"""Levels of nested predicates and values."""


def _reference(text: str) -> str:
    parse_reference(text)
    return text


def _record_path(text: str) -> str:
    for step in parse_record_path(text):
        if step.kind in ("each", "capture") and step.name:
            _identifier(step.name)
    return text


def _template(text: str) -> str:
    for name in parse_template(text).names:
        _identifier(name)
    return text


def _identifier(text: str) -> str:
    if not text.isidentifier() or text in RESERVED:
        raise ValueError(f"a name is an identifier other than {', '.join(RESERVED)}")
    return text


def _as_value(raw: Any) -> Any:
    """A bare string is a reference; a bare number or boolean a constant."""
    if isinstance(raw, str):
        return {"from": raw}
    if isinstance(raw, bool | int | float):
        return {"const": raw}
    return raw


def _as_tuple(raw: Any) -> Any:
    """One text stands for a list of one."""
    return (raw,) if isinstance(raw, str) else raw


Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=4096)]
Scalar: TypeAlias = bool | int | float | Annotated[str, Field(max_length=4096)]
Scalars: TypeAlias = Annotated[tuple[Scalar, ...], Field(min_length=1, max_length=256)]
Name: TypeAlias = Annotated[str, Field(max_length=64), AfterValidator(_identifier)]
Ref: TypeAlias = Annotated[str, AfterValidator(_reference)]
RecordPath: TypeAlias = Annotated[str, AfterValidator(_record_path)]
FileTemplate: TypeAlias = Annotated[str, AfterValidator(_template)]
_ONE_OR_SEVERAL = BeforeValidator(_as_tuple, json_schema_input_type=str | tuple[str, ...])
FileTemplates: TypeAlias = Annotated[
    tuple[FileTemplate, ...], Field(min_length=1, max_length=16), _ONE_OR_SEVERAL
]
Format: TypeAlias = Literal["auto", "json", "jsonl", "csv", "tsv", "parquet"]
Refs: TypeAlias = Annotated[tuple[Ref, ...], Field(min_length=1, max_length=32)]


class Table(BaseModel):
    """Common settings of all tables of a mapping."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


def depth(table: BaseModel) -> int:
    below = 0
    for name in type(table).model_fields:
        held = getattr(table, name)
        for item in held if isinstance(held, tuple) else (held,):
            if isinstance(item, BaseModel):
                below = max(below, depth(item))
    return below + 1


def exactly_one(table: Table, names: tuple[str, ...]) -> None:
    """Refuse a table that gives none or several of these fields.

    Raises
    ------
    ValueError
        Not exactly one of the fields is given.
    """
    given = [name for name in names if getattr(table, name) is not None]
    if len(given) != 1:
        listed = ", ".join(type(table).model_fields[name].alias or name for name in names)
        raise ValueError(f"exactly one of {listed} is required, {len(given)} given")


class Predicate(Table):
    """A test of one row: true, false, or unknown where the field is missing.

    Unknown follows the rules of three-valued logic: ``not`` keeps it, ``all`` is false as soon as one part is
    false, ``any`` is true as soon as one part is true.
    """

    field: Ref | None = None
    """What is tested."""
    equals: Scalar | None = None
    is_in: Annotated[Scalars | None, Field(alias="in")] = None
    starts_with: Text | None = None
    at_least: float | None = None
    at_most: float | None = None
    is_missing: bool | None = None
    """True where the field is absent, null, NaN or the empty text; never unknown."""
    found: Name | None = None
    """True where the named lookup has a row for this one; unknown where its file is not among the sources."""
    negated: Annotated[Predicate | None, Field(alias="not")] = None
    every: Annotated[Predicates | None, Field(alias="all")] = None
    some: Annotated[Predicates | None, Field(alias="any")] = None

    @model_validator(mode="after")
    def _one_test(self) -> Predicate:
        tests = ("equals", "is_in", "starts_with", "at_least", "at_most", "is_missing")
        if self.field is not None:
            exactly_one(self, tests)
        exactly_one(self, ("field", "found", "negated", "every", "some"))
        if self.field is None and any(getattr(self, name) is not None for name in tests):
            raise ValueError("a test needs the field it looks at")
        if depth(self) > MAX_DEPTH:
            raise ValueError(f"predicates nest at most {MAX_DEPTH} deep")
        return self


Predicates: TypeAlias = Annotated[tuple[Predicate, ...], Field(min_length=1, max_length=32)]


class Case(Table):
    """One line of a table of cases."""

    when: Predicate
    then: Scalar


class Value(Table):
    """Where the value of one column comes from, and what is done to it."""

    from_: Annotated[Ref | None, Field(alias="from")] = None
    first_of: Refs | None = None
    """The first of these that is not missing."""
    const: Scalar | None = None
    join: Annotated[tuple[ValueLike, ...], Field(min_length=1, max_length=16)] | None = None
    """Parts written one after the other; missing parts are left out."""
    cases: Annotated[tuple[Case, ...], Field(min_length=1, max_length=64)] | None = None
    """The first case that is true."""
    when: Predicate | None = None
    """True or false as the predicate is; missing where it is unknown."""
    length_of: Ref | None = None
    """Number of elements of an array."""
    rank: Refs | None = None
    """Position (from 0) of this combination among all that occur, numbers within texts ordered as numbers."""
    within: Refs | None = None
    """With ``rank``: positions are counted anew in each group of these."""
    separator: Annotated[str, Field(max_length=16)] = "/"
    """With ``join``."""
    otherwise: Scalar | None = None
    """With ``cases`` or ``map``: the value where none applies."""
    missing: Scalars | None = None
    """Values that stand for a missing one, such as ``NA`` or -1."""
    default: Scalar | None = None
    """The value where it is missing."""
    only_if: Predicate | None = None
    """Missing unless this is true."""
    map: Annotated[dict[str, Scalar], Field(max_length=10_000)] | None = None
    """Replaces values; keys are written as in JSON (``true``, ``1``, ``null``), texts bare."""
    template: FileTemplates | None = None
    """The text is matched against this template, or the first of several that fits; its capture is taken."""
    scale: float | None = None
    """The number is multiplied by this."""
    add: int | None = None
    """This is added to the number."""
    sha256: bool = False
    """The SHA-256 of the text stands instead of it."""

    @model_validator(mode="after")
    def _one_source(self) -> Value:
        exactly_one(self, ("from_", "first_of", "const", "join", "cases", "when", "length_of", "rank"))
        if self.within is not None and self.rank is None:
            raise ValueError("within goes with rank")
        changes = ("map", "template", "scale", "missing", "default", "only_if")
        if self.rank is not None and (
            self.sha256 or any(getattr(self, name) is not None for name in changes)
        ):
            raise ValueError("a rank is a number already: of what changes values only add goes with it")
        if any(len(parse_template(text).names) != 1 for text in self.template or ()):
            raise ValueError("the template of a value captures exactly one name")
        if depth(self) > MAX_DEPTH:
            raise ValueError(f"values nest at most {MAX_DEPTH} deep")
        return self


ValueLike: TypeAlias = Annotated[Value, BeforeValidator(_as_value, json_schema_input_type=Scalar | Value)]


class Outcome(Value):
    """The ground truth of a draw: a boolean, a reward, or a text that a ``map`` turns into one."""

    success: float = 1.0
    """The only reward that counts as correct."""
    at_least: float | None = None
    """Rewards from here on count as correct, instead of ``success`` exactly."""
    cumulative: bool = False
    """The flag says "solved by this attempt"; solved tasks are not tried again."""
    unscored: bool = False
    """The log scores nothing: missing outcomes are expected and are no errors."""


class Time(Value):
    """An instant."""

    unit: Literal["rfc3339", "unix_s", "unix_ms"] = "rfc3339"
    offset: Annotated[str, Field(pattern=r"^([Zz]|[+-]\d{2}:\d{2})$")] | None = None
    """Offset of times that are written without one."""


OutcomeLike: TypeAlias = Annotated[
    Outcome, BeforeValidator(_as_value, json_schema_input_type=Scalar | Outcome)
]
TimeLike: TypeAlias = Annotated[Time, BeforeValidator(_as_value, json_schema_input_type=Scalar | Time)]
