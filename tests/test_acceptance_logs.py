"""Public logs end to end: convert, analyse, and compare with counts made independently."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from verdiv.analysis import analyze
from verdiv.analysis.fit import fit_model
from verdiv.analysis.gather import gather
from verdiv.estimators.settings import Settings
from verdiv.runlog.convert import convert
from verdiv.runlog.reader import read_run_logs
from verdiv.runlog.writer import write_run_log

SOURCES = {
    "reflexion-alfworld": "reflexion/alfworld",
    "intercode-sql": "intercode/sql/gpt-3.5/ic_sql_multiturn_gpt-3.5_10_turns_handicap.json",
    "cruxeval": "cruxeval",
    "structured-output": "structured_output_retry",
}


@pytest.fixture(scope="session")
def converted(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Convert a public log once and hand out its run log."""
    folder = tmp_path_factory.mktemp("runlogs")

    def made(name: str) -> Path:
        path = folder / f"{name}.runlog.jsonl"
        if not path.exists():
            found = convert(name, [shared_data / SOURCES[name]])
            assert found.ledger.closes
            write_run_log(path, found.header, found.draws)
        return path

    return made


@pytest.fixture(scope="session")
def analysed(converted: Callable[[str], Path]) -> Callable[[str], dict[str, Any]]:
    """Analyse a public log once, by the grid, without a registration."""
    cache: dict[str, dict[str, Any]] = {}

    def made(name: str) -> dict[str, Any]:
        if name not in cache:
            cache[name] = analyze([str(converted(name))], settings=Settings(draws=500)).document
        return cache[name]

    return made


def counts(document: dict[str, Any], name: str) -> tuple[int, int]:
    """K and n of an estimate."""
    record = document["estimates"][name]
    assert record["status"] == "estimated", record
    return record["k"], record["n"]


def expected(shared_data: Path) -> dict[str, Any]:
    """Independent counts."""
    found: dict[str, Any] = json.loads((shared_data / "EXPECTED.json").read_text())
    return found


def test_alfworld(analysed: Callable[[str], dict[str, Any]], shared_data: Path) -> None:
    """Two arms that share their first failures: q0, s_blind, s2, every hazard to the count, phi of both signs."""
    d = analysed("reflexion-alfworld")
    assert d["mode"] == "exploratory"
    assert d["gate"] == "truth"
    assert counts(d, "q0") == (84, 134)
    assert counts(d, "s_blind") == (10, 50)
    assert counts(d, "s2") == (19, 50)
    assert "unclassified" in d["estimates"]["s2"]["reason"]
    assert d["estimates"]["phi_matched"]["mean"] == pytest.approx(0.18, abs=0.02)
    assert d["estimates"]["phi"]["high"] < 0
    for name in ("delta", "sigma", "fpr", "s1"):
        assert d["estimates"][name]["status"] == "not_estimable"
        assert d["estimates"][name]["reason"]
        assert d["estimates"][name].get("mean") is None
    runs = expected(shared_data)["reflexion_alfworld"]
    for arm, key in (("A2s", "base_run_logs"), ("A3", "reflexion_run_logs")):
        found = {h["attempt"]: (h["k"], h["n"]) for h in d["hazards"] if h["arm"] == arm}
        wanted = {i + 2: (h["k"], h["n"]) for i, h in enumerate(runs[key]["hazard_by_attempt"])}
        assert found == wanted
    assert d["rules"]["P5"]["verdict"] in ("supported", "falsified", "inconclusive")
    for rule in d["rules"].values():
        assert rule["reason"]
        if rule["verdict"] == "untestable":
            assert "missing" in rule["reason"]


