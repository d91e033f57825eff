"""The records of a run log: one header, any number of draws, one footer.

A *draw* is one generation of one model tier for one task, with the outcome of the two checks that look at
it: the ground truth (``correct``) and the static verifier (``static``). Records are frozen; unknown fields
are refused; a missing outcome is ``None`` and never ``False``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

__all__ = [
    "RUNLOG_SCHEMA",
    "AnsweredClass",
    "Decoding",
    "Draw",
    "DrawError",
    "ErrorClass",
    "Footer",
    "Gate",
    "Header",
    "ModelCard",
    "Oracle",
    "PromptKind",
    "Serving",
    "Static",
]

RUNLOG_SCHEMA = 1
"""Integer version of the run log format; a newer one is refused."""

LARGEST = 2**63 - 1
"""Largest integer that a column holds."""

SHA256_PATTERN = "^[0-9a-f]{64}$"
"""SHA-256 in lower-case hex. The reader checks whole columns, at a tenth of the cost."""

STAMP_PATTERN = (
    r"^(1[7-9]|2[01])[0-9]{2}-[0-9]{2}-[0-9]{2}[Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(\.[0-9]{1,9})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
"""RFC 3339 with an offset, down to nanoseconds, in the years 1700 to 2199 (what 64 bits of them hold)."""

Text = Annotated[str, Meta(min_length=1, max_length=4096)]
Sha256 = Annotated[str, Meta(min_length=64, max_length=64, extra_json_schema={"pattern": SHA256_PATTERN})]
Count = Annotated[int, Meta(ge=0, le=LARGEST)]
Whole = Annotated[int, Meta(ge=-LARGEST - 1, le=LARGEST)]
Ordinal = Annotated[int, Meta(ge=1, le=LARGEST)]
Stamp = Annotated[str, Meta(min_length=20, max_length=40, extra_json_schema={"pattern": STAMP_PATTERN})]


class Gate(StrEnum):
    """What sent a draw to retry."""

    VERIFIER = "verifier"
    TRUTH = "truth"
    NONE = "none"


class PromptKind(StrEnum):
    """What the draw's prompt held."""

    INITIAL = "initial"
    BLIND = "blind"
    FEEDBACK = "feedback"


class ErrorClass(StrEnum):
    """Class of a flagged error."""

    STRUCTURAL = "structural"
    SEMANTIC = "semantic"


class AnsweredClass(StrEnum):
    """Class of the error that a feedback prompt reported."""

    STRUCTURAL = "structural"
    SEMANTIC = "semantic"
    UNCLASSIFIED = "unclassified"


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Common settings of all records; they hold no cycles, so the collector need not walk them."""


class ModelCard(_Record, frozen=True, kw_only=True):
    """One tier's model."""

    name: Text
    """Model name as the server knows it."""
    precision: Text | None = None
    """Numeric format of the weights, e.g. BF16, NVFP4, Q4_1."""
    revision: Text | None = None
    """Revision or digest of the weights."""
    endpoint_kind: Text | None = None
    """Kind of endpoint, e.g. openai-compatible; never an address."""


class Serving(_Record, frozen=True, kw_only=True):
    """The serving stack."""

    engine: Text
    version: Text | None = None
    max_concurrency: Ordinal | None = None


class Header(_Record, frozen=True, kw_only=True, tag_field="record", tag="header"):
    """First record of a run log."""

    prev: None = None
    """Always null: nothing stands before the header."""
    schema: int
    """Run log format version."""
    run_id: Text
    gate: Gate
    """What sent a draw to retry: the verifier's flag, the ground truth, or nothing."""
    harness: Text
    """Program that wrote the log."""
    harness_version: Text | None = None
    preregistration_sha256: Sha256 | None = None
    """Digest of the registration the run followed."""
    models: dict[str, ModelCard] = {}
    """Tier name to model."""
    serving: Serving | None = None
    suite_sha256: Sha256 | None = None
    """Digest of the task suite."""
    started_at: Stamp | None = None
    expected_draws: Count | None = None
    """Number of draws the design calls for, where it is fixed."""
    order_meaningful: bool = True
    """False where the logged order of parallel draws is not the order they were drawn in."""
    note: str | None = None


class Decoding(_Record, frozen=True, kw_only=True):
    """Sampling settings; temperature 0 is deterministic decoding, null is unknown."""

    temperature: Annotated[float, Meta(ge=0)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    seed: Whole | None = None
    max_tokens: Ordinal | None = None


class Static(_Record, frozen=True, kw_only=True):
    """Verdict of the static verifier."""

    flagged: bool
    error_class: ErrorClass | None = msgspec.field(name="class", default=None)
    """Class of the error, for a flagged draw whose class is known."""
    code: Text | None = None
    message: str | None = None
    """Message for the feedback prompt."""


class Oracle(_Record, frozen=True, kw_only=True):
    """Verdict of the ground-truth-aware verifier, a ceiling device that is never deployed."""

    flagged: bool


class DrawError(_Record, frozen=True, kw_only=True):
    """An infrastructure failure; the draw is not a measurement."""

    kind: Text
    message: str | None = None


class Draw(_Record, frozen=True, kw_only=True, tag_field="record", tag="draw"):
    """One generation of one model tier for one task."""

    prev: Sha256 | None = None
    """SHA-256 of the bytes of the line before this one; filled in by the writer."""
    draw_id: Text
    task_id: Text
    family: Text = "all"
    arm: Text
    """A0, A1, A2, A2s, A3, A4, A5 or another name."""
    condition: Text = "primary"
    """Experimental condition; estimands and the P rules use ``primary`` only."""
    copy_of: Text | None = None
    """Draw this record repeats by construction; counted and billed once."""
    tier: Text = "small"
    model: Text | None = None
    precision: Text | None = None
    decoding: Decoding | None = None
    replicate: Count = 0
    """Index of the fixed seed, 0-based."""
    attempt: Ordinal = 1
    """1-based; 1 is the initial draw."""
    prompt_kind: PromptKind = PromptKind.INITIAL
    parent: Text | None = None
    """Draw that this one answers."""
    prompt_sha256: Sha256 | None = None
    output: str | None = None
    output_sha256: Sha256 | None = None
    correct: bool | None
    """Ground truth; null means not scored. Required, so that a missing outcome is always said."""
    static: Static | None = None
    answered_class: AnsweredClass | None = None
    """On a feedback draw: class of the error that its prompt reported."""
    oracle: Oracle | None = None
    billed: Annotated[float, Meta(ge=0)]
    """Price in units of one small draw."""
    tokens_in: Count | None = None
    tokens_out: Count | None = None
    started_at: Stamp | None = None
    ended_at: Stamp | None = None
    in_flight: Ordinal | None = None
    """Requests in flight when this one started, itself included."""
    device_seconds: Annotated[float, Meta(ge=0)] | None = None
    """Seconds of device time, where the server tells it."""
    emitted: bool | None = None
    """This draw is what the arm answered."""
    error: DrawError | None = None


class Footer(_Record, frozen=True, kw_only=True, tag_field="record", tag="footer"):
    """Last record of a complete run log."""

    prev: Sha256 | None = None
    draws: Count
    """Number of draw records."""
    head: Sha256
    """SHA-256 of the bytes of the last line before the footer."""
