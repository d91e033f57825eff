"""What was planned: the registration's schema and reader, and the plan of an exploratory analysis."""

from __future__ import annotations

from verdiv.preregistration.defaults import default_preregistration
from verdiv.preregistration.plan import PREREGISTRATION_SCHEMA, Preregistration
from verdiv.preregistration.reader import check_coverage, read_preregistration
from verdiv.preregistration.rules import RULE_IDS

__all__ = [
    "PREREGISTRATION_SCHEMA",
    "RULE_IDS",
    "Preregistration",
    "check_coverage",
    "default_preregistration",
    "read_preregistration",
]