def test_intercode(analysed: Callable[[str], dict[str, Any]]) -> None:
    """A checker that sees few errors and no correct draw: counts, a bound on fpr, and classes whatever was flagged."""
    d = analysed("intercode-sql")
    assert counts(d, "q0") == (703, 1034)
    assert counts(d, "delta") == (37, 331)
    assert counts(d, "fpr") == (0, 753)
    assert counts(d, "fpr_initial") == (0, 703)
    assert counts(d, "s1") == (8, 37)
    assert counts(d, "s2") == (24, 294)
    bound = d["estimates"]["fpr"]
    exact = stats.beta.ppf(0.975, 1, 753)
    assert 0 < bound["high"] < 1.2 * exact
    assert bound["cross_check"]["method"] == "Clopper–Pearson"
    assert bound["cross_check"]["high"] == pytest.approx(exact)


def test_cruxeval(analysed: Callable[[str], dict[str, Any]]) -> None:
    """Draws stored grouped by text: order-free pairs to the count, and exchangeability predicts them."""
    d = analysed("cruxeval")
    q0 = d["estimates"]["q0"]["by_family"]
    assert {f: (r["k"], r["n"]) for f, r in q0.items()} == {"input": (2876, 8000), "output": (2737, 8000)}
    pairs, form = d["estimates"]["s_blind_pairs"], d["estimates"]["s_blind_exchangeable"]
    assert pairs["unit"] == "pairs"
    found = {f: (r["k"], r["n"]) for f, r in pairs["by_family"].items()}
    assert found == {"input": (3014, 46116), "output": (2089, 47367)}
    assert form["mean"] == pytest.approx(pairs["mean"], abs=0.01)
    for family in ("input", "output"):
        k, n = found[family]
        assert form["by_family"][family]["mean"] == pytest.approx(k / n, abs=0.01)


def test_structured_output(
    analysed: Callable[[str], dict[str, Any]], converted: Callable[[str], Path]
) -> None:
    """Two files of runs of one suite: first attempts and repairs of each, and together."""
    d = analysed("structured-output")
    assert counts(d, "q0") == (170 + 186, 192 + 192)
    assert counts(d, "s1") == (22 + 5, 22 + 6)
    table = read_run_logs([str(converted("structured-output"))]).draws
    first = table[table["attempt"] == 1].groupby(table["replicate"] // 3)["correct"].agg(["sum", "size"])
    repairs = table[table["attempt"] == 2].groupby(table["replicate"] // 3)["correct"].agg(["sum", "size"])
    assert sorted(map(tuple, first.to_numpy().tolist())) == [(170, 192), (186, 192)]
    assert sorted(map(tuple, repairs.to_numpy().tolist())) == [(5, 6), (22, 22)]


def demo_log() -> Path:
    """The bundled run."""
    from importlib.resources import files

    return Path(str(files("verdiv.fixtures") / "runs")) / "simulated-40.runlog.jsonl.zst"


@pytest.mark.fit
@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo", *list(SOURCES)[:3]])
def test_nuts_equals_the_grid(name: str, converted: Callable[[str], Path]) -> None:
    """Every stage by NUTS equals the quadrature to Monte-Carlo error: mean, and sd within a tenth."""
    path = demo_log() if name == "demo" else converted(name)
    gathered = gather(read_run_logs([str(path)]), None)
    fit = fit_model(gathered, Settings("nuts", seed=3))
    assert fit.diagnostics.status == "passed", fit.diagnostics.reasons
    gap = np.abs(fit.posterior.mean - fit.grid.mean)
    tolerance = 4.0 * fit.posterior.error[:, None] * fit.grid.sd
    reached = fit.summary.N > 0
    assert (gap <= tolerance)[reached].all()
    assert (np.abs(fit.posterior.sd / fit.grid.sd - 1.0) < 0.1)[reached].all()
    moved = fit.grid.mean + 0.3 * fit.grid.sd
    assert (np.abs(fit.posterior.mean - moved) > tolerance)[reached].any()
    if name == "cruxeval":
        block = next(b for b in fit.diagnostics.loo if b.block == "q")
        assert block.preferred == "correlated"
        assert block.difference > 10 * block.se
