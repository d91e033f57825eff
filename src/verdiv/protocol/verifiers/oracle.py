"""V_oracle: knows the ground truth. A ceiling device for measuring what a static verifier misses.

It must never be deployed: a system that knew the answers would need no model. Nothing in the runner's gates or
prompts reads it; its verdict is only logged, for the detection rate of silent errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from verdiv.protocol.suite.task import Family, Task
from verdiv.runlog.records import Oracle

__all__ = ["DEPLOYABLE", "oracle_verdict"]

DEPLOYABLE: Final = False
"""Never: the verdict needs the answer."""


def oracle_verdict(output: str | bytes, task: Task, families: Mapping[str, Family]) -> Oracle:
    """Flag exactly the wrong outputs.

    Parameters
    ----------
    output
        What the model returned: any text or bytes.
    task
        The task with its ground truth.
    families
        Families by name.

    Returns
    -------
    Oracle
        Flagged where the output is not the correct call, so that its share of silent errors, eta_ox of "The
        Verifier's Dividend", is 1 on suites with exact ground truth.

    Examples
    --------
    >>> from verdiv.protocol.suite.generate import FAMILIES, generate_suite
    >>> task = generate_suite(1).tasks[0]
    >>> oracle_verdict("about 12", task, FAMILIES).flagged
    True
    """
    return Oracle(flagged=not families[task.family].is_correct(output, task))
