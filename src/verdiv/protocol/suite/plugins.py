"""Families of one's own, named on the command line as ``module:name``."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from verdiv.errors import Fault, UsageRefused
from verdiv.protocol.suite.generate import FAMILIES
from verdiv.protocol.suite.task import Family

__all__ = ["families_with"]


def families_with(places: Iterable[str]) -> dict[str, Family]:
    """Add families of one's own to the shipped ones.

    Parameters
    ----------
    places
        ``module:name`` of an instance or a class without arguments. The module is imported, which runs its
        code: name only modules you trust. Suites, logs and registrations never name one.

    Returns
    -------
    dict
        Family name to family, shipped ones first.

    Raises
    ------
    UsageRefused
        When a place has another form, cannot be imported, is no family, or takes a name that is taken.

    Examples
    --------
    >>> sorted(families_with(["verdiv.protocol.suite.functions:FunctionCalls"]))
    ['arithmetic', 'date', 'filter', 'function']
    """
    families = dict(FAMILIES)
    for place in places:
        module, colon, name = place.partition(":")
        if not (module and colon and name.isidentifier()):
            raise _refused("module:name", place, "write it so")
        try:
            found = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise _refused("a module that can be imported and its name", str(error), "check both") from error
        family = found() if isinstance(found, type) else found
        if not isinstance(family, Family):
            raise _refused("a family", type(family).__name__, "see docs/own-family.md")
        if family.name in families:
            raise _refused("a name that is free", family.name, "give the family another name")
        families[family.name] = family
    return families


def _refused(expected: str, got: str, remedy: str) -> UsageRefused:
    return UsageRefused("the family cannot be used", [Fault("--family", expected, got, remedy)])
