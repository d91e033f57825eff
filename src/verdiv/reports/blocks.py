"""What a report is made of: plain records that both renderers turn into pages.

A report is a list of sections, a section a list of blocks. All texts are plain and untrusted; the renderers
escape them. Because HTML and Markdown are rendered from the same blocks, they carry the same content.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass, field
from typing import Literal

from markupsafe import Markup

__all__ = [
    "Block",
    "Bullets",
    "Cell",
    "Code",
    "Column",
    "Columns",
    "Facts",
    "Figure",
    "Headline",
    "LegendEntry",
    "Notice",
    "Panel",
    "Paragraph",
    "Report",
    "Row",
    "Section",
    "Subsection",
    "Table",
    "Tone",
    "clean",
    "slug",
]

Tone = Literal[
    "", "quiet", "missing", "good", "bad", "supported", "falsified", "inconclusive", "untestable", "void"
]
"""How a text is dressed; the words always say the same as the dress."""

MAX_TEXT = 20_000
"""Characters of one text that a report shows at most."""

MAX_SLUG = 60
"""Characters of an identifier before a digest takes over."""

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SPACES = frozenset("\t\n\r")


def clean(text: object) -> str:
    r"""Make an untrusted text printable: no control, direction or surrogate characters, bounded length.

    Examples
    --------
    >>> clean("a\x00b\u202ec")
    'a�b�c'
    """
    value = str(text)
    if len(value) > MAX_TEXT:
        value = value[:MAX_TEXT] + "…"
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if ch in _BIDI or (unicodedata.category(ch) in ("Cc", "Cs") and ch not in _SPACES)
        else ch
        for ch in value
    )


def slug(text: str) -> str:
    """Make an identifier of letters, digits and hyphens from any text; unlike texts give unlike identifiers.

    Long ones end in a digest of the text.

    Examples
    --------
    >>> slug("s_blind"), slug("A2s / <b>")
    ('s-5f-blind', 'A2s-20--2f--20--3c-b-3e-')
    """
    name = "".join(ch if ch.isascii() and ch.isalnum() else f"-{ord(ch):x}-" for ch in text)
    if len(name) <= MAX_SLUG:
        return name
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[:MAX_SLUG]}-{digest[:16]}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table."""

    text: str
    tone: Tone = ""
    note: str = ""
    """A second, smaller line."""
    link: str = ""
    """Identifier of a place on the page that the text leads to; never from a document."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    title: str
    numeric: bool = False
    """Numbers stand flush right, in digits of equal width."""


Row = tuple[Cell | str, ...]
"""One row of a table; its first cell is the row's heading."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption."""

    id: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    empty: str = "none"
    """What is said where there are no rows."""


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """One line of a figure's legend."""

    label: str
    mark: Markup
    """A small drawing of the mark; trusted, made by the figures."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing of a figure, or the reason why there is none."""

    label: str
    drawing: Markup | None
    """Drawing for wide pages and print; trusted, made by the figures."""
    narrow: Markup | None = None
    """Drawing for narrow screens, where the wide one would be too small to read."""
    note: str = ""
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """Drawings with a caption, and always their numbers as a table."""

    id: str
    caption: str
    panels: tuple[Panel, ...]
    table: Table
    layout: Literal["single", "grid", "rows"] = "single"
    legend: tuple[LegendEntry, ...] = ()
    folded: bool = False
    """The table starts folded on screens."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Code:
    """A command or digest, to be copied as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list."""

    items: tuple[Cell | str, ...]
    empty: str = "none"
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values."""

    pairs: tuple[tuple[str, Cell | str], ...]


@dataclass(frozen=True, slots=True)
class Headline:
    """One figure that a reader in a hurry looks for."""

    title: str
    value: str
    detail: tuple[str, ...] = ()
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that must not be overlooked."""

    title: str
    text: str
    tone: Tone = "inconclusive"


@dataclass(frozen=True, slots=True)
class Columns:
    """Groups of blocks that stand side by side where the page is wide enough."""

    groups: tuple[tuple[Block, ...], ...]
    kind: Literal["halves", "thirds"]


@dataclass(frozen=True, slots=True)
class Subsection:
    """A titled part of a section."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    badge: Cell | None = None
    """A verdict that stands beside the title."""
    level: int = 3
    """Level of the heading: 3 or 4."""


Block = Bullets | Code | Columns | Facts | Figure | Headline | Notice | Paragraph | Subsection | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the report."""

    id: str
    title: str
    short: str
    """Title in the navigation."""
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report."""

    title: str
    standing: str
    """First line: whether the analysis is registered or exploratory."""
    standing_tone: Tone
    byline: tuple[str, ...]
    sections: tuple[Section, ...]
    footer: tuple[str, ...] = field(default=())
