"""``verdiv version``: what computes."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

import typer

from verdiv import __version__
from verdiv.cli import options

__all__ = ["STACK", "app", "installed_versions"]

STACK = (
    "pymc",
    "arviz",
    "nutpie",
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "statsmodels",
    "msgspec",
    "pydantic",
)
"""Distributions whose versions can change a result."""

app = options.command()


def installed_versions(distributions: tuple[str, ...] = STACK) -> dict[str, str | None]:
    """Return the installed version of each distribution, None where it is absent; imports none of them."""
    found: dict[str, str | None] = {}
    for name in distributions:
        try:
            found[name] = installed(name)
        except PackageNotFoundError:
            found[name] = None
    return found


@app.command(epilog="\b\nExample:\n  verdiv version")
def version() -> None:
    """Print the versions of verdiv, of Python and of what it computes with."""
    typer.echo(f"verdiv {__version__}")
    typer.echo(f"python {platform.python_version()}")
    for name, number in installed_versions().items():
        typer.echo(f"{name} {number or 'is not installed'}")
