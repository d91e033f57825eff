"""Processes that share work: what they give, and that none outlives an interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from verdiv.analysis.helpers import Helpers

SCRIPT = """
import sys, time
from verdiv.analysis.helpers import Helpers

if __name__ == "__main__":
    with Helpers(2) as helpers:
        print("started", flush=True)
        for _ in helpers.map(time.sleep, [0.01, 60.0, 60.0]):
            print("working", flush=True)
"""


def test_work_comes_back_in_order() -> None:
    """Pieces of work come back in the order in which they were given, from one process as from two."""
    for workers in (1, 2):
        with Helpers(workers) as helpers:
            assert list(helpers.map(pow, [2, 3, 4], [3, 2, 1])) == [8, 9, 4]
            assert list(helpers.map(abs, [-1])) == [1]


def test_an_error_in_a_helper_is_raised_where_the_work_was_given() -> None:
    """What a helper raises reaches the caller."""
    with pytest.raises(ZeroDivisionError), Helpers(2) as helpers:
        list(helpers.map(divmod, [1, 1], [1, 0]))


def gone_within(group: int, seconds: float) -> bool:
    """Wait for the last process of a group; it is a watcher of shared resources."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(os.name == "nt", reason="process groups are interrupted as POSIX has it")
@pytest.mark.parametrize("said", ["started", "working"])
def test_an_interrupt_ends_all_processes_at_once(said: str) -> None:
    """Ctrl-C while helpers start or work ends them within seconds, and only the caller has a word to say."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as made:
        assert made.stdout is not None
        while made.stdout.readline().strip() != said:
            pass
        begun = time.monotonic()
        os.killpg(made.pid, signal.SIGINT)
        _, told = made.communicate(timeout=50)
        assert time.monotonic() - begun < 30
    assert told.count("KeyboardInterrupt") == 1
    assert "SpawnProcess" not in told
    assert gone_within(made.pid, 10.0)
