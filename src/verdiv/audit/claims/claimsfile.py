"""The claims file: printed figures, the expressions bound to them, and assumptions to try where they fail."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from verdiv import fixtures
from verdiv.audit.claims.language import ExpressionRefused, Node, parse
from verdiv.errors import Fault, InputRefused
from verdiv.preregistration.positions import find_line, key_lines

__all__ = [
    "CLAIMS_SCHEMA",
    "Alternative",
    "Assumption",
    "Claim",
    "ClaimsFile",
    "parse_claims",
    "read_claims",
]

CLAIMS_SCHEMA = 1
"""Integer version of the claims format; a newer one is refused."""

MAX_BYTES = 4 * 2**20
"""Largest claims file that is read."""

Text = Annotated[str, Field(min_length=1, max_length=4000)]
Expression = Annotated[str, Field(min_length=1, max_length=2000)]
Identifier = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
ClaimId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
OutcomeName = Literal["reproduced", "rounded", "conflict", "underdetermined", "error"]


class _Part(BaseModel):
    """Settings of every part: frozen, strict, nothing unknown, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Alternative(_Part):
    """Another reading of one claim."""

    text: Text
    """The assumption, in words."""
    expression: Expression


class Assumption(_Part):
    """Parameters that may have been others than registered; tried on every claim that fails."""

    id: ClaimId
    text: Text
    set: Annotated[dict[Identifier, float], Field(min_length=1, max_length=100)]
    """Parameter to the value it would have had."""


class Claim(_Part):
    """One printed figure or statement."""

    id: ClaimId
    text: Text | None = None
    """What is claimed, in words."""
    value: Annotated[str, Field(min_length=1, max_length=40)]
    """The figure as printed, whose digits are its precision; or true / false for a statement."""
    unit: Annotated[str, Field(min_length=1, max_length=40)] | None = None
    """``%`` and ``points`` are shares printed a hundredfold; every other unit is taken as it stands."""
    direction: Text | None = None
    """Direction the source states; the expression is positive in it."""
    expression: Expression | None = None
    """What the figure should be, as a plain share, count or price; absent where the source gives no form."""
    uses: Annotated[dict[Identifier, ClaimId], Field(max_length=50)] = {}
    """Name in the expression to the claim whose recomputed value it stands for."""
    of: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """Number of cases behind a printed share: some count of them must print as it."""
    readings: Annotated[tuple[Alternative, ...], Field(max_length=50)] = ()
    """Forms that the source leaves possible; shown, and never enough for more than underdetermined."""
    alternatives: Annotated[tuple[Alternative, ...], Field(max_length=50)] = ()
    """Readings to try where the claim fails."""
    decides: Expression | None = None
    """Condition on ``value`` that the source rests a decision on."""
    mc_error: Expression | None = None
    """Standard error of a figure that was simulated."""
    expect: OutcomeName | None = None
    """Outcome that the author of the file expects; compared with what is computed, never used for it."""
    note: Text | None = None

    @property
    def statement(self) -> bool:
        """Whether it is a statement, true or false, and no figure."""
        return self.value in ("true", "false")


