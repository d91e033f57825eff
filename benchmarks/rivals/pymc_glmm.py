"""The usual model without counts: a Bernoulli likelihood a draw, intercepts for families and tasks, sampled by PyMC."""

from __future__ import annotations

import json
import sys

import arviz as az
import pandas as pd
import pymc as pm


def main() -> None:
    """Fit the rows of a CSV file (task, family, correct) and print the posterior of the mean rate."""
    rows = pd.read_csv(sys.argv[1])
    task, tasks = pd.factorize(rows["task"])
    family = pd.factorize(rows.drop_duplicates("task")["family"])[0]
    with pm.Model():
        mu = pm.Normal("mu", 0.0, 2.5)
        between = pm.HalfNormal("tau", 0.7)
        within = pm.HalfNormal("sigma", 1.5)
        f = pm.Normal("f", 0.0, 1.0, shape=int(family.max()) + 1)
        t = pm.Normal("t", 0.0, 1.0, shape=len(tasks))
        logit = mu + between * f[family] + within * t
        pm.Bernoulli("y", logit_p=logit[task], observed=rows["correct"].to_numpy())
        found = pm.sample(1000, tune=1000, chains=4, cores=2, random_seed=1, progressbar=False)
    sizes = az.ess(found, var_names=["mu", "tau", "sigma"])
    ess = min(float(sizes[name]) for name in ("mu", "tau", "sigma"))
    mean, divergences = float(found.posterior["mu"].mean()), int(found.sample_stats["diverging"].sum())
    print(json.dumps({"ess": ess, "of": ["mu", "tau", "sigma"], "mean": mean, "divergences": divergences}))


if __name__ == "__main__":
    main()
