"""The deployment rule as running code: sample, verify, retry with the message, escalate, log every draw."""

from __future__ import annotations

from verdiv.policy.gate import GATE, Certificate, certify_counts, certify_draws
from verdiv.policy.gated import GatedRetry, Standing
from verdiv.policy.log import PolicyLog
from verdiv.policy.records import (
    Ask,
    Drawn,
    InfrastructureRetries,
    Limits,
    ModelFailed,
    Outcome,
    Refused,
    Reply,
    Result,
    Tier,
    Verdict,
)

__all__ = [
    "GATE",
    "Ask",
    "Certificate",
    "Drawn",
    "GatedRetry",
    "InfrastructureRetries",
    "Limits",
    "ModelFailed",
    "Outcome",
    "PolicyLog",
    "Refused",
    "Reply",
    "Result",
    "Standing",
    "Tier",
    "Verdict",
    "certify_counts",
    "certify_draws",
]
