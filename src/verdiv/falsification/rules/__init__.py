"""The ten rules: a table of what they claim, and small evaluators that build their parts."""

from __future__ import annotations

from verdiv.falsification.rules.table import RULES, RuleSpec, evaluate_rules

__all__ = ["RULES", "RuleSpec", "evaluate_rules"]
