"""The same count on a Spark cluster: Spark brings the draws of whole tasks together, the counting is the local one."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from verdiv.analysis.counting import Counts
from verdiv.analysis.gather import common_gate, default_plan
from verdiv.analysis.tallying import (
    BUCKET_ROWS,
    Bucket,
    chosen_budget,
    combine_buckets,
    count_table,
)
from verdiv.errors import Fault, InputRefused, MissingExtra
from verdiv.preregistration import Preregistration
from verdiv.runlog.arrow import misfits
from verdiv.runlog.flat import NEEDED, faulty, flatten
from verdiv.runlog.lines import Source
from verdiv.runlog.parquet import ARROW_SCHEMA, ParquetLog
from verdiv.runlog.table import Finding, InputFile, Status

__all__ = ["tally_on_spark"]

Progress = Callable[[str], None]

OUT = "bucket int, counted binary"
"""What a bucket gives back."""


def _session() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MissingExtra(
            "Counting on Spark needs PySpark and Java: pip install 'verdiv[spark]', or leave out --spark."
        ) from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return SparkSession.builder.appName("verdiv tally").getOrCreate()


def _opened(path: str) -> tuple[ParquetLog, InputFile, tuple[Finding, ...]]:
    """Read what stands around the draws of a Parquet log."""
    with Source(path) as source:
        parquet = source.parquet
    if not parquet or not Path(path).is_file():
        fault = Fault(path, "a Parquet run log", "another form", "write it as Parquet, or leave out --spark")
        raise InputRefused("Spark counts Parquet logs only.", [fault])
    log = ParquetLog(path, path)
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
    """Count one bucket on an executor."""
    bucket = table["bucket"][0].as_py()
    schema = pa.schema([ARROW_SCHEMA.field(name) for name in NEEDED])
    batch = table.select(NEEDED).cast(schema).combine_chunks().to_batches()[0]
    flat, bad = flatten(batch, 0)
    if len(misfits(batch)) or (bad | faulty(flat)).any():
        raise ValueError("a draw breaks the format of run logs; verdiv validate tells which")
    columns = {name: flat.column(name) for name in flat.schema.names}
    columns |= {"row": table["row"].combine_chunks(), "log": table["log"].cast(pa.int64()).combine_chunks()}
    plain = pa.table(columns)
    plain = plain.take(pc.sort_indices(plain, sort_keys=[("log", "ascending"), ("row", "ascending")]))
    counted = count_table(plain, gate=gate, b_max=b_max, plan=plan)
    return pa.table({"bucket": pa.array([bucket], pa.int32()), "counted": pa.array([pickle.dumps(counted)])})


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
        PySpark is not installed.
    InputRefused
        A log in another form, or one whose draws break the format.
    """
    from verdiv.runlog.joins import header_findings

    say = progress or (lambda _: None)
    session = _session()
    from pyspark.sql import functions as f

    opened = [_opened(path) for path in paths]
    headers = [log.header for log, _, _ in opened]
    gate = common_gate(headers)
    frame = None
    for i, path in enumerate(paths):
        one = session.read.parquet(str(Path(path).resolve())).select(
            *(f.col(name) for name in NEEDED),
            f.col("_metadata.row_index").alias("row"),
            f.lit(i).cast("int").alias("log"),
        )
        frame = one if frame is None else frame.unionByName(one)
    assert frame is not None
    rows = sum(file.draws for _, file, _ in opened)
    say("looking at arms and families")
    families = {
        r["family"]: r["n"]
        for r in frame.groupBy("family").agg(f.countDistinct("task_id").alias("n")).collect()
    }
    attempts = {r["arm"]: r["n"] for r in frame.groupBy("arm").agg(f.max("attempt").alias("n")).collect()}
    tasks = {
        r["log"]: r["n"] for r in frame.groupBy("log").agg(f.countDistinct("task_id").alias("n")).collect()
    }

    def exploratory() -> Preregistration:
        votes = frame.filter((f.col("arm") == "A1") & (f.col("prompt_kind") == "initial"))
        most = votes.groupBy("task_id", "replicate").count().agg(f.max("count").alias("n")).collect()[0]["n"]
        return default_plan(families, attempts, int(most or 0), gate)

    b_max = chosen_budget(families, attempts, gate, preregistration, max_budget, exploratory)
    say("counting draws")
    buckets = max(1, -(-rows // BUCKET_ROWS))
    dealt = frame.withColumn("bucket", (f.crc32(f.col("task_id")) % buckets).cast("int"))
    count = partial(_count, gate=gate, b_max=b_max, plan=preregistration)
    try:
        found = dealt.groupBy("bucket").applyInArrow(lambda table: count(table), OUT).collect()
    except Exception as error:
        if "verdiv validate" not in str(error):
            raise
        fault = Fault(", ".join(paths), "draws that hold to the format", "others", "run verdiv validate")
        raise InputRefused("The logs were refused.", [fault]) from error
    counted: list[Bucket] = [pickle.loads(row["counted"]) for row in sorted(found, key=lambda r: r["bucket"])]
    inputs = [
        InputFile(file.path, file.sha256, file.draws, int(tasks.get(i, 0)), file.status, file.gate)
        for i, (_, file, _) in enumerate(opened)
    ]
    clashes = header_findings(headers, inputs) if len(inputs) > 1 else []
    notes = [own for _, _, own in opened]
    return combine_buckets(
        counted,
        gate=gate,
        b_max=b_max,
        plan=preregistration,
        headers=headers,
        inputs=inputs,
        notes=notes,
        clashes=clashes,
    )
