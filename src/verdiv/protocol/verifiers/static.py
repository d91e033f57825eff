"""V_static: schema, syntax tree and ranges, on the CPU, at no token, executing nothing."""

from __future__ import annotations

from collections.abc import Mapping

from verdiv.errors import Fault, UsageRefused
from verdiv.protocol.calls.verdict import StaticVerdict
from verdiv.protocol.suite.task import Family, PublicTask

__all__ = ["static_verdict"]


def static_verdict(output: str | bytes, public: PublicTask, families: Mapping[str, Family]) -> StaticVerdict:
    """Judge an output without its ground truth ("The Verifier's Dividend", section "Design").

    Parameters
    ----------
    output
        What the model returned: any text or bytes.
    public
        Public part of the task.
    families
        Families by name.

    Returns
    -------
    StaticVerdict
        The same for the same arguments: passed, or flagged as structural (the message prescribes the fix)
        or semantic (a range or parse check failed, and no fix is known).

    Raises
    ------
    UsageRefused
        When the task's family is not among them; no output ever raises.

    Examples
    --------
    >>> from verdiv.protocol.suite.generate import FAMILIES, generate_suite
    >>> task = generate_suite(1).tasks[0]
    >>> static_verdict("about 12", task.public, FAMILIES).code
    'not-json'
    """
    family = families.get(public.family)
    if family is None:
        fault = Fault("families", f"the family {public.family}", ", ".join(families), "register it")
        raise UsageRefused("the output cannot be verified", [fault])
    return family.verify(output, public)
