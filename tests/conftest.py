"""Fixtures that every test may use."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from spark_session import SUBMIT, why_not

__all__ = ["shared_data", "shared_spec", "spark"]

ROOT = Path(__file__).resolve().parent.parent

# A busy machine is no fault of the code under test: speed has tests of its own, in processor time.
# Where a change is judged, the same examples are tried every time; everywhere else new ones are looked for.
settings.register_profile("verdiv", deadline=None)
settings.register_profile("judged", deadline=None, derandomize=True)
settings.load_profile("judged" if os.environ.get("CI") else "verdiv")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of public run logs with independently counted answers; the test skips where it is absent.

    The environment variable ``VERDIV_DATA`` names it; the default stands beside the repository.
    """
    named = os.environ.get("VERDIV_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no folder of public logs at {folder}: name one with VERDIV_DATA")
    return folder


@pytest.fixture(scope="session")
def shared_spec() -> Path:
    """Folder of the paper's printed figures; the test skips where it is absent.

    The environment variable ``VERDIV_SPEC`` names it; the default stands beside the repository.
    """
    named = os.environ.get("VERDIV_SPEC")
    folder = Path(named) if named else ROOT.parent / "shared" / "spec"
    if not folder.is_dir():
        pytest.skip(f"no folder of printed figures at {folder}: name one with VERDIV_SPEC")
    return folder


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark session of this process; tests that ask for it skip where Spark cannot start."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", SUBMIT)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = SparkSession.builder.appName("tests").getOrCreate()
        yield session
        session.stop()
