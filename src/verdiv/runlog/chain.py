r"""The hash chain over the lines of a run log.

Each record carries ``prev``, the SHA-256 of the bytes of the line before it, the line's end (``\n``) not
included; the header's ``prev`` is null. The footer's ``head`` is the SHA-256 of the last line before the
footer, so that a dropped tail, an edited line, a moved line or an added one all show. What the chain cannot
show is an edit of the last line of a log without a footer, which is why such a log is called incomplete.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

__all__ = ["chain_breaks", "line_digest"]


def line_digest(line: bytes) -> str:
    r"""Return the link that the next line carries.

    Parameters
    ----------
    line
        The line's bytes without its end.

    Returns
    -------
    str
        SHA-256, 64 lower-case hex digits.

    Examples
    --------
    >>> line_digest(b"{}")[:16]
    '44136fa355b3678a'
    """
    return sha256(line).hexdigest()


def chain_breaks(links: Iterable[str | None], digests: Iterable[str | None]) -> list[int]:
    """Return the places where a record's link is not the digest of the line before it.

    Parameters
    ----------
    links
        ``prev`` of each record, in order.
    digests
        Digest of the line before each record; None stands before the header.

    Returns
    -------
    list of int
        0-based places of the records whose link does not hold; empty for a whole chain. One edit breaks one
        link (the next record's), so breaks do not run on.

    Examples
    --------
    >>> chain_breaks([None, "aa", "xx", "cc"], [None, "aa", "bb", "cc"])
    [2]
    """
    return [i for i, (link, digest) in enumerate(zip(links, digests, strict=True)) if link != digest]
