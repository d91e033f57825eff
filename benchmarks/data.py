"""The runs that are timed: simulated logs of a wanted size and shape, and the rows of them that rivals see.

    python -m benchmarks.data NAME FOLDER TASKS REPLICATES FAMILIES COPIES

makes one in a process of its own, so that what it takes is not counted as memory of the processes that are timed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

__all__ = ["BUNDLED", "Recipe", "counted", "facts_of", "make"]

BUNDLED = "smollm2-135m"
"""The shipped run and its registration."""

SHOWN_TO_RIVALS = 200_000
"""Draws of the largest log whose rows are written out for rivals."""

SEED = 1


@dataclass(frozen=True)
class Recipe:
    """How one log is made; the shipped run where there are no tasks."""

    name: str
    tasks: int = 0
    """Tasks that are simulated."""
    replicates: int = 3
    """Seeds of the protocol: draws a task grow with them."""
    families: int = 3
    copies: int = 1
    """Times that the simulated tasks appear, each time under other names: tasks grow, patterns do not."""

    def log(self, folder: Path) -> Path:
        """Return where the log stands."""
        return folder / f"{self.name}.runlog.{'parquet' if self.tasks else 'jsonl.zst'}"

    def rows(self, folder: Path) -> Path:
        """Return where the rows that rivals see stand."""
        return folder / f"{self.name}.csv"

    def facts(self, folder: Path) -> Path:
        """Return where its numbers of draws, tasks and the like stand."""
        return folder / f"{self.name}.facts.json"


def facts_of(recipe: Recipe, folder: Path) -> dict[str, int] | None:
    """Return what is known of a log, or None where it was not made yet or by another recipe."""
    path = recipe.facts(folder)
    if not path.exists():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    if found.pop("recipe") != asdict(recipe):
        return None
    return {name: int(value) for name, value in found.items()}


def make(recipe: Recipe, folder: Path) -> dict[str, int]:
    """Make a log, and the rows that rivals see where it is not too long for them.

    Returns
    -------
    dict
        Numbers of draws, tasks, families, distinct patterns of counts, and rows that rivals see.
    """
    log = recipe.log(folder)
    # Copies are known by what they are copied from: a long log is not tallied only to say how long it is.
    base = log if recipe.copies == 1 else log.with_name(f"base-{log.name}")
    if recipe.tasks:
        _simulate(recipe, base)
    else:
        from verdiv import fixtures

        with fixtures.as_path("runs", BUNDLED) as shipped:
            shutil.copyfile(shipped, log)
    found = counted(base, folder)
    if base != log:
        found = {**found, "draws": found["draws"] * recipe.copies, "tasks": found["tasks"] * recipe.copies}
        _repeat(base, log, recipe.copies)
        base.unlink()
    if found["draws"] <= SHOWN_TO_RIVALS:
        found["rows"] = _write_rows(log, recipe.rows(folder))
    recipe.facts(folder).write_text(json.dumps({"recipe": asdict(recipe), **found}), encoding="utf-8")
    return found


def _simulate(recipe: Recipe, log: Path) -> None:
    from verdiv.protocol.simulator.runlog import simulate_to_file
    from verdiv.protocol.simulator.scenarios import named_world

    world = named_world("plausible")
    if recipe.families != len(world.families):
        kinds = [world.families[i % len(world.families)] for i in range(recipe.families)]
        named = tuple(replace(kind, name=f"f{i:04d}", weight=1.0) for i, kind in enumerate(kinds))
        world = replace(world, families=named)
    simulate_to_file(
        log, tasks=recipe.tasks, seed=SEED, replicates=recipe.replicates, world=world, overwrite=True
    )


def _repeat(base: Path, log: Path, copies: int) -> None:
    """Write a log's tasks several times under other names.

    The head of the chain stays that of the first copy: such a log is for timing, and an audit would refuse it.
    """
    import msgspec
    import pyarrow.parquet as pq

    from verdiv.runlog.parquet import KEYS
    from verdiv.runlog.records import Footer

    file = pq.ParquetFile(base)
    footer = msgspec.json.decode(file.metadata.metadata[KEYS["footer"]], type=Footer)
    footer = msgspec.structs.replace(footer, draws=footer.draws * copies)
    stored = {**file.metadata.metadata, KEYS["footer"]: msgspec.json.encode(footer)}
    kept = {key: value for key, value in stored.items() if key in KEYS.values()}
    with pq.ParquetWriter(log, file.schema_arrow, compression="zstd") as writer:
        for copy in range(copies):
            for group in range(file.metadata.num_row_groups):
                writer.write_table(_renamed(file.read_row_group(group), copy))
        writer.add_key_value_metadata(kept)


def _renamed(table: Any, copy: int) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in ("draw_id", "task_id", "copy_of", "parent", "prompt_sha256", "output_sha256"):
        column = table[name]
        if name.endswith("sha256"):
            changed = pc.utf8_replace_slice(column, 0, 4, f"{copy:04x}")
        else:
            changed = pc.binary_join_element_wise(column, pa.scalar(f"c{copy}"), "-")
        table = table.set_column(table.column_names.index(name), table.schema.field(name), changed)
    return table


def counted(log: Path, folder: Path) -> dict[str, int]:
    """Tally a log into a folder and return its numbers of draws, tasks, families and distinct patterns of counts."""
    from verdiv.cli import main as command

    tally = folder / f"{log.name}.tally.parquet"
    said = sys.argv
    try:
        sys.argv = ["verdiv", "tally", str(log), "-o", str(tally), "--force"]
        command()
    finally:
        sys.argv = said
    import pyarrow.parquet as pq

    from verdiv.analysis.tallyfile import read_tally

    counts = read_tally(str(tally))
    stored = pq.ParquetFile(tally).schema_arrow.names
    counted = [name for name in stored if '"load"' not in name and name != "task_id"]
    frame = pq.read_table(tally, columns=counted).to_pandas()
    return {
        "draws": sum(one.draws for one in counts.inputs),
        "tasks": len(frame),
        "families": int(frame["family"].nunique()),
        "patterns": len(frame.drop_duplicates()),
    }


def _write_rows(log: Path, path: Path) -> int:
    """Write the small model's scored first draws, one row each, without copies of a draw that is there already."""
    import pandas as pd

    from verdiv.runlog.reader import read_run_log

    draws = read_run_log(log).draws
    first = draws[
        (draws["prompt_kind"] == "initial")
        & draws["correct"].notna()
        & (draws["tier"] != "teacher")
        & draws["copy_of"].isna()
    ]
    kept = pd.DataFrame(
        {"task": first["task_id"], "family": first["family"], "correct": first["correct"].astype(int)}
    )
    kept.to_csv(path, index=False)
    return len(kept)


def _arguments() -> Iterator[int]:
    return (int(word) for word in sys.argv[3:])


if __name__ == "__main__":
    make(Recipe(sys.argv[1], *_arguments()), Path(sys.argv[2]))
