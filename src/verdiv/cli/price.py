"""``verdiv price``: what every arm delivers and costs, and where the small tier breaks even with the teacher."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from verdiv.cli import options

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv price                                      the paper's worked parameters
  verdiv price --set sigma=0.4 --set D=0.17         some of them changed
  verdiv price --params mine.toml --json            your own, for a program
  verdiv price --fit out --svg frontier.svg         from verdiv analyze, with intervals
  verdiv price sweep sigma=0:1:41 D=0:0.2:41 --svg map.svg
  verdiv price forms --set lambda2=0.3 --set icc_s2=0.4
  verdiv price turns 0.18,0.12,0.05
  verdiv price design 15.33 27.5
  verdiv price figures                              the paper's figures, recomputed

\b
Parameters: q0 p_d sigma s1 phi rho q_T p_dT eta_ox gate lambda1 lambda2 fpr s_false icc_q icc_s1 icc_s2 H;
also s2, p_s, delta, D, which stand for others (s2 = q0 + phi, D = q_T - q0, …), cost_small_usd and tasks."""


class FormName(StrEnum):
    """Forms of A3."""

    CLASS_STABLE = "class-stable"
    FRESH = "fresh"
    CORRELATED = "correlated"
    HAZARDS = "hazards"


class MapOf(StrEnum):
    """What a map of a sweep shows."""

    B_STAR = "b-star"
    REGIME = "regime"


