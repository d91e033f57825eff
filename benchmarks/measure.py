"""Time and memory of a whole process, and the machine it ran on."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """What one process cost."""

    wall: float
    """Seconds from start to end."""
    cpu: float
    """Seconds of processor time, all its processes together."""
    peak: float
    """Largest resident memory of one of its processes, in megabytes."""
    finished: bool
    """False where it was stopped at the time limit or failed."""


def measure(command: Sequence[str], *, limit: float, log: Path) -> Cost:
    """Run a command and return what it cost.

    Parameters
    ----------
    command
        Program and arguments.
    limit
        Seconds after which it is stopped.
    log
        File that takes what it prints.
    """
    start = time.perf_counter()
    with log.open("ab") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
        deadline = start + limit
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                break
            if time.perf_counter() > deadline:
                process.kill()
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = -9
                break
            time.sleep(0.02)
    wall = time.perf_counter() - start
    done = process.returncode in (0, 1)
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, done)


def machine() -> dict[str, str]:
    """Describe the machine: processor, cores, memory, system, Python."""
    model = "unknown"
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
        "load at start": f"{os.getloadavg()[0]:.2f}",
        "largest descriptor": str(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
    }
