"""From an exception to a message on standard error and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback

from verdiv.errors import VerdivError

__all__ = ["INTERNAL", "INTERRUPTED", "NOTHING_KEPT", "REFUSED", "exit_code_of", "keep"]

FINDINGS = 1
"""Findings at or above the bar, or a falsified rule where the caller asked for it."""
REFUSED = 2
"""Unusable arguments, unreadable or refused input, an output that cannot be written."""
INTERRUPTED = 130
"""The user stopped the command."""
INTERNAL = 70
"""A fault of verdiv itself; no other outcome has this code."""

NOTHING_KEPT = "nothing was written"

_REMEDIES = {
    errno.ENOSPC: "free some space, or write elsewhere with -o",
    errno.EDQUOT: "free some of your quota, or write elsewhere with -o",
    errno.EACCES: "check the permissions of the file and its folder",
    errno.EPERM: "check the permissions of the file and its folder",
    errno.EROFS: "write elsewhere with -o: this file system is read-only",
    errno.EISDIR: "name a file, not a folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ENOENT: "check the path",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.EMFILE: "raise the limit of open files",
}

_state = {"kept": NOTHING_KEPT}


def keep(what: str) -> None:
    """Note what an interruption from here on leaves behind, for the line that the user will read."""
    _state["kept"] = what


def _say(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        return
    except UnicodeEncodeError:
        print(text.encode("ascii", "replace").decode(), file=sys.stderr, flush=True)


def _os_error(error: OSError) -> int:
    if error.errno == errno.EPIPE:
        # The reader of a pipe has gone; Python must not fail again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    place = f"{error.filename}: " if error.filename else ""
    said = error.strerror or str(error)
    remedy = _REMEDIES.get(error.errno or 0, "check the path and the disk")
    _say(f"verdiv: {place}{said}; {remedy} ({_state['kept']})")
    return REFUSED


def _from_typer(error: BaseException) -> int | None:
    """Handle what the argument parser raises, across the versions of its exception classes."""
    code = getattr(error, "exit_code", None)
    if not isinstance(code, int):
        return None
    show = getattr(error, "show", None)
    if callable(show):
        show()
    return code


def exit_code_of(error: BaseException) -> int:
    """Print what went wrong and return the exit code that stands for it."""
    if isinstance(error, VerdivError):
        _say(f"verdiv: {error}")
        return error.exit_code
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        _say(f"\nverdiv: interrupted; {_state['kept']}")
        return INTERRUPTED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, OSError):
        return _os_error(error)
    if isinstance(error, MemoryError):
        _say(f"verdiv: out of memory; analyse fewer logs at once ({_state['kept']})")
        return REFUSED
    code = _from_typer(error)
    if code is not None:
        return code
    traceback.print_exception(error)
    _say("verdiv: this is a fault of verdiv, not of your input; please report the lines above")
    return INTERNAL
