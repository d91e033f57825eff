"""Small foreign logs for the tests of conversion."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verdiv.runlog.convert import Conversion, convert

__all__ = ["mapping_of", "outcomes", "run"]


def mapping_of(draw: Mapping[str, Any] | None = None, **tables: Any) -> dict[str, Any]:
    """Return a mapping of JSON Lines with the columns task and ok; tables replace or add to it."""
    return {
        "schema": 1,
        "name": "test",
        "gate": "verifier",
        "header": {"harness": "test"},
        "files": [{"match": ["*.jsonl", "*.json", "*.csv", "*.parquet"]}],
        "draw": {"task_id": "task", "correct": "ok", **(draw or {})},
        **tables,
    }


def run(folder: Path, mapping: Mapping[str, Any], **files: Any) -> Conversion:
    """Write files (``name__ext``: text, or rows for JSON Lines, or a document for JSON) and convert them."""
    for name, content in files.items():
        path = folder / name.replace("__", ".").replace("___", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            text = content
        elif path.suffix == ".jsonl":
            text = "".join(json.dumps(row) + "\n" for row in content)
        else:
            text = json.dumps(content)
        path.write_text(text, encoding="utf-8")
    return convert(mapping, [folder])


def outcomes(conversion: Conversion) -> list[tuple[str, int, bool | None]]:
    """Return task, attempt and outcome of each draw."""
    return [(draw.task_id, draw.attempt, draw.correct) for draw in conversion.draws]
