"""``verdiv policy``: which deployment rule to run, from a fit or parameters and a rate card."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from verdiv.cli import options
from verdiv.cli.price import Fit, FormOption, Hazard1, Hazard2, Json, Params, Sets

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv policy recommend --fit out --floor 0.95     cheapest policy with quality .95, from verdiv analyze
  verdiv policy recommend --fit out --max-bill 1.2   best policy for 1.2 small draws a task
  verdiv policy recommend --fit out --rho 4 --cost-small-usd 0.0004 --horizon 1000000
  verdiv policy recommend --set q0=0.7 --set delta=0.8 --floor 0.9 --json
  verdiv policy recommend --fit out --teacher-budget 0    where there is no teacher"""


@app.callback(epilog=EXAMPLES)
def policy() -> None:
    """Choose the deployment rule: arm, budget and escalation."""


@app.command(epilog=EXAMPLES, short_help="Recommend arm, budget and escalation.")
def recommend(
    fit: Fit = None,
    params: Params = None,
    assignments: Sets = None,
    floor: Annotated[
        float | None,
        typer.Option(
            "--floor", min=0, max=1, help="Quality to reach for the least bill.  [default: the gate]"
        ),
    ] = None,
    max_bill: Annotated[
        float | None,
        typer.Option("--max-bill", min=0, help="Small draws a task to stay within, for the best quality."),
    ] = None,
    assurance: Annotated[
        float | None,
        typer.Option(
            "--assurance", min=0, max=1, help="Also meet the target with at least this probability."
        ),
    ] = None,
    gate: Annotated[
        float | None,
        typer.Option("--gate", min=0, max=1, help="Deployment gate.  [default: 0.85]"),
    ] = None,
    rho: Annotated[
        float | None, typer.Option("--rho", help="Price of a teacher draw in small draws.  [default: 2.5]")
    ] = None,
    cost_small_usd: Annotated[
        float | None, typer.Option("--cost-small-usd", min=0, help="USD of one small draw.  [default: 0.001]")
    ] = None,
    budget: Annotated[
        int, typer.Option("--budget", min=1, max=50, help="Largest budget compared, in draws a task.")
    ] = 5,
    votes: Annotated[
        int, typer.Option("--votes", min=1, max=99, help="Largest vote of the majority arm compared.")
    ] = 5,
    teacher_budget: Annotated[
        int,
        typer.Option("--teacher-budget", min=0, max=20, help="Most teacher draws a task; 0: no teacher."),
    ] = 2,
    horizon: Annotated[
        int, typer.Option("--horizon", min=1, max=10**12, help="Tasks that the policy will serve.")
    ] = 100_000,
    form: FormOption = None,
    hazard1: Hazard1 = None,
    hazard2: Hazard2 = None,
    seed: options.Seed = 1,
    as_json: Json = False,
) -> int:
    """Recommend arm, budget and escalation rule, with the doubt in it and what measuring more is worth."""
    from verdiv.cli.policy_advice import advice_document, advice_text, advise
    from verdiv.cli.price_inputs import Asked, read_hazards, read_input
    from verdiv.errors import Fault, UsageRefused
    from verdiv.policy.recommend import Goal

    if floor is not None and max_bill is not None:
        fault = Fault("--floor, --max-bill", "one of them", "both", "drop one")
        raise UsageRefused("there is one goal at a time", [fault])
    given = [*(assignments or ()), *([] if rho is None else [f"rho={rho!r}"])]
    source = read_input(Asked(params, given, fit, seed))
    goal, target = Goal.COST, source.point.gate if floor is None else floor
    if gate is not None and floor is None:
        target = gate
    if max_bill is not None:
        goal, target = Goal.QUALITY, max_bill
    advice = advise(
        source,
        form=form.value if form else None,
        hazards=read_hazards(hazard1, hazard2),
        goal=goal,
        target=target,
        b_max=budget,
        votes=votes,
        teacher_max=teacher_budget,
        assurance=assurance,
        gate=gate,
        seed=seed,
    )
    document = advice_document(advice, source, cost_small_usd=cost_small_usd, horizon=horizon)
    typer.echo(
        json.dumps(document, ensure_ascii=False, allow_nan=False) if as_json else advice_text(document)
    )
    return 0
