"""A lock in the forms of other tools: PRML manifests, an in-toto statement, an RO-Crate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from verdiv.preregistration.canonical import canonical_bytes
from verdiv.preregistration.lockfile import Lock
from verdiv.preregistration.prml import manifests
from verdiv.preregistration.proofs import statement_of
from verdiv.runlog.storage import atomic_file

__all__ = ["crate_of", "export_lock"]


def crate_of(lock: Lock, name: str) -> dict[str, Any]:
    """Return RO-Crate 1.1 metadata of a lock's folder: registration, lock and every covered file."""
    body = lock.current
    files = [{"path": name, "sha256": None}]
    if body["registration"].get("path"):
        files.append({"path": body["registration"]["path"], "sha256": body["registration"]["sha256"]})
    files += [{"path": file["path"], "sha256": file["sha256"]} for file in body["files"]]
    parts = [
        {"@id": file["path"], "@type": "File", **({"sha256": file["sha256"]} if file["sha256"] else {})}
        for file in files
    ]
    return {
        "@context": "https://w3id.org/ro/crate/1.1/context",
        "@graph": [
            {
                "@id": "ro-crate-metadata.json",
                "@type": "CreativeWork",
                "about": {"@id": "./"},
                "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
            },
            {
                "@id": "./",
                "@type": "Dataset",
                "name": body["plan"]["title"],
                "description": f"A locked registration; digest of its newest record {lock.head}.",
                "datePublished": lock.locked_at,
                "author": [{"@id": f"#author-{at}"} for at in range(len(body["plan"]["authors"]))],
                "hasPart": [{"@id": part["@id"]} for part in parts],
            },
            *(
                {"@id": f"#author-{at}", "@type": "Person", "name": author}
                for at, author in enumerate(body["plan"]["authors"])
            ),
            *parts,
        ],
    }


def export_lock(lock: Lock, name: str, folder: Path, *, force: bool = False) -> tuple[Path, ...]:
    """Write a lock's exports into a folder, and return their paths.

    Parameters
    ----------
    lock
        The lock.
    name
        Its file name.
    folder
        Where to write; made if absent.
    force
        Replace files that stand there.

    Raises
    ------
    UsageRefused
        The lock names no suite, so that no manifest can bind one.
    WriteFailed
        A name is taken.
    """
    documents: dict[str, bytes] = {}
    for rule, (text, digest) in manifests(lock).items():
        documents[f"{rule}.prml.yaml"] = text.encode("utf-8")
        documents[f"{rule}.prml.prml.sha256"] = f"{digest}\n".encode()
    documents["statement.intoto.json"] = canonical_bytes(statement_of(lock, name)) + b"\n"
    documents["ro-crate-metadata.json"] = json.dumps(crate_of(lock, name), indent=2).encode() + b"\n"
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in documents.items():
        with atomic_file(folder / file, overwrite=force) as stream:
            stream.write(data)
    return tuple(folder / file for file in documents)
