"""Generalised estimating equations by statsmodels: one rate a family, errors clustered by task."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import statsmodels.api as sm


def main() -> None:
    """Fit the rows of a CSV file (task, family, correct) and print coefficients and their errors."""
    rows = pd.read_csv(sys.argv[1]).sort_values("task", kind="stable")
    design = pd.get_dummies(rows["family"]).to_numpy(dtype=float)
    groups = pd.factorize(rows["task"])[0]
    model = sm.GEE(
        rows["correct"].to_numpy(dtype=float),
        design,
        groups=groups,
        family=sm.families.Binomial(),
        cov_struct=sm.cov_struct.Exchangeable(),
    )
    found = model.fit()
    print("coefficients", np.round(found.params, 4), "errors", np.round(found.bse, 4))


if __name__ == "__main__":
    main()
