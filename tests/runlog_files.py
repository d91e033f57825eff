"""Run logs made line by line, so that tests can break them where they want."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from verdiv.runlog.chain import line_digest
from verdiv.runlog.records import Gate, Header

__all__ = ["HEADER", "draw_line", "header_line", "log_bytes", "write_lines"]

HEADER = Header(schema=1, run_id="run", gate=Gate.VERIFIER, harness="test")
"""The plainest header."""


def header_line(**changes: Any) -> dict[str, Any]:
    """Return a header's fields, some of them changed."""
    return {
        "record": "header",
        "prev": None,
        "schema": 1,
        "run_id": "r",
        "gate": "truth",
        "harness": "h",
        **changes,
    }


def draw_line(name: str, **changes: Any) -> dict[str, Any]:
    """Return a draw's fields, some of them changed."""
    return {
        "record": "draw",
        "draw_id": name,
        "task_id": "t",
        "arm": "A3",
        "correct": True,
        "billed": 1.0,
        **changes,
    }


def log_bytes(records: Iterable[dict[str, Any] | bytes], *, footer: bool = True) -> bytes:
    """Return records as the lines of a log whose chain holds; bytes stand as they are."""
    lines: list[bytes] = []
    for record in records:
        if isinstance(record, dict):
            record = orjson.dumps({**record, "prev": line_digest(lines[-1]) if lines else None})
        lines.append(record)
    if footer:
        head = line_digest(lines[-1])
        lines.append(orjson.dumps({"record": "footer", "prev": head, "draws": len(lines) - 1, "head": head}))
    return b"".join(line + b"\n" for line in lines)


def write_lines(path: Path, records: Iterable[dict[str, Any] | bytes], *, footer: bool = True) -> Path:
    """Write records as a log whose chain holds."""
    path.write_bytes(log_bytes(records, footer=footer))
    return path
