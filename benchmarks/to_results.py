"""A log to its results.json and no further: the same document as that of ``verdiv analyze``, without a report.

python to_results.py LOG RESULTS.json [REGISTRATION]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    """Analyse a log with default settings and write the results document."""
    from verdiv.analysis import Settings, analyze
    from verdiv.preregistration import read_preregistration

    log, out, *plan = sys.argv[1:]
    settings = Settings(cores=len(os.sched_getaffinity(0)))
    found = analyze([log], preregistration=read_preregistration(plan[0]) if plan else None, settings=settings)
    Path(out).write_text(json.dumps(found.document, indent=1, allow_nan=False), encoding="utf-8")


if __name__ == "__main__":
    main()
