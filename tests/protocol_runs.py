"""Small registered runs against the fake server, in this process or in one that can be killed."""

from __future__ import annotations

import sys
from pathlib import Path

from verdiv.preregistration import Preregistration, read_preregistration
from verdiv.protocol.prompts import tier_prompt
from verdiv.protocol.runner.client import Endpoint
from verdiv.protocol.runner.sitting import RunRequest
from verdiv.protocol.suite.generate import FAMILIES, generate_suite, shots
from verdiv.protocol.suite.suitefile import Suite, read_suite
from verdiv.runlog.reader import iter_draws
from verdiv.runlog.records import Draw

__all__ = ["command", "draws_of", "registered", "request_of", "small_suite"]

SMALL = "SmolLM2"


def small_suite(tasks: int = 2) -> Suite:
    """A suite of a few tasks a family, with prompts for both tiers."""
    prompts = {
        tier: tier_prompt(FAMILIES, {name: shots(family, count) for name, family in FAMILIES.items()})
        for tier, count in (("small", 1), ("teacher", 2))
    }
    return generate_suite(9, dict.fromkeys(FAMILIES, tasks), prompts=prompts)


def registered(
    folder: Path, suite: Suite, *, bound: float = 28.5, seeds: str = "[1, 2]", conditions: bool = False
) -> Preregistration:
    """Write a registration of the shipped protocol for a suite, and read it back."""
    from verdiv import fixtures

    text = fixtures.read_bytes("preregistrations", "smollm2-135m").decode()
    each = len(suite) // 3
    share = f"{each / len(suite):.17g}"
    changes = {
        'path = "../runs/smollm2-135m.suite.json"\n': "",
        "\ntasks = 40\n": f"\ntasks = {len(suite)}\n",
        "{ arithmetic = 14, date = 13, filter = 13 }": f"{{ arithmetic = {each}, date = {each}, filter = {each} }}",
        "arithmetic = 0.35\ndate = 0.325\nfilter = 0.325": f"arithmetic = {share}\ndate = {share}\nfilter = {share}",
        "planned_tasks = 40": f"planned_tasks = {len(suite)}",
        "planned_replicates = 3": f"planned_replicates = {seeds.count(',') + 1}",
        "seeds = [1, 2, 3]": f"seeds = {seeds}",
        "declared_bound_units = 28.5": f"declared_bound_units = {bound}",
        "in_flight = 8": "in_flight = 4",
    }
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    before, after = text.split('sha256 = "', 1)
    text = f'{before}sha256 = "{suite.digest}"{after[65:]}'
    if not conditions:
        head, rest = text.split("[conditions.heavy-load]")
        text = head + "[rate_card]" + rest.split("[rate_card]", 1)[1]
        text = text.replace('condition = "kv-q4"\n', "").replace('condition = "heavy-load"\n', "")
    path = folder / "plan.toml"
    path.write_text(text)
    (folder / "suite.json").write_bytes(suite.canonical)
    return read_preregistration(path)


def request_of(
    folder: Path, plan: Preregistration, url: str, *, concurrency: int = 4, timeout: float = 20.0
) -> RunRequest:
    """Ask for a run of a registration that :func:`registered` wrote."""
    endpoint = Endpoint(url, SMALL)
    places = [("primary", "small"), ("primary", "teacher"), ("kv-q4", "small")]
    return RunRequest(
        plan=plan,
        suite=read_suite(folder / "suite.json"),
        log=folder / "run.runlog.jsonl",
        endpoints=dict.fromkeys(places, endpoint),
        concurrency=concurrency,
        timeout=timeout,
        first_wait=0.01,
    )


def draws_of(folder: Path) -> list[Draw]:
    """Read the draws of the folder's log."""
    return list(iter_draws(folder / "run.runlog.jsonl"))


def command(folder: Path, url: str, *, concurrency: int = 4, timeout: float = 20.0) -> list[str]:
    """Words that run the folder's registration in a process of its own."""
    return [
        sys.executable,
        "-c",
        "import sys; from verdiv.cli import main; sys.exit(main())",
        "run",
        *("--prereg", str(folder / "plan.toml")),
        *("--suite", str(folder / "suite.json")),
        *("--small", url),
        *("--small-model", SMALL),
        *("--teacher-model", SMALL),
        *("--concurrency", str(concurrency)),
        *("--timeout", str(timeout)),
        *("-o", str(folder / "run.runlog.jsonl")),
        "--resume",
    ]
