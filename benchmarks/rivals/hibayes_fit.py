"""A hierarchical binomial fit by HiBayES (NumPyro), with its own defaults: 4 chains of 1,000 + 2,000 draws.

    python hibayes_fit.py ROWS.csv [tasks | rows | nested | full]

It goes the way of its guide as far as the fit: load extracted data, group rows into counts, extract features, fit. Its
checks, plots and tables are left out, and so is its progress bar.

``tasks`` is its default model, ``two_level_group_binomial``, with the tasks as groups; ``rows`` is the same without the
grouping to counts, a binomial of size one a row. ``nested`` is ``three_level_group_binomial``,
which puts tasks within families; it has a level below the tasks, which holds one unit each here. Tasks are numbered
within their family, so that its arrays hold no empty cells, and its dimensions are named here, as those that its own
processors name do not fit that model's arrays. ``full`` is ``tasks`` by its own command, ``hibayes-full``, with its
default checks and a forest plot and a table, as in the guide's example; nobody is asked to approve a plot.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

MODELS = {
    "rows": ("two_level_group_binomial", ("group",), ("overall_mean", "sigma_group")),
    "tasks": ("two_level_group_binomial", ("group",), ("overall_mean", "sigma_group")),
    "nested": (
        "three_level_group_binomial",
        ("group", "subgroup", "subsubgroup"),
        ("overall_mean", "sigma_group", "sigma_subgroup", "sigma_subsubgroup"),
    ),
}
"""Model to its name in the package, its levels, and the parameters whose effective sample size is told."""

CHECKS = (
    {"prior_predictive_plot": {"interactive": False}},
    *("r_hat", "divergences", "ess_bulk", "ess_tail", "loo", "bfmi", "waic"),
    {"posterior_predictive_plot": {"interactive": False}},
)
"""The package's default checks."""


def steps(model: str) -> list[dict[str, Any]]:
    """Return how rows become the arrays of a model."""
    levels = list(MODELS[model][1])
    found: list[dict[str, Any]] = [
        {"groupby": {"groupby_columns": levels}},
        {"extract_features": {"continuous_features": ["n_total"], "categorical_features": levels}},
        {"extract_observed_feature": {"feature_name": "n_correct"}},
    ]
    return found[1:] if model == "rows" else found


def prepared(rows: Path, model: str) -> Path:
    """Write the rows under the column names that the package expects, and return where."""
    import pandas as pd

    table = pd.read_csv(rows).rename(columns={"correct": "score"})
    if model != "nested":
        table = table.rename(columns={"task": "group"})
        if model == "rows":
            table = table.rename(columns={"score": "n_correct"}).assign(n_total=1)
    else:
        table["subgroup"] = table.groupby("family")["task"].transform(lambda task: pd.factorize(task)[0])
        table = table.rename(columns={"family": "group"})
        table["subsubgroup"] = "all"
    path = rows.with_suffix(f".{model}.csv")
    table.to_csv(path, index=False)
    return path


def fit(rows: Path, model: str) -> Any:
    """Fit the rows and return the posterior."""
    from hibayes.cli import setup_platform

    setup_platform(device_type="cpu")
    from hibayes.analysis import load_data, process_data
    from hibayes.analysis_state import ModelAnalysisState
    from hibayes.load import DataLoaderConfig
    from hibayes.model import ModelsToRunConfig
    from hibayes.model import fit as fit_model
    from hibayes.platform import PlatformConfig
    from hibayes.process import ProcessConfig
    from hibayes.ui import ModellingDisplay

    name, levels, _ = MODELS[model]
    platform = PlatformConfig()
    display = ModellingDisplay()
    state = load_data(
        DataLoaderConfig.from_dict({"paths": {"extracted_data": [str(prepared(rows, model))]}}), display
    )
    process = ProcessConfig.from_dict({"processors": steps(model)})
    state = process_data(process, display, analysis_state=state)
    wanted = {"models": [{"name": name, "config": {"fit": {"progress_bar": False}}}]}
    dims = {f"{level}_effects": list(levels[: i + 1]) for i, level in enumerate(levels)}
    ((chosen, config),) = ModelsToRunConfig.from_dict(wanted).enabled_models
    fitted = ModelAnalysisState(
        model=chosen,
        model_config=config,
        platform_config=platform,
        features=state.features,
        coords=state.coords,
        dims={**state.dims, **dims},
    )
    fit_model(model_analysis_state=fitted)
    return fitted.inference_data


def run_command(rows: Path) -> NoReturn:
    """Become the package's own command on the rows, from extracted data to plots and tables."""
    config = {
        "data_loader": {"paths": {"extracted_data": [str(prepared(rows, "tasks"))]}},
        "data_process": {"processors": steps("tasks")},
        "model": {"models": ["two_level_group_binomial"]},
        "check": {"checkers": list(CHECKS)},
        "communicate": {"communicators": ["forest_plot", "summary_table"]},
    }
    path = rows.with_suffix(".full.yaml")
    # JSON is YAML.
    path.write_text(json.dumps(config), encoding="utf-8")
    os.environ["MPLBACKEND"] = "Agg"
    command = str(Path(sys.executable).with_name("hibayes-full"))
    os.execv(command, [command, "--config", str(path), "--out", str(rows.with_suffix(".full")), "--no-tui"])


def main() -> None:
    """Fit the rows of a CSV file (task, family, correct) and print the smallest bulk effective sample size."""
    if find_spec("hibayes") is None:
        raise SystemExit(
            "HiBayES is not installed for this Python: see its guide, then name it with --peer-python"
        )
    model = sys.argv[2] if len(sys.argv) > 2 else "tasks"
    if model == "full":
        run_command(Path(sys.argv[1]))
    found = fit(Path(sys.argv[1]), model)
    import arviz as az

    parameters = MODELS[model][2]
    sizes = az.ess(found, var_names=list(parameters))
    ess = min(float(sizes[name]) for name in parameters)
    mean = float(found.posterior["overall_mean"].mean())
    divergences = int(found.sample_stats["diverging"].sum())
    print(json.dumps({"ess": ess, "of": list(parameters), "mean": mean, "divergences": divergences}))


if __name__ == "__main__":
    main()