Params = Annotated[Path | None, typer.Option("--params", help="TOML or JSON file with parameters by name.")]
Sets = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set one parameter; may be repeated.")
]
Fit = Annotated[
    Path | None,
    typer.Option(
        "--fit", help="Output folder or results.json of verdiv analyze: every figure with its interval."
    ),
]
FormOption = Annotated[
    FormName | None,
    typer.Option("--form", help="How A3 is priced; chosen by the parameters if absent."),
]
Hazard1 = Annotated[
    str | None, typer.Option("--hazard1", help="Measured success of structural repairs by attempt: .99,.8")
]
Hazard2 = Annotated[str | None, typer.Option("--hazard2", help="The same of semantic repairs: .85,.4,.4")]
Budget = Annotated[int, typer.Option("--budget", min=1, max=1000, help="Largest budget, in draws a task.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Csv = Annotated[Path | None, typer.Option("--csv", help="Also write the rows to a CSV file.")]
Svg = Annotated[Path | None, typer.Option("--svg", help="Also draw a picture, as an SVG file.")]


def _say(document: Mapping[str, Any], text: Callable[[], str], as_json: bool) -> None:
    """Print a document as JSON or as text."""
    typer.echo(json.dumps(document, ensure_ascii=False, allow_nan=False) if as_json else text())


def _save(path: Path | None, make: Callable[[], str], force: bool) -> None:
    """Write a file where one is asked for, and say so on standard error."""
    if path is None:
        return
    from verdiv.cli.output import write_text

    write_text(path, make(), force=force)
    typer.echo(f"Wrote {path}.", err=True)


@app.callback(invoke_without_command=True, epilog=EXAMPLES)
def price(
    context: typer.Context,
    params: Params = None,
    assignments: Sets = None,
    fit: Fit = None,
    form: FormOption = None,
    hazard1: Hazard1 = None,
    hazard2: Hazard2 = None,
    budget: Budget = 5,
    votes: Annotated[
        int, typer.Option("--votes", min=1, max=1000, help="Largest vote k of the majority arm.")
    ] = 5,
    cost_small_usd: Annotated[
        float | None, typer.Option("--cost-small-usd", min=0, help="USD of one small draw.  [default: 0.001]")
    ] = None,
    tasks: Annotated[
        int | None, typer.Option("--tasks", min=1, help="Tasks of the protocol.  [default: 40]")
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol", help="Arm budgets of the protocol, e.g. A1=5,A2=5,A2s=4,A3=5,A5=2,shared_first."
        ),
    ] = None,
    seed: options.Seed = 1,
    as_json: Json = False,
    csv: Csv = None,
    svg: Svg = None,
    force: options.Force = False,
) -> int:
    """Price every arm at every budget, with ceilings, crossovers, break-even and the protocol's bill."""
    if context.invoked_subcommand is not None:
        return 0
    from verdiv.cli.price_inputs import Asked, read_budgets, read_hazards, read_input
    from verdiv.cli.price_text import price_csv, price_text
    from verdiv.cli.price_work import priced

    source = read_input(Asked(params, assignments or (), fit, seed))
    document = priced(
        source,
        form=form.value if form else None,
        hazards=read_hazards(hazard1, hazard2),
        b_max=budget,
        votes=votes,
        budgets=read_budgets(protocol),
        cost_small_usd=cost_small_usd,
        tasks=tasks,
    )
    _say(document, lambda: price_text(document, source.stored, document["protocol"]), as_json)
    _save(csv, lambda: price_csv(document), force)
    if svg is not None:
        from verdiv.cli.price_pictures import frontier_picture

        _save(svg, lambda: frontier_picture(document, source.stored), force)
    return 0


@app.command(epilog=EXAMPLES, short_help="Sweep parameters over a grid.")
def sweep(
    axes: Annotated[
        list[str], typer.Argument(metavar="AXIS…", help="One or two: NAME=LOW:HIGH:COUNT or NAME=V1,V2,…")
    ],
    params: Params = None,
    assignments: Sets = None,
    fit: Fit = None,
    form: FormOption = None,
    hazard1: Hazard1 = None,
    hazard2: Hazard2 = None,
    budget: Budget = 8,
    votes: Annotated[str, typer.Option("--votes", help="Votes whose crossover is traced.")] = "3,5",
    map_of: Annotated[MapOf, typer.Option("--map", help="What the picture shows.")] = MapOf.B_STAR,
    seed: options.Seed = 1,
    as_json: Json = False,
    csv: Csv = None,
    svg: Svg = None,
    force: options.Force = False,
) -> int:
    """Sweep one or two parameters over a grid: B*, regime, quality and bill at B*, crossovers."""
    from verdiv.cli.price_inputs import Asked, read_hazards, read_input, read_numbers
    from verdiv.cli.price_text import sweep_csv, sweep_text
    from verdiv.cli.price_work import swept

    document = swept(
        read_input(Asked(params, assignments or (), fit, seed)),
        axes,
        form=form.value if form else None,
        hazards=read_hazards(hazard1, hazard2),
        b_max=budget,
        votes=[int(k) for k in read_numbers(votes, where="--votes")],
    )
    _say(document, lambda: sweep_text(document), as_json)
    _save(csv, lambda: sweep_csv(document), force)
    if svg is not None:
        from verdiv.cli.price_pictures import sweep_picture

        _save(svg, lambda: sweep_picture(document, map_of.value), force)
    return 0


@app.command(epilog=EXAMPLES, short_help="Price A3 in every form, side by side.")
def forms(
    params: Params = None,
    assignments: Sets = None,
    fit: Fit = None,
    hazard1: Hazard1 = None,
    hazard2: Hazard2 = None,
    budget: Budget = 5,
    seed: options.Seed = 1,
    as_json: Json = False,
) -> int:
    """Price A3 in every form side by side: class-stable, fresh, correlated, measured hazards."""
    from verdiv.cli.price_inputs import Asked, read_hazards, read_input
    from verdiv.cli.price_text import forms_text
    from verdiv.pricing.document import forms_document
    from verdiv.pricing.sensitivity import compare_forms

    source = read_input(Asked(params, assignments or (), fit, seed))
    hazards = read_hazards(hazard1, hazard2)
    document = forms_document(compare_forms(source.rates(), b_max=budget, hazards=hazards), budget)
    _say(document, lambda: forms_text(document), as_json)
    return 0


@app.command(epilog=EXAMPLES, short_help="Solve spend parity turn by turn.")
def turns(
    p_d: Annotated[str, typer.Argument(metavar="P_D,…", help="Detectable mass of each turn.")],
    q0: Annotated[str | None, typer.Option("--q0", help="One-shot quality of each turn.")] = None,
    params: Params = None,
    assignments: Sets = None,
    form: FormOption = None,
    hazard1: Hazard1 = None,
    hazard2: Hazard2 = None,
    budget: Budget = 5,
    as_json: Json = False,
) -> int:
    """Solve spend parity for every turn of a conversation, and for the whole."""
    from verdiv.cli.price_inputs import Asked, read_hazards, read_input, read_numbers
    from verdiv.cli.price_text import turns_text
    from verdiv.pricing.document import turns_document
    from verdiv.pricing.forms import choose_form
    from verdiv.pricing.turns import price_turns

    source = read_input(Asked(params, assignments or ()))
    hazards = read_hazards(hazard1, hazard2)
    chosen = choose_form(form.value if form else None, source.rates(), hazards)
    talk = price_turns(
        source.point,
        read_numbers(p_d, where="P_D"),
        form=chosen,
        q0=None if q0 is None else read_numbers(q0, where="--q0"),
        b_max=budget,
        hazards=hazards,
    )
    document = turns_document(talk, chosen)
    _say(document, lambda: turns_text(document), as_json)
    return 0


@app.command(epilog=EXAMPLES, short_help="Find budgets behind a published pair of bills.")
def design(
    expected: Annotated[str, typer.Argument(help="Published expected bill a task, as printed.")],
    worst: Annotated[str, typer.Argument(help="Published worst case a task, as printed.")],
    params: Params = None,
    assignments: Sets = None,
    votes: Annotated[str, typer.Option("--votes", help="Vote sizes to try.")] = "5",
    teacher: Annotated[str, typer.Option("--teacher", help="Budgets of the gated teacher to try.")] = "2",
    largest: Annotated[int, typer.Option("--largest", min=1, max=12, help="Largest budget to try.")] = 8,
    as_json: Json = False,
) -> int:
    """Find the arm budgets that reproduce a published pair of bills at their printed precision."""
    from verdiv.cli.price_inputs import Asked, read_input, read_numbers
    from verdiv.cli.price_text import design_text
    from verdiv.pricing.design import find_designs
    from verdiv.pricing.document import design_document

    found = find_designs(
        read_input(Asked(params, assignments or ())).point,
        expected,
        worst,
        votes=tuple(int(k) for k in read_numbers(votes, where="--votes")),
        teacher_budgets=tuple(int(b) for b in read_numbers(teacher, where="--teacher")),
        largest=largest,
    )
    document = design_document(found)
    _say(document, lambda: design_text(document), as_json)
    return 0


@app.command(epilog=EXAMPLES)
def figures(params: Params = None, assignments: Sets = None, as_json: Json = False) -> int:
    """Recompute the figures that the paper prints."""
    from verdiv.cli.price_inputs import Asked, read_input
    from verdiv.cli.price_text import figures_text
    from verdiv.cli.price_work import recomputed

    document = recomputed(read_input(Asked(params, assignments or ())))
    _say(document, lambda: figures_text(document["figures"]), as_json)
    return 0
