"""Write results.json, fit.nc and the reports: all of them or none."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from verdiv.analysis.run import AnalysisResult
from verdiv.errors import Fault, InputRefused, UsageRefused
from verdiv.reports import write_reports

__all__ = ["write_outputs"]


def write_outputs(result: AnalysisResult, folder: Path, *, force: bool = False) -> None:
    """Write everything into a folder beside the target, then move it into place.

    Parameters
    ----------
    result
        A finished analysis.
    folder
        Where the files go; made if absent.
    force
        Replace files of an earlier analysis.

    Raises
    ------
    UsageRefused
        The folder holds results already and ``force`` is not given.
    InputRefused
        The files could not be written; nothing of them is left behind.
    """
    if (folder / "results.json").exists() and not force:
        fault = Fault(
            str(folder), "a folder without results", "results.json", "choose another folder, or pass --force"
        )
        raise UsageRefused("The output folder is in use.", [fault])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".verdiv-", dir=folder))
    except OSError as error:
        raise _refused(folder, error) from error
    try:
        text = json.dumps(result.document, indent=1, ensure_ascii=False, allow_nan=False)
        (staging / "results.json").write_text(text + "\n", encoding="utf-8")
        write_reports(result.document, staging, checked=True)
        if result.idata is not None:
            result.idata.write(staging / "fit.nc")
        for made in sorted(staging.iterdir(), key=lambda p: p.name == "results.json"):
            os.replace(made, folder / made.name)
    except OSError as error:
        raise _refused(folder, error) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _refused(folder: Path, error: OSError) -> InputRefused:
    fault = Fault(
        str(folder),
        "a folder that can be written",
        error.strerror or str(error),
        "free space or choose another",
    )
    return InputRefused("The results could not be written; no file was left half-written.", [fault])
