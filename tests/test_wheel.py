"""The built wheel, used from outside the tree."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from verdiv import __version__, fixtures

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.xdist_group("wheel")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel once."""
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a folder of its own, without its dependencies, which are here already."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(folder),
    ]
    done = subprocess.run([*command, str(wheel)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def outside(site: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the installed package, in a folder that is not the tree."""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    """Code, schemas, templates, fixtures and the typing marker are packed; tests and caches are not."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("verdiv/")}
        other = {name.split("/")[0] for name in archive.namelist()} - {"verdiv"}
        licence = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
    tree = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "verdiv").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == tree
    assert other == {f"verdiv-{__version__}.dist-info"}
    assert len(licence) == 1
    assert "verdiv/py.typed" in packed


def test_the_installed_command_runs_outside_the_tree(installed: Path, tmp_path: Path) -> None:
    """The script of the wheel starts the wheel's code, not the tree's, and says its version."""
    where = outside(installed, tmp_path, "-c", "import verdiv; print(verdiv.__file__)")
    assert Path(where.stdout.strip()).is_relative_to(installed)
    done = outside(installed, tmp_path, str(installed / "bin" / "verdiv"), "--version")
    assert (done.returncode, done.stdout) == (0, f"verdiv {__version__}\n"), done.stderr


def test_shipped_files_are_found_outside_the_tree(installed: Path, tmp_path: Path) -> None:
    """Templates, registrations and mappings are read from the wheel."""
    for kind in ("preregistration", "mapping"):
        done = outside(installed, tmp_path, "-m", "verdiv", "init", kind)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / f"{kind}.toml").read_bytes() == fixtures.read_bytes("templates", kind)
    done = outside(installed, tmp_path, "-m", "verdiv", "doctor")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", fixtures.names("runs"))
def test_bundled_runs_validate_outside_the_tree(name: str, installed: Path, tmp_path: Path) -> None:
    """Every bundled run is complete and unbroken, judged by the installed command."""
    with fixtures.as_path("runs", name) as path:
        done = outside(installed, tmp_path, "-m", "verdiv", "validate", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "complete" in done.stdout
