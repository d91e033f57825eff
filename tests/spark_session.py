"""Spark in local mode, for the tests that need it."""

from __future__ import annotations

import importlib.util
import os
import shutil

__all__ = ["SUBMIT", "why_not"]

SUBMIT = (
    "--master local[1] --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2 "
    "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN "
    "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"
)
"""Spark on one core; what is compared is small, and compiling queries would take longer than running them."""


def why_not() -> str | None:
    """Say what Spark lacks here, None where it can start."""
    if importlib.util.find_spec("pyspark") is None:
        return "no PySpark here: make spark"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "no Java here: install version 17 or newer, or set JAVA_HOME"
    return None
