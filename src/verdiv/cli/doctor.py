"""``verdiv doctor``: what this installation has, and whether it works."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from verdiv import __version__
from verdiv.cli import options
from verdiv.cli.version import STACK, installed_versions

__all__ = ["app"]

app = options.command()

OPTIONAL = {
    "pyspark": "tallies on a cluster",
    "xllamacpp": "a local model server",
    "cryptography": "signatures of a lock",
}
"""Module to what it is for; verdiv works without them."""

GIB = 2**30

EXAMPLES = """\b
Examples:
  verdiv doctor
  verdiv doctor --quick                versions and machine only"""


def _memory() -> str:
    try:
        page, pages, free = (
            os.sysconf(name) for name in ("SC_PAGE_SIZE", "SC_PHYS_PAGES", "SC_AVPHYS_PAGES")
        )
    except (ValueError, OSError, AttributeError):
        return "unknown"
    return f"{page * pages / GIB:.1f} GiB, {page * free / GIB:.1f} GiB free"


def _cores() -> str:
    affinity = getattr(os, "sched_getaffinity", None)
    usable = len(affinity(0)) if affinity is not None else os.cpu_count()
    return f"{usable} usable of {os.cpu_count()}"


def _compiled() -> str:
    """Name the folder of compiled models, as the environment and the defaults say; nothing is imported."""
    flags = os.environ.get("PYTENSOR_FLAGS", "")
    named = [part.split("=", 1)[1] for part in flags.split(",") if part.startswith("base_compiledir=")]
    folder = Path(named[0] if named else "~/.pytensor").expanduser()
    numba = os.environ.get("NUMBA_CACHE_DIR")
    state = "in use" if folder.is_dir() else "not there yet: the first fit compiles for some seconds longer"
    return f"{folder} ({state})" + (f", numba in {numba}" if numba else "")


def _prices() -> None:
    from verdiv.pricing import closed

    quality = float(closed.feedback(2, 0.80, 0.18, 0.60, 0.99, 0.85).quality)
    if abs(quality - 0.96812) > 5e-6:
        raise ValueError(f"A3 at budget 2 is priced at {quality!r} instead of .96812")


def _registration() -> None:
    from verdiv.preregistration import read_preregistration

    units = read_preregistration("verifiers-dividend").worst_case_units
    if units != 28.5:
        raise ValueError(f"the shipped protocol costs {units!r} instead of 28.5 units a task")


def _bundled_run() -> None:
    from verdiv import fixtures
    from verdiv.runlog.reader import validate

    for name in fixtures.names("runs"):
        with fixtures.as_path("runs", name) as path:
            report = validate(path)
        if report.status != "complete":
            raise ValueError(f"the bundled run {name} is {report.status or 'refused'}")


def _disk() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "probe"
        file.write_bytes(b"verdiv")
        if file.read_bytes() != b"verdiv":
            raise OSError("a file written to the temporary folder reads back otherwise")


def _grid() -> None:
    import numpy as np
    from scipy import stats

    theta = np.linspace(0.0005, 0.9995, 1000)
    density = theta**7 * (1 - theta) ** 3
    mean = float((theta * density).sum() / density.sum())
    if abs(mean - stats.beta(8, 4).mean()) > 1e-4:
        raise ValueError(f"a Beta(8, 4) posterior has mean {mean!r} instead of {8 / 12!r}")


def _sampler() -> None:
    for module in ("pymc", "nutpie", "arviz"):
        if find_spec(module) is None:
            raise ImportError(f"{module} is not installed: `verdiv analyze --engine grid` works without it")


CHECKS: tuple[tuple[str, Callable[[], None]], ...] = (
    ("closed forms give the printed figures", _prices),
    ("the shipped registration reads", _registration),
    ("the bundled run is complete, its chain unbroken", _bundled_run),
    ("files can be written", _disk),
    ("quadrature agrees with the conjugate posterior", _grid),
    ("the sampler is installed", _sampler),
)


def _facts() -> Iterator[tuple[str, str]]:
    yield "verdiv", __version__
    yield "python", f"{platform.python_version()} ({sys.executable})"
    yield "system", f"{platform.system()} {platform.machine()}"
    yield "cores", _cores()
    yield "memory", _memory()
    yield (
        "temporary folder",
        f"{tempfile.gettempdir()}, {shutil.disk_usage(tempfile.gettempdir()).free / GIB:.1f} GiB free",
    )
    yield "compiled models", _compiled()
    for name, number in installed_versions(STACK).items():
        yield name, number or "NOT INSTALLED"
    for module, purpose in OPTIONAL.items():
        yield module, f"{'present' if find_spec(module) else 'absent'} (optional: {purpose})"


@app.command(epilog=EXAMPLES)
def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Leave out the self-checks.")] = False,
) -> int:
    """Print versions, machine and optional parts, then check that the parts work; 1 where one does not."""
    facts = list(_facts())
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        typer.echo(f"{name:<{width}}  {value}")
    if quick:
        return 0
    failed = 0
    typer.echo("")
    for title, check in CHECKS:
        try:
            check()
        except Exception as error:
            failed += 1
            typer.echo(f"FAILED  {title}: {error}")
        else:
            typer.echo(f"ok      {title}")
    return 1 if failed else 0
