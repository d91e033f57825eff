"""Outputs: a folder in use is not touched, and a file is there in full or not at all."""

from __future__ import annotations

from pathlib import Path

from verdiv.errors import Fault, UsageRefused
from verdiv.runlog.storage import atomic_file

__all__ = ["check_folder", "write_text"]


def check_folder(folder: Path, *, force: bool) -> None:
    """Refuse an output folder that is in use, before anything is computed.

    Raises
    ------
    UsageRefused
        The path is a file, or a folder that holds something and ``force`` is not set.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageRefused(
            "The output folder cannot be used.",
            [Fault(str(folder), "a folder or a new name", "a file", "name another folder with -o")],
        )
    if folder.is_dir() and not force and any(folder.iterdir()):
        raise UsageRefused(
            "The output folder is in use.",
            [
                Fault(
                    str(folder),
                    "an empty or a new folder",
                    "a folder with files in it",
                    "name another with -o, or pass --force to replace its results",
                )
            ],
        )


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write a text file so that it is never half there; an older file stays until the new one is whole.

    Raises
    ------
    WriteFailed
        The name is taken and ``force`` is not set, the folder is missing, or the system refused to write.
    """
    with atomic_file(path, overwrite=force) as stream:
        stream.write(text.encode("utf-8"))
