"""The two verifiers of the protocol, over any set of families."""

from __future__ import annotations

from verdiv.protocol.verifiers.oracle import oracle_verdict
from verdiv.protocol.verifiers.static import static_verdict

__all__ = ["oracle_verdict", "static_verdict"]
