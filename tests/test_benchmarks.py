"""The benchmark suite's own arithmetic, layout and memory; nothing is timed here but a process that sleeps."""

from __future__ import annotations

import json
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.data import Recipe, counted, facts_of, make
from benchmarks.growth import extrapolated, fit_growth
from benchmarks.measure import Cost, last_record, machine, measure
from benchmarks.picture import axes_picture, rows_picture
from benchmarks.plan import AXES, LABELS, OWN, RIVALS, Tools, cells, recipes
from benchmarks.store import Record, Results, read_results, record_of, unmeasured, write_results
from benchmarks.tables import axis_costs, document, goals, ratio, rows_table

SIZES = {"1e3": 1012, "1e4": 10_105, "1e5": 100_374, "1e6": 1_000_150, "1e7": 10_001_500}


def done(wall: float, **changes: object) -> Record:
    """Return the record of a cell that finished, of one run."""
    return replace(Record(wall, wall * 0.9, 100.0, "finished", (wall,)), **changes)  # type: ignore[arg-type]


@pytest.fixture
def results() -> Results:
    """Measurements that follow laws: a report of 2 s + 10 µs a draw, a tally of 1 µs a draw, a peer that is stopped."""
    found = Results({"processor": "a chip", "cores": "2"}, 240.0, {"verdiv": "0.1.0"})
    found.logs["demo"] = {"draws": 2373, "tasks": 40, "families": 3, "patterns": 39, "rows": 1080}
    for recipe in recipes():
        draws = SIZES.get(recipe.name, 100_000)
        if recipe.name != "demo":
            tasks = recipe.tasks * recipe.copies
            shape = {"draws": draws, "tasks": tasks, "families": recipe.families, "patterns": recipe.tasks}
            found.logs[recipe.name] = {**shape, "rows": draws // 2} if draws < 200_000 else shape
            found.cells[f"{recipe.name}/tally"] = done(1e-6 * draws)
            found.cells[f"{recipe.name}/from-tally"] = done(2.0)
        if draws <= 1_000_150:
            found.cells[f"{recipe.name}/results"] = done(2.0 + 1e-5 * draws)
            found.cells[f"{recipe.name}/report"] = done(3.0 + 1e-5 * draws)
    found.cells["demo/results"], found.cells["demo/report"] = done(2.0), done(4.0)
    found.cells["demo/peer-tasks"] = done(30.0, ess=1500.0)
    found.cells["1e5/peer-tasks"] = Record(240.1, 239.0, 900.0, "limit", (240.1,))
    return found


def row(lines: list[str], label: str) -> list[str]:
    """Return the cells of a table's row."""
    (found,) = [line for line in lines if line.startswith(f"| {label} |")]
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_exponent_of_a_power_law() -> None:
    """An exact power law gives its exponent and factor back, whatever the spacing of the sizes."""
    law = fit_growth({s: 3e-4 * s**1.37 for s in (1e3, 2e3, 7e4, 1e6)})
    assert law is not None
    assert law.exponent == pytest.approx(1.37, abs=1e-9)
    assert law.factor == pytest.approx(3e-4, rel=1e-9)
    assert law.at(1e9) == pytest.approx(3e-4 * 1e9**1.37, rel=1e-9)


def test_last_decades_alone() -> None:
    """Start-up flattens a fit to all sizes; one to the last decades sees what grows, sizes a little off included."""
    costs = {s: 2.0 + 1e-5 * s for s in (1e3, 1e4, 0.98e6, 1.02e5 * 1e2, 1e8)}
    flat, steep = fit_growth(costs), fit_growth(costs, decades=2)
    assert flat is not None
    assert steep is not None
    assert flat.exponent < 0.8 < 0.9 < steep.exponent < 1.0
    assert steep.points == 3


def test_no_exponent_from_one_size() -> None:
    """One size has no growth, and costs that are not positive are refused."""
    assert fit_growth({}) is None
    assert fit_growth({1e3: 1.0}) is None
    assert fit_growth({1e3: 1.0, 1e7: 5.0}, decades=2) is None
    with pytest.raises(ValueError, match="positive"):
        fit_growth({1e3: 0.0, 1e4: 1.0})


def test_extrapolation_starts_at_the_largest_measurement() -> None:
    """What is carried on joins what was measured and follows the last decades' exponent; never inside the measured."""
    costs = {1e3: 5.0, 1e5: 1.0, 1e6: 4.0, 1e7: 100.0}
    law = fit_growth(costs, decades=2)
    assert law is not None
    assert extrapolated(costs, 1e7) == pytest.approx(100.0)
    assert extrapolated(costs, 1e9) == pytest.approx(100.0 * 100**law.exponent)
    assert extrapolated({1e3: 1.0}, 1e9) is None
    assert extrapolated({1e3: 4.0, 1e4: 3.0}, 1e9) == pytest.approx(3.0)
    with pytest.raises(ValueError, match="inside"):
        extrapolated(costs, 1e6)


def test_median_of_runs_and_worst_ending() -> None:
    """A cell's record is its median run; one run that was stopped makes the cell stopped."""
    runs = [Cost(wall, wall, 1.0, "finished") for wall in (9.0, 1.0, 2.0)]
    assert record_of(runs, load=0.1, ess=None).wall == 2.0
    assert record_of(runs[:2], load=0.1, ess=None).wall == 1.0
    stopped = record_of([*runs, Cost(240.0, 1.0, 1.0, "limit")], load=0.1, ess=None)
    assert (stopped.ending, stopped.wall) == ("limit", 240.0)


def test_resume_keeps_what_is_known(results: Results, tmp_path: Path) -> None:
    """Finished cells and those stopped at the limit are kept through a file; failed and new ones are measured."""
    results.cells["1e3/gee"] = done(1.0, ending="failed")
    path = tmp_path / "results.json"
    write_results(path, results)
    read = read_results(path)
    assert read == results
    keys = ["demo/results", "1e5/peer-tasks", "1e3/gee", "1e4/gee"]
    assert unmeasured(keys, read) == ["1e3/gee", "1e4/gee"]
    assert unmeasured(keys, read, only="1e4/*") == ["1e4/gee"]
    assert unmeasured(keys, read, again="demo/*") == ["demo/results", "1e3/gee", "1e4/gee"]
    read.limit = 600.0
    assert "1e5/peer-tasks" in unmeasured(keys, read)


def test_other_machine_or_form_refused(results: Results, tmp_path: Path) -> None:
    """Numbers of two machines are never mixed, nor is a file of another form read."""
    path = tmp_path / "results.json"
    assert read_results(path) is None
    write_results(path, results)
    assert read_results(path, machine=results.machine) == results
    with pytest.raises(SystemExit, match="another machine"):
        read_results(path, machine={**results.machine, "cores": "64"})
    path.write_text(json.dumps({"schema": 2}), encoding="utf-8")
    with pytest.raises(SystemExit, match="schema"):
        read_results(path)


def test_ratio_says_where_it_is_a_bound() -> None:
    """A rival that was stopped gives a lower bound and says so; failed or missing cells give no ratio."""
    own, stopped = done(2.0), done(240.0, ending="limit")
    assert ratio(own, done(30.0), lambda record: record.wall) == "15"
    assert ratio(own, done(15.0), lambda record: record.wall) == "7.5"
    assert ratio(own, stopped, lambda record: record.wall) == "over 120"
    assert ratio(stopped, done(30.0), lambda record: record.wall) == "—"
    assert ratio(own, done(1.0, ending="failed"), lambda record: record.wall) == "—"
    assert ratio(own, None, lambda record: record.wall) == "—"


def test_goals_are_judged_on_their_figures(results: Results) -> None:
    """A goal counts as reached by the measured ratio alone: 30 s against 2 s and 4 s miss 20 and 10, 40 s meet them."""
    first, second = goals(results)
    assert "15 times" in first
    assert first.endswith("20 is wanted of the fit alone: not reached.")
    assert "7.5 times" in second
    assert second.endswith("10 is wanted of the fit alone: not reached.")
    results.cells["demo/peer-tasks"] = done(40.0)
    assert all(line.endswith("alone: reached.") for line in goals(results))
    results.cells["demo/peer-full"] = done(400.0)
    (whole,) = [line for line in goals(results) if "200 times" in line]
    assert "wanted" not in whole


def test_rows_table_extrapolates_from_the_largest_only(results: Results) -> None:
    """The column on paper is there for what was measured at ten million draws, and missing for what was not."""
    lines = rows_table(results)
    tally = row(lines, LABELS["tally"])
    assert tally[1].startswith("0.00 s")
    assert tally[-3:] == ["1.00", "1.00", "1,000 s / 1,000 s"]
    report = row(lines, LABELS["report"])
    assert (report[-4], report[-1]) == ("—", "—")
    summed = row(lines, "verdiv tally, log to counts + counts to full report")
    assert summed[-4].startswith("12.0 s")
    del results.cells["1e6/tally"], results.cells["1e7/tally"]
    assert row(rows_table(results), LABELS["tally"])[-1] == "—"


def test_axis_adds_two_programs(results: Results) -> None:
    """Tally and report after it add in time and not in memory, and only where both finished."""
    results.cells["1e4/from-tally"] = done(2.0, peak=300.0)
    found = axis_costs(results, "rows", "tally+from-tally")
    assert found[10_105].wall == pytest.approx(2.0 + 1e-6 * 10_105)
    assert found[10_105].peak == 300.0
    results.cells["1e4/tally"] = done(1.0, ending="failed")
    assert 10_105 not in axis_costs(results, "rows", "tally+from-tally")


def test_page_is_whole(results: Results) -> None:
    """Every table of the page is rectangular; machine, versions, bounds and effective samples stand in it."""
    page = document(results, picture="a.svg", axes="b.svg")
    tables = [block.splitlines() for block in page.split("\n\n") if block.startswith("|")]
    widths = [{line.count("|") for line in table} for table in tables]
    assert len(widths) == 8
    assert all(len(found) == 1 for found in widths)
    for words in (
        "a chip",
        "verdiv 0.1.0",
        "not in 240 s",
        "over 80",
        "50 (1,500)",
        "extrapolated",
        "(a.svg)",
        "(b.svg)",
    ):
        assert words in page


def test_pictures_tell_measured_from_not(results: Results) -> None:
    """The pictures are well-formed SVG with a legend; what was stopped or carried on is hollow and dashed."""
    root = ElementTree.fromstring(rows_picture(results))
    words = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {LABELS[one] for one in ("report", "tally", "from-tally", "peer-tasks")} <= set(words)
    hollow = [one for one in root.iter() if "hollow" in one.get("class", "")]
    assert len(hollow) == 3
    del results.cells["1e5/peer-tasks"], results.cells["1e7/tally"], results.cells["1e7/from-tally"]
    assert "hollow" not in rows_picture(results).partition("</style>")[2]
    ElementTree.fromstring(axes_picture(results))


def test_axes_vary_one_thing() -> None:
    """Along tasks, families and patterns the recipes hold everything else: the names of an axis say what moves."""
    for axis in ("tasks", "families", "patterns"):
        found = AXES[axis]
        moved = {
            "tasks": {one.tasks for one in found},
            "families": {one.families for one in found},
            "patterns": {one.tasks for one in found},
        }
        assert len(moved[axis]) == 4
        if axis != "families":
            assert {one.families for one in found} == {3}
        if axis != "tasks":
            assert {one.replicates for one in found} == {3}
            assert {one.tasks * one.copies for one in found} <= set(range(2075, 2090))
        else:
            assert {one.copies for one in found} == {1}


def test_plan_leaves_out_what_is_not_installed(tmp_path: Path) -> None:
    """Without their interpreters no rival is planned; names of cells are unique; no whole log is read beyond a size."""
    alone = cells(Tools(tmp_path, None, None))
    assert {cell.subject for cell in alone} == set(OWN)
    everything = cells(Tools(tmp_path, "python-r", "python-p"))
    keys = [cell.key for cell in everything]
    assert len(set(keys)) == len(keys)
    assert {cell.subject for cell in everything} == {*OWN, *RIVALS}
    assert "1e6/report" in keys
    assert "1e7/report" not in keys
    assert [cell.command[0] for cell in everything if cell.subject == "peer-tasks"] == ["python-p"] * 4


def test_copies_multiply_tasks_and_not_patterns(tmp_path: Path) -> None:
    """A log of copied tasks has their draws and tasks several times and the patterns once; its facts are kept."""
    once, thrice = Recipe("once", 14), Recipe("thrice", 14, copies=3)
    first, second = make(once, tmp_path), make(thrice, tmp_path)
    assert second["draws"] == 3 * first["draws"]
    assert second["tasks"] == 3 * first["tasks"] == 42
    assert second["patterns"] == first["patterns"] <= 14
    assert second["rows"] == 3 * first["rows"]
    assert facts_of(thrice, tmp_path) == second
    told = {name: value for name, value in second.items() if name != "rows"}
    assert counted(thrice.log(tmp_path), tmp_path) == told
    assert facts_of(replace(thrice, copies=4), tmp_path) is None


def ended(pid: int, *, within: float) -> bool:
    """Wait until a process is gone, or dead and not yet collected."""
    state, deadline = Path(f"/proc/{pid}/stat"), time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            if state.read_text().split()[2] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_process_stopped_with_its_children(tmp_path: Path) -> None:
    """At the limit a process ends together with what it started, and the ending says which it was."""
    log, child = tmp_path / "said.txt", tmp_path / "child"
    code = (
        "import subprocess, sys, time\n"
        f"p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(child)!r}, 'w').write(str(p.pid))\n"
        "time.sleep(600)\n"
    )
    stopped = measure([sys.executable, "-c", code], limit=6.0, log=log)
    assert stopped.ending == "limit"
    assert ended(int(child.read_text()), within=20.0)
    failed = measure([sys.executable, "-c", "raise SystemExit(1)"], limit=60.0, log=log)
    assert failed.ending == "failed"
    said = measure(
        [sys.executable, "-c", "print('{\"ess\": 7}'); print('{no')"], limit=60.0, log=log, accepted=(0, 1)
    )
    assert said.ending == "finished"
    assert last_record(log) == {"ess": 7}
    assert set(machine()) == {"processor", "cores", "memory", "system", "python"}


def test_peer_script_says_what_is_missing(tmp_path: Path) -> None:
    """Where HiBayES cannot be imported its script ends with one plain sentence and no traceback."""
    script = Path(__file__).resolve().parent.parent / "benchmarks" / "rivals" / "hibayes_fit.py"
    log = tmp_path / "said.txt"
    ended = measure([sys.executable, "-S", str(script), "rows.csv"], limit=60.0, log=log)
    assert ended.ending == "failed"
    assert log.read_text().startswith("HiBayES is not installed")
    assert len(log.read_text().splitlines()) == 1
