"""Time and memory of a whole process, and the machine it ran on."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Cost", "last_record", "machine", "measure"]


@dataclass(frozen=True)
class Cost:
    """What one process cost."""

    wall: float
    """Seconds from start to end."""
    cpu: float
    """Seconds of processor time, its finished children included."""
    peak: float
    """Largest resident memory of one of its processes, in megabytes."""
    ending: str
    """``finished``, ``limit`` (stopped at the time limit) or ``failed``."""


def measure(command: Sequence[str], *, limit: float, log: Path, accepted: Collection[int] = (0,)) -> Cost:
    """Run a command and return what it cost.

    Parameters
    ----------
    command
        Program and arguments.
    limit
        Seconds after which it is stopped, and all that it started with it.
    log
        File that takes what it prints.
    accepted
        Exit codes of a run that did its work.
    """
    start = time.perf_counter()
    ending = None
    with (
        log.open("wb") as out,
        subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True) as process,
    ):
        try:
            while True:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                if time.perf_counter() - start > limit:
                    ending = "limit"
                    os.killpg(process.pid, signal.SIGKILL)
                    _, status, usage = os.wait4(process.pid, 0)
                    break
                time.sleep(0.02)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if ending is None:
        ending = "finished" if process.returncode in accepted else "failed"
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, ending)


def last_record(log: Path) -> dict[str, object]:
    """Return the last line of a process's output that is a JSON object; empty where there is none."""
    for line in reversed(log.read_text(encoding="utf-8", errors="replace").splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(found, dict):
                return found
    return {}


def machine() -> dict[str, str]:
    """Describe the machine: processor, cores, memory, system, Python."""
    model = platform.processor() or "unknown"
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": model,
        "cores": str(os.cpu_count()),
        "memory": f"{pages * size / 2**30:.1f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
