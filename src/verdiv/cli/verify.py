"""``verdiv verify``: recompute a lock and say what it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verdiv.cli import options

__all__ = ["app"]

app = options.command()

EXAMPLES = """\b
Examples:
  verdiv verify preregistration.lock.json
  verdiv verify preregistration.lock.json --prereg elsewhere/preregistration.toml --json
  verdiv verify preregistration.lock.json --signature preregistration.lock.dsse.json --public-key a.pub.pem
  verdiv verify preregistration.lock.json --timestamp head.tsr --ca authority.pem

\b
Any JCS program recomputes the digests, e.g. jq and openssl:
  jq -cjS '.records[0].body' preregistration.lock.json | openssl dgst -sha256"""


@app.command(epilog=EXAMPLES)
def verify(
    lock: Annotated[Path, typer.Argument(metavar="LOCK", help="Lock to check.")],
    prereg: Annotated[
        Path | None,
        typer.Option("--prereg", help="Registration, where it lies elsewhere than the lock says."),
    ] = None,
    signature: Annotated[
        Path | None, typer.Option("--signature", help="DSSE envelope; needs --public-key.")
    ] = None,
    public_key: Annotated[
        Path | None, typer.Option("--public-key", help="Signer's public ed25519 key, PEM.")
    ] = None,
    timestamp: Annotated[
        Path | None, typer.Option("--timestamp", help="RFC 3161 response over a record's digest; needs --ca.")
    ] = None,
    ca: Annotated[
        Path | None, typer.Option("--ca", help="Certificates of the authority of time, PEM.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="Folder for PRML manifests, an in-toto statement and an RO-Crate."),
    ] = None,
    force: options.Force = False,
    severity: Annotated[
        bool,
        typer.Option("--severity", help="Simulate the locked severity again, and compare every verdict."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> int:
    """Recompute digests, links, registration and files; state the strength that was checked, and no more."""
    import json

    from verdiv.cli.lock_work import report_json, report_lines, simulating
    from verdiv.cli.run_analysis import VOID
    from verdiv.errors import Fault, InputRefused, UsageRefused
    from verdiv.preregistration.proofs import signature_proof, timestamp_proof
    from verdiv.preregistration.verify import verify_lock

    if not lock.is_file():
        fault = Fault(str(lock), "a lock file", "nothing that can be read", "check the path")
        raise InputRefused("the lock cannot be read", [fault])
    for one, other, names in (
        (signature, public_key, "--signature --public-key"),
        (timestamp, ca, "--timestamp --ca"),
    ):
        if (one is None) != (other is None):
            raise UsageRefused("half a proof", [Fault(names, "both", "one of them", "give both, or neither")])
    proofs = []
    if signature is not None and public_key is not None:
        proofs.append(signature_proof(signature, public_key))
    if timestamp is not None and ca is not None:
        proofs.append(timestamp_proof(timestamp, ca))
    with simulating() as simulate:
        report = verify_lock(lock, registration=prereg, proofs=proofs, again=simulate if severity else None)
    typer.echo(json.dumps(report_json(report), indent=2) if as_json else "\n".join(report_lines(report)))
    if export is not None and report.lock is not None and not report.broken:
        from verdiv.preregistration.exports import export_lock

        export_lock(report.lock, lock.name, export, force=force)
    return VOID if report.broken else 0