class ClaimsFile(_Part):
    """A claims file."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    title: Text
    source: Text | None = None
    """What was printed, and where."""
    parameters: Annotated[dict[Identifier, float], Field(max_length=1000)] = {}
    definitions: Annotated[dict[Identifier, Expression], Field(max_length=200)] = {}
    """Names that stand for an expression, worked out under whatever a call overrides."""
    assumptions: Annotated[tuple[Assumption, ...], Field(max_length=200)] = Field(
        default=(), alias="assumption"
    )
    claims: Annotated[tuple[Claim, ...], Field(min_length=1, max_length=5000)] = Field(alias="claim")


_PLACE = re.compile(r"\(at line ([0-9]+)")


def _refuse(faults: list[Fault]) -> InputRefused:
    return InputRefused("The claims file was refused.", faults)


def _bytes_of(origin: str | Path) -> tuple[bytes, str]:
    if isinstance(origin, str) and origin in fixtures.names("claims"):
        return fixtures.read_bytes("claims", origin), origin
    path = Path(origin)
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1), str(path)
    except (OSError, ValueError) as error:
        shipped = ", ".join(fixtures.names("claims")) or "none"
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        fault = Fault(
            str(path), "a claims file, or a shipped name", reason, f"check the path; shipped are: {shipped}"
        )
        raise InputRefused("The claims file cannot be read.", [fault]) from error


def read_claims(origin: str | Path) -> ClaimsFile:
    """Read a claims file, or a shipped one by its name.

    Raises
    ------
    InputRefused
        It cannot be read, or is refused: all faults at once.

    Examples
    --------
    >>> "bill-A3-B2" in {claim.id for claim in read_claims("paper").claims}
    True
    """
    data, name = _bytes_of(origin)
    return parse_claims(data, name)


def parse_claims(data: bytes, name: str) -> ClaimsFile:
    """Read a claims file from its bytes.

    Raises
    ------
    InputRefused
        Size, encoding, syntax, fields, expressions, or claims that lean on claims that are not there.
    """
    if len(data) > MAX_BYTES:
        raise _refuse([Fault(name, f"at most {MAX_BYTES} bytes", "a larger file", "split it")])
    try:
        text = data.decode("utf-8-sig")
        tables: dict[str, Any] = tomllib.loads(text)
        document = json.dumps(tables, allow_nan=False)
    except (ValueError, RecursionError, TypeError) as error:
        found = _PLACE.search(str(error))
        line = int(found.group(1)) if found else None
        raise _refuse([Fault(name, "a claims file in TOML", str(error), "correct it", line=line)]) from error
    lines = key_lines(text)
    try:
        file = ClaimsFile.model_validate_json(document)
    except ValidationError as error:
        faults = []
        for item in error.errors(include_url=False):
            path = tuple(item["loc"])
            got = "a table" if isinstance(item["input"], dict) else repr(item["input"])
            dotted = ".".join(map(str, path)) or None
            faults.append(
                Fault(name, item["msg"], got, "correct it", line=find_line(lines, path), field=dotted)
            )
        raise _refuse(faults) from error
    faults = _cross_faults(file, name, lines)
    if faults:
        raise _refuse(faults)
    return file


def _cross_faults(file: ClaimsFile, name: str, lines: Mapping[tuple[str | int, ...], int]) -> list[Fault]:
    """Look for what single fields cannot show: repeated ids, unknown claims, expressions that do not parse."""
    faults: list[Fault] = []

    def add(path: tuple[str | int, ...], expected: str, got: str, remedy: str) -> None:
        dotted = ".".join(map(str, path))
        faults.append(Fault(name, expected, got, remedy, line=find_line(lines, path), field=dotted))

    def expression(path: tuple[str | int, ...], text: str | None) -> Node | None:
        if text is None:
            return None
        try:
            return parse(text)
        except ExpressionRefused as error:
            fault = error.faults[0]
            add(path, fault.expected, fault.got, fault.remedy)
            return None

    seen: set[str] = set()
    ids = {claim.id for claim in file.claims}
    for label, text in file.definitions.items():
        expression(("definitions", label), text)
        if label in file.parameters:
            add(("definitions", label), "a name of its own", "a parameter's name", "drop one of them")
    for at, assumption in enumerate(file.assumptions):
        for label in sorted(set(assumption.set) - set(file.parameters)):
            add(("assumption", at, "set"), "registered parameters", label, "add it to [parameters]")
    for at, claim in enumerate(file.claims):
        if claim.id in seen:
            add(("claim", at, "id"), "an id that no other claim has", claim.id, "rename it")
        seen.add(claim.id)
        for label, other in claim.uses.items():
            if other not in ids or other == claim.id:
                add(("claim", at, "uses"), "the id of another claim", f"{label} = {other}", "name one")
        for field in ("expression", "decides", "mc_error"):
            expression(("claim", at, field), getattr(claim, field))
        for field in ("readings", "alternatives"):
            for i, item in enumerate(getattr(claim, field)):
                expression(("claim", at, field, i, "expression"), item.expression)
    return faults
