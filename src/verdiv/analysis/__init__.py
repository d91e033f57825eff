"""The main job: run logs and a registration in; results, report and verdicts out."""

from __future__ import annotations

from verdiv.analysis.outputs import write_outputs
from verdiv.analysis.run import AnalysisResult, analyze, analyze_log
from verdiv.estimators.settings import Settings

__all__ = ["AnalysisResult", "Settings", "analyze", "analyze_log", "write_outputs"]
