"""Foreign logs without code: any CSV, JSON Lines, JSON or Parquet as a run log, by a mapping file."""

from __future__ import annotations

from verdiv.runlog.convert.conversion import Conversion, Progress, convert
from verdiv.runlog.convert.ledger import Book, Example, FileEntry, Ledger
from verdiv.runlog.convert.mappings import load_mapping, parse_mapping, shipped_mappings
from verdiv.runlog.convert.schema import MAPPING_SCHEMA, Mapping

__all__ = [
    "MAPPING_SCHEMA",
    "Book",
    "Conversion",
    "Example",
    "FileEntry",
    "Ledger",
    "Mapping",
    "Progress",
    "convert",
    "load_mapping",
    "parse_mapping",
    "shipped_mappings",
]
