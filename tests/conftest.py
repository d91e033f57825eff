"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

__all__ = ["shared_data", "shared_spec"]

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
