"""What both pages are rendered with: one way to set up their templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["environment"]


def _kind(block: object) -> str:
    return type(block).__name__


def environment(*, finalize: Callable[..., Any] | None = None, **filters: Callable[..., Any]) -> Environment:
    """Set up the package's templates: everything escaped, and a name that is missing an error.

    Parameters
    ----------
    finalize
        What every expression passes through, before HTML's escapes.
    **filters
        Filters of the page, beside ``kind``, which names a block's class.
    """
    found = Environment(
        loader=PackageLoader("verdiv.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters.update(kind=_kind, **filters)
    return found
