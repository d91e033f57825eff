"""Tables of the measurements as Markdown: pure functions of results.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import log10

from benchmarks.growth import extrapolated, fit_growth
from benchmarks.plan import AXES, LABELS, RIVALS
from benchmarks.store import Record, Results

__all__ = ["COUNTED", "FAR", "axis_costs", "carried_on", "document", "goals", "ratio", "rows_table"]

GOALS = {"results": 20.0, "report": 10.0}
"""How many times faster than the peer's fit alone these are wanted."""

FAR = 1e9
"""Draws that costs are carried on to, on paper."""

REACH = 2.05
"""Powers of ten beyond the largest measurement that a law is trusted for."""

DECADES = 1.0
"""Powers of ten that the second exponent is fitted to."""

COUNTED = {"rows": "draws", "tasks": "tasks", "families": "families", "patterns": "patterns"}
"""Axis to the number of a log that grows along it."""

NOTHING = "—"

PAGE = """
A measurement is one whole process, start-up included: seconds of wall time, in brackets seconds of processor time and
megabytes at peak. Short ones run up to three times, and the median stands. A program that is not done after
{limit:.0f} s is stopped.
----
verdiv reads the whole log and reports on every stage, arm and rule. The others see the scored first draws of the small
model as a table of rows (task, family, correct) and fit one rate: a part of the question, so the ratios understate what
the report would cost by their means. HiBayES is run as far as its fit, without its checks, plots and tables, and groups
the rows into counts first, as its guide has it. On some logs it is timed row by row too, with its model of tasks within
families, and as its whole command with checks and plots. GEE has no posterior.
----
Smallest bulk effective sample size among what is estimated, a second of the whole process; in brackets the effective
sample size. verdiv's is the smallest of all stages it fits; the others' that of the mean and scales of their one rate.
----
An exponent of 1 is cost in proportion to draws. Start-up hides growth at small sizes, so the second exponent is fitted
to the last power of ten alone. The last column was not measured: it carries the largest measurement on, first by that
exponent, then in proportion to draws, which is what to plan with; memory grows too, with tasks. Above a million draws a
log is tallied first.
----
Each is varied alone; what is held is in the first lines. As draws are held too, fewer tasks have more seeds each. A
pattern is a family with one set of a task's counts; few of them come from the same tasks under many names.
"""
"""Paragraphs of the page, in order."""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def seconds(value: float) -> str:
    """Write seconds with two significant digits below ten, and whole from a hundred on."""
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _times(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def _cost(record: Record | None) -> str:
    if record is None:
        return NOTHING
    if record.ending == "limit":
        return f"not in {record.wall:.0f} s ({record.peak:,.0f} MB)"
    if record.ending == "failed":
        return "failed"
    return f"{seconds(record.wall)} s ({seconds(record.cpu)} s, {record.peak:,.0f} MB)"


def _logs(results: Results, axis: str) -> list[str]:
    return [recipe.name for recipe in AXES[axis] if recipe.name in results.logs]


def _head(results: Results, logs: Iterable[str]) -> list[str]:
    found = []
    for name in logs:
        facts = results.logs[name]
        what = "shipped run" if name == "demo" else f"about {10 ** round(log10(facts['draws'])):,}"
        rows = f", {facts['rows']:,} rows" if "rows" in facts else ""
        found.append(f"{what}: {facts['draws']:,} draws{rows}")
    return found


def compared(results: Results) -> list[str]:
    """Lay out what all programs cost on the same logs."""
    logs = _logs(results, "same rows")
    shown = [
        one
        for one in ("results", "report", "nuts", *RIVALS)
        if any(f"{n}/{one}" in results.cells for n in logs)
    ]
    rows = [[LABELS[one], *(_cost(results.cells.get(f"{name}/{one}")) for name in logs)] for one in shown]
    return _table(["program", *_head(results, logs)], rows)


def ratio(own: Record | None, rival: Record | None, value: Callable[[Record], float]) -> str:
    """Write how many times as much a rival costs; "over" where it was stopped.

    Parameters
    ----------
    own, rival
        Records of the two; either may be absent.
    value
        Which cost.
    """
    if own is None or rival is None or own.ending != "finished" or rival.ending == "failed":
        return NOTHING
    times = _times(value(rival) / value(own))
    return times if rival.ending == "finished" else f"over {times}"


def ratio_table(results: Results, value: Callable[[Record], float]) -> list[str]:
    """Lay out rivals' costs divided by verdiv's, to results.json and to the full report."""
    logs = _logs(results, "same rows")
    rows = []
    for rival in ("nuts", *RIVALS):
        if not any(f"{name}/{rival}" in results.cells for name in logs):
            continue
        cells = [
            " / ".join(
                ratio(results.cells.get(f"{name}/{own}"), results.cells.get(f"{name}/{rival}"), value)
                for own in GOALS
            )
            for name in logs
        ]
        rows.append([LABELS[rival], *cells])
    return _table(["program", *_head(results, logs)], rows)


def ess_table(results: Results) -> list[str]:
    """Lay out effective samples a second of whole process, for programs that sample."""
    logs = _logs(results, "same rows")
    rows = []
    for one in ("nuts", *RIVALS):
        records = [results.cells.get(f"{name}/{one}") for name in logs]
        if any(record is not None and record.ess is not None for record in records):
            rows.append(
                [
                    LABELS[one],
                    *(
                        NOTHING
                        if record is None or record.ess is None
                        else f"{_times(record.ess / record.wall)} ({record.ess:,.0f})"
                        for record in records
                    ),
                ]
            )
    return _table(["program", *_head(results, logs)], rows)


def axis_costs(results: Results, axis: str, subject: str) -> dict[float, Record]:
    """Return size to record of a program along an axis, finished cells only; ``+`` adds two programs."""
    found = {}
    for name in _logs(results, axis):
        parts = [results.cells.get(f"{name}/{one}") for one in subject.split("+")]
        known = [part for part in parts if part is not None and part.ending == "finished"]
        if len(known) == len(parts):
            wall, cpu = sum(part.wall for part in known), sum(part.cpu for part in known)
            size = float(results.logs[name][COUNTED[axis]])
            found[size] = Record(wall, cpu, max(part.peak for part in known), "finished")
    return found


def carried_on(walls: dict[float, float]) -> float | None:
    """Return the seconds at :data:`FAR`, on paper; None unless :data:`REACH` powers of ten away at most."""
    if max(walls, default=0.0) * 10**REACH < FAR:
        return None
    return extrapolated(walls, FAR, decades=DECADES)


def _exponent(costs: dict[float, float], decades: float | None) -> str:
    law = fit_growth(costs, decades=decades)
    return NOTHING if law is None else f"{law.exponent:.2f}"


def rows_table(results: Results) -> list[str]:
    """Lay out cost against draws, with exponents, and carried on to :data:`FAR` on paper."""
    logs = _logs(results, "rows")
    draws = [float(results.logs[name]["draws"]) for name in logs]
    rows = []
    for subject in ("results", "report", "tally", "from-tally", "tally+from-tally"):
        costs = axis_costs(results, "rows", subject)
        if not costs:
            continue
        walls = {size: record.wall for size, record in costs.items()}
        far = carried_on(walls)
        label = " + ".join(LABELS[one].removeprefix("verdiv, ") for one in subject.split("+"))
        rows.append(
            [
                LABELS.get(subject, label),
                *(_cost(costs.get(size)) for size in draws),
                _exponent(walls, None),
                _exponent(walls, DECADES),
                NOTHING
                if far is None
                else f"{seconds(far)} s / {seconds(walls[max(walls)] * FAR / max(walls))} s",
            ]
        )
    head = [*(f"{size:,.0f} draws" for size in draws), "exponent", "exponent, last power of ten"]
    return _table(["", *head, f"{FAR:.0e} draws, extrapolated".replace("e+09", "0^9")], rows)


def axis_table(results: Results, axis: str) -> list[str]:
    """Lay out cost along tasks, families or patterns, and what was held."""
    logs = _logs(results, axis)
    facts = [results.logs[name] for name in logs]
    names = [name for name in ("draws", "tasks", "families", "patterns") if name != COUNTED[axis]]
    rows = [[name, *(f"{one[name]:,}" for one in facts), NOTHING] for name in names]
    for subject in ("tally", "from-tally"):
        costs = axis_costs(results, axis, subject)
        cells = [_cost(costs.get(float(one[COUNTED[axis]]))) for one in facts]
        rows.append([LABELS[subject], *cells, _exponent({s: r.wall for s, r in costs.items()}, None)])
    return _table(["", *(f"{one[COUNTED[axis]]:,} {COUNTED[axis]}" for one in facts), "exponent"], rows)


def goals(results: Results, name: str = "demo") -> list[str]:
    """Say whether the goals are reached on the shipped run: against the peer's fit alone, and its whole command."""
    found = []
    for own, wanted in GOALS.items():
        mine = results.cells.get(f"{name}/{own}")
        for rival in ("peer-tasks", "peer-rows", "peer-full"):
            other = results.cells.get(f"{name}/{rival}")
            times = ratio(mine, other, lambda record: record.wall)
            if mine is None or other is None or times == NOTHING:
                continue
            reached = "reached" if other.wall / mine.wall >= wanted else "not reached"
            found.append(
                f"* {LABELS[own]}, against {LABELS[rival]}: {times} times as fast; {wanted:.0f} is wanted "
                f"of the fit alone: {reached}."
                if rival != "peer-full"
                else f"* {LABELS[own]}, against {LABELS[rival]}: {times} times as fast."
            )
    return found


def document(results: Results, *, picture: str, axes: str) -> str:
    """Write the whole page.

    Parameters
    ----------
    results
        The measurements.
    picture, axes
        Paths of the two pictures, as the page names them.
    """
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    loads = [record.load for record in results.cells.values()]
    texts = PAGE.format(limit=results.limit)
    intro, rows, ess, draws, axes_text = (part.strip() for part in texts.split("----"))
    lines = [
        "# Benchmarks",
        "",
        "Made by `make bench`, then `python -m benchmarks --publish`; every figure is as measured.",
        "",
        *(f"* {name}: {value}" for name, value in results.machine.items()),
        f"* versions: {versions}",
        f"* load of the machine before a measurement: {min(loads, default=0):.1f} to {max(loads, default=0):.1f}",
        "",
        *(intro, "", "## On the same rows", "", rows, ""),
        *compared(results),
        "On the shipped run, in wall time:",
        "",
        *goals(results),
        "",
        "Wall time divided by that of verdiv, log to results.json / log to full report:",
        "",
        *ratio_table(results, lambda record: record.wall),
        "The same in processor time:",
        "",
        *ratio_table(results, lambda record: record.cpu),
        *(f"![Seconds against draws]({picture})", "", "### Effective samples a second", "", ess, ""),
        *ess_table(results),
        *("## Against draws", "", draws, ""),
        *rows_table(results),
        *("## Against tasks, families and patterns", "", axes_text, ""),
        f"![Seconds against tasks, families and patterns]({axes})",
        "",
        *(line for axis in ("tasks", "families", "patterns") for line in axis_table(results, axis)),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"
