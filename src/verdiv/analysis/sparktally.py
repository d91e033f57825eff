"""The same count on a Spark cluster: Spark brings the draws of whole tasks together, the counting is the local one."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from verdiv.analysis.counting import Counts
from verdiv.analysis.dealing import BUCKET_ROWS, bucket_count, counted_together
from verdiv.analysis.gather import common_gate, default_plan
from verdiv.analysis.tallying import Bucket, chosen_budget, combine_buckets, count_table
from verdiv.errors import Fault, InputRefused, MissingExtra
from verdiv.preregistration import Preregistration
from verdiv.runlog.arrow import misfits
from verdiv.runlog.flat import NEEDED, faulty, flatten
from verdiv.runlog.joins import header_findings
from verdiv.runlog.lines import Source
from verdiv.runlog.parquet import ARROW_SCHEMA, ParquetLog
from verdiv.runlog.table import Finding, InputFile, Status

__all__ = ["tally_on_spark"]

Progress = Callable[[str], None]

OUT = "part int, counted binary"
"""What counting some buckets gives back."""

ORDER = [("bucket", "ascending"), ("log", "ascending"), ("row", "ascending")]
"""The order in which one machine counts draws, which decides how sums of fractional prices round."""


def _session() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtra(
            "Counting on Spark needs PySpark and Java: pip install 'verdiv[spark]', or leave out --spark."
        ) from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        return SparkSession.builder.appName("verdiv tally").getOrCreate()
    except Exception as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise MissingExtra(
            "Spark needs Java 17 or newer: install it and set JAVA_HOME, or leave out --spark."
        ) from error


def _opened(path: str) -> tuple[ParquetLog, InputFile, tuple[Finding, ...]]:
    """Read what stands around the draws of a Parquet log."""
    with Source(path) as source:
        parquet = source.parquet
    if not parquet or not Path(path).is_file():
        fault = Fault(path, "a Parquet run log", "another form", "write it as Parquet, or leave out --spark")
        raise InputRefused("Spark counts Parquet logs only.", [fault])
    log = ParquetLog(path, path)
    if log.rows == 0:
        fault = Fault(path, "at least one draw", "none", "run the protocol first")
        raise InputRefused("The log holds no draws.", [fault])
    with Path(path).open("rb") as stream:
        digest = file_digest(stream, "sha256").hexdigest()
    findings: tuple[Finding, ...] = ()
    if log.footer is None:
        message = f"{path} is incomplete: it has no footer; {log.rows} draws were read"
        findings = (Finding("medium", "log.incomplete", message),)
    elif log.footer.draws != log.rows:
        fault = Fault(path, f"{log.rows} draws, as stand here", str(log.footer.draws), "go back to the log")
        raise InputRefused(f"{path} refused", [fault])
    status: Status = "complete" if log.footer is not None else "incomplete"
    return log, InputFile(path, digest, log.rows, 0, status, log.header.gate.value), findings


def _count(table: Any, *, gate: str, b_max: int, plan: Preregistration | None) -> Any:
    """Count some buckets on an executor."""
    part = table["part"][0].as_py()
    table = table.take(pc.sort_indices(table, sort_keys=ORDER))
    schema = pa.schema([ARROW_SCHEMA.field(name) for name in NEEDED])
    batch = table.select(NEEDED).cast(schema).combine_chunks().to_batches()[0]
    flat, bad = flatten(batch, 0)
    if len(misfits(batch)) or (bad | faulty(flat)).any():
        raise ValueError("a draw breaks the format of run logs; verdiv validate tells which")
    columns = {name: flat.column(name) for name in flat.schema.names}
    columns["task_id"] = columns["task_id"].cast(pa.string())  # as buckets on disk hold it
    columns |= {"row": table["row"].combine_chunks(), "log": table["log"].cast(pa.int64()).combine_chunks()}
    counted = count_table(pa.table(columns), gate=gate, b_max=b_max, plan=plan)
    return pa.table({"part": pa.array([part], pa.int32()), "counted": pa.array([pickle.dumps(counted)])})


def _looked(
    frame: Any, log_count: int, buckets: int
) -> tuple[dict[str, int], dict[str, int], list[int], list[int]]:
    """Return tasks by family, largest attempts by arm, tasks by log, draws by bucket, in one pass."""
    from pyspark.sql import functions as f

    keys = ("family", "arm", "log", "bucket")
    found = (
        frame.groupingSets([[name] for name in keys], *keys)
        .agg(
            f.countDistinct("task_id").alias("tasks"),
            f.max("attempt").alias("most"),
            f.count(f.lit(1)).alias("rows"),
        )
        .collect()
    )
    families = {r["family"]: r["tasks"] for r in found if r["family"] is not None}
    attempts = {r["arm"]: r["most"] for r in found if r["arm"] is not None}
    tasks, rows = [0] * log_count, [0] * buckets
    for r in found:
        if r["log"] is not None:
            tasks[r["log"]] = r["tasks"]
        elif r["bucket"] is not None:
            rows[r["bucket"]] = r["rows"]
    return families, attempts, tasks, rows


def tally_on_spark(
    paths: Sequence[str],
    *,
    preregistration: Preregistration | None = None,
    max_budget: int | None = None,
    progress: Progress | None = None,
) -> Counts:
    """Count Parquet run logs on the Spark session of this environment; see :func:`verdiv.analysis.tallying.tally_logs`.

    Raises
    ------
    MissingExtra
        PySpark or Java is not installed.
    InputRefused
        A log in another form, or one whose draws break the format.
    """
    with warnings.catch_warnings():
        # No pandas object passes between Spark and the count.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        return _tally(paths, preregistration, max_budget, progress or (lambda _: None))


def _refuse_names(frame: Any, paths: Sequence[str]) -> None:
    """Refuse logs in which a draw_id stands twice, or a draw answers or repeats one that is not there."""
    from pyspark.sql import functions as f

    own = frame.select("log", f.col("draw_id").alias("name"), f.lit(1).alias("own"))
    named = frame.select("log", f.explode(f.array("parent", "copy_of")).alias("name"), f.lit(0).alias("own"))
    held = own.unionByName(named.filter(f.col("name").isNotNull()))
    odd = (
        held.groupBy("log", "name").agg(f.sum("own").alias("draws")).filter("draws <> 1").limit(10).collect()
    )
    if odd:
        faults = [
            Fault(
                paths[row["log"]],
                "one draw of each name that is told",
                f"{row['draws']} named {row['name']!r}",
                "run verdiv validate",
                field="draw_id",
            )
            for row in odd
        ]
        raise InputRefused("The logs were refused.", faults)


def _tally(
    paths: Sequence[str], plan: Preregistration | None, max_budget: int | None, say: Progress
) -> Counts:
    opened = [_opened(path) for path in paths]
    headers = [log.header for log, _, _ in opened]
    gate = common_gate(headers)
    session = _session()
    from pyspark.sql import functions as f

    buckets = bucket_count(paths)
    frame = None
    for i, path in enumerate(paths):
        one = session.read.parquet(str(Path(path).resolve())).select(
            *(f.col(name) for name in NEEDED),
            f.col("_metadata.row_index").alias("row"),
            f.lit(i).cast("int").alias("log"),
            (f.crc32(f.col("task_id")) % buckets).cast("int").alias("bucket"),
        )
        frame = one if frame is None else frame.unionByName(one)
    assert frame is not None
    say("looking at arms and families")
    _refuse_names(frame, paths)
    families, attempts, tasks, rows = _looked(frame, len(paths), buckets)

    def exploratory() -> Preregistration:
        votes = frame.filter((f.col("arm") == "A1") & (f.col("prompt_kind") == "initial"))
        most = votes.groupBy("task_id", "replicate").count().agg(f.max("count").alias("n")).collect()[0]["n"]
        return default_plan(families, attempts, int(most or 0), gate)

    b_max = chosen_budget(families, attempts, gate, plan, max_budget, exploratory)
    say("counting draws")
    part = f.element_at(
        f.array(*(f.lit(p) for p in counted_together(rows, BUCKET_ROWS))), f.col("bucket") + 1
    )
    count = partial(_count, gate=gate, b_max=b_max, plan=plan)
    try:
        dealt = frame.withColumn("part", part.cast("int")).groupBy("part")
        found = dealt.applyInArrow(lambda table: count(table), OUT).collect()
    except Exception as error:
        if "verdiv validate" not in str(error):
            raise
        fault = Fault(", ".join(paths), "draws that hold to the format", "others", "run verdiv validate")
        raise InputRefused("The logs were refused.", [fault]) from error
    counted: list[Bucket] = [pickle.loads(row["counted"]) for row in sorted(found, key=lambda r: r["part"])]
    inputs = [
        InputFile(file.path, file.sha256, file.draws, tasks[i], file.status, file.gate)
        for i, (_, file, _) in enumerate(opened)
    ]
    clashes = header_findings(headers, inputs) if len(inputs) > 1 else []
    notes = [own for _, _, own in opened]
    return combine_buckets(
        counted,
        gate=gate,
        b_max=b_max,
        plan=plan,
        headers=headers,
        inputs=inputs,
        notes=notes,
        clashes=clashes,
    )
