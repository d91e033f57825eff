"""A locked rule as a PRML 0.1 manifest: P(claim | data) ≥ γ, in canonical YAML, with its SHA-256.

The canonical form sorts keys, writes block style, one line a scalar, one line's end at the end. The canonicaliser is
our own; it knows the scalars that such manifests hold and refuses others.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from verdiv.errors import Fault, UsageRefused
from verdiv.preregistration.lockfile import Lock
from verdiv.preregistration.rules import RULE_IDS
from verdiv.runlog.stamps import instants

__all__ = ["canonical_yaml", "claim_id", "manifest_of", "manifests"]

_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_INDICATORS = frozenset("#,[]{}&*!|>'\"%@`")
_RESOLVED = re.compile(
    r"(?:"
    r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF|null|Null|NULL|~|<<|="
    r"|[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
    r"|[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+"
    r"|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?"
    r"(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?"
    r")\Z"
)
"""Texts that YAML 1.1 reads as something else than text."""


def _text(text: str) -> str:
    """Spell a text: plain where nothing could read it as something else, else in single quotes."""
    if _FORBIDDEN.search(text) or any(ord(ch) > 0xFFFF or 0xD800 <= ord(ch) < 0xE000 for ch in text):
        raise UsageRefused(
            "no canonical form", [Fault("text", "printable text of one line", repr(text)[:60], "reword it")]
        )
    plain = (
        bool(text)
        and text == text.strip(" ")
        and text[0] not in _INDICATORS
        and not (text[0] in "-?:" and (len(text) == 1 or text[1] == " "))
        and not text.startswith(("---", "..."))
        and ": " not in text
        and not text.endswith(":")
        and " #" not in text
        and not _RESOLVED.match(text)
    )
    return text if plain else "'" + text.replace("'", "''") + "'"


def _number(value: float) -> str:
    text = repr(float(value)).lower()
    if "." not in text and "e" in text:
        text = text.replace("e", ".0e", 1)
    return text


def canonical_yaml(value: Mapping[str, Any], indent: int = 0) -> str:
    """Return the canonical YAML of a manifest: tables, texts, numbers, truth values and null.

    Raises
    ------
    UsageRefused
        A value that has no canonical form here.

    Examples
    --------
    >>> print(canonical_yaml({"b": {"x": 1, "on": "yes"}, "a": 0.95}), end="")
    a: 0.95
    b:
      'on': 'yes'
      x: 1
    """
    lines = []
    for key in sorted(value):
        item = value[key]
        head = f"{' ' * indent}{_text(key)}:"
        if isinstance(item, Mapping):
            lines.append(f"{head}\n{canonical_yaml(item, indent + 2)}" if item else f"{head} {{}}\n")
        elif isinstance(item, str):
            lines.append(f"{head} {_text(item)}\n")
        elif item is None or isinstance(item, bool):
            lines.append(f"{head} {'null' if item is None else str(item).lower()}\n")
        elif isinstance(item, int):
            lines.append(f"{head} {item}\n")
        elif isinstance(item, float) and np.isfinite(item):
            lines.append(f"{head} {_number(item)}\n")
        else:
            fault = Fault(
                key, "text, a number, a truth value or a table", type(item).__name__, "leave it out"
            )
            raise UsageRefused("no canonical form", [fault])
    return "".join(lines)


def claim_id(time: str, seed: str) -> str:
    """Return a UUID of version 7 for a claim: its time in milliseconds, the rest from a digest of its seed.

    Examples
    --------
    >>> claim_id("2026-03-01T12:00:00Z", "x")
    '019ca945-0a00-7d71-9642-b726b0440162'
    """
    milliseconds = int(instants([time])[0].astype("datetime64[ms]").astype(np.int64))
    digest = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:10], "big")
    number = (milliseconds & (2**48 - 1)) << 80 | 7 << 76 | (digest >> 64 & 0xFFF) << 64
    number |= 2 << 62 | digest & (2**62 - 1)
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def manifest_of(lock: Lock, rule: str) -> dict[str, Any]:
    """Return the manifest of one rule of the plan that a lock holds now.

    Raises
    ------
    UsageRefused
        The plan names no suite by its digest, so that there is no data set to bind.
    """
    body = lock.current
    suite = body.get("suite_sha256")
    if not isinstance(suite, str):
        fault = Fault(
            lock.path, "the digest of the suite", "none", "register suite.sha256, or lock a suite file"
        )
        raise UsageRefused("a manifest binds a data set", [fault])
    plan = body["plan"]
    return {
        "version": "prml/0.1",
        "claim_id": claim_id(str(body["time"]), f"{lock.head}/{rule}"),
        "created_at": str(body["time"]),
        "metric": f"posterior probability of the claim of rule {rule}",
        "comparator": ">=",
        "threshold": float(plan["decision"]["gamma"]),
        "dataset": {"id": "task suite", "hash": suite},
        "seed": int(plan["seeds"][0]),
        "producer": {"id": "verdiv"},
        "metric_args": {
            name: value for name, value in plan["rules"][rule].items() if isinstance(value, str | int | float)
        }
        | {"lock": lock.head},
    }


def manifests(lock: Lock) -> dict[str, tuple[str, str]]:
    """Return rule to canonical manifest and its SHA-256, for all ten rules."""
    found = {}
    for rule in RULE_IDS:
        text = canonical_yaml(manifest_of(lock, rule))
        found[rule] = text, hashlib.sha256(text.encode("utf-8")).hexdigest()
    return found
