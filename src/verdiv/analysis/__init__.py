"""The main job: run logs and a registration in; results, report and verdicts out."""

from __future__ import annotations

from verdiv.analysis.outputs import write_outputs
from verdiv.analysis.run import AnalysisResult, analyze, analyze_log

__all__ = ["AnalysisResult", "analyze", "analyze_log", "write_outputs"]
