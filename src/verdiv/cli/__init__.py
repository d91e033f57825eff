"""The command: one module a subcommand, loaded when it is called."""

from __future__ import annotations

__all__ = ["main"]


def main() -> int:
    """Run the command with the arguments of the process and return its exit code."""
    from verdiv.cli.app import run

    return run()
