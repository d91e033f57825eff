"""``verdiv price`` as a user meets it: speed, sources of parameters, documents, pictures, refusals."""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from verdiv.cli.app import run

__all__: list[str] = []


def output(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Run the command in this process and return what it printed, on error what it complained of."""
    capsys.readouterr()
    assert run(["price", *words]) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Run the command with --json and parse it, refusing NaN and infinity."""

    def refuse(text: str) -> Any:
        raise AssertionError(f"{text} is no JSON")

    found: dict[str, Any] = json.loads(output(capsys, *words, "--json"), parse_constant=refuse)
    return found


def row(found: dict[str, Any], arm: str, budget: int | str) -> dict[str, Any]:
    """Find one arm at one budget."""
    (one,) = [x for x in found["rows"] if (x["arm"], x["budget"]) == (arm, budget)]
    return dict(one)


def test_price_answers_in_under_a_second_with_numpy_alone() -> None:
    """The command costs less than a second of processor time and imports nothing heavier than NumPy."""
    script = (
        "import sys; from verdiv.cli.app import run; code = run(['price']);"
        "heavy = {'scipy', 'pandas', 'pymc', 'arviz', 'matplotlib', 'statsmodels', 'jsonschema', 'jinja2'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert (done.returncode, done.stderr.strip()) == (0, "[]")
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 1.0


def test_worked_set_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    """Without arguments the paper's worked set is priced, with break-even at two draws in regime (i)."""
    text = output(capsys)
    assert "0.96812" in text
    assert "verifier's message" in text
    found = document(capsys)
    assert row(found, "A3", 2)["quality"] == pytest.approx(0.96812)
    assert row(found, "A3", "inf")["bill"] == pytest.approx(1.1937968)
    assert found["break_even"]["B_star"] == 2
    assert found["break_even"]["regime"] == "i"
    assert found["protocol"]["expected"] == pytest.approx(15.333035668)
    assert found["summary"]["D_c"] == pytest.approx(0.1116)


def test_every_reproduced_claim_through_the_command(
    capsys: pytest.CaptureFixture[str], shared_spec: Path
) -> None:
    """The paper's own parameter file reproduces each claim marked reproduced at its printed precision."""
    claims = shared_spec / "paper-claims.toml"
    figures = document(capsys, "--params", str(claims))["figures"]
    with claims.open("rb") as file:
        listed = tomllib.load(file)["claim"]
    reproduced = [claim for claim in listed if claim["expect"] == "reproduced"]
    assert len(reproduced) > 35
    for claim in reproduced:
        value, printed = figures[claim["id"]]["value"], claim["value"]
        if isinstance(value, bool):
            assert str(value).lower() == printed
            continue
        unit = Decimal(1).scaleb(int(Decimal(printed).as_tuple().exponent))
        assert abs(Decimal(repr(round(value, 12))) - Decimal(printed)) <= unit / 2, claim["id"]


def test_parameters_of_ones_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A file replaces the worked set name by name, --set replaces the file, aliases resolve."""
    file = tmp_path / "mine.toml"
    file.write_text(
        "q0 = 0.5\ndelta = 0.8\ns2 = 0.3\nq_T = 0.7\np_dT = 0.2\ncost_small_usd = 0.01\ntasks = 7\n"
    )
    found = document(capsys, "--params", str(file), "--set", "sigma=0.25")
    assert found["parameters"]["p_d"] == pytest.approx(0.4)
    assert found["parameters"]["sigma"] == 0.25
    assert found["cost_small_usd"] == 0.01
    assert found["protocol"]["tasks"] == 7
    assert row(found, "A3", 2)["quality"] == pytest.approx(0.5 + 0.4 * (0.25 * 0.99 + 0.75 * 0.3))
    as_json = tmp_path / "mine.json"
    as_json.write_text(
        '{"parameters": {"q0": 0.5, "p_d": 0.4, "s2": 0.3, "sigma": 0.25, "q_T": 0.7, "p_dT": 0.2}}'
    )
    again = document(capsys, "--params", str(as_json))
    assert row(again, "A3", 2)["quality"] == row(found, "A3", 2)["quality"]
    assert document(capsys, "--set", "tasks=3")["protocol"]["tasks"] == 3


@pytest.mark.parametrize(
    "words,says",
    [
        (["--set", "sigma=2"], "sigma"),
        (["--set", "sigmma=.2"], "sigmma"),
        (["--set", "sigma"], "NAME=VALUE"),
        (["--set", "sigma=x"], "NAME=VALUE"),
        (["--set", "sigma=nan"], "sigma"),
        (["--set", "tasks=2.5"], "tasks"),
        (["--form", "fresh", "--set", "fpr=.1"], "fpr"),
        (["--form", "hazards"], "hazard"),
        (["--hazard1", ".9"], "hazard2"),
        (["--hazard1", ".9", "--hazard2", "x"], "hazard2"),
        (["--protocol", "A3=x"], "A3=x"),
        (["--params", "absent.toml"], "absent.toml"),
        (["design", "abc", "27.5"], "abc"),
        (["design", "15.33", "27.5", "--votes", "4"], "odd"),
        (["sweep", "sigma"], "sigma"),
        (["sweep", "sigma=0:1:3", "phi=0:.1:3", "rho=1:2:3"], "one or two"),
        (["sweep", "sigma=0:1:3", "--votes", "4"], "odd"),
        (["turns", "0.5"], "turn 1"),
        (["turns", "x"], "P_D"),
        (["--fit", "absent"], "absent"),
    ],
)
def test_refusals_name_their_cause(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    """Unusable words end with 2 and a message that names them."""
    assert says in output(capsys, *words, code=2)


@pytest.mark.parametrize(
    "name,content",
    [
        ("a.toml", b"q0 = \xff"),
        ("a.toml", b"q0 = "),
        ("a.json", b"[1]"),
        ("a.json", b"[" * 100_000),
        ("a.toml", b"q0 = true\n"),
        ("a.toml", b"tasks = 'x'\n"),
        ("a.toml", b"x" * 1_000_001),
    ],
)
def test_hostile_parameter_files_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, content: bytes
) -> None:
    """Bytes that are no parameters are refused with the file's name, without a traceback."""
    file = tmp_path / name
    file.write_bytes(content)
    said = output(capsys, "--params", str(file), code=2)
    assert name in said
    assert "Traceback" not in said


def test_csv_holds_the_rows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The CSV has a row an arm and budget with the document's figures; an existing file is not overwritten."""
    target = tmp_path / "prices.csv"
    found = document(capsys, "--csv", str(target))
    with target.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found["rows"])
    (line,) = [x for x in rows if (x["arm"], x["budget"]) == ("A3", "2")]
    assert float(line["quality"]) == row(found, "A3", 2)["quality"]
    output(capsys, "--csv", str(target), code=2)
    output(capsys, "--csv", str(target), "--force")


def test_frontier_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The picture is a well-formed SVG file of its own with teacher, ceiling and break-even named."""
    target = tmp_path / "frontier.svg"
    output(capsys, "--svg", str(target))
    tree = ET.parse(target)
    assert tree.getroot().tag == "{http://www.w3.org/2000/svg}svg"
    words = " ".join(tree.getroot().itertext())
    for named in ("teacher", "static ceiling", "B* = 2", "--c0"):
        assert named in words


def test_sweep_map_and_rows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A sweep over two parameters gives a grid, rows and a map whose legend names the budgets met."""
    target, table = tmp_path / "map.svg", tmp_path / "map.csv"
    words = ("sweep", "sigma=0:1:11", "D=0.05:0.2:16", "--svg", str(target), "--csv", str(table))
    found = document(capsys, *words)
    assert len(found["B_star"]) == 11
    assert {len(column) for column in found["B_star"]} == {16}
    drawn = " ".join(ET.parse(target).getroot().itertext())
    assert "B* = 2" in drawn
    assert "none" in drawn
    with table.open(newline="") as file:
        assert len(list(csv.reader(file))) == 11 * 16 + 1
    output(capsys, "sweep", "sigma=0:1:11", "--svg", str(tmp_path / "line.svg"), code=2)
    regimes = tmp_path / "regimes.svg"
    output(capsys, "sweep", "sigma=0:1:11", "D=0.05:0.2:16", "--map", "regime", "--svg", str(regimes))
    assert "regime iii" in " ".join(ET.parse(regimes).getroot().itertext())


def test_design_explains_the_conflict(capsys: pytest.CaptureFixture[str]) -> None:
    """The published pair is traced to its uneven budgets, and the reading in which it conflicts is told."""
    text = output(capsys, "design", "15.33", "27.5")
    for said in ("A2s 4, A3 5", "A2s 3, A3 6", "conflict", "28.5, not 27.5", "14.33, not 15.33"):
        assert said in " ".join(text.split())
    found = document(capsys, "design", "15.33", "27.5")
    assert len(found["both"]) == 4


def test_turns_and_forms_and_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """The other views print their answers as text and as JSON."""
    assert "meets the teacher at B = 2" in output(capsys, "turns", "0.18,0.12,0.05")
    assert document(capsys, "turns", "0.18,0.12")["uniform"]["B_star"] == 2
    text = output(capsys, "forms", "--set", "icc_s2=0.4", "--hazard1", ".99", "--hazard2", ".85,.4")
    for name in ("class-stable", "fresh", "correlated", "hazards", "neglects icc_s2"):
        assert name in text
    assert "fresh above class-stable" in output(capsys, "figures")
    edge = ("--set", "q0=0", "--set", "p_d=1", "--set", "s1=0", "--set", "s2=0", "--set", "q_T=0")
    assert document(capsys, *edge)["break_even"]["B_star"] == 1
    output(capsys, *edge)


def _fit(tmp_path: Path, **changes: Any) -> Path:
    """Write a results document with a few estimates."""

    def rate(mean: float, sd: float) -> dict[str, Any]:
        band = {"mean": mean, "median": mean, "sd": sd, "low": mean - 2 * sd, "high": mean + 2 * sd}
        return {"status": "estimated", "source": "model", **band, "model": band, "direct": None}

    estimates = {
        "q0": rate(0.76, 0.04),
        "q0_greedy": rate(0.8, 0.03),
        "p_d": rate(0.18, 0.03),
        "p_s": rate(0.02, 0.01),
        "delta": rate(0.9, 0.02),
        "sigma": rate(0.6, 0.05),
        "s1": rate(0.95, 0.02),
        "s2": rate(0.7, 0.05),
        "q_t": rate(0.9, 0.02),
        "delta_t": rate(0.8, 0.05),
    }
    found: dict[str, Any] = {
        "schema": 1,
        "gate": "verifier",
        "estimates": estimates,
        "frontier": [
            {
                "arm": "A3",
                "budget": 2,
                "quality": 0.93,
                "bill": 1.2,
                "direct": {
                    "quality": {"mean": 0.93, "low": 0.88, "high": 0.97},
                    "bill": {"mean": 1.2, "low": 1.1, "high": 1.3},
                    "chains": 120,
                },
                "model": None,
            }
        ],
        "preregistration": {"plan": {"rate_card": {"rho": 2.0, "cost_small_usd": 0.002}}},
    } | changes
    folder = tmp_path / "out"
    folder.mkdir(exist_ok=True)
    (folder / "results.json").write_text(json.dumps(found))
    return folder


@pytest.fixture
def accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a results document as it is: its schema has tests of its own."""
    from verdiv.reports import schema

    monkeypatch.setattr(schema, "load_document", lambda path: json.loads(Path(path).read_text()))


@pytest.mark.usefixtures("accepted")
def test_fit_gives_every_curve_an_interval(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """From a fit, figures have intervals, break-even has probabilities, and A1 follows the sampled draws."""
    folder = _fit(tmp_path)
    found = document(capsys, "--fit", str(folder))
    quality = row(found, "A3", 2)["quality"]
    want = 0.8 + 0.18 * (0.6 * 0.95 + 0.4 * 0.7)
    assert quality["mean"] == pytest.approx(want, abs=0.005)
    assert quality["low"] < want < quality["high"]
    assert row(found, "A0", 1)["quality"]["mean"] == pytest.approx(0.8, abs=0.003)
    assert row(found, "A1", 1)["quality"]["mean"] == pytest.approx(0.76, abs=0.003)
    assert sum(found["break_even"]["B_star"].values()) == pytest.approx(1.0)
    assert found["parameters"]["rho"] == 2.0
    assert found["cost_small_usd"] == 0.002
    assert found["fit_frontier"][0]["arm"] == "A3"
    assert "measured quality" in output(capsys, "--fit", str(folder))
    assert document(capsys, "--fit", str(folder)) == found  # the same seed, the same document
    target = tmp_path / "fit.svg"
    output(capsys, "--fit", str(folder), "--svg", str(target))
    ET.parse(target)


@pytest.mark.usefixtures("accepted")
def test_fit_names_what_it_could_not_estimate(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What a fit lacks comes from the parameters given and is named; a failed fit prices nothing."""
    folder = _fit(tmp_path)
    lacking = json.loads((folder / "results.json").read_text())
    for name in ("sigma", "s1", "q_t", "delta"):
        lacking["estimates"][name] = {"status": "not_estimable", "reason": "absent"}
    lacking["gate"] = "truth"
    (folder / "results.json").write_text(json.dumps(lacking))
    notes = " ".join(document(capsys, "--fit", str(folder))["notes"])
    for said in ("unclassified", "gate was the truth", "s1", "q_T"):
        assert said in notes
    lacking["diagnostics"] = {"status": "failed"}
    (folder / "results.json").write_text(json.dumps(lacking))
    assert "failed" in output(capsys, "--fit", str(folder), code=2)


@pytest.mark.usefixtures("accepted")
def test_what_is_set_by_hand_has_no_interval(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """--set over a fit fixes the parameter, and every name bound to it, and says so."""
    folder = _fit(tmp_path)
    found = document(capsys, "--fit", str(folder), "--set", "phi=0")
    assert "phi = 0" in " ".join(found["notes"])
    phi = found["parameters"]["phi"]
    assert (phi["low"], phi["high"]) == pytest.approx((0.0, 0.0))
    assert "fit_frontier" not in found
    swept = document(capsys, "sweep", "D=0.05,0.2", "--fit", str(folder))
    assert swept["draws"] > 0
    for i in range(2):
        assert sum(share[i] for share in swept["B_share"].values()) == pytest.approx(1.0)
